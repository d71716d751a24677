"""Verdicts, states, rollbacks and exposure of a traced fleet."""

import json
from dataclasses import replace

import pytest

from ftpipeline.errors import InputError, UnknownNameError
from ftpipeline.guard.lineage import START, Chain, Edge, EdgeKind, Incident, Job, Position
from ftpipeline.guard.trace import Exposure, JobState, JobTaint, Trace, TraceVerdict, trace
from ftpipeline_tests.guard.fleets import earliest_by_brute_force, fleet
from ftpipeline_tests.shared import shared

FLEETS = 400


def at(step: int, attempt: int = 1) -> Position:
    return Position(attempt, step)


def find(found: Trace, job_id: str) -> JobTaint:
    return next(finding for finding in found.jobs if finding.job_id == job_id)


A = Incident("A", onset=at(500), last_good=at(495))


def test_the_window_begins_after_the_last_good_step() -> None:
    assert A.begins == at(496)
    assert replace(A, last_good=None).begins == START
    with pytest.raises(InputError, match="not before the onset"):
        Incident("A", onset=at(500), last_good=at(500))


def test_laws_of_a_trace_hold_on_random_fleets() -> None:
    seen = set()
    for seed in range(FLEETS):
        world = fleet(seed)
        found = trace([world.incident], world.jobs, world.edges)
        seen.add(found.verdict)
        expected = earliest_by_brute_force(world.edges, {world.incident.job_id: world.incident.begins})
        assert {item.job_id: item.tainted_from for item in found.jobs if item.tainted_from} == expected
        assert (find(found, world.incident.job_id).tainted_from or at(10**9)) <= world.incident.onset
        assert [item.job_id for item in found.jobs] == sorted(job.job_id for job in world.jobs)
        for item, job in zip(found.jobs, sorted(world.jobs, key=lambda job: job.job_id), strict=True):
            if item.tainted_from is None:
                assert (item.rollback_to, item.witness, item.unrecoverable) == (None, (), False)
                continue
            clean = [kept for kept in job.checkpoints if kept < item.tainted_from]
            assert item.rollback_to == max(clean, default=None)
            assert item.unrecoverable == (not clean and not job.is_artifact)
        window = [
            edge
            for edge in world.edges
            if edge.producer == world.incident.job_id != edge.consumer
            and (edge.produced_at or START) >= world.incident.begins
        ]
        assert (found.verdict is TraceVerdict.ISOLATED) <= (not window)
    assert seen == {
        TraceVerdict.ISOLATED,
        TraceVerdict.CONTAMINATION_TRACED,
        TraceVerdict.UNRECOVERABLE_CONTAMINATION,
    }


def test_the_shared_fleet_is_traced_over_hops_cycles_and_the_doubtful_window() -> None:
    case = json.loads(shared("cases", "i", "lineage_transitive.json").read_text("utf-8"))
    edges = [Edge(row["of"], at(row["at"]), row["by"], at(row["at"])) for row in case["consumed"]]
    jobs = [Job(name, checkpoints=(at(1),)) for name in ("A", "B", "C", "D", "E", "F", "G", "G2")]
    incident = Incident(case["divergent"], at(case["onset_epoch"]), at(case["last_good_epoch"]))
    found = trace([incident], jobs, edges)
    tainted = [item.job_id for item in found.jobs if item.state in (JobState.SOURCE, JobState.TAINTED)]
    assert tainted == case["expected"]["quarantine"]
    # F read B before B read A, and the order is proven by B's own clock: clean, not merely for review.
    assert {"D", "F", "G"} <= {item.job_id for item in found.jobs if item.state is JobState.CLEAN}
    assert [edge.consumer for edge in find(found, "C").witness] == ["B", "C"]


def test_no_incident_is_no_divergence() -> None:
    found = trace([], [Job("A"), Job("B")], [Edge("A", at(1), "B", at(1))])
    assert found.verdict is TraceVerdict.NO_DIVERGENCE
    assert {item.state for item in found.jobs} == {JobState.CLEAN}


@pytest.mark.parametrize("kind", EdgeKind)
def test_one_consumption_of_any_kind_in_the_window_is_no_isolation(kind: EdgeKind) -> None:
    jobs = [Job("A", checkpoints=(at(400),)), Job("B", checkpoints=(at(1),))]
    before = trace([A], jobs, [Edge("A", at(495), "B", at(9), kind)])
    within = trace([A], jobs, [Edge("A", at(496), "B", at(9), kind)])
    assert (before.verdict, within.verdict) == (TraceVerdict.ISOLATED, TraceVerdict.CONTAMINATION_TRACED)
    assert find(within, "B") == JobTaint(
        "B",
        JobState.TAINTED,
        tainted_from=at(9),
        witness=(Edge("A", at(496), "B", at(9), kind),),
        rollback_to=at(1),
        exposure=Exposure.EXPOSED_UNTESTED,
    )


def test_taint_passes_through_an_artifact_that_a_tainted_job_made() -> None:
    jobs = [Job("A", (at(400),)), Job("rows", is_artifact=True), Job("C", (at(2), at(20)))]
    edges = [
        Edge("A", at(510), "rows", START, EdgeKind.DATA),
        Edge("rows", START, "C", at(10), EdgeKind.DATA),
    ]
    found = trace([A], jobs, edges)
    assert (find(found, "rows").state, find(found, "rows").unrecoverable) == (JobState.TAINTED, False)
    assert (find(found, "C").tainted_from, find(found, "C").rollback_to) == (at(10), at(2))
    assert found.verdict is TraceVerdict.CONTAMINATION_TRACED


def test_a_job_without_a_clean_checkpoint_is_unrecoverable() -> None:
    jobs = [Job("A", (at(400), at(520))), Job("F", (at(10), at(20)))]
    found = trace([A], jobs, [Edge("A", at(520), "F", START)])
    assert found.verdict is TraceVerdict.UNRECOVERABLE_CONTAMINATION
    assert (find(found, "F").unrecoverable, find(found, "F").rollback_to) == (True, None)
    assert find(found, "A").rollback_to == at(400)


def test_a_retry_is_later_than_all_of_the_attempt_before_it() -> None:
    jobs = [Job("A", (at(400), at(30, attempt=2))), Job("B", (at(1),))]
    found = trace([A], jobs, [Edge("A", at(30, attempt=2), "B", at(5))])
    assert find(found, "B").state is JobState.TAINTED
    assert find(found, "A").rollback_to == at(400)


@pytest.mark.parametrize("chain", [Chain.MISSING, Chain.FORKED, Chain.UNVERIFIABLE])
def test_a_chain_that_does_not_verify_halts_and_hides_only_what_lies_behind_it(chain: Chain) -> None:
    jobs = [Job("A", (at(400),)), Job("B", (at(1),), chain), Job("C", (at(1),)), Job("D", (at(1),))]
    found = trace([A], jobs, [Edge("B", at(3), "C", at(4))])
    assert found.verdict is TraceVerdict.HALT
    states = {item.job_id: item.state for item in found.jobs}
    assert states == {
        "A": JobState.SOURCE,
        "B": JobState.UNKNOWN,
        "C": JobState.UNKNOWN,
        "D": JobState.CLEAN,
    }
    assert trace([], jobs, []).verdict is TraceVerdict.HALT


def test_an_unlisted_job_in_an_edge_halts() -> None:
    found = trace([A], [Job("A", (at(400),))], [Edge("A", at(510), "B", at(1))])
    assert (found.verdict, found.unlisted) == (TraceVerdict.HALT, ("B",))
    assert find(found, "B").state is JobState.TAINTED


def test_a_consumption_without_a_producer_position_leaves_its_consumer_unknown() -> None:
    found = trace([A], [Job("A", (at(400),)), Job("B")], [Edge("A", None, "B", at(4))])
    assert (found.verdict, find(found, "B").state) == (TraceVerdict.HALT, JobState.UNKNOWN)
    clean = trace([], [Job("A"), Job("B")], [Edge("A", None, "B", at(4))])
    assert clean.verdict is TraceVerdict.NO_DIVERGENCE


def test_a_consumption_without_a_consumer_position_taints_from_the_start() -> None:
    found = trace([A], [Job("A", (at(400),)), Job("B", (at(1),))], [Edge("A", at(500), "B", None)])
    assert (find(found, "B").tainted_from, find(found, "B").unrecoverable) == (START, True)


def test_a_diverged_job_outside_of_the_cut_is_refused() -> None:
    with pytest.raises(UnknownNameError, match="'Z' is not in the cut"):
        trace([replace(A, job_id="Z")], [Job("A")], [])


def test_two_divergences_are_traced_together() -> None:
    jobs = [Job(name, (at(1),)) for name in "ABCD"]
    edges = [Edge("A", at(600), "C", at(9)), Edge("B", at(70), "C", at(5))]
    found = trace([A, Incident("B", at(70), at(60))], jobs, edges)
    assert [item.state for item in found.jobs] == [JobState.SOURCE, JobState.SOURCE, JobState.TAINTED, JobState.CLEAN]
    assert find(found, "C").witness == (edges[1],)


def test_a_source_is_exposed_if_it_had_consumed_another_jobs_work_before_its_onset() -> None:
    jobs = [Job("A", (at(400),)), Job("B", (at(1),))]
    before = trace([A], jobs, [Edge("B", at(3), "A", at(480))])
    after = trace([A], jobs, [Edge("B", at(3), "A", at(501))])
    assert find(before, "A").exposure is Exposure.EXPOSED_UNTESTED
    assert find(after, "A").exposure is Exposure.NOT_EXPOSED
    assert find(after, "B").exposure is Exposure.NOT_EXPOSED


def test_an_input_that_no_job_made_is_a_shared_cause_and_taints_nobody() -> None:
    jobs = [
        Job("A", (at(400),), external=frozenset({"sha256:data", "sha256:own"})),
        Job("B", external=frozenset({"sha256:data", "sha256:other"})),
        Job("C", external=frozenset({"sha256:other"})),
    ]
    found = trace([A], jobs, [])
    assert [(cause.digest, cause.jobs) for cause in found.shared_causes] == [("sha256:data", ("A", "B"))]
    assert found.verdict is TraceVerdict.ISOLATED


def test_a_trace_is_strict_json() -> None:
    found = trace([A], [Job("A"), Job("B")], [Edge("A", at(510), "B", at(4))])
    document = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert document["jobs"][1]["tainted_from"] == [1, 4]
    assert document["jobs"][1]["witness"][0]["producer"] == "A"
