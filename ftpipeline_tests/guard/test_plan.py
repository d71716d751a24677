"""One action for every job, whatever was found."""

import json

import pytest

from ftpipeline.errors import InputError
from ftpipeline.guard.lineage import START, Chain, Edge, EdgeKind, Incident, Job, Position
from ftpipeline.guard.plan import Action, JobAction, plan
from ftpipeline.guard.trace import trace
from ftpipeline_tests.guard.fleets import fleet


def at(step: int) -> Position:
    return Position(1, step)


A = Incident("A", onset=at(50), last_good=at(45))


def planned(jobs: list[Job], edges: list[Edge]) -> dict[str, JobAction]:
    return {action.job_id: action for action in plan(trace([A], jobs, edges), jobs)}


def test_every_job_of_a_random_fleet_has_exactly_one_action() -> None:
    for seed in range(300):
        world = fleet(seed)
        found = trace([world.incident], world.jobs, world.edges)
        actions = plan(found, world.jobs)
        assert [action.job_id for action in actions] == sorted(job.job_id for job in world.jobs)
        for action, finding in zip(actions, found.jobs, strict=True):
            assert (action.action is Action.NONE) == (finding.tainted_from is None)
            assert (action.action is Action.ROLLBACK) == (finding.rollback_to is not None)


def test_six_jobs_get_what_befits_them() -> None:
    jobs = [
        Job("A", (at(40), at(60)), running=True),
        Job("B", (at(10), at(30)), running=True),
        Job("C", (at(5), at(20), at(25))),
        Job("D", (at(9),), running=True),
        Job("E", (at(9),), running=True),
        Job("F", (at(3),), running=True),
        Job("rows", is_artifact=True),
    ]
    edges = [
        Edge("A", at(60), "B", at(20)),
        Edge("B", at(30), "C", at(20)),
        Edge("A", at(40), "E", at(2)),
        Edge("A", at(60), "F", START),
        Edge("A", at(55), "rows", START, EdgeKind.DATA),
    ]
    actions = planned(jobs, edges)
    assert {name: action.action.value for name, action in actions.items()} == {
        "A": "rollback",
        "B": "rollback",
        "C": "rollback",
        "D": "none",
        "E": "none",
        "F": "quarantine",
        "rows": "quarantine",
    }
    assert [name for name, action in actions.items() if action.stop] == ["A", "B", "F"]
    assert {name: action.rollback_to for name, action in actions.items() if action.rollback_to} == {
        "A": at(40),
        "B": at(10),
        "C": at(5),
    }
    assert actions["C"].quarantined == (at(20), at(25))
    assert actions["C"].reason == "tainted by B; clean up to attempt 1, step 5"


def test_what_cannot_be_verified_halts_every_job_that_runs() -> None:
    jobs = [
        Job("A", (at(40),), running=True),
        Job("B", (at(10),), Chain.FORKED, running=True),
        Job("C", (at(1),), running=True),
        Job("D", (at(1),)),
        Job("E", (at(1),), Chain.MISSING),
    ]
    actions = planned(jobs, [])
    assert [action.action for action in actions.values()] == [
        Action.ROLLBACK,
        Action.HALT,
        Action.HALT,
        Action.NONE,
        Action.HALT,
    ]


def test_a_job_that_only_an_edge_names_has_an_action_too() -> None:
    assert planned([Job("A", (at(40),))], [Edge("A", at(60), "Z", at(1))])["Z"].action is Action.QUARANTINE


def test_a_plan_for_other_jobs_is_refused() -> None:
    found = trace([A], [Job("A"), Job("B")], [])
    with pytest.raises(InputError, match="differ in B"):
        plan(found, [Job("A")])


def test_an_action_is_strict_json() -> None:
    action = planned([Job("A", (at(40), at(60)), running=True)], [])["A"]
    document = json.loads(json.dumps(action.to_json(), allow_nan=False))
    assert (document["rollback_to"], document["quarantined"]) == ([1, 40], [[1, 60]])
