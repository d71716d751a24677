"""Equal values have equal digests; values that compute differently have different ones."""

import copy
import functools
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ftpipeline.engine.fingerprint.values import read_value

_SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary()
_VALUES = st.recursive(
    _SCALARS,
    lambda inner: (
        st.lists(inner)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text() | st.integers(), inner)
        | st.frozensets(_SCALARS)
    ),
    max_leaves=20,
)


@given(_VALUES)
def test_a_copy_has_the_same_digest(value: Any) -> None:
    assert read_value(copy.deepcopy(value)).digest == read_value(value).digest


@given(_VALUES, _VALUES)
def test_unequal_values_have_different_digests(one: Any, other: Any) -> None:
    assert one == other or read_value(one).digest != read_value(other).digest


@pytest.mark.parametrize(
    ("one", "other"),
    [(0, False), (0, 0.0), (0.0, -0.0), ("0", 0), ((1,), [1]), ({1: 2}, {"1": 2}), (b"a", "a"), ({1}, frozenset({1}))],
)
def test_types_never_collide(one: object, other: object) -> None:
    assert read_value(one).digest != read_value(other).digest


def test_the_order_of_a_dict_counts_and_that_of_a_set_does_not() -> None:
    assert read_value({1: 0, 2: 0}).digest != read_value({2: 0, 1: 0}).digest
    assert read_value({"b", "a", "c"}).digest == read_value({"c", "b", "a"}).digest


def test_a_value_that_holds_itself_is_read() -> None:
    one: list[Any] = [1]
    one.append(one)
    other: list[Any] = [2]
    other.append(other)
    assert read_value(one).digest != read_value(other).digest


def test_folders_are_written_as_marks() -> None:
    one = read_value(Path("/a/project/x"), [("/a/project", "<project>")])
    other = read_value(Path("/b/project/x"), [("/b/project", "<project>")])
    assert one.digest == other.digest


def test_code_inside_a_value_is_named() -> None:
    found = read_value([functools.partial(test_types_never_collide, 1), Path])
    names = {(reference.module, reference.qualname) for reference in found.code}
    assert (__name__, "test_types_never_collide") in names
    assert found.opaque == ()


def test_what_cannot_be_read_is_listed() -> None:
    assert read_value([iter([1]), (n for n in range(3))]).opaque == ("builtins.generator",)
