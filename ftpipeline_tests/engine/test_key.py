"""Laws of step keys: typed parameters never collide, and nothing but what counts changes a key."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ftpipeline import digest
from ftpipeline.engine.key import step_key, typed
from ftpipeline.errors import CanonicalFormError

CODE, ENVIRONMENT = digest.of_bytes(b"code"), digest.of_bytes(b"environment")
_SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
_VALUES = st.recursive(
    _SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text() | st.integers() | st.booleans(), inner, max_size=3)
    ),
    max_leaves=8,
)


def _shape(value: Any) -> Any:
    """An oracle: equal exactly for equal values of equal types, -0.0 told from 0.0."""
    if isinstance(value, dict):
        return dict, frozenset((_shape(key), _shape(item)) for key, item in value.items())
    if isinstance(value, list | tuple):
        return type(value), tuple(_shape(item) for item in value)
    return type(value), (value, math.copysign(1, value)) if isinstance(value, float) else value


def _key(params: dict[str, Any]) -> str:
    return step_key("train", CODE, {"split": digest.of_bytes(b"split")}, params, ENVIRONMENT)


@given(_VALUES, _VALUES)
def test_two_values_share_a_typed_form_exactly_when_they_are_the_same(one: object, other: object) -> None:
    assert (typed(one) == typed(other)) == (_shape(one) == _shape(other))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (0, False),
        (0, 0.0),
        (0.0, -0.0),
        (0, "0"),
        (1, True),
        ([1], (1,)),
        ({1: 2}, {"1": 2}),
        (None, "null"),
        ("", None),
    ],
)
def test_values_that_plain_json_confuses_have_different_keys(one: object, other: object) -> None:
    assert _key({"p": one}) != _key({"p": other})


def test_the_order_of_parameters_and_inputs_does_not_count() -> None:
    a, b = digest.of_bytes(b"a"), digest.of_bytes(b"b")
    one = step_key("s", CODE, {"a": a, "b": b}, {"x": 1, "y": 2}, ENVIRONMENT)
    assert one == step_key("s", CODE, {"b": b, "a": a}, {"y": 2, "x": 1}, ENVIRONMENT)


def test_every_part_of_a_key_counts() -> None:
    a, b = digest.of_bytes(b"a"), digest.of_bytes(b"b")
    keys = {
        step_key("s", CODE, {"i": a}, {}, ENVIRONMENT),
        step_key("t", CODE, {"i": a}, {}, ENVIRONMENT),
        step_key("s", a, {"i": a}, {}, ENVIRONMENT),
        step_key("s", CODE, {"i": b}, {}, ENVIRONMENT),
        step_key("s", CODE, {"j": a}, {}, ENVIRONMENT),
        step_key("s", CODE, {"i": a}, {"p": 1}, ENVIRONMENT),
        step_key("s", CODE, {"i": a}, {}, a),
    }
    assert len(keys) == 7


@pytest.mark.parametrize("value", [math.nan, math.inf, b"bytes", {1, 2}, object()])
def test_a_parameter_without_a_typed_form_is_refused_with_its_place(value: object) -> None:
    with pytest.raises(CanonicalFormError, match=r"params\.p\[0\]"):
        _key({"p": [value]})
