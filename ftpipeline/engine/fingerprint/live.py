"""Live values of globals: what the source does not tell, because it was computed while the module was imported.

Each value is read once in a process: steps may fill caches later, and a key must not depend on what ran before.
"""

import sys
from collections.abc import Iterable, Sequence
from types import FunctionType, ModuleType

from ftpipeline.engine.fingerprint.facts import Item
from ftpipeline.engine.fingerprint.resolve import Project
from ftpipeline.engine.fingerprint.values import CanonicalValue, code_place, read_value, usual_places

_values: dict[tuple[str, str], tuple[object, CanonicalValue]] = {}


class LiveModules:
    """The loaded modules whose values may be read."""

    def __init__(self, project: Project, roots: Iterable[str]) -> None:
        """Take the modules that importing `roots` always imports: what else is loaded depends on the process."""
        self._owns = project.owns
        self._places = usual_places(project.finder.bases)
        self._modules: dict[str, ModuleType] = {}
        for name in _always_imported(project, roots):
            located, module = project.finder.locate(name), sys.modules.get(name)
            if module and located and getattr(module, "__file__", None) == located.path:
                self._modules[name] = module

    def has(self, module: str, name: str | None = None) -> bool:
        """Whether `module` is loaded, and has `name`."""
        loaded = self._modules.get(module)
        return loaded is not None and (name is None or name in vars(loaded))

    def value(self, module: str, name: str) -> CanonicalValue:
        """Return the canonical form of what `module` binds to `name`, as it was when it was first asked for."""
        value = vars(self._modules[module])[name]
        known = _values.get((module, name))
        if known is None or known[0] is not value:
            known = _values[module, name] = (value, read_value(value, self._places, self._owns))
        return known[1]

    def is_rebound(self, module: str, name: str, items: Sequence[Item]) -> bool:
        """Whether an undecorated function or class is no longer what `items` of its module defined."""
        if not is_defined(items) or any(item.decorators for item in items if item.kind == "def"):
            return False
        value = vars(self._modules[module])[name]
        if isinstance(value, FunctionType):
            return code_place(value) != (module, name)
        return not (isinstance(value, type) and (value.__module__, value.__qualname__) == (module, name))


def is_defined(items: Sequence[Item]) -> bool:
    """Whether `items` only define functions and classes."""
    return all(item.kind in {"def", "class"} for item in items)


def _always_imported(project: Project, roots: Iterable[str]) -> set[str]:
    found: set[str] = set()
    pending = list(roots)
    while pending:
        name = pending.pop()
        if name in found or not project.owns(name):
            continue
        found.add(name)
        pending.append(name.rpartition(".")[0] or name)
        for entry in project.facts(name).imports:
            if entry.kind == "always":
                base = project.absolute(name, entry.level, entry.module)
                pending += (base, f"{base}.{entry.attribute}")
    return found
