"""Live values of globals: what the source does not tell, because it was computed while the module was imported.

Each value is read once in a process: steps may fill caches later, and a key must not depend on what ran before.
"""

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import FunctionType
from typing import Final

from ftpipeline.engine.fingerprint.facts import Item
from ftpipeline.engine.fingerprint.resolve import Project
from ftpipeline.engine.fingerprint.values import CanonicalValue, code_place, read_value

ABSENT: Final = "absent"
"""What is noted of a name that a module does not have."""

DEFINED: Final = "defined"
"""What is noted of a function or class that is what its module defined."""

Paths = Mapping[str, str | None]
"""Name of a module to its file; None for a namespace package."""

_values: dict[tuple[str, str], tuple[object, CanonicalValue]] = {}


class LiveModules:
    """The loaded modules whose values may be read.

    Attributes:
        loaded: those of them that are loaded.
        seen: module to name to what was found there: the digest of a value, `ABSENT` or `DEFINED`.
    """

    def __init__(self, paths: Paths, places: Sequence[tuple[str, str]], owns: Callable[[str], bool]) -> None:
        """Take the modules in `paths` that are loaded from there; `places` and `owns` are as for `read_value`."""
        self.seen: dict[str, dict[str, str]] = {}
        self._places = places
        self._owns = owns
        self._modules = {name: sys.modules[name] for name, path in paths.items() if _is_loaded(name, path)}

    @property
    def loaded(self) -> list[str]:
        """Names of the modules that are loaded."""
        return sorted(self._modules)

    def has(self, module: str, name: str | None = None) -> bool:
        """Whether `module` is loaded, and has `name`."""
        loaded = self._modules.get(module)
        if loaded is None or name is None or name in vars(loaded):
            return loaded is not None
        self._note(module, name, ABSENT)
        return False

    def value(self, module: str, name: str) -> CanonicalValue:
        """Return the canonical form of what `module` binds to `name`, as it was when it was first asked for."""
        value = vars(self._modules[module])[name]
        known = _values.get((module, name))
        if known is None or known[0] is not value:
            known = _values[module, name] = (value, read_value(value, self._places, self._owns))
        self._note(module, name, known[1].digest)
        return known[1]

    def is_rebound(self, module: str, name: str, items: Sequence[Item]) -> bool:
        """Whether an undecorated function or class is no longer what `items` of its module defined."""
        if not is_defined(items) or any(item.decorators for item in items if item.kind == "def"):
            return False
        if not self._is_own(module, name):
            return True
        self._note(module, name, DEFINED)
        return False

    def shows(self, seen: Mapping[str, Mapping[str, str]]) -> bool:
        """Whether the modules still hold what another process has `seen` in them."""
        return all(self._shows(module, name, what) for module, names in seen.items() for name, what in names.items())

    def _shows(self, module: str, name: str, what: str) -> bool:
        if not self.has(module, name):
            return what == ABSENT
        if what == DEFINED:
            return self._is_own(module, name)
        return what != ABSENT and self.value(module, name).digest == what

    def _is_own(self, module: str, name: str) -> bool:
        value = vars(self._modules[module])[name]
        if isinstance(value, FunctionType):
            return code_place(value) == (module, name)
        return isinstance(value, type) and (value.__module__, value.__qualname__) == (module, name)

    def _note(self, module: str, name: str, what: str) -> None:
        self.seen.setdefault(module, {})[name] = what


def is_defined(items: Sequence[Item]) -> bool:
    """Whether `items` only define functions and classes."""
    return all(item.kind in {"def", "class"} for item in items)


def always_imported(project: Project, roots: Iterable[str]) -> dict[str, str | None]:
    """Return the modules that importing `roots` always imports: what else is loaded depends on the process."""
    found: dict[str, str | None] = {}
    pending = list(roots)
    while pending:
        name = pending.pop()
        located = project.finder.locate(name)
        if name in found or located is None:
            continue
        found[name] = located.path
        pending.append(name.rpartition(".")[0] or name)
        for entry in project.facts(name).imports:
            if entry.kind == "always":
                base = project.absolute(name, entry.level, entry.module)
                pending += (base, f"{base}.{entry.attribute}")
    return found


def _is_loaded(name: str, path: str | None) -> bool:
    module = sys.modules.get(name)
    return module is not None and getattr(module, "__file__", None) == path
