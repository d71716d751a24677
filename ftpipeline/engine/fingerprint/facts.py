"""Facts of one source file, read from its syntax tree: they depend on the file's content alone, so they can be cached.

Law: two files with equal facts, imported under one name into equal surroundings, run alike.
"""

import ast
import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from ftpipeline.engine.fingerprint import known
from ftpipeline.engine.fingerprint.chains import chain_of
from ftpipeline.engine.fingerprint.normal import Reader, body_of

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_ASSIGNMENTS = (ast.Assign, ast.AnnAssign, ast.AugAssign)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp)
_FRESH = (ast.Constant, ast.Dict, ast.List, ast.Set, ast.Tuple, ast.Call, *_COMPREHENSIONS)
_HOOKED = frozenset({"__init_subclass__", "__class_getitem__"})
_ACTIVE = frozenset(
    {"__init__", "__new__", "__post_init__", "__setattr__", "__getattribute__", "__getattr__", "__del__"}
)


class Item(NamedTuple):
    """One statement at the top level of a file.

    Attributes:
        kind: `def`, `class`, `assign`, `block` (if, try, for, with, ...), `expr`, or `main` (`if __name__ == ...`).
        names: names it binds.
        form: digest of its normal form.
        doc: digest of the docstrings in it; empty if there are none.
        refs: free dotted chains.
        eager: those of `refs` that are loaded while importing.
        import_refs: `level|module|chain` of names that its functions import for themselves.
        imports: `level|module|name` of the imports its functions make.
        strings: short text literals.
        attributes: those of its attribute names that `known.ATTRIBUTES` lists.
        calls: callees of calls made while importing.
        stores: chains whose attributes or items are stored while importing.
        decorators: `(decorator, number of calls it takes)` applied while importing.
        fresh: an assignment whose value is made there: a display, a comprehension, a literal or a call.
        bases: chains of the base classes, `?` for a computed one; a metaclass is marked by a leading `!`.
        hooked: defining a subclass of this class runs code of it.
        plain: creating an instance of this class runs no code of it.
        level: how many calls of this function merely define and return functions.
        lines: first and last line.
    """

    kind: str
    names: Sequence[str]
    form: str
    doc: str
    refs: Sequence[str]
    eager: Sequence[str]
    import_refs: Sequence[str]
    imports: Sequence[str]
    strings: Sequence[str]
    attributes: Sequence[str]
    calls: Sequence[str]
    stores: Sequence[str]
    decorators: Sequence[tuple[str, int]]
    fresh: bool
    bases: Sequence[str]
    hooked: bool
    plain: bool
    level: int
    lines: tuple[int, int]


class Import(NamedTuple):
    """An import at the top level: `name` is bound to `attribute` of `module`, or to `module` if that is empty.

    Attributes:
        name: bound name; `*` for a star import, empty if the module is only executed.
        level: number of leading dots.
        module: module as written.
        attribute: what is imported from it.
        kind: `always`, `maybe` (inside if or try) or `typing` (under TYPE_CHECKING, never executed).
    """

    name: str
    level: int
    module: str
    attribute: str
    kind: str


@dataclass(frozen=True)
class FileFacts:
    """What a source file defines, imports and does when it is imported.

    Attributes:
        items: its statements, without imports and docstring.
        imports: its imports.
        doc: digest of the module's docstring; empty if there is none.
        source: digest of the file's bytes.
    """

    items: tuple[Item, ...]
    imports: tuple[Import, ...]
    doc: str
    source: str

    @cached_property
    def bound(self) -> dict[str, list[int]]:
        """Name to the indices of the items that bind it."""
        table: dict[str, list[int]] = {}
        for index, item in enumerate(self.items):
            for name in item.names:
                table.setdefault(name, []).append(index)
        return table

    @cached_property
    def imported(self) -> dict[str, list[Import]]:
        """Name to the imports that bind it."""
        table: dict[str, list[Import]] = {}
        for entry in self.imports:
            table.setdefault(entry.name, []).append(entry)
        return table

    def to_row(self) -> list[Any]:
        """Return the facts as JSON; `from_row` reads it back."""
        return [self.items, self.imports, self.doc, self.source]

    @classmethod
    def from_row(cls, row: Sequence[Any]) -> "FileFacts":
        """Return the facts that `to_row` wrote."""
        items, imports, doc, source = row
        return cls(tuple(Item(*item) for item in items), tuple(Import(*entry) for entry in imports), doc, source)


def read_facts(source: bytes) -> FileFacts:
    """Read the facts of a file from its content.

    Raises:
        SyntaxError: the file is not Python.
    """
    tree = ast.parse(source)
    doc = ast.get_docstring(tree, clean=False)
    items: list[Item] = []
    imports: list[Import] = []
    for statement in body_of(tree):
        reader = Reader()
        reader.visit(statement)
        imports += (Import(*binding, _import_kind(statement)) for binding in reader.bindings)
        if not isinstance(statement, ast.Import | ast.ImportFrom):
            items.append(_item(statement, reader))
    digest = hashlib.sha256(source).hexdigest()
    return FileFacts(tuple(items), tuple(imports), _digest([doc]) if doc is not None else "", digest)


def _item(statement: ast.stmt, reader: Reader) -> Item:
    module = reader.scopes.module
    return Item(
        kind=_kind(statement),
        names=sorted(module.stores),
        form=_digest(reader.tokens),
        doc=_digest(reader.docs) if reader.docs else "",
        refs=sorted(module.loads),
        eager=sorted(module.loads & reader.eager),
        import_refs=sorted(reader.scopes.import_refs),
        imports=sorted(reader.imports),
        strings=sorted(reader.strings),
        attributes=sorted(reader.attributes & known.ATTRIBUTES),
        calls=sorted(reader.calls),
        stores=sorted(reader.stores),
        decorators=sorted(reader.decorators),
        fresh=isinstance(statement, ast.Assign | ast.AnnAssign) and isinstance(statement.value, _FRESH),
        bases=_bases(statement),
        hooked=isinstance(statement, ast.ClassDef) and bool(_HOOKED & _methods(statement)),
        plain=isinstance(statement, ast.ClassDef) and not statement.keywords and not _ACTIVE & _methods(statement),
        level=_level(statement),
        lines=(statement.lineno, statement.end_lineno or statement.lineno),
    )


def _digest(tokens: Iterable[str]) -> str:
    return hashlib.sha256("\0".join(tokens).encode("utf-8", "surrogatepass")).hexdigest()


def _kind(statement: ast.stmt) -> str:
    if isinstance(statement, _FUNCTIONS):
        return "def"
    if isinstance(statement, ast.ClassDef):
        return "class"
    if isinstance(statement, _ASSIGNMENTS):
        return "assign"
    if isinstance(statement, ast.Expr):
        return "expr"
    return "main" if isinstance(statement, ast.If) and _compares_name_to_main(statement.test) else "block"


def _compares_name_to_main(test: ast.expr) -> bool:
    return isinstance(test, ast.Compare) and chain_of(test.left) == "__name__" and isinstance(test.ops[0], ast.Eq)


def _import_kind(statement: ast.stmt) -> str:
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return "always"
    typing_only = isinstance(statement, ast.If) and (chain_of(statement.test) or "").endswith("TYPE_CHECKING")
    return "typing" if typing_only else "maybe"


def _bases(statement: ast.stmt) -> list[str]:
    if not isinstance(statement, ast.ClassDef):
        return []
    metaclasses = [keyword.value for keyword in statement.keywords if keyword.arg in {"metaclass", None}]
    return [*map(_base, statement.bases), *(f"!{_base(node)}" for node in metaclasses)]


def _base(node: ast.expr) -> str:
    if isinstance(node, ast.Subscript):  # Generic[T]
        node = node.value
    return chain_of(node) or "?"


def _methods(statement: ast.ClassDef) -> set[str]:
    return {node.name for node in statement.body if isinstance(node, _FUNCTIONS)}


def _level(statement: ast.stmt) -> int:
    """Return how many calls of a function merely define and return functions: 2 for a decorator with arguments."""
    if not isinstance(statement, _FUNCTIONS):
        return 0
    inner: dict[str, ast.stmt] = {}
    for node in body_of(statement):
        if isinstance(node, _FUNCTIONS) and _defines_quietly(node):
            inner[node.name] = node
        elif not (isinstance(node, ast.Return) and _is_mere(node.value)):
            return 0
    return 1 + min((_level(inner[name]) for name in _returned(statement) if name in inner), default=0)


def _defines_quietly(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    wraps = all(isinstance(it, ast.Call) and (chain_of(it.func) or "").endswith("wraps") for it in node.decorator_list)
    defaults = [*node.args.defaults, *filter(None, node.args.kw_defaults)]
    return wraps and all(isinstance(default, ast.Constant | ast.Name) for default in defaults)


def _is_mere(value: ast.expr | None) -> bool:
    return value is None or isinstance(value, ast.Name | ast.Lambda | ast.Constant)


def _returned(statement: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[str]:
    for node in statement.body:
        if isinstance(node, ast.Return) and isinstance(node.value, ast.Name):
            yield node.value.id
