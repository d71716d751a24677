"""The bundle of a ledger: what it proves, and that nothing in it can be changed."""

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ftpipeline.cycle.bundle_format import JOBS_MANIFEST, STATEMENT, blob_name, decode, encode, events_name, heads_name
from ftpipeline.cycle.bundle_verify import verify_bytes
from ftpipeline.cycle.ledger_bundle import LedgerBundleInfo, export_ledger
from ftpipeline.cycle.ledger_bundle_verify import is_ledger_bundle, statement_of, verify_ledger_bytes
from ftpipeline.digest import Digest
from ftpipeline.errors import ChainError, CorruptArtifactError, UnknownNameError, VerificationError
from ftpipeline.ledger.events import CloseReason, Draft, Kind, Use
from ftpipeline.ledger.ledger import Ledger, ledger_of
from ftpipeline.receipts import SigningKey, Statement, Subject, sign
from ftpipeline.store.opened import Store
from ftpipeline_tests.ledger.world import TTL, metrics, opened, saved
from ftpipeline_tests.store.rows import digest, put_tree


def make_incident(store: Store, ledger: Ledger) -> Digest:
    """Let `a` train, `b` consume from it and `c` train by itself; halt `a`, and return the receipt of that."""
    a, b, c = (ledger.open_job(job, opened(), f"holder of {job}", TTL) for job in "abc")
    a.append([metrics(1), metrics(2), saved(10, put_tree(store.trees, weights=b"10"))])
    b.consume("a", 10, Use.MERGE, 5)
    c.append([metrics(1)])
    statement = Statement((Subject("job", digest("a")),), "ftpipeline:isolation/v1", {"action": "halt"})
    receipt = store.blobs.put_bytes(sign(statement, key_of(store)))
    a.append([Draft(Kind.ISOLATION_ACTION, 10, 0.1, {"receipt": receipt, "action": "halt"})])
    a.close(CloseReason.HALTED)
    return receipt


def key_of(store: Store) -> SigningKey:
    return SigningKey.of_home(store.home.root)


@pytest.fixture
def receipt(store: Store) -> Digest:
    return make_incident(store, ledger_of(store))


@pytest.fixture
def bundle(store: Store, receipt: Digest, tmp_path: Path) -> LedgerBundleInfo:
    return export_ledger(store, ledger_of(store), tmp_path / "ledger.tar", key_of(store))


def test_a_bundle_proves_chains_receipts_and_the_jobs_at_the_cut(
    store: Store, bundle: LedgerBundleInfo, receipt: Digest
) -> None:
    data = bundle.path.read_bytes()
    verified = verify_ledger_bytes(data, key_of(store).public)
    ledger = ledger_of(store)
    assert verified.root == bundle.root == ledger.manifest()["root"]
    assert verified.chains == {job: ledger.events(job) for job in "abc"}
    assert verified.receipts[receipt].predicate == {"action": "halt"}
    assert list(verified.receipts) == [receipt]
    assert is_ledger_bundle(data)
    with pytest.raises(VerificationError):
        verify_bytes(data, key_of(store).public)


def test_one_cut_gives_the_same_bytes_every_time(store: Store, bundle: LedgerBundleInfo, tmp_path: Path) -> None:
    again = export_ledger(store, ledger_of(store), tmp_path / "again.tar", key_of(store))
    assert (again.digest, again.size) == (bundle.digest, bundle.size)


def test_jobs_come_with_those_that_they_consumed_from_and_no_others(
    store: Store, receipt: Digest, tmp_path: Path
) -> None:
    part = export_ledger(store, ledger_of(store), tmp_path / "part.tar", key_of(store), ["b"])
    assert part.jobs == ("a", "b")
    assert export_ledger(store, ledger_of(store), tmp_path / "part.tar", key_of(store), ["c"]).jobs == ("c",)
    with pytest.raises(UnknownNameError):
        export_ledger(store, ledger_of(store), tmp_path / "none.tar", key_of(store), ["d"])
    assert not (tmp_path / "none.tar").exists()


def test_receipts_beyond_those_that_events_name_can_be_added(store: Store, receipt: Digest, tmp_path: Path) -> None:
    statement = Statement((Subject("job", digest("a")),), "ftpipeline:lift/v1", {"reason": "was none"})
    more = store.blobs.put_bytes(sign(statement, key_of(store)))
    export_ledger(store, ledger_of(store), tmp_path / "more.tar", key_of(store), receipts=[more])
    verified = verify_ledger_bytes((tmp_path / "more.tar").read_bytes(), key_of(store).public)
    assert set(verified.receipts) == {receipt, more}


def test_nothing_is_written_where_a_receipt_is_gone_or_a_chain_is_broken(store: Store, tmp_path: Path) -> None:
    ledger = ledger_of(store)
    with pytest.raises(UnknownNameError, match="holds no job"):
        export_ledger(store, ledger, tmp_path / "ledger.tar", key_of(store))
    writer = ledger.open_job("a", opened(), "holder", TTL)
    writer.append([Draft(Kind.ISOLATION_ACTION, 0, 0.0, {"receipt": digest("gone"), "action": "halt"})])
    with pytest.raises(CorruptArtifactError):
        export_ledger(store, ledger, tmp_path / "ledger.tar", key_of(store))
    assert not (tmp_path / "ledger.tar").exists()


def test_every_flipped_bit_is_refused_and_its_member_named(store: Store, bundle: LedgerBundleInfo) -> None:
    data, public = bundle.path.read_bytes(), key_of(store).public
    members = decode(data)
    spans = {name: data.index(content) for name, content in members.items()}

    @given(st.integers(0, len(data) - 1), st.integers(0, 7))
    def flip(at: int, bit: int) -> None:
        changed = bytearray(data)
        changed[at] ^= 1 << bit
        with pytest.raises(VerificationError) as caught:
            verify_ledger_bytes(bytes(changed), public)
        inside = [name for name, start in spans.items() if start <= at < start + len(members[name])]
        if not inside:
            return
        name = inside[0]
        if name.startswith(("events/", "heads/")):
            job_id = name.partition("/")[2].removesuffix(".jsonl")
            assert f"job {job_id}" in str(caught.value) or name in caught.value.where
        else:
            assert name in caught.value.where

    flip()


def remade(members: dict[str, bytes], key: SigningKey) -> bytes:
    """Return a bundle of other members, signed again."""
    rest = {name: content for name, content in members.items() if name != STATEMENT}
    return encode({**rest, STATEMENT: sign(statement_of(rest), key)})


@pytest.mark.parametrize(
    "change", ["drop an event", "cut the end", "double an event", "swap two events", "no end of line"]
)
def test_who_signs_a_changed_chain_again_does_not_get_away_with_it(
    store: Store, bundle: LedgerBundleInfo, change: str
) -> None:
    members = decode(bundle.path.read_bytes())
    lines = members[events_name("a")].splitlines(keepends=True)
    changed = {
        "drop an event": [*lines[:2], *lines[3:]],
        "cut the end": lines[:-1],
        "double an event": [*lines[:2], *lines[1:]],
        "swap two events": [*lines[:1], lines[2], lines[1], *lines[3:]],
        "no end of line": [*lines[:-1], lines[-1][:-1]],
    }[change]
    members[events_name("a")] = b"".join(changed)
    with pytest.raises(VerificationError):
        verify_ledger_bytes(remade(members, key_of(store)), key_of(store).public)


def test_members_that_are_missing_or_belong_to_nothing_are_refused(
    store: Store, bundle: LedgerBundleInfo, receipt: Digest
) -> None:
    members, key = decode(bundle.path.read_bytes()), key_of(store)
    for name in members.keys() - {heads_name("a")}:
        rest = {other: content for other, content in members.items() if other != name}
        with pytest.raises(VerificationError):
            verify_ledger_bytes(remade(rest, key) if name != STATEMENT else encode(rest), key.public)
    for name, content in {"lineage.json": b"{}", heads_name("d"): b"", blob_name(digest("x")): b"x"}.items():
        with pytest.raises(VerificationError):
            verify_ledger_bytes(remade({**members, name: content}, key), key.public)


def test_another_key_proves_nothing(store: Store, bundle: LedgerBundleInfo, tmp_path: Path) -> None:
    stranger = SigningKey.of_home(tmp_path / "stranger")
    data = bundle.path.read_bytes()
    with pytest.raises(VerificationError, match="is signed by key"):
        verify_ledger_bytes(data, stranger.public)
    with pytest.raises(ChainError), suppress(KeyError):  # signed anew by a stranger: the heads are not his
        verify_ledger_bytes(remade(decode(data), stranger), stranger.public)
    assert JOBS_MANIFEST in decode(data)
