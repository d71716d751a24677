"""What a name in a module of the project stands for, followed through imports, re-exports and star imports."""

import builtins
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ftpipeline.engine.fingerprint.cache import FactsCache
from ftpipeline.engine.fingerprint.disk import Disk
from ftpipeline.engine.fingerprint.facts import FileFacts, Import, Item
from ftpipeline.engine.fingerprint.modules import Finder

_NO_FACTS = FileFacts((), (), "", "")


class Target(NamedTuple):
    """What a chain leads to.

    Attributes:
        kind: `definition` (name bound in a first-party module), `module` (a first-party module itself), `external`
            (dotted name outside the project), `typing` (imported for annotations only) or `unknown`.
        module: first-party module; empty for `external`.
        name: bound name or dotted name.
        more: attributes of the definition follow.
    """

    kind: str
    module: str
    name: str
    more: bool = False

    def __str__(self) -> str:
        """Return the form that is hashed."""
        return f"{self.kind} {self.module}:{self.name}"


class Project:
    """The first-party modules, their facts, and what their names stand for."""

    def __init__(self, finder: Finder, disk: Disk, cache: FactsCache) -> None:
        """Find modules through `finder` and read them from `disk`, or in their stead the facts in `cache`."""
        self.finder = finder
        self._disk = disk
        self._cache = cache
        self._facts: dict[str, FileFacts | None] = {}
        self._resolved: dict[tuple[str, str], tuple[Target, ...]] = {}

    def owns(self, module: str) -> bool:
        """Whether `module` is first-party."""
        return self.finder.locate(module) is not None

    def facts(self, module: str) -> FileFacts:
        """Return the facts of a first-party module; none for a namespace package or what is not Python source."""
        return self._read(module) or _NO_FACTS

    def opaque_digest(self, module: str) -> str | None:
        """Return the digest of the bytes of a module that is not Python source; None for all others."""
        located = self.finder.locate(module)
        if located is None or located.path is None or self._read(module) is not None:
            return None
        return self._disk.digest(located.path)

    def _read(self, module: str) -> FileFacts | None:
        """Return the facts of a module's file, as it was when this project first asked."""
        if module not in self._facts:
            located = self.finder.locate(module)
            self._facts[module] = self._cache.facts(located.path) if located and located.path else None
        return self._facts[module]

    def items(self, module: str, name: str) -> list[Item]:
        """Return the statements of `module` that bind `name`."""
        facts = self.facts(module)
        return [facts.items[index] for index in facts.bound.get(name, ())]

    def absolute(self, module: str, level: int, name: str) -> str:
        """Return the absolute name of the module that `module` imports as `name` with `level` leading dots."""
        if level == 0:
            return name
        located = self.finder.locate(module)
        package = module if located and located.folders else module.rpartition(".")[0]
        for _ in range(level - 1):
            package = package.rpartition(".")[0]
        return f"{package}.{name}".strip(".")

    def resolve(self, module: str, chain: str) -> tuple[Target, ...]:
        """Return everything that `chain` can stand for in `module`; more than one if it is bound on several paths."""
        key = (module, chain)
        if key not in self._resolved:
            self._resolved[key] = ()  # ends cycles of imports
            self._resolved[key] = tuple(dict.fromkeys(self._resolve(module, chain.split("."))))
        return self._resolved[key]

    def resolve_import(self, module: str, reference: str) -> tuple[Target, ...]:
        """Return what a `level|module|chain` reference of a function in `module` stands for."""
        level, name, chain = reference.split("|")
        base = self.absolute(module, int(level), name)
        return tuple(self._inside(base, chain.split(".") if chain else []))

    def _resolve(self, module: str, parts: Sequence[str]) -> Iterator[Target]:
        head, *rest = parts
        facts = self.facts(module)
        imports = facts.imported.get(head, ())
        if head in facts.bound:
            yield Target("definition", module, head, bool(rest))
        for entry in imports:
            yield from self._imported(module, entry, rest)
        if not imports and head not in facts.bound:
            yield from self._unbound(module, facts, parts)

    def _imported(self, module: str, entry: Import, rest: Sequence[str]) -> Iterator[Target]:
        base = self.absolute(module, entry.level, entry.module)
        if entry.kind == "typing":
            yield Target("typing", "", f"{base}.{entry.attribute}")
        else:
            yield from self._inside(base, [entry.attribute, *rest] if entry.attribute else rest)

    def _inside(self, base: str, parts: Sequence[str]) -> Iterator[Target]:
        if not self.owns(base):
            yield Target("external", "", ".".join([base, *parts]))
        elif not parts:
            yield Target("module", base, "")
        else:
            yield from self.resolve(base, ".".join(parts))

    def _unbound(self, module: str, facts: FileFacts, parts: Sequence[str]) -> Iterator[Target]:
        head, *rest = parts
        if self.owns(f"{module}.{head}"):
            yield from self._inside(f"{module}.{head}", rest)
            return
        starred = list(self._starred(module, facts, parts))
        yield from starred
        if hasattr(builtins, head):
            yield Target("external", "", ".".join(["builtins", *parts]))
        elif "__getattr__" in facts.bound:
            yield Target("definition", module, "__getattr__")
        elif not starred:
            yield Target("unknown", module, head)

    def _starred(self, module: str, facts: FileFacts, parts: Sequence[str]) -> Iterator[Target]:
        for entry in facts.imported.get("*", ()):
            base = self.absolute(module, entry.level, entry.module)
            if not self.owns(base):
                yield Target("external", "", ".".join([base, *parts]))
            elif self._exports(base, parts[0]):
                yield from (target for target in self._inside(base, parts) if target.kind != "unknown")

    def _exports(self, module: str, name: str) -> bool:
        declared = self.items(module, "__all__")
        if not declared:
            return not name.startswith("_")
        return any(name in item.strings or item.refs for item in declared)
