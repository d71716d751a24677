import pytest

from ftpipeline.errors import QuarantinedError, UnknownNameError
from ftpipeline.store.database import Database
from ftpipeline.store.quarantine import Quarantine
from ftpipeline.store.results import StepResults
from ftpipeline_tests.store.rows import digest, lineage

TREE, OTHER, RECEIPT, LATER, LIFT = (digest(name) for name in ("tree", "other", "receipt", "later", "lift"))
KEY = digest("key")


@pytest.fixture
def quarantine(database: Database) -> Quarantine:
    return Quarantine(database)


@pytest.fixture
def results(database: Database) -> StepResults:
    return StepResults(database)


def test_a_marked_tree_is_refused_by_digest_and_reason_and_others_are_not(quarantine: Quarantine) -> None:
    quarantine.mark(TREE, RECEIPT, "trained from a diverged checkpoint")
    with pytest.raises(QuarantinedError, match=f"{TREE} is quarantined .trained from a diverged checkpoint") as caught:
        quarantine.check(TREE)
    assert (caught.value.digest, caught.value.exit_code) == (TREE, 1)
    quarantine.check(OTHER)


def test_the_same_receipt_marks_once(quarantine: Quarantine) -> None:
    for _ in range(2):
        quarantine.mark(TREE, RECEIPT, "why")
    assert len(quarantine.marks(TREE)) == 1
    quarantine.lift(TREE, LIFT, "false alarm")
    quarantine.mark(TREE, RECEIPT, "why")
    quarantine.check(TREE)


def test_lifting_frees_the_tree_from_all_its_marks_and_forgets_none(quarantine: Quarantine) -> None:
    quarantine.mark(TREE, RECEIPT, "one reason")
    quarantine.mark(TREE, LATER, "another")
    quarantine.mark(OTHER, RECEIPT, "one reason")
    quarantine.lift(TREE, LIFT, "the evidence was wrong")
    quarantine.check(TREE)
    assert [(mark.receipt, mark.lift_receipt, mark.lift_reason) for mark in quarantine.marks(TREE)] == [
        (RECEIPT, LIFT, "the evidence was wrong"),
        (LATER, LIFT, "the evidence was wrong"),
    ]
    assert all(mark.lifted is not None for mark in quarantine.marks(TREE))
    with pytest.raises(QuarantinedError):
        quarantine.check(OTHER)
    assert len(quarantine.marks()) == 3


def test_a_new_event_marks_a_lifted_tree_again(quarantine: Quarantine) -> None:
    quarantine.mark(TREE, RECEIPT, "why")
    quarantine.lift(TREE, LIFT, "false alarm")
    quarantine.mark(TREE, LATER, "this time it is true")
    with pytest.raises(QuarantinedError, match="this time it is true"):
        quarantine.check(TREE)


def test_what_is_not_marked_cannot_be_lifted(quarantine: Quarantine) -> None:
    with pytest.raises(UnknownNameError):
        quarantine.lift(TREE, LIFT, "why")
    quarantine.mark(TREE, RECEIPT, "why")
    quarantine.lift(TREE, LIFT, "false alarm")
    with pytest.raises(UnknownNameError):
        quarantine.lift(TREE, LIFT, "again")


def test_a_quarantined_result_is_no_hit_and_stays_in_the_lineage(quarantine: Quarantine, results: StepResults) -> None:
    record = results.record(lineage(KEY, TREE))
    unrelated = results.record(lineage(digest("unrelated"), OTHER))
    quarantine.mark(TREE, RECEIPT, "why")
    assert results.find(KEY) is None
    assert results.use(KEY) is None
    assert results.made(TREE) == [record]
    assert results.of_key(KEY) == [record]
    assert results.find(unrelated.key) == unrelated


def test_the_quarantined_bytes_cannot_be_recorded_again_but_others_can(
    quarantine: Quarantine, results: StepResults
) -> None:
    first = results.record(lineage(KEY, TREE))
    quarantine.mark(TREE, RECEIPT, "why")
    with pytest.raises(QuarantinedError):
        results.record(lineage(KEY, TREE, run_id="again"))
    second = results.record(lineage(KEY, OTHER, run_id="again"))
    assert results.find(KEY) == second
    assert results.of_key(KEY) == [first, second]


def test_a_lifted_result_is_a_hit_again(quarantine: Quarantine, results: StepResults) -> None:
    record = results.record(lineage(KEY, TREE))
    quarantine.mark(TREE, RECEIPT, "why")
    quarantine.lift(TREE, LIFT, "false alarm")
    assert results.find(KEY) == record


def test_a_lifted_result_does_not_push_its_successor_aside(quarantine: Quarantine, results: StepResults) -> None:
    results.record(lineage(KEY, TREE))
    quarantine.mark(TREE, RECEIPT, "why")
    successor = results.record(lineage(KEY, OTHER))
    quarantine.lift(TREE, LIFT, "false alarm")
    assert results.find(KEY) == successor
