from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ftpipeline.engine.child import Level, PortSpec, StepRequest
from ftpipeline.engine.child.request import Work, decode, encode
from ftpipeline.engine.key import typed

_SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
_KEYS = st.text() | st.integers()
_VALUES = st.recursive(
    _SCALARS,
    lambda inner: st.lists(inner) | st.lists(inner).map(tuple) | st.dictionaries(_KEYS, inner),
    max_leaves=12,
)
_PATHS = st.sampled_from([Path("/a"), Path("/a/b c"), Path("/ä")])


@given(
    params=st.dictionaries(st.text(), _VALUES),
    arguments=st.dictionaries(st.text(), _SCALARS | _PATHS),
    modules=st.none() | st.lists(_PATHS).map(tuple),
    hidden=st.frozensets(st.text()),
)
def test_work_is_the_same_after_it_has_crossed(
    params: dict[str, Any], arguments: dict[str, Any], modules: tuple[Path, ...] | None, hidden: frozenset[str]
) -> None:
    ports = {"p": PortSpec("m:P", arguments)}
    places, caches = {"i": Path("/i")}, {"c": Path("/c")}
    request = StepRequest("m:f", places, params, Path("/o"), ports, (Path("/r"),), {"A": "1"}, modules, caches=caches)
    work = Work(request, Level.OBSERVED, Path("/s"), Path("/"), ("/x", "/y"), {"B": "2"}, hidden, 7)
    back = decode(encode(work))
    assert back == work
    assert typed(back.request.params) == typed(params)
    assert repr(back.request.params) == repr(params)  # the order too
