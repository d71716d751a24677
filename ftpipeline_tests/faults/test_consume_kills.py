"""kill -9 of a worker in the middle of a consume: the next attempt reads it once more, says so, and ends the same."""

import os
import signal
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from ftpipeline.cycle.journal import LedgerJournal
from ftpipeline.errors import WorkerError
from ftpipeline.ledger.events import CloseReason, Kind
from ftpipeline.store.home import Home
from ftpipeline.store.opened import Store
from ftpipeline_tests.cycle.training_world import TrainingWorld, training_world, workers
from ftpipeline_tests.orchestration.servers import needs_proc

pytestmark = needs_proc

_STEPS, _EVERY, _MERGED_AT = 30, 5, 12


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Store, Path]]:
    """A store in which the job stands that the others read from."""
    folder = tmp_path_factory.mktemp("consume")
    with closing(Home(folder / "home").open()) as store:
        training_world(store, folder / "work", job_id="producer", every=_EVERY, max_steps=10).launch()
        yield store, folder / "work"


@pytest.fixture(scope="module")
def output(shared: tuple[Store, Path]) -> str:
    """What the consumer makes when nothing is killed."""
    return consumer(shared, "whole").launch()


def consumer(shared: tuple[Store, Path], name: str) -> TrainingWorld:
    merge = {"use": "merge", "job": "producer", "step": 10, "at_step": _MERGED_AT}
    return training_world(*shared, job_id=name, every=_EVERY, max_steps=_STEPS, consumes=[merge])


def kill_workers() -> None:
    for pid in workers():
        os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize("moment", ["before the event", "before the answer"])
def test_a_consume_that_was_cut_short_is_made_again_and_nothing_is_lost(
    shared: tuple[Store, Path], output: str, moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, consume = consumer(shared, moment.replace(" ", "-")), LedgerJournal.consume

    def killing(journal: LedgerJournal, record: Mapping[str, Any], place: Path) -> Path | None:
        if moment == "before the event":
            kill_workers()
        folder = consume(journal, record, place)
        kill_workers()
        return folder

    with monkeypatch.context() as patched:
        patched.setattr(LedgerJournal, "consume", killing)
        with pytest.raises(WorkerError, match="SIGKILL"):
            world.launch()
    assert world.launch() == output
    world.ledger.verify(world.job_id)
    consumed = [event for event in world.of(Kind.CHECKPOINT_CONSUMED) if event.payload["producer"] == "producer"]
    assert [(event.attempt, event.payload["at_step"]) for event in consumed] == [(1, _MERGED_AT), (2, _MERGED_AT)]
    closed = [event.payload["reason"] for event in world.of(Kind.JOB_CLOSED)]
    assert closed == [CloseReason.FAILED, CloseReason.COMPLETED]
