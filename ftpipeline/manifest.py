"""The manifest: one frozen file that pins everything a model is made from (contract C7).

It is written before training and stored with the artifact. Its digest is lineage, never an input of a step: each step
is keyed by the *projection* of the manifest that can change its result (`PROJECTIONS`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import Field, model_validator

from ftpipeline.errors import ManifestError
from ftpipeline.schema import (
    Abstention,
    DigestText,
    Evaluation,
    Export,
    Gates,
    Hex64,
    Name,
    Revision,
    Section,
    Task,
    Texts,
    Train,
    load_yaml,
    require_prompt_is_asked,
    validate,
)

PROJECTIONS: Mapping[str, tuple[str, ...]] = {
    "train": ("task", "labels", "tokenizer_sha256", "train"),
    "export": ("task", "labels", "tokenizer_sha256", "base_model", "train", "export", "abstention"),
    "evaluate": ("labels", "evaluation"),
    "gate": ("gates",),
}
"""The manifest fields that are parameters of each step; `data` and base bytes are inputs, keyed by digest."""

FAMILY_EXCLUDES = frozenset({"run_id", "data", "gates", "code", "environment"})
"""With `train.seed`: what may differ between two members of one manifest family."""


class BaseModelPin(Section):
    """Which base model, at which content."""

    repo: Annotated[str, Field(min_length=1)]
    revision: Revision
    tree_sha256: DigestText | None = None


class Data(Section):
    """The splits the model is trained on."""

    train: Annotated[str, Field(pattern=r"^[a-z]+://[^@\s]+@sha256:[0-9a-f]{64}$")]
    val: Annotated[str, Field(pattern=r"^[a-z]+://[^@\s]+@sha256:[0-9a-f]{64}$")]


_EvalSet = Annotated[str, Field(pattern=r"^evalset://[A-Za-z0-9_.-]+/v[0-9]+(?:@sha256:[0-9a-f]{64})?$")]


class EvalSets(Section):
    """The versioned eval set of each role."""

    task: _EvalSet
    regression: _EvalSet
    safety: _EvalSet


class Code(Section):
    """Which code; lineage only."""

    git_commit: Revision
    dirty: bool = False
    image: Annotated[str, Field(pattern=r"^[^@\s]+@sha256:[0-9a-f]{64}$")] | None = None


class Environment(Section):
    """Where it ran; lineage only."""

    launcher: Annotated[str, Field(min_length=1)] = "subprocess"
    python: str | None = None
    distributions: dict[str, str] = Field(default_factory=dict)


class Manifest(Section):
    """The frozen run manifest.

    Round-trip law: `parse(manifest.model_dump(mode="json"), ...) == manifest`.
    """

    run_id: Name
    task: Task = "sequence_classification"
    labels: Texts = ()
    base_model: BaseModelPin
    tokenizer_sha256: Hex64
    data: Data
    eval_sets: EvalSets
    code: Code
    train: Train
    export: Export
    abstention: Abstention = Abstention()
    evaluation: Evaluation = Evaluation()
    gates: Gates
    environment: Environment = Environment()

    @model_validator(mode="after")
    def _image_unless_subprocess(self) -> Self:
        if self.code.image is None and self.environment.launcher != "subprocess":
            raise ValueError(
                "code.image: null stands only with the subprocess launcher; "
                f"pin the image of {self.environment.launcher!r}"
            )
        return self

    @model_validator(mode="after")
    def _prompt_is_asked(self) -> Self:
        require_prompt_is_asked(self.task, self.train)
        return self

    def projection(self, step: str) -> dict[str, Any]:
        """Return the fields that are parameters of `step`, as JSON values."""
        return self.model_dump(mode="json", include=set(PROJECTIONS[step]))

    def family(self) -> dict[str, Any]:
        """Return what a manifest's family shares: everything but run, data, seed, gates, code and environment."""
        shared = self.model_dump(mode="json", exclude=set(FAMILY_EXCLUDES))
        del shared["train"]["seed"]
        return shared


@dataclass(frozen=True)
class Pins:
    """Which hashes a manifest holds.

    Attributes:
        missing: fields that `manifest pin` can fill in or must list as unrecoverable.
    """

    missing: tuple[str, ...]


def parse(document: Mapping[str, Any], where: str) -> Manifest:
    """Return a mapping as a manifest.

    Raises:
        ManifestError: every field that is missing, unknown, of another type or not pinned, with its cure, on one line.
    """
    return validate(Manifest, document, where, ManifestError)


def load(path: Path) -> Manifest:
    """Read a manifest file (YAML or JSON).

    Raises:
        ManifestError: as `parse`, or the file cannot be read.
    """
    return parse(load_yaml(path, ManifestError), str(path))


def pins(manifest: Manifest) -> Pins:
    """Tell which hashes are still missing."""
    missing = [] if manifest.base_model.tree_sha256 else ["base_model.tree_sha256"]
    missing += [
        f"eval_sets.{role}"
        for role, reference in manifest.eval_sets.model_dump().items()
        if "@sha256:" not in reference
    ]
    return Pins(tuple(missing) + (() if manifest.labels else ("labels",)))
