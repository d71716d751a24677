"""The verbs fsck, gc and quarantine: what they print, and their exit codes."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import typer
from typer.testing import CliRunner, Result

from ftpipeline.cli.maintenance import app as quarantine
from ftpipeline.cli.maintenance import fsck, gc
from ftpipeline.digest import Digest
from ftpipeline.errors import InputError, UnknownNameError
from ftpipeline.store.home import Home
from ftpipeline.store.opened import Store
from ftpipeline_tests.store.damage import age, flip_a_bit, object_path
from ftpipeline_tests.store.rows import digest, put_tree

app = typer.Typer()
app.command("fsck")(fsck)
app.command("gc")(gc)
app.add_typer(quarantine, name="quarantine")


def run(home: Home, *arguments: str) -> Result:
    return CliRunner().invoke(app, [*arguments, "--home", str(home.root)])


def run_json(home: Home, *arguments: str) -> Any:
    return json.loads(run(home, *arguments, "--json").stdout)


@pytest.fixture
def pointed(store: Store) -> Digest:
    tree = put_tree(store.trees, weights=b"weights")
    store.pointers.put("train", None, "run", 0, tree)
    return tree


def test_fsck_of_a_sound_store_ends_well(home: Home, store: Store, pointed: Digest) -> None:
    assert run(home, "fsck").exit_code == 0
    assert "no problems" in run(home, "fsck").stdout
    document = run_json(home, "fsck")
    assert (document["problems"], document["objects"]) == ([], 2)


def test_fsck_prints_each_problem_and_ends_with_a_verdict_against(home: Home, store: Store, pointed: Digest) -> None:
    flip_a_bit(store, digest("weights"))
    found = run(home, "fsck", "--json")
    assert found.exit_code == 1
    assert json.loads(found.stdout)["problems"] == [
        {"digest": digest("weights"), "kind": "altered", "dependants": [pointed]}
    ]
    again = run(home, "fsck")
    assert again.exit_code == 1
    assert again.stdout.startswith(f"missing {digest('weights')}\n  needed by {pointed}\n")
    assert again.stdout.endswith(": 1 problem\n")


def test_gc_prints_the_bytes_and_a_dry_run_leaves_them(home: Home, store: Store, pointed: Digest) -> None:
    garbage = store.blobs.put_bytes(b"garbage")
    age(object_path(store, garbage), datetime.now(UTC) - timedelta(hours=100))
    planned = run_json(home, "gc", "--dry-run")
    assert planned == {"dry_run": True, "objects": 1, "freed": 7, "results": 0, "swept": 0}
    assert "7 bytes of 1 objects would be freed" in run(home, "gc", "--dry-run").stdout
    assert run_json(home, "gc", "--grace", "200")["objects"] == 0
    assert run_json(home, "gc") == planned | {"dry_run": False}
    assert store.blobs.size(garbage) is None
    store.trees.verify(pointed)


def test_a_grace_period_that_is_too_short_is_refused(home: Home, store: Store) -> None:
    assert isinstance(run(home, "gc", "--grace", "0").exception, InputError)


def test_a_quarantine_is_listed_and_lifted_with_a_reason(home: Home, store: Store) -> None:
    tree, receipt = digest("tree"), digest("receipt")
    store.quarantine.mark(tree, receipt, "diverged")
    [mark] = run_json(home, "quarantine", "list")
    assert (mark["digest"], mark["reason"], mark["receipt"], mark["lifted"]) == (tree, "diverged", receipt, None)
    assert "diverged" in run(home, "quarantine", "list").stdout
    order = ("quarantine", "lift", tree, "--reason", "false alarm")
    assert run(home, *order).exit_code == 0
    store.quarantine.check(tree)
    [mark] = run_json(home, "quarantine", "list")
    assert mark["lift_reason"] == "false alarm"
    assert store.blobs.size(mark["lift_receipt"])
    assert isinstance(run(home, *order).exception, UnknownNameError)
