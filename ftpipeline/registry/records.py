"""The frozen values that the registry hands out."""

from dataclasses import dataclass

from ftpipeline.digest import Digest
from ftpipeline.registry.stages import Stage


@dataclass(frozen=True)
class Entry:
    """One registered artifact under one manifest.

    Attributes:
        id: number of the entry in this registry.
        name: name it is served under.
        artifact: digest of the exported artifact.
        manifest: digest of the run manifest.
        base_model: digest of the base model's tree.
        report: digest of the tree of evaluation reports.
        gate: digest of the tree that holds the newest gate record.
        verdict: what that gate record says.
        reasons: `{"code", "message"}` each: what the gate, or a person who rejected it, held against it.
        stage: where it stands.
        run_id: run that registered it.
        week: first day of the week it was trained for, ISO 8601.
        registered: UTC, ISO 8601.
    """

    id: int
    name: str
    artifact: Digest
    manifest: Digest
    base_model: Digest
    report: Digest
    gate: Digest
    verdict: str
    reasons: tuple[dict[str, str], ...]
    stage: Stage
    run_id: str
    week: str
    registered: str


@dataclass(frozen=True)
class Pointer:
    """What a stage of a name holds.

    Attributes:
        entry_id: the entry; None when the stage is empty.
        digest: artifact of that entry.
        generation: how often the pointer was moved; 0 means never.
    """

    name: str
    stage: Stage
    entry_id: int | None
    digest: Digest | None
    generation: int


@dataclass(frozen=True)
class Resolution:
    """The one artifact that `name@stage` means, and the generation of the pointer that says so."""

    name: str
    stage: Stage
    digest: Digest
    generation: int


@dataclass(frozen=True)
class HistoryRow:
    """One move; the predecessor that a new production retires has no row of its own.

    Attributes:
        generation: of the pointer of `to_stage` after the move; for a rejection, of the stage that was left.
        digest: artifact that was moved.
        from_stage: None for a registration.
        actor: who moved it: stated by the caller, not authenticated.
        receipt: digest of the gate record that the move relies on, if it relies on one.
        time: UTC, ISO 8601.
    """

    generation: int
    digest: Digest
    from_stage: Stage | None
    to_stage: Stage
    actor: str
    reason: str
    receipt: Digest | None
    time: str


@dataclass(frozen=True)
class Pin:
    """The production that a run is gated against, fixed when the run first asks.

    Attributes:
        digest: artifact in production; None when there was none.
        generation: of the production pointer.
    """

    run_id: str
    name: str
    digest: Digest | None
    generation: int
