"""Scores what may be compared next on the eval sets as they are now, before a new version of one meets its first gate.

Each score is the very step that the gate's evaluation asks for, memoised by artifact and eval set: the next week finds
production's there, so that candidate and production are measured on the same rows.
"""

from collections.abc import Mapping

from ftpipeline.cycle.cycle import Cycle
from ftpipeline.cycle.data import Inputs
from ftpipeline.cycle.release import score
from ftpipeline.digest import Digest
from ftpipeline.manifest import PROJECTIONS
from ftpipeline.records import RunContext, StepResult
from ftpipeline.registry.stages import UNDECIDED, Stage
from ftpipeline.schema import ROLES

Scores = Mapping[tuple[Stage, Digest, str], StepResult]
"""Results by stage, artifact and role."""


def rescore(cycle: Cycle, run: RunContext, inputs: Inputs) -> Scores:
    """Score production and the newest candidates on every eval set.

    Args:
        cycle: the pipeline in its store.
        run: the run.
        inputs: `eval_<role>` for every role.

    Raises:
        QuarantinedError: an eval set or artifact is under quarantine.
    """
    labels = {"labels": list(cycle.pipeline.labels)}
    shared = set(PROJECTIONS["evaluate"]) - labels.keys()
    projection = labels | cycle.pipeline.file.model_dump(mode="json", include=shared)
    return {
        (stage, artifact, role): score(cycle, run, artifact, role, inputs[f"eval_{role}"], projection)
        for artifact, stage in _compared(cycle).items()
        for role in ROLES
    }


def _compared(cycle: Cycle) -> Mapping[Digest, Stage]:
    """Return production and the newest undecided artifacts, each with its stage."""
    entries = cycle.registry.entries(cycle.pipeline.name)
    undecided = sorted((entry for entry in entries if entry.stage in UNDECIDED), key=lambda entry: entry.week)
    newest = undecided[-cycle.pipeline.file.release.rescored :]
    standing = [entry for entry in entries if entry.stage is Stage.PRODUCTION]
    return {entry.artifact: entry.stage for entry in [*newest, *standing]}
