"""The verbs replay and trace on a job that merged a wrecked checkpoint, with workers launched in earnest."""

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from ftpipeline.cli.replay import replay
from ftpipeline.cli.trace import trace
from ftpipeline.errors import InputError
from ftpipeline.store.home import Home
from ftpipeline_tests.cycle.replay_world import ReplayWorld, merge

app = typer.Typer()
app.command("replay")(replay)
app.command("trace")(trace)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ReplayWorld]:
    """W merged what A had wrecked, and diverged; A is isolated."""
    folder = tmp_path_factory.mktemp("replay")
    with closing(Home(folder / "home").open()) as store:
        (folder / "work").mkdir()
        made = ReplayWorld(store, folder / "work")
        made.train("A", max_steps=10)
        made.save("A", 15, 300.0)
        made.train("W", consumes=[merge("A", 15, 12)])
        made.isolate("A", 10)
        yield made


def document(home: Path, *arguments: str) -> Any:
    return json.loads(CliRunner().invoke(app, [*arguments, "--home", str(home), "--json"]).stdout)


@pytest.mark.slow
def test_replay_prints_k_of_n_by_arm_and_trace_shows_it_from_then_on(world: ReplayWorld) -> None:
    home = world.store.home.root
    made = document(home, "replay", "W", "--seeds", "1")
    diverged = {arm: each["diverged"] for arm, each in made["outcomes"].items()}
    assert diverged == {"as_recorded": 1, "clean_producer": 0, "without_input": 0}
    assert made["cause"] == "EXPOSED_UNTESTED"  # one seed decides nothing
    [shown] = [job for job in document(home, "trace", "A")["jobs"] if job["job_id"] == "W"]
    assert shown["replays"] == made["outcomes"]
    said = CliRunner().invoke(app, ["trace", "A", "--home", str(home)]).stdout
    assert "as_recorded: 1 of 1 diverged" in said


def test_a_job_that_nothing_exposed_is_refused(world: ReplayWorld) -> None:
    heads = world.ledger.jobs()
    done = CliRunner().invoke(app, ["replay", "A", "--home", str(world.store.home.root)])
    assert isinstance(done.exception, InputError)
    assert world.ledger.jobs() == heads
