"""How far a candidate goes without a person: `release.automatic` of the pipeline file."""

from ftpipeline.cycle.cycle import Cycle
from ftpipeline.errors import GateRecordError, StaleGenerationError, TransitionError
from ftpipeline.records import Facts, Verdict
from ftpipeline.registry.records import Entry
from ftpipeline.registry.registry import Registry
from ftpipeline.registry.stages import POINTED, UNDECIDED, Stage


def advance(cycle: Cycle, entry: Entry) -> Facts:
    """Move a candidate whose gate passed as far as the pipeline file allows, one stage after the other.

    A first release always waits for a person, and so does what the state machine or a newer production stands against:
    the week itself has not failed.

    Returns:
        `stage`, where the entry stands now; `promotion`, the stages it was moved to or `by hand`; and
        `promotion_refused`, what kept it, where something did.

    Raises:
        QuarantinedError: the artifact, or something it was made from, is under quarantine.
        CorruptArtifactError: the artifact does not verify.
    """
    last, registry = cycle.pipeline.file.release.automatic, cycle.registry
    moved: list[Stage] = []
    refused: Facts = {}
    if last is not None and entry.verdict == Verdict.PASS and _is_held(registry, entry):
        try:
            for stage in POINTED[POINTED.index(entry.stage) + 1 : POINTED.index(Stage(last)) + 1]:
                _promote(cycle, registry, entry, stage)
                moved.append(stage)
        except (TransitionError, StaleGenerationError, GateRecordError) as error:
            refused = {"promotion_refused": str(error)}
    return {"stage": str([entry.stage, *moved][-1]), "promotion": ", ".join(moved) or "by hand", **refused}


def _is_held(registry: Registry, entry: Entry) -> bool:
    """Tell whether a stage before production holds the entry; one of a backfilled week is held by none."""
    return entry.stage in UNDECIDED and registry.pointers(entry.name)[entry.stage].entry_id == entry.id


def _promote(cycle: Cycle, registry: Registry, entry: Entry, stage: Stage) -> None:
    registry.promote(
        entry.name,
        entry.artifact,
        stage,
        expect=registry.pointers(entry.name)[stage].generation,
        reason=f"gate {entry.gate} passed, and release.automatic is {cycle.pipeline.file.release.automatic}",
        actor=f"policy of pipeline {cycle.pipeline.name}",
    )
