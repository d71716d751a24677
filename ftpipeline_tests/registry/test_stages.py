from itertools import product

import pytest

from ftpipeline.errors import TransitionError, UnknownNameError
from ftpipeline.registry.stages import Stage, check_move, stage_named

ONWARD = {
    ("candidate", "shadow"),
    ("shadow", "canary"),
    ("canary", "production"),
    ("production", "retired"),
    ("candidate", "rejected"),
    ("shadow", "rejected"),
    ("canary", "rejected"),
}


@pytest.mark.parametrize("first_release", [False, True])
@pytest.mark.parametrize("rollback", [False, True])
def test_no_move_is_open_but_those_of_the_machine(first_release: bool, rollback: bool) -> None:
    allowed = set(ONWARD)
    allowed |= {("candidate", "production")} if first_release else set()
    allowed |= {("retired", "production")} if rollback else set()
    open_moves = set()
    for current, to in product(Stage, Stage):
        try:
            check_move(current, to, first_release=first_release, rollback=rollback)
        except TransitionError:
            continue
        open_moves.add((current.value, to.value))
    assert open_moves == allowed


def test_a_refusal_says_what_is_allowed() -> None:
    with pytest.raises(TransitionError, match="from candidate to production; candidate may go to shadow, rejected"):
        check_move("candidate", "production")
    with pytest.raises(TransitionError, match="rejected may go to nothing"):
        check_move("rejected", "candidate")


def test_an_unknown_stage_is_answered_with_the_list() -> None:
    with pytest.raises(UnknownNameError, match="'staging'; the stages are candidate, shadow, canary, production"):
        stage_named("staging")
    with pytest.raises(UnknownNameError):
        check_move("candidate", "Shadow")
