"""The noise band of a manifest family where it was measured, and the thresholds that it refuses before training."""

from dataclasses import dataclass
from typing import Any

from ftpipeline import digest
from ftpipeline.cycle.cycle import Cycle
from ftpipeline.cycle.data import Inputs
from ftpipeline.digest import Digest
from ftpipeline.errors import UnknownNameError
from ftpipeline.manifest import Manifest
from ftpipeline.schema import ROLES
from ftpipeline.steps.gate_arithmetic import noise_band, thresholds
from ftpipeline.steps.gate_floors import check_thresholds
from ftpipeline.steps.noise_band import BAND_FILE, BAND_TYPE
from ftpipeline.store.opened import Store

_ASSET = "noise_band"  # of no pipeline: partitioned by family


@dataclass(frozen=True)
class MeasuredBand:
    """The newest noise band of a family.

    Attributes:
        tree: output of the step `noise_band`.
        document: content of its `band.json`.
    """

    tree: Digest
    document: dict[str, Any]

    @property
    def seed_scores(self) -> dict[str, list[float]]:
        """Scores of every seed, by role."""
        return {role: list(summary["scores"]) for role, summary in self.document["roles"].items()}

    def params(self) -> dict[str, Any]:
        """Return what the gate is told of it."""
        return {"tree": self.tree, "seed_scores": self.seed_scores}


def family_of(manifest: Manifest) -> Digest:
    """Return the digest of a manifest's family."""
    return digest.of_json(manifest.family())


def keep_band(store: Store, family: Digest, run_id: str, tree: Digest) -> None:
    """Let `tree` be the family's noise band from now on."""
    store.pointers.put(_ASSET, family, run_id, 0, tree)


def find_band(store: Store, family: Digest) -> MeasuredBand | None:
    """Return the family's noise band; None where it was never measured.

    Raises:
        QuarantinedError: it is under quarantine.
        UnknownNameError: it was written in a form that is not known here.
        CorruptArtifactError: its bytes are missing or altered.
    """
    pointer = store.pointers.latest(_ASSET, family)
    if pointer is None:
        return None
    store.quarantine.check(pointer.digest)
    document = digest.parse_json(store.trees.read(pointer.digest, BAND_FILE))
    if document.get("type") != BAND_TYPE:
        raise UnknownNameError(f"noise band {pointer.digest} is of type {document.get('type')!r}; measure it again")
    return MeasuredBand(pointer.digest, document)


def check_gates(cycle: Cycle, manifest: Manifest, inputs: Inputs) -> None:
    """Refuse, before anything is trained, a gain that the eval set or the seeds cannot tell from noise.

    Args:
        cycle: the pipeline in its store.
        manifest: of the week.
        inputs: `eval_<role>` for every role.

    Raises:
        ThresholdError: the demanded gain is below one example's weight, or below the family's noise band.
    """
    rows = {role: cycle.facts_of("eval_set", inputs[f"eval_{role}"])["rows"] for role in ROLES}
    measured = find_band(cycle.store, family_of(manifest))
    scores = {} if measured is None else measured.seed_scores
    bands = {role: noise_band(values) for role, values in scores.items()}
    for warning in check_thresholds(thresholds(manifest.gates.model_dump()), rows, bands):
        cycle.observer.said("manifest", "warning", warning.message)
