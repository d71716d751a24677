"""Replays and the cause they support, with the counts always beside it."""

import pytest

from ftpipeline.errors import InputError
from ftpipeline.guard.attribute import Arm, Cause, Outcome, attribute
from ftpipeline.guard.trace import Exposure

EXPOSED, ALONE = Exposure.EXPOSED_UNTESTED, Exposure.NOT_EXPOSED
R0, R1, R2, R3 = Arm.AS_RECORDED, Arm.CLEAN_PRODUCER, Arm.WITHOUT_INPUT, Arm.OWN_CHANGE
ALL, SOME, ONE, NONE = Outcome(3, 3), Outcome(2, 3), Outcome(1, 3), Outcome(0, 3)


@pytest.mark.parametrize(
    ("exposure", "outcomes", "cause"),
    [
        (EXPOSED, {}, Cause.EXPOSED_UNTESTED),
        (ALONE, {}, Cause.NOT_EXPOSED),
        (ALONE, {R0: ALL}, Cause.NOT_EXPOSED),
        (EXPOSED, {R0: ALL}, Cause.EXPOSED_UNTESTED),
        (EXPOSED, {R1: NONE}, Cause.EXPOSED_UNTESTED),
        (EXPOSED, {R0: Outcome(2, 2), R1: Outcome(0, 2)}, Cause.EXPOSED_UNTESTED),
        (EXPOSED, {R0: ONE, R1: NONE}, Cause.NOT_REPRODUCED),
        (EXPOSED, {R0: Outcome(2, 4), R1: ALL}, Cause.NOT_REPRODUCED),
        (EXPOSED, {R0: ALL, R1: NONE}, Cause.EXTERNAL_SUPPORTED),
        (EXPOSED, {R0: SOME, R1: NONE, R2: NONE, R3: ALL}, Cause.EXTERNAL_SUPPORTED),
        (EXPOSED, {R0: ALL, R1: ALL, R2: SOME}, Cause.INTERNAL_SUPPORTED),
        (EXPOSED, {R0: ALL, R1: ONE}, Cause.BOTH),
        (EXPOSED, {R0: ALL, R1: NONE, R2: ALL}, Cause.BOTH),
        (EXPOSED, {R0: ALL, R1: NONE, R3: NONE}, Cause.BOTH),
    ],
)
def test_a_cause_needs_replays_that_speak_for_it(
    exposure: Exposure, outcomes: dict[Arm, Outcome], cause: Cause
) -> None:
    found = attribute(exposure, outcomes)
    assert (found.cause, found.outcomes) == (cause, outcomes)


def test_counts_that_cannot_be_are_refused() -> None:
    for diverged, runs in ((4, 3), (-1, 3)):
        with pytest.raises(InputError, match="count them again"):
            Outcome(diverged, runs)
