from collections.abc import Callable
from functools import partial
from itertools import count
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from ftpipeline.digest import Digest
from ftpipeline.errors import FtpipelineError
from ftpipeline.registry.records import HistoryRow
from ftpipeline.registry.stages import POINTED, Stage
from ftpipeline.store.database import Database
from ftpipeline_tests.registry.world import WHO, World

labels = st.sampled_from("abcd")
offsets = st.sampled_from([0, 0, 0, -1, 1])

State = tuple[dict[Digest, Stage], dict[Stage, tuple[Digest | None, int]]]


def replay(history: list[HistoryRow]) -> State:
    """Rebuild the stages of all artifacts, and what each pointer holds at which generation, from the moves alone."""
    entries: dict[Digest, Stage] = {}
    pointers: dict[Stage, tuple[Digest | None, int]] = dict.fromkeys(POINTED, (None, 0))
    for row in history:
        if row.from_stage == row.to_stage:  # gated anew
            continue
        if row.from_stage in pointers and pointers[row.from_stage][0] == row.digest:
            pointers[row.from_stage] = (None, pointers[row.from_stage][1] + 1)
        if row.to_stage in pointers:
            replaced, generation = pointers[row.to_stage]
            assert row.generation == generation + 1
            if row.to_stage == Stage.PRODUCTION and replaced is not None:
                entries[replaced] = Stage.RETIRED
            pointers[row.to_stage] = (row.digest, row.generation)
        entries[row.digest] = row.to_stage
    return entries, pointers


class RegistryMachine(RuleBasedStateMachine):
    """People and runs that do anything at all; what the registry refuses must change nothing."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self.world = world
        self.releases = count()
        self.seen: State = replay([])

    def observed(self) -> State:
        entries = {entry.artifact: entry.stage for entry in self.world.registry.entries(self.world.name)}
        pointers = self.world.registry.pointers(self.world.name)
        return entries, {stage: (pointer.digest, pointer.generation) for stage, pointer in pointers.items()}

    def attempt(self, move: Callable[[], object]) -> None:
        before = self.observed()
        try:
            move()
        except FtpipelineError:
            assert self.observed() == before

    @initialize(releases=st.integers(0, 3))
    def begin(self, releases: int) -> None:
        for _ in range(releases):
            self.release()

    @rule(label=labels, verdict=st.sampled_from([None, None, None, "fail"]))
    def register(self, label: str, verdict: str | None) -> None:
        self.attempt(lambda: self.world.register(label, verdict))

    @rule(label=labels, to=st.sampled_from(["shadow", "canary", "production"]), offset=offsets)
    def promote(self, label: str, to: str, offset: int) -> None:
        self.attempt(lambda: self.world.promote(label, to, self.world.generation(to) + offset))

    @rule()
    def release(self) -> None:
        label = f"release {next(self.releases)}"
        self.attempt(lambda: self.world.register(label))
        for to in ("production", "shadow", "canary", "production"):  # the first step is for a first release
            self.attempt(partial(self.world.promote, label, to))

    @rule(label=labels)
    def reject(self, label: str) -> None:
        self.attempt(lambda: self.world.registry.reject(self.world.name, self.world.artifact(label), **WHO))

    @rule(offset=offsets)
    def roll_back(self, offset: int) -> None:
        expect = self.world.generation("production") + offset
        self.attempt(lambda: self.world.registry.rollback(self.world.name, expect=expect, **WHO))

    @invariant()
    def a_name_that_had_a_production_has_exactly_one(self) -> None:
        entries, pointers = self.observed()
        digest, generation = pointers[Stage.PRODUCTION]
        standing = [artifact for artifact, stage in entries.items() if stage == Stage.PRODUCTION]
        assert standing == ([digest] if generation > 0 else [])

    @invariant()
    def a_pointer_holds_an_entry_of_its_stage(self) -> None:
        entries, pointers = self.observed()
        for stage, (digest, _) in pointers.items():
            assert digest is None or entries[digest] == stage

    @invariant()
    def a_generation_rises_with_every_change_and_never_falls(self) -> None:
        entries, pointers = self.observed()
        for stage, (digest, generation) in pointers.items():
            held, before = self.seen[1][stage]
            assert generation > before or (digest, generation) == (held, before)
        self.seen = entries, pointers

    @invariant()
    def history_replays_to_what_stands(self) -> None:
        if self.observed()[0]:
            assert replay(self.world.registry.history(self.world.name)) == self.observed()


def test_whatever_is_tried_the_registry_keeps_its_laws(database: Database, tmp_path: Path) -> None:
    numbers = count()

    class Machine(RegistryMachine):
        def __init__(self) -> None:
            super().__init__(World(database, tmp_path / "store", name=f"name-{next(numbers)}"))

    run_state_machine_as_test(Machine, settings=settings(max_examples=12, stateful_step_count=15))
