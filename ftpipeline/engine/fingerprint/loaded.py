"""Whether the process still runs what is on disk: a code server can be older than the source it is keyed by."""

import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

from ftpipeline.engine.fingerprint.cache import Stamp, is_unchanged, settled_stamp
from ftpipeline.engine.fingerprint.roots import underlying
from ftpipeline.engine.fingerprint.values import code_place
from ftpipeline.errors import StepDefinitionError

_HAS_DOCSTRING = 0x4000000  # CO_HAS_DOCSTRING, since Python 3.13
_checked: dict[str, tuple[Stamp, ModuleType]] = {}


def require_loaded_equals_source(targets: Iterable[Callable[..., Any] | type | str]) -> None:
    """Refuse to go on with code that is older, or newer, than its source file.

    Args:
        targets: functions, classes and dotted module names; of each, the whole module is compared. Modules that are
            not loaded are left out: they will be read from disk.

    Raises:
        StepDefinitionError: a loaded function differs from its source; it is named.
    """
    names = (target if isinstance(target, str) else underlying(target).__module__ for target in targets)
    for name in dict.fromkeys(names):
        module = sys.modules.get(name)
        path = getattr(module, "__file__", None)
        if module is not None and path and path.endswith(".py"):
            _compare(module, path)


def _compare(module: ModuleType, path: str) -> None:
    checked = _checked.get(path)
    if checked and checked[1] is module and is_unchanged(path, checked[0]):
        return
    stamp = settled_stamp(path)
    on_disk = _codes_on_disk(module, path)
    for function in _functions(module):
        qualname = function.__code__.co_qualname
        if _essence(function.__code__) not in on_disk.get(qualname, ()):
            raise StepDefinitionError(
                f"loaded function {module.__name__}.{qualname} differs from its source in {Path(path).name}; "
                "restart the code server"
            )
    _checked[path] = (stamp, module)


def _codes_on_disk(module: ModuleType, path: str) -> dict[str, list[Any]]:
    try:
        whole = compile(Path(path).read_bytes(), path, "exec", dont_inherit=True)
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
    for value in list(vars(module).values()):
        members = list(vars(value).values()) if isinstance(value, type) and value.__module__ == module.__name__ else []
        for member in [underlying(value), *members]:
            function = _plain_function(member)
            if function and code_place(function)[0] == module.__name__ and _is_from(function, module):
                yield function


def _plain_function(member: Any) -> FunctionType | None:
    for attribute in ("__func__", "fget", "func"):  # staticmethod and classmethod, property, cached_property
        member = getattr(member, attribute, member)
    while hasattr(member, "__wrapped__"):
        member = member.__wrapped__
    return member if isinstance(member, FunctionType) else None


def _is_from(function: FunctionType, module: ModuleType) -> bool:
    """Whether a function's code comes from the module's file, not from text such as a dataclass's `__init__`."""
    return Path(function.__code__.co_filename).name == Path(module.__file__ or "").name


def _essence(code: CodeType) -> tuple[Any, ...]:
    """Return what a code object does, without places, lines and docstring."""
    constants = list(code.co_consts)
    if constants and _has_docstring(code):
        constants[0] = None
    plain = tuple(_essence(it) if isinstance(it, CodeType) else (type(it).__name__, repr(it)) for it in constants)
    names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
    return code.co_code, plain, names, code.co_flags, code.co_argcount, code.co_kwonlyargcount, code.co_posonlyargcount


def _has_docstring(code: CodeType) -> bool:
    if sys.version_info >= (3, 13):
        return bool(code.co_flags & _HAS_DOCSTRING)
    return not code.co_name.startswith("<") and isinstance(code.co_consts[0], str)
