"""Laws of digests and canonical JSON."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ftpipeline import digest
from ftpipeline.errors import CanonicalFormError, DigestError

_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(1 - 2**53, 2**53 - 1) | st.floats(-1e15, 1e15) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(st.binary())
def test_a_digest_parses_back(data: bytes) -> None:
    made = digest.of_bytes(data)
    assert digest.parse(str(made)) == made
    assert len(digest.hex_of(made)) == 64


@pytest.mark.parametrize("text", ["", "sha256:", "sha256:" + "A" * 64, "a" * 64, "md5:" + "a" * 64, None, 7])
def test_what_is_no_digest_is_refused(text: object) -> None:
    with pytest.raises(DigestError, match="is not a digest"):
        digest.parse(text)


@given(st.dictionaries(st.text(), _JSON, max_size=6))
def test_canonical_bytes_do_not_depend_on_the_order_of_keys(value: dict[str, object]) -> None:
    turned = dict(reversed(list(value.items())))
    assert digest.canonical_json(value) == digest.canonical_json(turned)


@given(_JSON)
def test_canonical_json_reads_back_as_itself(value: object) -> None:
    data = digest.canonical_json(value)
    assert digest.canonical_json(digest.parse_json(data)) == data


@pytest.mark.parametrize(
    ("value", "place"),
    [
        ({"a": [1.0, math.nan]}, r"\$\.a\[1\]"),
        (math.inf, r"\$"),
        ({"a": {1: 2}}, r"\$\.a"),
        ([2**53], r"\$\[0\]"),
        ([2.0**53], r"\$\[0\]"),
        ({"a": b"x"}, r"\$\.a"),
    ],
)
def test_what_has_no_canonical_form_is_refused_with_its_place(value: object, place: str) -> None:
    with pytest.raises(CanonicalFormError, match=place):
        digest.canonical_json(value)


@pytest.mark.parametrize("data", [b"NaN", b'{"a": 1, "a": 2}', b"{", b"\xff", b"[Infinity]"])
def test_json_that_is_not_strict_is_refused(data: bytes) -> None:
    with pytest.raises(CanonicalFormError, match="not strict JSON"):
        digest.parse_json(data)
