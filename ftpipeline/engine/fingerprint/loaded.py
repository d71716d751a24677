"""Whether the process still runs what is on disk: a code server can be older than the source it is keyed by."""

import hashlib
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple

from ftpipeline import digest
from ftpipeline.engine.fingerprint.disk import Disk
from ftpipeline.engine.fingerprint.roots import underlying
from ftpipeline.engine.fingerprint.shelf import Shelf
from ftpipeline.engine.fingerprint.values import code_place
from ftpipeline.errors import StepDefinitionError

_KIND = "loaded"
_HAS_DOCSTRING = 0x4000000  # CO_HAS_DOCSTRING, since Python 3.13


class _Compared(NamedTuple):
    """A source file and the code of a loaded module that were found to agree, as digests."""

    source: str
    code: str


_checked: dict[str, tuple[ModuleType, _Compared]] = {}


def require_loaded_equals_source(
    targets: Iterable[Callable[..., Any] | type | str], *, cache: Path | None = None
) -> None:
    """Refuse to go on with code that is older, or newer, than its source file.

    Args:
        targets: functions, classes and dotted module names; of each, the whole module is compared. Modules that are
            not loaded are left out: they will be read from disk.
        cache: folder in which it is kept between processes what code a source compiles to.

    Raises:
        StepDefinitionError: a loaded function differs from its source; it is named.
        StoreError: the cache folder cannot be written.
    """
    names = (target if isinstance(target, str) else underlying(target).__module__ for target in targets)
    modules = {name: module for name in names if (module := sys.modules.get(name)) and _has_source(module)}
    shelf, key = Shelf(cache, _KIND), digest.of_json(sorted(modules)).removeprefix("sha256:")
    kept = {name: _Compared(*pair) for name, pair in (shelf.load(key) or {}).items()}
    disk = Disk()
    compared = {name: _compare(module, disk, kept.get(name)) for name, module in modules.items()}
    if compared != kept:
        shelf.save(key, compared)


def _has_source(module: ModuleType) -> bool:
    return str(getattr(module, "__file__", None)).endswith(".py")


def _compare(module: ModuleType, disk: Disk, kept: _Compared | None) -> _Compared:
    path = str(module.__file__)
    source = disk.digest(path)
    checked = _checked.get(path)
    if checked and checked[0] is module and checked[1].source == source:
        return checked[1]
    codes = [function.__code__ for function in _functions(module)]
    compared = _Compared(source, _digest(codes))
    if compared != kept:
        _require_on_disk(module, codes, disk)
        compared = compared._replace(source=disk.files[path])
    _checked[path] = (module, compared)
    return compared


def _require_on_disk(module: ModuleType, codes: Iterable[CodeType], disk: Disk) -> None:
    path = str(module.__file__)
    on_disk = _codes_on_disk(module, path, disk)
    for code in codes:
        if _essence(code) not in on_disk.get(code.co_qualname, ()):
            raise StepDefinitionError(
                f"loaded function {module.__name__}.{code.co_qualname} differs from its source in {Path(path).name}; "
                "restart the code server"
            )


def _digest(codes: Iterable[CodeType]) -> str:
    parts = sorted(repr((code.co_qualname, _essence(code))) for code in codes)
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()


def _codes_on_disk(module: ModuleType, path: str, disk: Disk) -> dict[str, list[Any]]:
    try:
        whole = compile(disk.read(path), path, "exec", dont_inherit=True)
    except (OSError, SyntaxError, ValueError) as error:
        raise StepDefinitionError(
            f"source of loaded module {module.__name__} cannot be read ({type(error).__name__}); "
            "put it right and restart the code server"
        ) from error
    table: dict[str, list[Any]] = {}
    for code in _nested(whole):
        table.setdefault(code.co_qualname, []).append(_essence(code))
    return table


def _nested(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _nested(constant)


def _functions(module: ModuleType) -> Iterator[FunctionType]:
    """Yield the functions that the module's own source made: at its top level and in its classes."""
    file = os.path.basename(str(module.__file__))
    for value in list(vars(module).values()):
        members = list(vars(value).values()) if isinstance(value, type) and value.__module__ == module.__name__ else []
        for member in [underlying(value), *members]:
            function = _plain_function(member)
            if function and code_place(function)[0] == module.__name__ and _is_from(function, file):
                yield function


def _plain_function(member: Any) -> FunctionType | None:
    if type(member) is FunctionType and not member.__dict__:
        return member
    for attribute in ("__func__", "fget", "func"):  # staticmethod and classmethod, property, cached_property
        member = getattr(member, attribute, member)
    while hasattr(member, "__wrapped__"):
        member = member.__wrapped__
    return member if isinstance(member, FunctionType) else None


def _is_from(function: FunctionType, file: str) -> bool:
    """Whether a function's code comes from the module's file, not from text such as a dataclass's `__init__`."""
    return os.path.basename(function.__code__.co_filename) == file


def _essence(code: CodeType) -> tuple[Any, ...]:
    """Return what a code object does, without places, lines and docstring."""
    constants = list(code.co_consts)
    if constants and _has_docstring(code):
        constants[0] = None
    plain = tuple(map(_plain_constant, constants))
    names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
    return code.co_code, plain, names, code.co_flags, code.co_argcount, code.co_kwonlyargcount, code.co_posonlyargcount


def _plain_constant(value: object) -> object:
    if isinstance(value, CodeType):
        return _essence(value)
    if isinstance(value, tuple):
        return tuple(map(_plain_constant, value))
    if isinstance(value, frozenset):  # made of a set display; its order differs between processes
        return sorted(map(repr, value))
    return type(value).__name__, repr(value)


def _has_docstring(code: CodeType) -> bool:
    if sys.version_info >= (3, 13):
        return bool(code.co_flags & _HAS_DOCSTRING)
    return not code.co_name.startswith("<") and isinstance(code.co_consts[0], str)
