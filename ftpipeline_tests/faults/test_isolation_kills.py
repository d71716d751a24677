"""kill -9 of an isolation at every write point: the next one does the rest, and nothing twice."""

import shutil
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from ftpipeline.cycle.incident import Incidents
from ftpipeline.cycle.isolation import Isolator
from ftpipeline.cycle.maintenance import ROOTS
from ftpipeline.cycle.watch import signer_of, watch
from ftpipeline.ledger.events import Kind
from ftpipeline.ledger.ledger import ledger_of
from ftpipeline.store.fsck import check
from ftpipeline.store.home import Home
from ftpipeline.store.opened import Store
from ftpipeline_tests.cycle.fleet_world import EndsRuns, six_jobs
from ftpipeline_tests.faults.kill import killed_at, write_points
from ftpipeline_tests.store.folders import quick_folder

_EVERY = 4  # there are some two hundred points, and those of one job are like those of the next


@contextmanager
def opened(home: Path) -> Iterator[Store]:
    with closing(Home(home).open()) as store:
        yield store


def prepare(home: Path) -> None:
    with opened(home) as store:
        six_jobs(store)
        signer_of(store)


def find(home: Path) -> None:
    """Scan as the sensor does."""
    with opened(home) as store:
        watch(store, ledger_of(store))


def isolate(home: Path) -> None:
    with opened(home) as store:
        ledger = ledger_of(store)
        for incident in watch(store, ledger).waiting:
            Isolator(store, ledger, signer_of(store), EndsRuns()).isolate(incident.name)


def everything_is_done_once(home: Path) -> None:
    with opened(home) as store:
        ledger = ledger_of(store)
        [incident] = Incidents(store.database).all()
        assert incident.report is not None
        actions = {action["job_id"]: action["action"] for action in incident.report["actions"]}
        assert actions == dict.fromkeys("ABC", "rollback") | dict.fromkeys("DE", "none") | {"F": "quarantine"}
        for job_id in "ABCDEF":
            ledger.verify(job_id)
            kinds = Counter(event.kind for event in ledger.events(job_id))
            assert kinds[Kind.ISOLATION_ACTION] == (job_id not in "DE")
            assert kinds[Kind.DIVERGENCE_DETECTED] == (job_id == "A")
            assert kinds[Kind.JOB_CLOSED] == (job_id not in "DE")
        marks = Counter(mark.digest for mark in store.quarantine.marks())
        assert len(marks) == 5
        assert set(marks.values()) == {1}
        assert len(store.pointers.of_run(f"isolation {incident.name}")) == 3
        assert check(store, ROOTS).problems == ()


def in_the_middle_nothing_is_lost(home: Path) -> None:
    """Whatever was done so far: the chains verify, and what is clean is not marked."""
    with opened(home) as store:
        ledger = ledger_of(store)
        for job_id in "ABCDEF":
            ledger.verify(job_id)
        clean = {event.payload["tree"] for event in (*ledger.checkpoints("D"), *ledger.checkpoints("E"))}
        assert clean.isdisjoint(mark.digest for mark in store.quarantine.marks())


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_an_isolation_killed_at_any_write_point_is_taken_up_and_finished() -> None:
    with quick_folder() as folder:
        prepare(folder / "template")
        shutil.copytree(folder / "template", folder / "home")
        points = write_points(isolate, folder / "home")
        everything_is_done_once(folder / "home")
        assert points > 30
        for point in range(1, points + 1, _EVERY):
            shutil.rmtree(folder / "home")
            shutil.copytree(folder / "template", folder / "home")
            assert killed_at(point, isolate, folder / "home")
            in_the_middle_nothing_is_lost(folder / "home")
            isolate(folder / "home")
            everything_is_done_once(folder / "home")


@pytest.mark.timeout(300)
def test_a_scan_killed_at_any_write_point_loses_no_incident() -> None:
    with quick_folder() as folder:
        prepare(folder / "template")
        shutil.copytree(folder / "template", folder / "home")
        points = write_points(find, folder / "home")
        assert points > 5
        for point in range(1, points + 1):
            shutil.rmtree(folder / "home")
            shutil.copytree(folder / "template", folder / "home")
            assert killed_at(point, find, folder / "home")
            find(folder / "home")
            with opened(folder / "home") as store:
                assert [incident.job_id for incident in Incidents(store.database).waiting()] == ["A"]
