"""What a trace looks at: jobs, what each consumed of whom, and the disturbance that is traced."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from ftpipeline.errors import InputError


class Position(NamedTuple):
    """A job's clock. Positions of one job are ordered, attempts first; those of two jobs are never compared."""

    attempt: int
    step: int


START = Position(0, 0)
"""Before anything that a job did; the one position of an artifact."""


class EdgeKind(StrEnum):
    """What was consumed."""

    WEIGHTS = "weights"
    DATA = "data"
    EVAL = "eval"


@dataclass(frozen=True, slots=True)
class Edge:
    """One consumption: what the producer was at `produced_at` went into the consumer at `consumed_at`.

    Attributes:
        produced_at: position that the consumed checkpoint or artifact was made at; None if that is not recorded.
        consumed_at: position of the consumer when it read; None if that is not recorded.
    """

    producer: str
    produced_at: Position | None
    consumer: str
    consumed_at: Position | None
    kind: EdgeKind = EdgeKind.WEIGHTS


class Chain(StrEnum):
    """What is known of a job's chain of events."""

    VERIFIED = "verified"
    MISSING = "missing"
    FORKED = "forked"
    UNVERIFIABLE = "unverifiable"


@dataclass(frozen=True)
class Job:
    """A job of the cut, or an artifact that a job made.

    Attributes:
        job_id: its name in the edges.
        checkpoints: positions of the checkpoints that are still there.
        chain: what is known of its events; of an artifact, of the events that name it.
        running: whether it trains now.
        is_artifact: data or an evaluation that a job made: its one position is `START`, and it has no checkpoints.
        external: digests of inputs that no job made.
    """

    job_id: str
    checkpoints: Sequence[Position] = ()
    chain: Chain = Chain.VERIFIED
    running: bool = False
    is_artifact: bool = False
    external: frozenset[str] = field(default_factory=frozenset)


@dataclass(frozen=True)
class Incident:
    """A confirmed divergence of one job.

    Attributes:
        job_id: the job that diverged.
        onset: first position at which the disturbance may be seen.
        last_good: last position that is not in doubt; None if there is none.
    """

    job_id: str
    onset: Position
    last_good: Position | None

    def __post_init__(self) -> None:
        if self.last_good is not None and self.last_good >= self.onset:
            raise InputError(
                f"job {self.job_id}: last good position {tuple(self.last_good)} is not before the onset "
                f"{tuple(self.onset)}; detect again, or give an earlier one"
            )

    @property
    def begins(self) -> Position:
        """First position of the window: the one after the last good one."""
        return START if self.last_good is None else Position(self.last_good.attempt, self.last_good.step + 1)
