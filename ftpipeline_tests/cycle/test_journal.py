"""A training job in the ledger: cut short anywhere, it goes on from its newest sound checkpoint, and all is told."""

import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from ftpipeline.cycle.resume import resumable
from ftpipeline.digest import Digest
from ftpipeline.errors import (
    FtpipelineError,
    JobHaltedError,
    LeaseLostError,
    UnknownNameError,
    WorkerError,
    WorkerInterruptedError,
)
from ftpipeline.ledger.events import Draft, Kind
from ftpipeline.ledger.quarantined import attempt_digest
from ftpipeline.store.home import Home
from ftpipeline.store.opened import Store
from ftpipeline_tests.cycle.training_world import TrainingWorld, signal_at, training_world, workers
from ftpipeline_tests.orchestration.servers import needs_proc, wait_for
from ftpipeline_tests.store.damage import flip_a_bit

pytestmark = needs_proc

STEPS, EVERY, EARLY = 200, 25, 30
"""A worker is ahead of its launcher by two checkpoints at most: after `EARLY` steps it is not near its end."""

SETTINGS: dict[str, Any] = {"every": EVERY, "max_steps": STEPS}
RECEIPT = Digest(f"sha256:{'5' * 64}")


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Store, Path]]:
    """One store for all jobs of this module: none of them disturbs another."""
    folder = tmp_path_factory.mktemp("jobs")
    with closing(Home(folder / "home").open()) as store:
        yield store, folder / "work"


@pytest.fixture(scope="module")
def whole(shared: tuple[Store, Path]) -> TrainingWorld:
    """A job that was never interrupted."""
    world = training_world(*shared, job_id="whole", **SETTINGS)
    world.launch()
    return world


@pytest.fixture
def output(whole: TrainingWorld) -> str:
    """What every training of these settings makes."""
    return str(whole.of(Kind.JOB_CLOSED)[-1].payload["output"])


def cut(world: TrainingWorld, step: int, number: signal.Signals = signal.SIGKILL) -> FtpipelineError:
    """Launch the job, send its worker a signal at a step, and return why it ended."""
    with pytest.raises(FtpipelineError) as caught:
        world.launch(signal_at(step, number))
    assert workers() == []
    return caught.value


def resumed_steps(world: TrainingWorld) -> list[int]:
    """The step each attempt went on from, 0 for the beginning."""
    return [(event.payload["resumed_from"] or {"step": 0})["step"] for event in world.of(Kind.JOB_OPENED)]


def losses(world: TrainingWorld) -> dict[int, float]:
    """The loss of each step, as the ledger has it."""
    return {point["step"]: point["loss"] for event in world.of(Kind.METRICS) for point in event.payload["points"]}


def test_the_ledger_is_told_everything_in_order(whole: TrainingWorld) -> None:
    whole.ledger.verify(whole.job_id)
    kinds = [event.kind for event in whole.events if event.kind is not Kind.METRICS]
    saved = [Kind.CHECKPOINT_SAVED] * 8
    assert kinds == [Kind.JOB_OPENED, Kind.ARTIFACT_CONSUMED, Kind.ARTIFACT_CONSUMED, *saved, Kind.JOB_CLOSED]
    assert [event.step for event in whole.of(Kind.CHECKPOINT_SAVED)] == list(range(EVERY, STEPS + 1, EVERY))
    points = [point for event in whole.of(Kind.METRICS) for point in event.payload["points"]]
    assert [point["step"] for point in points] == list(range(1, STEPS + 1))
    assert all(
        {"step", "epoch", "loss", "grad_norm", "learning_rate", "tokens", "accumulation"} == set(p) for p in points
    )
    consumed = {event.payload["name"]: event.payload for event in whole.of(Kind.ARTIFACT_CONSUMED)}
    assert {name: payload["kind"] for name, payload in consumed.items()} == {"base_model": "weights", "split": "data"}
    assert all(payload["maker"] is None for payload in consumed.values())
    assert whole.of(Kind.JOB_CLOSED)[0].payload["reason"] == "completed"


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_killed_at_twenty_random_steps_it_makes_the_output_of_the_uninterrupted_training(
    shared: tuple[Store, Path],
) -> None:
    settings: dict[str, Any] = {"every": 10, "max_steps": 250}
    uninterrupted = training_world(*shared, job_id="uninterrupted", **settings).launch()
    world = training_world(*shared, job_id="killed", **settings)
    for step in sorted(random.Random(20).sample(range(5, 220), 20)):
        assert isinstance(cut(world, step), WorkerError)
    assert world.launch() == uninterrupted
    world.ledger.verify(world.job_id)
    assert [event.attempt for event in world.of(Kind.JOB_OPENED)] == list(range(1, 22))
    assert sum(step > 0 for step in resumed_steps(world)[1:]) >= 15


def test_a_worker_that_is_asked_to_stop_has_its_last_checkpoint_stored(shared: tuple[Store, Path], output: str) -> None:
    world = training_world(*shared, job_id="stopped", every=1000, max_steps=STEPS)
    assert isinstance(cut(world, 6, signal.SIGTERM), WorkerInterruptedError)
    (saved,) = world.of(Kind.CHECKPOINT_SAVED)
    assert saved.step >= 6
    assert world.of(Kind.JOB_CLOSED)[-1].payload["reason"] == "interrupted"
    assert world.launch() == output
    assert resumed_steps(world) == [0, saved.step]
    (read,) = world.of(Kind.CHECKPOINT_CONSUMED)
    said = [read.payload[name] for name in ("use", "producer", "tree")]
    assert said == ["resume", world.job_id, saved.payload["tree"]]
    assert read.seq < next(event.seq for event in world.of(Kind.METRICS) if event.attempt == 2)


def test_an_interrupt_of_the_launcher_still_stores_the_workers_last_checkpoint(shared: tuple[Store, Path]) -> None:
    world = training_world(*shared, job_id="ctrl-c", every=1000, max_steps=10**5)

    def interrupt(done: int, total: int, note: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        world.launch(interrupt)
    assert workers() == []
    assert len(world.of(Kind.CHECKPOINT_SAVED)) == 1
    assert world.of(Kind.JOB_CLOSED)[-1].payload["reason"] == "interrupted"


def test_a_checkpoint_that_is_corrupt_or_under_quarantine_is_passed_over_for_an_older_one(
    store: Store, tmp_path: Path, output: str
) -> None:
    world = training_world(store, tmp_path / "work", **SETTINGS)
    world.launch()
    trees = {event.step: event.payload["tree"] for event in world.of(Kind.CHECKPOINT_SAVED)}
    for step in (175, 200):
        store.quarantine.mark(trees[step], RECEIPT, "its job diverged")
    optimizer = next(entry for entry in store.trees.entries(trees[150]) if entry.path == "optimizer.pt")
    flip_a_bit(store, optimizer.sha256)
    assert world.launch() == output
    assert resumed_steps(world) == [0, 125]


@pytest.mark.parametrize("lost", ["checkpoint.json", "optimizer.pt"])
def test_a_torn_checkpoint_in_the_ledger_is_passed_over(
    store: Store, tmp_path: Path, whole: TrainingWorld, lost: str
) -> None:
    """Whoever saved it: what is written of a checkpoint does not make it complete."""
    world = training_world(store, tmp_path / "work", **SETTINGS)
    sound, torn = (whole.of(Kind.CHECKPOINT_SAVED)[index].payload["tree"] for index in (0, 1))
    trees = []
    for tree, removed in ((sound, None), (torn, lost)):
        folder = tmp_path / tree.replace(":", "-")
        whole.store.trees.checkout(tree, folder)
        if removed:
            (folder / removed).unlink()
        trees.append(store.trees.put(folder))
    job = world.job()
    writer = world.ledger.open_job(job.job_id, job.opening(None), "somebody", ttl=1.0)
    writer.append(
        [Draft(Kind.CHECKPOINT_SAVED, step, 0.0, {"tree": t}) for step, t in zip((25, 50), trees, strict=True)]
    )
    writer.release()
    assert [event.step for event in resumable(world.ledger, store.trees, job)] == [25]


def test_an_attempt_under_quarantine_is_not_begun(shared: tuple[Store, Path]) -> None:
    store, _ = shared
    world = training_world(*shared, job_id="barred", **SETTINGS)
    cut(world, EARLY)
    store.quarantine.mark(attempt_digest(world.job_id, 2), RECEIPT, "halted by a person")
    with pytest.raises(JobHaltedError, match="halted by a person"):
        world.launch()
    assert workers() == []
    assert [event.attempt for event in world.of(Kind.JOB_OPENED)] == [1]


def test_with_other_parameters_nothing_is_resumed(shared: tuple[Store, Path]) -> None:
    world = training_world(*shared, job_id="changed", **SETTINGS)
    cut(world, EARLY)
    world.params["train"]["seed"] = 8
    world.launch()
    assert resumed_steps(world) == [0, 0]


def test_a_worker_whose_job_was_taken_over_is_stopped_and_writes_nothing_more(shared: tuple[Store, Path]) -> None:
    world = training_world(*shared, job_id="taken", every=1000, max_steps=10**5)
    heads: list[int] = []

    def seize(done: int, total: int, note: str) -> None:
        if done >= 3 and not heads:
            world.ledger.seize(world.job_id, "the guard", ttl=60.0)
            heads.append(world.ledger.job(world.job_id).seq)

    with pytest.raises(LeaseLostError):
        world.launch(seize)
    assert workers() == []
    assert world.ledger.job(world.job_id).seq == heads[0]


def test_every_consumed_checkpoint_is_in_the_ledger_before_it_is_read(
    shared: tuple[Store, Path], whole: TrainingWorld, output: str
) -> None:
    uses = [
        {"use": "warm_start", "job": whole.job_id, "step": 25},
        {"use": "reference", "job": whole.job_id, "step": 50},
        {"use": "teacher", "job": whole.job_id, "step": 75},
        {"use": "merge", "job": whole.job_id, "step": 150, "at_step": 28},
    ]
    settings = SETTINGS | {"consumes": uses, "evaluation_steps": 50}
    world = training_world(*shared, job_id="consumer", **settings)
    made = world.launch()
    consumed = world.of(Kind.CHECKPOINT_CONSUMED)
    read = [(event.payload["use"], event.payload["producer_step"], event.payload["at_step"]) for event in consumed]
    assert read == [("reference", 50, 0), ("teacher", 75, 0), ("warm_start", 25, 0), ("merge", 150, 28)]
    written = {point["step"]: event.seq for event in world.of(Kind.METRICS) for point in event.payload["points"]}
    assert written[27] < consumed[-1].seq < written[28]
    assert losses(world)[1] != losses(whole)[1]  # it began with other weights
    kept = {event.step for event in whole.ledger.retained(whole.job_id)}
    assert kept == {25, 50, 75, 150, 175, 200}  # the newest three, and whatever another job consumed
    again = training_world(*shared, job_id="consumer-cut", **settings)
    cut(again, EARLY)
    assert again.launch() == made


def test_a_checkpoint_that_nobody_makes_is_an_error_and_the_job_says_so(shared: tuple[Store, Path]) -> None:
    uses = [{"use": "warm_start", "job": "nobody", "step": 10}]
    world = training_world(*shared, job_id="lonely", max_steps=6, consumes=uses)
    with pytest.raises(UnknownNameError, match="nobody"):
        world.launch()
    closed = world.of(Kind.JOB_CLOSED)[-1].payload
    assert (closed["reason"], "nobody" in closed["error"]) == ("failed", True)


def test_when_everything_is_killed_nothing_trains_on_and_the_next_run_goes_on_from_the_checkpoint(
    shared: tuple[Store, Path], output: str, tmp_path: Path
) -> None:
    store, folder = shared
    program = (
        "import sys\n"
        "from pathlib import Path\n"
        "from ftpipeline.store.home import Home\n"
        "from ftpipeline_tests.cycle.training_world import training_world\n"
        "hear = lambda done, total, note: print(done, flush=True)\n"
        f"store = Home(Path({str(store.home.root)!r})).open()\n"
        f"training_world(store, Path({str(folder)!r}), job_id='all-killed', **{SETTINGS}).launch(hear)\n"
    )
    arguments = [sys.executable, "-c", program]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as launcher:
        assert launcher.stdout is not None
        assert any(int(line) >= EARLY for line in launcher.stdout)
        (worker,) = workers(launcher.pid)
        launcher.kill()
    wait_for(lambda: not Path(f"/proc/{worker}").exists() or None, 60, "end of the orphan")
    world = training_world(store, folder, job_id="all-killed", **SETTINGS)
    world.launches = 1
    assert world.launch() == output
    assert resumed_steps(world)[-1] >= EVERY
    assert [event.payload["reason"] for event in world.of(Kind.JOB_CLOSED)] == ["completed"]
