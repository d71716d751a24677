"""What a closure starts from: functions and classes that are loaded, and modules that are only named."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import FunctionType
from typing import Any

from ftpipeline.engine.fingerprint.modules import Finder
from ftpipeline.engine.fingerprint.values import CanonicalValue, code_place, read_value, usual_places
from ftpipeline.errors import StepDefinitionError


@dataclass(frozen=True)
class Root:
    """One root.

    Attributes:
        label: `module:qualname`, or the module's name.
        module: its module.
        top: the name at the top level of its module under which it stands; empty for a module.
        value: the loaded object; None for a module that is only named.
    """

    label: str
    module: str
    top: str
    value: Any = None

    @property
    def identity(self) -> tuple[str, int]:
        """What tells this root from all others in the process."""
        return self.label, id(self.value)

    def read(self, finder: Finder) -> CanonicalValue:
        """Return the canonical form of the root's own value, such as what a decorator closed over."""
        return read_value(self.value, usual_places(finder.bases), lambda module: finder.locate(module) is not None)

    def require_source(self, finder: Finder) -> None:
        """Raise StepDefinitionError unless the root's module is found on disk."""
        located = finder.locate(self.module)
        if located is None or located.path is None:
            raise StepDefinitionError(
                f"{self.label}: no source file of module {self.module!r} is found; define it in a module on sys.path"
            )


def roots_of(roots: Sequence[Callable[..., Any] | type | str]) -> list[Root]:
    """Return the roots in the order given."""
    return [Root(root, root, "") if isinstance(root, str) else _loaded(underlying(root)) for root in roots]


def underlying(target: Any) -> Any:
    """Return the function that a declared step holds; every other object as it is."""
    function = getattr(target, "function", None)
    return function if isinstance(function, FunctionType) and not isinstance(target, FunctionType) else target


def _loaded(value: Any) -> Root:
    named = value if hasattr(value, "__qualname__") else type(value)
    module, qualname = named.__module__, named.__qualname__
    if isinstance(value, FunctionType) and module not in sys.modules:
        module, qualname = code_place(value)
    return Root(f"{module}:{qualname}", module, qualname.partition(".")[0], value)
