"""The normal form of one statement and what it refers to, read off its syntax tree in a single walk.

The normal form keeps what Python runs and drops what only people read: comments, layout, docstrings and the kind of
quotes. Local names are kept, because libraries read them (DuckDB replacement scans, pandas `query("@x")`).
"""

import ast
from collections.abc import Callable, Sequence
from typing import Any

from ftpipeline.engine.fingerprint.chains import callee_of, chain_of, literal_import, root_of
from ftpipeline.engine.fingerprint.scopes import ScopeStack

Documented = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Module

_LAYOUT_FIELDS = frozenset({"ctx", "type_comment", "kind", "type_ignores"})
_LONGEST_NAME = 256


def body_of(node: Documented) -> list[ast.stmt]:
    """Return the statements of `node` without its docstring."""
    return node.body[1:] if ast.get_docstring(node, clean=False) is not None else node.body


class Reader:
    """Walks one top-level statement.

    Attributes:
        tokens: the normal form.
        docs: docstrings, which are not in the normal form.
        scopes: names loaded and bound.
        strings: short text literals; they may name files or environment variables.
        attributes: every attribute name that is used.
        imports: `level|module|name` of every import that a function or class body makes.
        bindings: `(bound name, level, module, attribute)` of imports that bind names of the module.
        calls: callees of the calls made while importing, as `callee_of` writes them.
        stores: chains whose attributes or items are stored while importing.
        decorators: `(decorator, number of calls it takes)` applied while importing.
        eager: chains loaded while importing.
    """

    def __init__(self) -> None:
        """Start with nothing read."""
        self.tokens: list[str] = []
        self.docs: list[str] = []
        self.scopes = ScopeStack()
        self.strings: set[str] = set()
        self.attributes: set[str] = set()
        self.imports: set[str] = set()
        self.bindings: list[tuple[str, int, str, str]] = []
        self.calls: set[str] = set()
        self.stores: set[str] = set()
        self.decorators: set[tuple[str, int]] = set()
        self.eager: set[str] = set()

    def visit(self, node: ast.AST) -> None:
        """Append the normal form of `node` and note what it refers to."""
        handler = _HANDLERS.get(type(node))
        if handler:
            handler(self, node)
        else:
            self._generic(node)

    def _generic(self, node: ast.AST) -> None:
        kind = type(node)
        self.tokens.append(kind.__name__)
        for name in _FIELDS[kind]:
            self._field(getattr(node, name, None))

    def _field(self, value: object) -> None:
        if isinstance(value, ast.AST):
            self.visit(value)
        elif isinstance(value, list):
            self._all(value)
        else:
            self.tokens.append(repr(value))

    def _all(self, nodes: Sequence[ast.AST | None]) -> None:
        self.tokens.append("[")
        for node in nodes:
            self._field(node)
        self.tokens.append("]")

    # --- names -----------------------------------------------------------------------------------------------------

    def _name(self, node: ast.Name) -> None:
        self.tokens.append(node.id)
        if isinstance(node.ctx, ast.Load):
            self._load(node.id)
        else:
            self.scopes.current.stores.add(node.id)

    def _load(self, chain: str) -> None:
        self.scopes.current.loads.add(chain)
        if self.scopes.depth == 0:
            self.eager.add(chain)

    def _attribute(self, node: ast.Attribute) -> None:
        self._note_store(node)
        chain = chain_of(node)
        if chain is None:
            self.attributes.add(node.attr)
            self._generic(node)
        else:
            self.tokens.append(chain)
            self._load(chain)
            self.attributes.update(chain.split(".")[1:])

    def _subscript(self, node: ast.Subscript) -> None:
        self._note_store(node)
        self._generic(node)

    def _note_store(self, node: ast.Attribute | ast.Subscript) -> None:
        if self.scopes.depth == 0 and not isinstance(node.ctx, ast.Load):
            self.stores.add(chain_of(node) or root_of(node) or "?")

    def _constant(self, node: ast.Constant) -> None:
        value = node.value
        self.tokens.append(f"{type(value).__name__} {value!r}")
        if isinstance(value, str) and 0 < len(value) <= _LONGEST_NAME and "\n" not in value:
            self.strings.add(value)

    def _augmented(self, node: ast.AugAssign) -> None:
        if isinstance(node.target, ast.Name):
            self._load(node.target.id)
        self._generic(node)

    def _walrus(self, node: ast.NamedExpr) -> None:
        self.scopes.bind_in_function(node.target.id)
        self.tokens += ("NamedExpr", node.target.id)
        self.visit(node.value)

    def _named(self, node: ast.ExceptHandler | ast.MatchAs | ast.MatchStar) -> None:
        if node.name:
            self.scopes.current.stores.add(node.name)
        self._generic(node)

    def _mapping_pattern(self, node: ast.MatchMapping) -> None:
        if node.rest:
            self.scopes.current.stores.add(node.rest)
        self._generic(node)

    def _global(self, node: ast.Global) -> None:
        self.scopes.current.declared_global.update(node.names)
        self._generic(node)

    # --- imports ---------------------------------------------------------------------------------------------------

    def _import(self, node: ast.Import) -> None:
        for alias in node.names:
            bound = alias.name if alias.asname else alias.name.partition(".")[0]
            self._note_import(alias.asname or bound, 0, bound, "")
            if bound != alias.name:
                self._note_import("", 0, alias.name, "")
        self._generic(node)

    def _import_from(self, node: ast.ImportFrom) -> None:
        for alias in node.names:
            self._note_import(alias.asname or alias.name, node.level, node.module or "", alias.name)
        self._generic(node)

    def _note_import(self, name: str, level: int, module: str, attribute: str) -> None:
        scope = self.scopes.current
        if scope.kind == "module":
            self.bindings.append((name, level, module, attribute))
            return
        self.imports.add(f"{level}|{module}|{attribute}")
        if name:
            scope.stores.add(name)
            scope.imports.setdefault(name, []).append(f"{level}|{module}|{attribute}")

    # --- scopes ----------------------------------------------------------------------------------------------------

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self.scopes.current.stores.add(node.name)
        self.tokens += (type(node).__name__, node.name)
        self._decorators(node.decorator_list)
        self._field(getattr(node, "type_params", []))
        self._generic(node.args)  # defaults and annotations belong to the scope around the function
        self._field(node.returns)
        self.scopes.enter("function", node.args)
        self._body(node)
        self.scopes.leave()

    def _lambda(self, node: ast.Lambda) -> None:
        self.tokens.append("Lambda")
        self._generic(node.args)
        self.scopes.enter("function", node.args)
        self.visit(node.body)
        self.scopes.leave()

    def _class(self, node: ast.ClassDef) -> None:
        self.scopes.current.stores.add(node.name)
        self.tokens += ("ClassDef", node.name)
        self._decorators(node.decorator_list)
        self._field(getattr(node, "type_params", []))
        self._all(node.bases)
        self._all(node.keywords)
        self.scopes.enter("class")
        self._body(node)
        self.scopes.leave()

    def _body(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> None:
        statements = body_of(node)
        if len(statements) != len(node.body):
            self.docs.append(ast.get_docstring(node, clean=False) or "")
        self._all(statements or [ast.Pass()])

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp) -> None:
        self.tokens.append(type(node).__name__)
        self.visit(node.generators[0].iter)  # runs outside the comprehension's own scope
        self.scopes.enter("comprehension")
        for index, generator in enumerate(node.generators):
            self.visit(generator.target)
            if index:
                self.visit(generator.iter)
            self._all(generator.ifs)
            self.tokens.append(repr(generator.is_async))
        for part in (node.key, node.value) if isinstance(node, ast.DictComp) else (node.elt,):
            self.visit(part)
        self.scopes.leave()

    # --- what runs while importing ---------------------------------------------------------------------------------

    def _call(self, node: ast.Call) -> None:
        if self.scopes.depth == 0:
            self.calls.add(callee_of(node.func))
        if (module := literal_import(node)) is None:
            self._generic(node)
        else:
            self.scopes.import_refs.add(f"0|{module}|")
            self.imports.add(f"0|{module}|")
            self.tokens += ("import_module", module)

    def _decorators(self, nodes: list[ast.expr]) -> None:
        self.tokens.append("[")
        for node in nodes:
            self._decorator(node, 1)
        self.tokens.append("]")

    def _decorator(self, node: ast.expr, levels: int) -> None:
        if isinstance(node, ast.Call):  # judged as a decorator of one more level, not as a call
            self.tokens.append("Call")
            self._decorator(node.func, levels + 1)
            self._all(node.args)
            self._all(node.keywords)
        else:
            if self.scopes.depth == 0:
                self.decorators.add((chain_of(node) or "?", levels))
            self.visit(node)


_FIELDS: dict[type[ast.AST], tuple[str, ...]] = {
    kind: tuple(name for name in kind._fields if name not in _LAYOUT_FIELDS)
    for kind in vars(ast).values()
    if isinstance(kind, type) and issubclass(kind, ast.AST)
}
_HANDLERS: dict[type[ast.AST], Callable[[Reader, Any], None]] = {
    ast.Name: Reader._name,
    ast.Attribute: Reader._attribute,
    ast.Subscript: Reader._subscript,
    ast.Constant: Reader._constant,
    ast.AugAssign: Reader._augmented,
    ast.NamedExpr: Reader._walrus,
    ast.ExceptHandler: Reader._named,
    ast.MatchAs: Reader._named,
    ast.MatchStar: Reader._named,
    ast.MatchMapping: Reader._mapping_pattern,
    ast.Global: Reader._global,
    ast.Import: Reader._import,
    ast.ImportFrom: Reader._import_from,
    ast.FunctionDef: Reader._function,
    ast.AsyncFunctionDef: Reader._function,
    ast.Lambda: Reader._lambda,
    ast.ClassDef: Reader._class,
    ast.ListComp: Reader._comprehension,
    ast.SetComp: Reader._comprehension,
    ast.DictComp: Reader._comprehension,
    ast.GeneratorExp: Reader._comprehension,
    ast.Call: Reader._call,
}
