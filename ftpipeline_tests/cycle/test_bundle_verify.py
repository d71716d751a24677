"""A bundle proves itself offline, and every change to it is refused and located."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ftpipeline.cycle.bundle_format import CONTAINER, LINEAGE, STATEMENT, blob_name, decode, encode
from ftpipeline.cycle.bundle_verify import verify_bundle, verify_bytes
from ftpipeline.digest import canonical_json, of_bytes, parse_json
from ftpipeline.errors import InputError
from ftpipeline.receipts import SigningKey, VerificationError
from ftpipeline.store.opened import Store
from ftpipeline_tests.cycle.bundle_steps import WINDOW
from ftpipeline_tests.cycle.bundle_world import (
    QUERY,
    Json,
    bundle_of,
    make_report,
    make_snapshot,
    new_key,
    node_of,
    signed,
    with_lineage,
)

ROOT = Path(__file__).parents[2]
ABSENT = of_bytes(b"absent")

examples = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture
def key() -> SigningKey:
    return new_key()


@pytest.fixture
def bundle(store: Store, key: SigningKey) -> bytes:
    return bundle_of(store, make_report(store), key)


def _place(bundle: bytes, offset: int) -> str:
    """Return the member that a byte of the bundle belongs to, or the container."""
    start = 0
    for name, content in sorted(decode(bundle).items()):
        start += 512
        if start <= offset < start + len(content):
            return name
        start += len(content) + -len(content) % 512
    return CONTAINER


def _flipped(bundle: bytes, offset: int, bit: int) -> bytes:
    changed = bundle[offset] ^ 1 << bit
    return bundle[:offset] + bytes([changed]) + bundle[offset + 1 :]


def _where(bundle: bytes, key: SigningKey) -> str:
    with pytest.raises(VerificationError) as refused:
        verify_bytes(bundle, key.public)
    assert str(refused.value).startswith(refused.value.where)
    return refused.value.where


@examples
@given(st.data())
def test_a_flipped_bit_is_refused_and_located(bundle: bytes, key: SigningKey, data: st.DataObject) -> None:
    offset = data.draw(st.integers(0, len(bundle) - 1))
    flipped = _flipped(bundle, offset, data.draw(st.integers(0, 7)))
    assert _where(flipped, key) == _place(bundle, offset)


def test_every_byte_of_a_bundle_is_checked(store: Store, key: SigningKey) -> None:
    bundle = bundle_of(store, make_snapshot(store), key)
    places = [_place(bundle, offset) for offset in range(len(bundle))]
    assert set(places) == {CONTAINER, *decode(bundle)}
    for offset, place in enumerate(places):
        assert _where(_flipped(bundle, offset, offset % 8), key) == place


def test_an_edited_a_dropped_and_an_added_member_are_named(bundle: bytes, key: SigningKey) -> None:
    members = decode(bundle)
    for name in members.keys() - {STATEMENT}:
        assert _where(encode({**members, name: members[name] + b" "}), key) == name
        rest = {other: content for other, content in members.items() if other != name}
        assert _where(encode(rest), key) == (CONTAINER if name == LINEAGE else name)
    added = blob_name(ABSENT)
    assert _where(encode({**members, added: b"absent"}), key) == added


def test_a_bundle_without_its_statement_is_refused(bundle: bytes, key: SigningKey) -> None:
    members = decode(bundle)
    del members[STATEMENT]
    assert _where(encode(members), key) == CONTAINER


def test_reordered_members_are_refused(bundle: bytes, key: SigningKey) -> None:
    members = decode(bundle)
    parts = [encode({name: members[name]})[:-1024] for name in sorted(members, reverse=True)]
    assert _where(b"".join([*parts, bytes(1024)]), key) == CONTAINER


def test_a_bundle_signed_by_another_key_is_refused(bundle: bytes, key: SigningKey) -> None:
    root = parse_json(decode(bundle)[LINEAGE])["root"]
    forged = signed(decode(bundle), root, new_key())
    with pytest.raises(VerificationError, match=f"not by {key.public.keyid}"):
        verify_bytes(forged, key.public)


def test_a_statement_about_another_artifact_is_refused(bundle: bytes, key: SigningKey) -> None:
    assert _where(signed(decode(bundle), ABSENT, key), key) == STATEMENT


def test_the_statement_of_another_bundle_is_refused(store: Store, bundle: bytes, key: SigningKey) -> None:
    other = decode(bundle_of(store, make_snapshot(store), key))
    swapped = {**decode(bundle), STATEMENT: other[STATEMENT]}
    assert _where(encode(swapped), key) != CONTAINER


def _drop_train(lineage: Json) -> None:
    lineage["nodes"].remove(node_of(lineage, "train"))


def _edit_code(lineage: Json) -> None:
    node_of(lineage, "train")["code"] = ABSENT


def _edit_params(lineage: Json) -> None:
    node_of(lineage, "snapshot")["params"] = ["map", []]


def _edit_input(lineage: Json) -> None:
    node_of(lineage, "train")["inputs"]["snapshot"] = ABSENT


def _edit_version(lineage: Json) -> None:
    lineage["version"] = 2


def _add_field(lineage: Json) -> None:
    lineage["nodes"][0]["facts"] = {}


def _edit_time(lineage: Json) -> None:
    lineage["nodes"][0]["started"] = "yesterday"


@pytest.mark.parametrize(
    "edit", [_drop_train, _edit_code, _edit_params, _edit_input, _edit_version, _add_field, _edit_time]
)
def test_a_lineage_that_contradicts_itself_is_refused_even_when_it_is_signed(
    bundle: bytes, key: SigningKey, edit: Callable[[Json], None]
) -> None:
    assert _where(with_lineage(bundle, key, edit), key) == LINEAGE


def test_an_output_that_is_not_in_the_bundle_is_refused_even_when_it_is_signed(bundle: bytes, key: SigningKey) -> None:
    def edit(lineage: Json) -> None:
        lineage["root"] = node_of(lineage, "evaluate")["output"] = ABSENT

    assert _where(with_lineage(bundle, key, edit), key) == blob_name(ABSENT)


def test_a_blob_that_is_not_what_its_name_says_is_refused_even_when_it_is_signed(
    bundle: bytes, key: SigningKey
) -> None:
    members = decode(bundle)
    root = parse_json(members[LINEAGE])["root"]
    members[blob_name(root)] += b" "
    assert _where(signed(members, root, key), key) == blob_name(root)


def test_a_blob_that_the_lineage_does_not_need_is_refused_even_when_it_is_signed(
    bundle: bytes, key: SigningKey
) -> None:
    members = {**decode(bundle), blob_name(ABSENT): b"absent"}
    root = parse_json(members[LINEAGE])["root"]
    assert _where(signed(members, root, key), key) == blob_name(ABSENT)


def _rewritten_snapshot(store: Store, key: SigningKey, files: Json) -> bytes:
    """Return the bundle of a snapshot whose output holds these files instead."""
    bundle = bundle_of(store, make_snapshot(store), key)
    contents = {name: canonical_json(content) for name, content in files.items()}
    entries = [[name, len(contents[name]), of_bytes(contents[name])] for name in sorted(contents)]
    tree = canonical_json({"entries": entries, "type": "ftpipeline.tree", "version": 1})
    lineage = parse_json(decode(bundle)[LINEAGE])
    lineage["root"] = lineage["nodes"][0]["output"] = of_bytes(tree)
    blobs = {blob_name(of_bytes(content)): content for content in (tree, *contents.values())}
    return signed({**blobs, LINEAGE: canonical_json(lineage)}, lineage["root"], key)


@pytest.mark.parametrize(
    ("files", "problem"),
    [
        ({"rows.json": []}, "lists no record.json"),
        ({"record.json": {"query": QUERY, "window": WINDOW}}, "query_sha256"),
        ({"record.json": {"query": QUERY, "query_sha256": of_bytes(QUERY.encode())}}, "window"),
        ({"record.json": {"query": QUERY, "query_sha256": ABSENT, "window": WINDOW}}, "not have the hash"),
    ],
)
def test_a_snapshot_that_does_not_say_what_was_asked_is_refused(
    store: Store, key: SigningKey, files: Json, problem: str
) -> None:
    with pytest.raises(VerificationError, match=problem):
        verify_bytes(_rewritten_snapshot(store, key, files), key.public)


def test_a_file_that_is_missing_or_a_folder_is_named(tmp_path: Path, key: SigningKey) -> None:
    for path in (tmp_path / "none.tar", tmp_path):
        with pytest.raises(InputError, match=str(path)):
            verify_bundle(path, key.public)


SCRIPT = """
import json, sys
from pathlib import Path
from ftpipeline.cycle.bundle_verify import verify_bundle
from ftpipeline.receipts import PublicKey
proof = verify_bundle(Path("bundle.tar"), PublicKey.read(Path("key.pem"))).to_json()
print(json.dumps([proof, sorted(sys.modules)]))
"""


def test_a_clean_process_proves_a_bundle_from_the_file_and_the_public_key(
    tmp_path: Path, bundle: bytes, key: SigningKey
) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    (scratch / "bundle.tar").write_bytes(bundle)
    key.public.write(scratch / "key.pem")
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        cwd=scratch,
        env={"PATH": os.defpath, "PYTHONPATH": str(ROOT), "HOME": "/nonexistent"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    proof, modules = json.loads(done.stdout)
    assert proof == verify_bytes(bundle, key.public).to_json()
    assert not {"sqlalchemy", "alembic", "dagster", "ftpipeline.store.database", "ftpipeline.store.blobs"} & {*modules}
    assert sorted(path.name for path in scratch.iterdir()) == ["bundle.tar", "key.pem"]
