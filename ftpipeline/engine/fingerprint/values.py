"""Canonical form of live values: equal values have equal digests in every process, whatever folder the code stands in.

Functions, classes and modules inside a value are not hashed here: they are named, and the closure follows them.
"""

import functools
import hashlib
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from types import BuiltinFunctionType, FunctionType, MappingProxyType, MethodType, ModuleType
from typing import Any, NamedTuple

_EXACT = (type(None), bool, int, float, complex, type(Ellipsis), type(NotImplemented))
_REDUCED_PROTOCOL = 4


class CodeReference(NamedTuple):
    """Code found inside a value.

    Attributes:
        module: name of its module.
        qualname: qualified name; empty for the module itself.
        line: first line of a function; 0 otherwise.
    """

    module: str
    qualname: str
    line: int


@dataclass(frozen=True)
class CanonicalValue:
    """A value that has been read.

    Attributes:
        digest: digest of its canonical form.
        code: functions, classes and modules inside it.
        opaque: types of the parts that have no canonical form.
    """

    digest: str
    code: tuple[CodeReference, ...]
    opaque: tuple[str, ...]


def read_value(
    value: object, places: Sequence[tuple[str, str]] = (), owns: Callable[[str], bool] = lambda module: False
) -> CanonicalValue:
    """Return the canonical form of `value`.

    Args:
        value: any object; it is not changed.
        places: `(folder, mark)`: the folder is written as the mark wherever it stands in text and paths.
        owns: whether a module is first-party; what its classes leave out when they are pickled still counts.
    """
    reader = _ValueReader(places, owns)
    try:
        digest = reader.read(value)
    except RecursionError:
        digest = reader.give_up(value)
    return CanonicalValue(digest, tuple(dict.fromkeys(reader.code)), tuple(dict.fromkeys(reader.opaque)))


def usual_places(bases: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """Return the folders that may differ between checkouts (`bases`), environments and users, the longest first."""
    places = dict.fromkeys(bases, "<project>")
    places |= {sys.prefix: "<prefix>", sys.base_prefix: "<python>", str(Path.home()): "<home>"}
    return tuple(sorted(places.items(), key=lambda place: (-len(place[0]), place)))


class _ValueReader:
    def __init__(self, places: Sequence[tuple[str, str]], owns: Callable[[str], bool]) -> None:
        self.code: list[CodeReference] = []
        self.opaque: list[str] = []
        self._places = places
        self._owns = owns
        self._done: dict[int, str] = {}
        self._open: dict[int, int] = {}
        self._alive: list[object] = []  # what `__reduce_ex__` makes must live as long as its id is remembered

    def read(self, value: object) -> str:
        """Return the digest of the canonical form of `value`."""
        if type(value) in _EXACT:
            return _digest(type(value).__name__, repr(value))
        if type(value) is str:
            return _digest("str", self._placed(value))
        key = id(value)
        if key in self._done:
            return self._done[key]
        if key in self._open:
            return _digest("cycle", str(self._open[key]))
        self._open[key] = len(self._open)
        self._alive.append(value)
        digest = self._done[key] = self._compound(value)
        del self._open[key]
        return digest

    def give_up(self, value: object) -> str:
        """Note that `value` has no canonical form."""
        name = f"{type(value).__module__}.{type(value).__qualname__}"
        self.opaque.append(name)
        return _digest("opaque", name)

    def _placed(self, text: str) -> str:
        for folder, mark in self._places:
            if text == folder or folder + os.sep in text:
                text = text.replace(folder, mark)
        return text

    def _compound(self, value: object) -> str:
        kind: type[Any] = type(value)
        if kind in (bytes, bytearray):
            return _digest(kind.__name__, bytes(value).hex())  # type: ignore[call-overload]
        if kind in (list, tuple):
            return self._sequence(kind.__name__, value)  # type: ignore[arg-type]
        if kind in (set, frozenset):
            return _digest(kind.__name__, *sorted(map(self.read, value)))  # type: ignore[call-overload]
        if kind in (dict, MappingProxyType):
            return self._mapping(kind.__name__, value)  # type: ignore[arg-type]
        if isinstance(value, PurePath):
            return _digest(kind.__name__, self._placed(str(value)))
        return self._code(value) or self._instance(value)

    def _sequence(self, name: str, values: Iterable[object]) -> str:
        return _digest(name, *map(self.read, values))

    def _mapping(self, name: str, values: Mapping[Any, Any]) -> str:
        return _digest(name, *(self.read(part) for pair in values.items() for part in pair))

    # --- code ------------------------------------------------------------------------------------------------------

    def _code(self, value: object) -> str | None:
        if isinstance(value, FunctionType):
            return self._function(value)
        if isinstance(value, MethodType):
            return self._sequence("method", (value.__func__, value.__self__))
        if isinstance(value, type):
            return self._named(CodeReference(value.__module__, value.__qualname__, 0))
        if isinstance(value, ModuleType):
            return self._named(CodeReference(value.__name__, "", 0))
        if isinstance(value, BuiltinFunctionType) and isinstance(value.__self__, ModuleType | None):
            return self._named(CodeReference(value.__module__ or "builtins", value.__qualname__, 0))
        if isinstance(value, staticmethod | classmethod):
            return self._sequence(type(value).__name__, (value.__func__,))
        if isinstance(value, property):
            return self._sequence("property", (value.fget, value.fset, value.fdel))
        return None

    def _named(self, reference: CodeReference) -> str:
        self.code.append(reference)
        return _digest("code", reference.module, reference.qualname)

    def _function(self, function: FunctionType) -> str:
        module, qualname = code_place(function)
        parts = [self._named(CodeReference(module, qualname, function.__code__.co_firstlineno))]
        if "<" in qualname:  # made by a call or a lambda: it carries values that its text does not show
            cells = [cell.cell_contents for cell in function.__closure__ or () if _is_filled(cell)]
            parts += map(self.read, (cells, function.__defaults__, function.__kwdefaults__))
        return _digest("function", *parts)

    # --- other objects ---------------------------------------------------------------------------------------------

    def _instance(self, value: object) -> str:
        wrapped = getattr(value, "__wrapped__", None)
        if isinstance(value, functools._lru_cache_wrapper):
            return _digest("lru_cache", self.read(wrapped))
        try:
            reduced = value.__reduce_ex__(_REDUCED_PROTOCOL)
        except Exception:  # any class may refuse, in any way
            return self.give_up(value)
        if isinstance(reduced, str):
            return self._named(CodeReference(type(value).__module__, reduced, 0))
        maker, args, state, items, pairs = (*reduced, None, None, None)[:5]
        parts = [self.read(maker), self.read(args), self.read(self._state(value, state))]
        parts.append(self._sequence("items", items or ()))
        parts.append(self._sequence("pairs", pairs or ()))
        return _digest("instance", *parts)

    def _state(self, value: object, reduced: object) -> object:
        """Return the whole state: a class that hides part of it from pickle may still compute with that part."""
        kind: Any = type(value)
        plain = kind.__reduce__ is object.__reduce__ and kind.__getstate__ is object.__getstate__
        return reduced if plain or not self._owns(kind.__module__) else [reduced, vars(value)]


def code_place(function: FunctionType) -> tuple[str, str]:
    """Return module and qualified name of a function's code, whatever `functools.wraps` made it look like."""
    return function.__globals__.get("__name__", function.__module__), function.__code__.co_qualname


def _is_filled(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018  # the access itself is the question
    except ValueError:  # not yet assigned
        return False
    return True


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()
