"""Single flight: one computes, the others get the same; the dead are taken over and can no longer record."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from multiprocessing import get_context
from multiprocessing.context import ForkServerContext, ForkServerProcess
from multiprocessing.queues import Queue
from pathlib import Path

import pytest

from ftpipeline.engine.flight import Flight, Pace, single_flight
from ftpipeline.errors import CorruptArtifactError, LeaseLostError, QuarantinedError
from ftpipeline.records import LineageRecord
from ftpipeline.store.database import Database
from ftpipeline.store.leases import Leases
from ftpipeline.store.quarantine import Quarantine
from ftpipeline.store.results import StepResults
from ftpipeline_tests.store.rows import digest, lineage

KEY, OUTPUT = digest("key"), digest("output")
PACE = Pace(ttl=20.0, poll=0.05, patience=60.0)
BRIEF = Pace(ttl=1.5, poll=0.05, patience=60.0)


def record(run_id: str = "run") -> LineageRecord:
    return lineage(KEY, OUTPUT, run_id=run_id)


def fly(database: Database, pace: Pace = PACE, run_id: str = "run") -> Flight:
    return single_flight(Leases(database), StepResults(database), KEY, lambda: record(run_id), pace=pace)


def refuse() -> LineageRecord:
    raise AssertionError("computed twice")


def test_the_first_computes_and_the_second_gets_the_same(database: Database) -> None:
    assert fly(database) == Flight(record(), computed=True)
    again = single_flight(Leases(database), StepResults(database), KEY, refuse, pace=PACE)
    assert again == Flight(record(), computed=False)


def test_a_result_whose_bytes_are_gone_is_computed_again(database: Database) -> None:
    results, leases = StepResults(database), Leases(database)
    results.record(record())
    flight = single_flight(leases, results, KEY, record, is_usable=lambda known: False, pace=PACE)
    assert flight == Flight(record(), computed=True)


def test_bytes_that_are_gone_and_do_not_come_out_the_same_again_are_said(database: Database) -> None:
    results, leases = StepResults(database), Leases(database)
    results.record(record())
    other = lineage(KEY, digest("other output"))
    with pytest.raises(CorruptArtifactError, match=f"made {other.output} when it was run again") as caught:
        single_flight(leases, results, KEY, lambda: other, is_usable=lambda known: False, pace=PACE)
    assert caught.value.digest == OUTPUT
    assert results.find(KEY) == record()
    assert leases.held() == {}


def test_the_lease_is_given_back_whatever_happens(database: Database) -> None:
    def fail() -> LineageRecord:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        single_flight(Leases(database), StepResults(database), KEY, fail, pace=PACE)
    assert Leases(database).held() == {}
    assert fly(database).computed
    assert Leases(database).held() == {}


def test_a_quarantined_output_is_not_recorded(database: Database) -> None:
    Quarantine(database).mark(OUTPUT, digest("receipt"), "why")
    with pytest.raises(QuarantinedError):
        fly(database)
    assert Leases(database).held() == {}


def test_the_wait_for_a_living_holder_has_an_end(database: Database) -> None:
    holder = Leases(database).acquire(KEY, "somebody", 60.0)
    assert holder is not None
    with pytest.raises(LeaseLostError, match=r"held by somebody for 0\.2 s") as caught:
        fly(database, Pace(ttl=60.0, poll=0.05, patience=0.2))
    assert caught.value.exit_code == 3


def test_a_holder_that_computes_for_longer_than_its_ttl_keeps_its_lease(database: Database) -> None:
    started = threading.Event()

    def slow() -> LineageRecord:
        started.set()
        time.sleep(2 * BRIEF.ttl)
        return record("slow")

    flights: list[Flight] = []
    leases, results = Leases(database), StepResults(database)
    thread = threading.Thread(target=lambda: flights.append(single_flight(leases, results, KEY, slow, pace=BRIEF)))
    thread.start()
    started.wait()
    waited = fly(database, BRIEF, "impatient")
    thread.join()
    assert waited == Flight(record("slow"), computed=False)
    assert flights == [Flight(record("slow"), computed=True)]


def test_a_holder_that_lost_its_lease_records_nothing_and_takes_the_result_of_its_successor(database: Database) -> None:
    """As if the machine had been suspended in the middle of the computation."""
    results = StepResults(database)

    def suspended() -> LineageRecord:
        with database.write() as connection:
            connection.exec_driver_sql("UPDATE leases SET holder = 'successor', generation = generation + 1, ttl = 60")
        successor = record("successor")
        threading.Timer(0.3, results.record, [successor]).start()
        return record("suspended")

    flight = single_flight(Leases(database), results, KEY, suspended, pace=PACE)
    assert flight == Flight(record("successor"), computed=False)
    assert Leases(database).held() == {KEY: "successor"}


# --- processes ------------------------------------------------------------------------------------------------------


@pytest.fixture
def context() -> ForkServerContext:
    """Processes that are forked from a clean one that has imported everything: fifty of them cost little."""
    found = get_context("forkserver")
    found.set_forkserver_preload([__name__])
    return found


def fly_and_log(url: str, log: Path, answers: "Queue[tuple[str, bool]]") -> None:
    def compute() -> LineageRecord:
        with log.open("a") as file:
            file.write(f"{os.getpid()}\n")
        time.sleep(0.3)
        return record(str(os.getpid()))

    with closing(Database.open(url)) as database:
        flight = single_flight(Leases(database), StepResults(database), KEY, compute, pace=PACE)
        answers.put((flight.record.run_id, flight.computed))


@pytest.mark.timeout(300)
def test_fifty_processes_at_once_execute_once_and_get_equal_results(
    database: Database, database_url: str, context: ForkServerContext, tmp_path: Path
) -> None:
    answers = context.Queue()
    log = tmp_path / "log"
    processes = [context.Process(target=fly_and_log, args=(database_url, log, answers)) for _ in range(50)]
    for process in processes:
        process.start()
    found = [answers.get() for _ in processes]
    for process in processes:
        process.join()
    executed = log.read_text().split()
    assert len(executed) == 1
    assert {run_id for run_id, _ in found} == set(executed)
    assert [computed for _, computed in found].count(True) == 1


def hold(url: str, pipe: str) -> None:
    def compute() -> LineageRecord:
        Path(pipe).write_text("computing")
        signal.pause()
        raise AssertionError("unreachable")

    with closing(Database.open(url)) as database:
        single_flight(Leases(database), StepResults(database), KEY, compute, pace=BRIEF)


@contextmanager
def holder(context: ForkServerContext, url: str, folder: Path) -> Iterator[ForkServerProcess]:
    """A process that is in the middle of the computation."""
    pipe = folder / "pipe"
    os.mkfifo(pipe)
    process = context.Process(target=hold, args=(url, str(pipe)))
    process.start()
    assert pipe.read_text() == "computing"
    try:
        yield process
    finally:
        process.kill()
        process.join()


def test_a_holder_that_is_killed_is_taken_over(
    database: Database, database_url: str, context: ForkServerContext, tmp_path: Path
) -> None:
    with holder(context, database_url, tmp_path) as process:
        process.kill()
        process.join()
        assert fly(database, BRIEF, "successor") == Flight(record("successor"), computed=True)


def test_a_holder_that_lives_is_not_taken_over(
    database: Database, database_url: str, context: ForkServerContext, tmp_path: Path
) -> None:
    longer_than_a_dead_one_would_last = Pace(ttl=BRIEF.ttl, poll=0.05, patience=2 * BRIEF.ttl)
    with holder(context, database_url, tmp_path), pytest.raises(LeaseLostError):
        fly(database, longer_than_a_dead_one_would_last)
