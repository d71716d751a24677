"""Which names are free in a statement: Python's scoping rules over loads, bindings and imports."""

import ast
from typing import Literal

ScopeKind = Literal["module", "class", "function", "comprehension"]


class Scope:
    """Names loaded and bound in one scope."""

    __slots__ = ("declared_global", "imports", "kind", "loads", "stores", "through")

    def __init__(self, kind: ScopeKind) -> None:
        """Start with no names."""
        self.kind = kind
        self.loads: set[str] = set()
        self.through: set[str] = set()  # free in functions of a class body, which do not see the class's names
        self.stores: set[str] = set()
        self.declared_global: set[str] = set()
        self.imports: dict[str, list[str]] = {}


class ScopeStack:
    """The scopes around the node that is being read.

    Attributes:
        module: the outermost scope; when all others are left, its loads are the statement's free chains.
        depth: number of functions around the node; what stands at depth 0 runs while the module is imported.
        import_refs: `level|module|chain` of names that functions and class bodies import for themselves and use.
    """

    def __init__(self) -> None:
        """Start in the module's scope."""
        self.module = Scope("module")
        self.depth = 0
        self.import_refs: set[str] = set()
        self._stack = [self.module]

    @property
    def current(self) -> Scope:
        """The innermost scope."""
        return self._stack[-1]

    def enter(self, kind: ScopeKind, args: ast.arguments | None = None) -> None:
        """Open a scope; `args` are bound in it."""
        scope = Scope(kind)
        self._stack.append(scope)
        self.depth += kind == "function"
        if args:
            named = [*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg]
            scope.stores.update(arg.arg for arg in named if arg)

    def leave(self) -> None:
        """Close the innermost scope and hand its free names to the one around it."""
        inner = self._stack.pop()
        outer = self.current
        self.depth -= inner.kind == "function"
        for chain in inner.loads:
            self._hand_up(chain, inner, outer)
        (outer.through if outer.kind == "class" else outer.loads).update(inner.through)

    def bind_in_function(self, name: str) -> None:
        """Bind the target of `:=`, which skips comprehensions."""
        next(scope for scope in reversed(self._stack) if scope.kind != "comprehension").stores.add(name)

    def _hand_up(self, chain: str, inner: Scope, outer: Scope) -> None:
        head, _, rest = chain.partition(".")
        if head in inner.declared_global:
            self.module.loads.add(chain)
            return
        for imported in inner.imports.get(head, ()):
            self.import_refs.add(_append(imported, rest))
        if inner.kind == "class":
            outer.loads.add(chain)  # a class body falls back to the names around it
        elif head not in inner.stores:
            (outer.through if outer.kind == "class" else outer.loads).add(chain)


def _append(imported: str, rest: str) -> str:
    if not rest:
        return imported
    return f"{imported}{rest}" if imported.endswith("|") else f"{imported}.{rest}"
