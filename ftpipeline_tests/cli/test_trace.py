"""The verbs trace, isolate and quarantine: what they print, their exit codes, and what they change."""

import json
from typing import Any

import pytest
import typer
from typer.testing import CliRunner, Result

from ftpipeline.cli.maintenance import app as quarantine
from ftpipeline.cli.trace import isolate, trace
from ftpipeline.cycle.isolation_records import lift_statement
from ftpipeline.cycle.watch import signer_of, watch
from ftpipeline.digest import Digest
from ftpipeline.errors import InputError, QuarantinedError, UnknownNameError, VerificationError
from ftpipeline.receipts import verify
from ftpipeline.store.home import Home
from ftpipeline.store.opened import Store
from ftpipeline_tests.cycle.fleet_world import World, six_jobs

app = typer.Typer()
app.command("trace")(trace)
app.command("isolate")(isolate)
app.add_typer(quarantine, name="quarantine")


@pytest.fixture
def world(store: Store) -> World:
    return six_jobs(store)


def run(home: Home, *arguments: str) -> Result:
    return CliRunner().invoke(app, [*arguments, "--home", str(home.root)])


def document(home: Home, *arguments: str) -> Any:
    return json.loads(run(home, *arguments, "--json").stdout)


def states(found: Any) -> dict[str, str]:
    return {job["job_id"]: job["state"] for job in found["jobs"]}


def test_trace_prints_every_job_and_changes_nothing(home: Home, world: World) -> None:
    heads = world.ledger.jobs()
    found = run(home, "trace", "A", "--json")
    assert found.exit_code == 1
    printed = json.loads(found.stdout)
    assert printed["verdict"] == "UNRECOVERABLE_CONTAMINATION"
    assert states(printed) == dict.fromkeys("BCF", "tainted") | dict.fromkeys("DE", "clean") | {"A": "source"}
    [c] = [job for job in printed["jobs"] if job["job_id"] == "C"]
    assert (c["tainted_from"], c["rollback_to"], len(c["witness"])) == ([1, 70], [1, 60], 2)
    assert "A > B > C" in run(home, "trace", "A").stdout
    assert world.ledger.jobs() == heads
    assert world.store.quarantine.marks() == []


def test_a_stated_window_is_traced_instead_of_what_the_detector_found(home: Home, world: World) -> None:
    assert states(document(home, "trace", "A", "--window", "95:99"))["E"] == "tainted"
    assert states(document(home, "trace", "D", "--window", "10:11"))["D"] == "source"
    assert document(home, "trace", "D", "--window", ":11")["jobs"][3]["tainted_from"] == [0, 0]


def test_a_job_that_is_not_known_to_have_diverged_is_not_traced_without_a_window(home: Home, world: World) -> None:
    refused = run(home, "trace", "D")
    assert isinstance(refused.exception, InputError)
    assert "job D is insufficient, not diverged" in str(refused.exception)


@pytest.mark.parametrize("window", ["", "7", "7:", "a:b", "-1:4", "7:5"])
def test_a_window_that_is_none_is_refused(home: Home, world: World, window: str) -> None:
    assert isinstance(run(home, "trace", "A", "--window", window).exception, InputError)


def test_an_unknown_job_is_refused(home: Home, world: World) -> None:
    assert isinstance(run(home, "trace", "Z").exception, UnknownNameError)


def test_a_dry_run_prints_the_plan_and_changes_nothing(home: Home, world: World) -> None:
    printed = document(home, "isolate", "A", "--dry-run")
    assert (printed["dry_run"], {action["job_id"] for action in printed["actions"]}) == (True, set("ABCDEF"))
    assert world.store.quarantine.marks() == []
    assert world.ledger.job("B").is_open


def test_isolate_isolates_and_says_so_with_its_receipts(home: Home, world: World, monkeypatch: Any) -> None:
    printed = document(home, "isolate", "A")
    assert (printed["dry_run"], printed["verdict"]) == (False, "UNRECOVERABLE_CONTAMINATION")
    for receipt in printed["receipts"].values():
        verify(world.store.blobs.read_bytes(receipt), signer_of(world.store).key.public)
    assert not world.ledger.job("B").is_open
    assert watch(world.store, world.ledger).waiting == ()
    assert document(home, "isolate", "A") == printed


def test_a_person_may_declare_a_divergence_that_no_detector_sees(home: Home, world: World) -> None:
    printed = document(home, "isolate", "D", "--window", "40:41")
    said = verify(world.store.blobs.read_bytes(printed["receipts"]["divergence"]), signer_of(world.store).key.public)
    assert said.predicate["declared_by"]
    assert printed["actions"][3]["action"] == "quarantine"


def marked(world: World) -> Digest:
    tree = world.jobs["A"].trees[145]
    world.store.quarantine.mark(tree, signer_of(world.store).put(lift_statement(tree, "r", "a", [])), "diverged")
    return tree


def test_a_lift_is_signed_with_its_reason_and_kept(home: Home, world: World) -> None:
    tree = marked(world)
    [mark] = document(home, "quarantine", "lift", tree, "--reason", "false alarm", "--actor", "ann")
    said = verify(world.store.blobs.read_bytes(mark["lift_receipt"]), signer_of(world.store).key.public)
    assert dict(said.predicate) == {
        "artifact": tree,
        "reason": "false alarm",
        "actor": "ann",
        "marks": [mark["receipt"]],
    }
    world.store.quarantine.check(tree)
    assert isinstance(run(home, "quarantine", "lift", tree, "--reason", "again").exception, UnknownNameError)


def test_a_receipt_that_lifts_something_else_lifts_nothing(home: Home, world: World) -> None:
    tree = marked(world)
    other = signer_of(world.store).put(lift_statement(world.jobs["B"].trees[80], "reason", "ann", []))
    refused = run(home, "quarantine", "lift", tree, "--reason", "r", "--receipt", other)
    assert isinstance(refused.exception, VerificationError)
    with pytest.raises(QuarantinedError):
        world.store.quarantine.check(tree)
    right = signer_of(world.store).put(lift_statement(tree, "reason", "ann", []))
    assert run(home, "quarantine", "lift", tree, "--reason", "r", "--receipt", right).exit_code == 0


def test_a_quarantine_is_not_lifted_without_a_reason(home: Home, world: World) -> None:
    assert isinstance(run(home, "quarantine", "lift", marked(world), "--reason", " ").exception, InputError)
