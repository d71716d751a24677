"""The stages of a registry entry and the moves between them: pure, it decides and changes nothing.

    candidate -> shadow -> canary -> production -> retired

A candidate, shadow or canary may be rejected; rejection is terminal. A candidate goes straight to production only as
the first release of its name, a retired entry returns only by rollback, and production is retired only by its
successor, so that a name that has had a production always has one. What is retired or rejected may be deleted: the
registry then lets go of its bytes and keeps the entry, its receipts and its history.
"""

from enum import StrEnum

from ftpipeline.errors import RejectedEntryError, SkippedStageError, TransitionError, UnknownNameError


class Stage(StrEnum):
    """Where an entry stands."""

    CANDIDATE = "candidate"
    SHADOW = "shadow"
    CANARY = "canary"
    PRODUCTION = "production"
    RETIRED = "retired"
    REJECTED = "rejected"
    DELETED = "deleted"


POINTED = (Stage.CANDIDATE, Stage.SHADOW, Stage.CANARY, Stage.PRODUCTION)
"""The stages that hold at most one entry, which `name@stage` resolves to."""

UNDECIDED = (Stage.CANDIDATE, Stage.SHADOW, Stage.CANARY)
"""The stages that an entry may be rejected from."""

DELETABLE = (Stage.RETIRED, Stage.REJECTED)
"""The stages that an entry may be deleted from, unless a rollback would return to it."""

_MOVES = {
    Stage.CANDIDATE: {Stage.SHADOW, Stage.REJECTED},
    Stage.SHADOW: {Stage.CANARY, Stage.REJECTED},
    Stage.CANARY: {Stage.PRODUCTION, Stage.REJECTED},
    Stage.PRODUCTION: {Stage.RETIRED},
    Stage.RETIRED: set(),
    Stage.REJECTED: set(),
    Stage.DELETED: set(),
}


def stage_named(text: str) -> Stage:
    """Return the stage called `text`.

    Raises:
        UnknownNameError: there is no such stage.
    """
    try:
        return Stage(text)
    except ValueError:
        raise UnknownNameError(f"there is no stage {text!r}; the stages are {', '.join(Stage)}") from None


def check_move(current: str, to: str, *, first_release: bool = False, rollback: bool = False) -> None:
    """Refuse a move that the state machine does not have.

    Args:
        current: stage the entry is in.
        to: stage it would go to.
        first_release: the name has never had a production, and the gate said so.
        rollback: the entry is the production before the current one.

    Raises:
        RejectedEntryError: the entry was rejected, which is for good.
        SkippedStageError: the move leaves out a stage.
        TransitionError: the move is not allowed for another reason.
        UnknownNameError: a stage does not exist.
    """
    origin, target = stage_named(current), stage_named(to)
    allowed = set(_MOVES[origin])
    if first_release and origin == Stage.CANDIDATE:
        allowed.add(Stage.PRODUCTION)
    if rollback and origin == Stage.RETIRED:
        allowed.add(Stage.PRODUCTION)
    if target not in allowed:
        ways = ", ".join(stage for stage in Stage if stage in allowed) or f"nothing; {origin} is left by no promotion"
        kind = _refusal(origin, target)
        raise kind(f"an entry cannot go from {origin} to {target}; {origin} may go to {ways}")


def _refusal(origin: Stage, target: Stage) -> type[TransitionError]:
    if origin is Stage.REJECTED:
        return RejectedEntryError
    if origin in POINTED and target in POINTED and POINTED.index(target) > POINTED.index(origin) + 1:
        return SkippedStageError
    return TransitionError
