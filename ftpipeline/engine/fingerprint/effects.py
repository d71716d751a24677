"""What importing a module does beyond defining names.

A module that is imported counts by its effects, whoever uses its names: calls, stores into other objects, decorators
that are more than definitions of functions, and subclasses of classes with hooks.
"""

import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cache

from ftpipeline.engine.fingerprint import known
from ftpipeline.engine.fingerprint.facts import Item
from ftpipeline.engine.fingerprint.resolve import Project, Target

_ACCESSORS = frozenset({"setter", "getter", "deleter"})
_DEEPEST_OWN_STORE = 2  # `TABLE[...]` and `Class.attribute`; what is deeper may belong to another object


class Effect(IntEnum):
    """How far a call reaches; a statement is as bad as its worst call."""

    PURE = 0
    """The value follows from the arguments."""
    FREE = 1
    """Nothing is changed, but the value depends on the surroundings."""
    ANY = 2
    """Something may be changed."""


@dataclass
class ModuleEffects:
    """The statements of a module by what they do while it is imported.

    Attributes:
        effects: indices of the statements that may change something outside their own names.
        mutations: name to the indices of the statements that fill or change the object the module bound to it.
    """

    effects: list[int] = field(default_factory=list)
    mutations: dict[str, list[int]] = field(default_factory=dict)


class Effects:
    """Judges the statements of a project's modules."""

    def __init__(self, project: Project) -> None:
        """Judge the modules of `project`."""
        self._project = project
        self._modules: dict[str, ModuleEffects] = {}
        self._calls: dict[tuple[str, str], Effect] = {}

    def of_module(self, module: str) -> ModuleEffects:
        """Return the effects of importing `module`."""
        if module not in self._modules:
            result = self._modules[module] = ModuleEffects()
            for index, item in enumerate(self._project.facts(module).items):
                self._judge(module, index, item, result)
        return self._modules[module]

    def definition(self, module: str, name: str) -> list[int]:
        """Return the indices of all statements that make up what `name` is after the import."""
        bound = self._project.facts(module).bound.get(name, [])
        return sorted({*bound, *self.of_module(module).mutations.get(name, ())})

    def is_determined(self, module: str, item: Item) -> bool:
        """Whether the value of an assignment follows from its own text and what it refers to."""
        return self.worst_call(module, item) is Effect.PURE and not self.reads_environment(module, item.eager)

    def worst_call(self, module: str, item: Item) -> Effect:
        """Return the farthest reach of the calls that `item` makes while it is imported."""
        if not known.CALLING_BACK.isdisjoint(item.calls) and self._names_function(module, item):
            return Effect.ANY
        calls = (call for call in item.calls if not self._mutates_own(module, call))
        return max((self._call(module, callee) for callee in calls), default=Effect.PURE)

    def _names_function(self, module: str, item: Item) -> bool:
        targets = (target for ref in item.eager for target in self._project.resolve(module, ref))
        definitions = (target for target in targets if target.kind == "definition")
        return any(it.kind == "def" for target in definitions for it in self._project.items(target.module, target.name))

    def reads_environment(self, module: str, refs: Iterable[str]) -> bool:
        """Whether one of `refs` reads environment variables."""
        targets = (target for ref in refs for target in self._project.resolve(module, ref))
        return any(target.kind == "external" and target.name.startswith(known.ENVIRONMENT_READS) for target in targets)

    def hands_out(self, module: str, item: Item) -> bool:
        """Whether third-party code sees the object that `item` defines, and with it the docstring."""
        chains = [chain for chain, _ in item.decorators] + [base.lstrip("!") for base in item.bases]
        targets = (target for chain in chains if chain != "?" for target in self._project.resolve(module, chain))
        return any(target.kind == "external" and not _is_harmless(target.name) for target in targets)

    def _judge(self, module: str, index: int, item: Item, result: ModuleEffects) -> None:
        if item.kind == "main":  # does not run when the module is imported
            return
        touched = {chain.partition(".")[0] for chain in [*item.stores, *item.calls] if self._mutates_own(module, chain)}
        stores = [chain for chain in item.stores if not self._stores_own(module, chain)]
        touched |= {chain.partition(".")[0] for chain in item.stores if chain not in stores}
        if stores or self.worst_call(module, item) is Effect.ANY or self._defines_with_effect(module, item):
            result.effects.append(index)
        for name in touched:
            result.mutations.setdefault(name, []).append(index)

    def _defines_with_effect(self, module: str, item: Item) -> bool:
        decorated = any(not self._is_quiet(module, name, levels) for name, levels in item.decorators)
        return decorated or (item.kind == "class" and self._runs_hooks(module, item, frozenset()))

    def _stores_own(self, module: str, chain: str) -> bool:
        head, *rest = chain.split(".")
        items = self._own(module, head)
        return len(rest) < _DEEPEST_OWN_STORE and bool(items) and all(it.fresh or it.kind != "assign" for it in items)

    def _mutates_own(self, module: str, callee: str) -> bool:
        """Whether `callee` is a method that changes a container which the module itself made."""
        head, _, method = callee.partition(".")
        if not method or "." in method or method in known.PURE_METHODS:
            return False
        items = self._own(module, head)
        return bool(items) and all(item.fresh for item in items) and self._are_builtin(module, items)

    def _own(self, module: str, name: str) -> list[Item]:
        facts = self._project.facts(module)
        items = [facts.items[index] for index in facts.bound.get(name, ())]
        simple = all(item.kind in {"assign", "def", "class"} for item in items)
        return items if simple and name not in facts.imported else []

    def _are_builtin(self, module: str, items: list[Item]) -> bool:
        """Whether the objects are literals or come from calls that `known.PURE_CALLS` lists."""
        callees = [callee for item in items for callee in item.calls]
        if any("?" in callee for callee in callees):
            return False
        targets = [target for callee in callees for target in self._project.resolve(module, callee)]
        return all(target.kind == "external" and target.name in known.PURE_CALLS for target in targets)

    def _call(self, module: str, callee: str) -> Effect:
        key = (module, callee)
        if key not in self._calls:
            self._calls[key] = Effect.ANY  # a value that depends on itself
            self._calls[key] = self._judge_call(module, callee)
        return self._calls[key]

    def _judge_call(self, module: str, callee: str) -> Effect:
        if "?" in callee:
            return _method_effect(callee) if callee.startswith("?.") else Effect.ANY
        targets = self._project.resolve(module, callee)
        return max((self._judge_target(target, callee) for target in targets), default=Effect.ANY)

    def _judge_target(self, target: Target, callee: str) -> Effect:
        if target.kind == "external":
            return _external_effect(target.name)
        if target.kind != "definition":
            return Effect.ANY
        items = self._project.items(target.module, target.name)
        if not target.more:
            return Effect.PURE if all(self._is_plain(target.module, item) for item in items) else Effect.ANY
        known_values = all(item.kind == "assign" and self.is_determined(target.module, item) for item in items)
        return _method_effect(callee) if known_values and self._are_builtin(target.module, items) else Effect.ANY

    def _is_plain(self, module: str, item: Item) -> bool:
        """Whether creating an instance of the class runs no code of the project."""
        if item.kind != "class" or not item.plain:
            return False
        return all(self._base_is_plain(target) for base in item.bases for target in self._bases(module, base)) and all(
            self._is_quiet(module, name, levels) for name, levels in item.decorators
        )

    def _base_is_plain(self, target: Target) -> bool:
        if target.kind == "external":
            return _is_harmless(target.name)
        items = self._project.items(target.module, target.name) if target.kind == "definition" else []
        return bool(items) and all(self._is_plain(target.module, item) for item in items)

    def _bases(self, module: str, base: str) -> tuple[Target, ...]:
        if base.endswith("?"):
            return (Target("unknown", module, base),)
        return self._project.resolve(module, base.lstrip("!"))

    def _runs_hooks(self, module: str, item: Item, seen: frozenset[tuple[str, str]]) -> bool:
        return any(
            self._base_runs_hooks(target, base.startswith("!"), seen)
            for base in item.bases
            for target in self._bases(module, base)
        )

    def _base_runs_hooks(self, target: Target, metaclass: bool, seen: frozenset[tuple[str, str]]) -> bool:
        if target.kind == "external":
            return not _is_harmless(target.name)
        key = (target.module, target.name)
        if metaclass or target.kind != "definition" or target.more or key in seen:
            return True
        items = self._project.items(*key)
        return any(
            item.kind != "class" or item.hooked or self._runs_hooks(target.module, item, seen | {key}) for item in items
        )

    def _is_quiet(self, module: str, decorator: str, levels: int) -> bool:
        if decorator == "?":
            return False
        if decorator.rpartition(".")[2] in _ACCESSORS:  # of a property in the same class body
            return True
        targets = self._project.resolve(module, decorator)
        return bool(targets) and all(self._target_is_quiet(target, levels) for target in targets)

    def _target_is_quiet(self, target: Target, levels: int) -> bool:
        name = target.name if target.kind == "external" else f"{target.module}.{target.name}"
        if name in known.PURE_DECORATORS:
            return True
        if target.kind != "definition" or target.more:
            return False
        items = self._project.items(target.module, target.name)
        return all(item.kind == "def" and item.level >= levels for item in items)


def _method_effect(callee: str) -> Effect:
    method = callee.rpartition(".")[2]
    if method in known.PURE_METHODS:
        return Effect.PURE
    return Effect.FREE if method in known.FREE_METHODS else Effect.ANY


def _external_effect(name: str) -> Effect:
    if name in known.PURE_CALLS:
        return Effect.PURE
    return Effect.FREE if name in known.FREE_CALLS else Effect.ANY


@cache
def _is_harmless(name: str) -> bool:
    """Whether a class or decorator outside the project keeps no record of what is defined with it."""
    top = name.partition(".")[0]
    return top in sys.stdlib_module_names or name in known.PLAIN_BASES or name in known.PURE_DECORATORS
