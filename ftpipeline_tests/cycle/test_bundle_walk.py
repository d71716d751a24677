"""The walk of a bundle is complete, without idle nodes or circles, and its keys follow from their parts."""

import math
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ftpipeline.cycle.bundle_format import LINEAGE
from ftpipeline.cycle.bundle_lineage import BundledLineage, Node
from ftpipeline.cycle.bundle_walk import check_keys, check_walk
from ftpipeline.digest import Digest, of_bytes
from ftpipeline.engine.key import step_key, typed, untyped
from ftpipeline.receipts import VerificationError, read_canonical

A, B, C, D = (of_bytes(name) for name in (b"a", b"b", b"c", b"d"))
NOW = datetime(2026, 11, 2, tzinfo=UTC)

_leaves = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
values = st.recursive(
    _leaves,
    lambda inner: (
        st.lists(inner, max_size=3) | st.tuples(inner, inner) | st.dictionaries(st.text() | st.integers(), inner)
    ),
    max_leaves=10,
)


def _node(output: Digest, *inputs: Digest, **changes: Any) -> Node:
    named = {f"input_{number}": digest for number, digest in enumerate(inputs)}
    key = step_key("train", A, named, {"lr": 0.5}, B)
    fields: dict[str, Any] = {
        "step": "train",
        "key": key,
        "code": A,
        "environment": B,
        "inputs": named,
        "params": typed({"lr": 0.5}),
        "output": output,
        "manifest": None,
        "run_id": "run-1",
        "isolation": "enforced",
        "started": NOW,
        "finished": NOW,
        "cpu_seconds": 1.5,
        "libraries": {"torch": "2.13.0"},
        "escalations": (),
    }
    return Node(**(fields | changes))


def _lineage(*nodes: Node) -> BundledLineage:
    return BundledLineage(root=A, nodes=nodes)


def _same(one: Any, other: Any) -> bool:
    """Tell whether two values are equal with equal types, down to the sign of zero and the types of keys."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return len(one) == len(other) and all(
            any(_same(key, known) and _same(one[key], other[known]) for known in other) for key in one
        )
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(_same, one, other))
    if isinstance(one, float):
        return one == other and math.copysign(1, one) == math.copysign(1, other)
    return bool(one == other)


@given(values)
def test_the_typed_form_reads_back_as_the_value_with_its_types(value: Any) -> None:
    assert _same(untyped(typed(value)), value)


@pytest.mark.parametrize(
    "form", [None, [], ["int", 1], ["bool", "yes"], ["float", "x"], ["set", []], ["map", [["a"]]], ["list", "ab"]]
)
def test_what_is_no_typed_form_is_refused(form: Any) -> None:
    with pytest.raises((ValueError, TypeError)):
        untyped(form)


def test_a_lineage_reads_back_as_it_was_written() -> None:
    lineage = _lineage(_node(A, B), _node(B))
    assert read_canonical(lineage.encode(), BundledLineage, LINEAGE) == lineage


def test_a_walk_may_reach_a_node_on_several_ways() -> None:
    check_walk(_lineage(_node(A, B, C), _node(B, D), _node(C, D), _node(D)))


@pytest.mark.parametrize(
    ("nodes", "problem"),
    [
        ([], "no node that made"),
        ([_node(A, B)], f"names {B}, and holds no node that made it"),
        ([_node(A), _node(B)], f"holds {B}, which the artifact does not descend from"),
        ([_node(A, B), _node(B), _node(B)], "two nodes that made"),
        ([_node(A, B), _node(B, C), _node(C, B)], "in a circle"),
        ([_node(A, A)], "in a circle"),
    ],
)
def test_a_walk_with_a_gap_an_idle_node_or_a_circle_is_refused(nodes: list[Node], problem: str) -> None:
    with pytest.raises(VerificationError, match=problem) as refused:
        check_walk(_lineage(*nodes))
    assert refused.value.where == LINEAGE


def test_keys_that_follow_from_their_parts_pass() -> None:
    check_keys(_lineage(_node(A, B), _node(B)))


@pytest.mark.parametrize(
    "change",
    [
        {"step": "export"},
        {"key": C},
        {"code": C},
        {"environment": C},
        {"inputs": {"input_0": C}},
        {"inputs": {"data": B}},
        {"params": typed({"lr": 0.25})},
        {"params": typed({"lr": "0.5"})},
    ],
)
def test_a_key_with_another_part_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(VerificationError, match="does not follow from its parts"):
        check_keys(_lineage(_node(A, B, **change)))


@pytest.mark.parametrize(
    "params", [typed(["lr"]), ["map", [[["str", "lr"]]]], ["map", [[["str", "lr"], ["float", "0.5"]]]], []]
)
def test_parameters_in_another_than_their_one_typed_form_are_refused(params: list[Any]) -> None:
    with pytest.raises(VerificationError, match="in no typed form"):
        check_keys(_lineage(_node(A, B, params=params)))
