"""One manifest under several seeds: each is trained, exported and scored, and the band of all is kept by family.

Every seed is the very steps that a week runs, memoised: runs that trained the seeds side by side have left nothing to
do for the band but to read their results, and the pipeline's own seed is the week's own training.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from ftpipeline.cycle import bindings, model
from ftpipeline.cycle.cycle import Cycle
from ftpipeline.cycle.data import Inputs
from ftpipeline.cycle.detector_states import DetectorStates
from ftpipeline.cycle.floors import family_of, keep_band
from ftpipeline.cycle.release import score
from ftpipeline.digest import Digest, parse_json
from ftpipeline.engine.runner import Call
from ftpipeline.guard.config import Envelope
from ftpipeline.records import RunContext, StepResult
from ftpipeline.schema import ROLES
from ftpipeline.steps.noise_band import BAND_FILE

SEEDS = 3
"""Trainings of a band, unless told otherwise."""


@dataclass(frozen=True)
class SeedRun:
    """What one seed came to.

    Attributes:
        seed: the seed.
        family: digest of the manifest's family; the same for every seed.
        training: result of the step `train`.
        artifact: the exported artifact.
        scores: result of the step `evaluate` by role.
    """

    seed: int
    family: Digest
    training: StepResult
    artifact: Digest
    scores: dict[str, StepResult]

    def trees(self) -> dict[str, Digest]:
        """Return the inputs of the step `noise_band` that come from this seed."""
        scored = {f"{role}_{self.seed}": result.output for role, result in self.scores.items()}
        return {f"training_{self.seed}": self.training.output, **scored}


def seeds_of(first: int, count: int = SEEDS) -> tuple[int, ...]:
    """Return the seeds of a band: the pipeline's own, and those that follow it."""
    return tuple((first + offset) % 2**32 for offset in range(count))


def run_seed(cycle: Cycle, run: RunContext, inputs: Inputs, seed: int) -> SeedRun:
    """Train, export and score the week's manifest under another seed.

    Args:
        cycle: the pipeline in its store.
        run: the run.
        inputs: `split`, `base_model` and `eval_<role>` for every role.
        seed: takes the place of `train.seed`.

    Raises:
        TrainingFailedError: the training under this seed cannot be used.
    """
    pinned = model.build_manifest(cycle, run, inputs)
    seeded = pinned.model_copy(update={"train": pinned.train.model_copy(update={"seed": seed})})
    call = Call(bindings.MANIFEST, {}, {"manifest": seeded.model_dump(mode="json")})
    manifest = cycle.run(call, run).output
    trained = model.train(cycle, run, {**inputs, "manifest": manifest})
    exported = model.export(cycle, run, {**inputs, "manifest": manifest, "train": trained.output}).output
    projection = seeded.projection("evaluate")
    scores = {role: score(cycle, run, exported, role, inputs[f"eval_{role}"], projection) for role in ROLES}
    return SeedRun(seed, family_of(seeded), trained, exported, scores)


def measure_band(cycle: Cycle, run: RunContext, inputs: Inputs, seeds: Sequence[int]) -> StepResult:
    """Summarise a week's manifest under `seeds`, and keep the band for its family.

    The guard judges the drift of jobs that begin from now on by what these seeds showed, where it was measured.

    Raises:
        InputError: there are fewer than two seeds, or one stands twice.
        TrainingFailedError: a seed that no run has trained yet cannot be used.
    """
    runs = [run_seed(cycle, run, inputs, seed) for seed in seeds]
    family = runs[0].family
    trees = {name: tree for each in runs for name, tree in each.trees().items()}
    band = cycle.run(Call(bindings.NOISE_BAND, trees, {"family": family, "seeds": list(seeds)}), run)
    keep_band(cycle.store, family, run.run_id, band.output)
    if (envelope := kl_envelope(cycle, band.output)) is not None:
        DetectorStates(cycle.store.database).put_envelope(family, envelope)
    return band


def kl_envelope(cycle: Cycle, band: Digest) -> Envelope | None:
    """Return how far healthy trainings drift from the base model, by step; None where no seed measured it."""
    measured = parse_json(cycle.store.trees.read(band, BAND_FILE))["kl"]
    if not measured["steps"]:
        return None
    return Envelope.of_runs(dict(zip(measured["steps"], values, strict=True)) for values in measured["seeds"])
