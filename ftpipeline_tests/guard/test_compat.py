"""The reference form answers as the reference does, bit for bit."""

import hashlib
import json

import pytest

from ftpipeline.guard.compat import (
    ConcurrentFineTuneGuard,
    ConcurrentTrainingState,
    DivergenceManifest,
    DivergenceVerdict,
    FineTuneJob,
)
from ftpipeline_tests.shared import shared


def evaluate(jobs: list[FineTuneJob], source: str | None, epoch: int) -> DivergenceManifest:
    return ConcurrentFineTuneGuard.evaluate_divergence(ConcurrentTrainingState(tuple(jobs), source, epoch))


def job(name: str, *consumed: tuple[str, int]) -> FineTuneJob:
    return FineTuneJob(name, current_epoch=10, divergent=False, consumed_checkpoints=consumed)


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def test_every_conformance_vector_is_reproduced() -> None:
    vectors = json.loads(shared("conformance", "divergence.json").read_text("utf-8"))["vectors"]
    assert len(vectors) == 21
    for vector in vectors:
        given = vector["input"]
        jobs = [
            FineTuneJob(**(fields | {"consumed_checkpoints": tuple(map(tuple, fields["consumed_checkpoints"]))}))
            for fields in given["jobs"]
        ]
        found = evaluate(jobs, given["divergent_job_id"], given["divergence_epoch"])
        answer = {
            "verdict": found.verdict.name,
            "affected_job_ids": list(found.affected_job_ids),
            "directive": found.directive,
            "manifest_digest": found.manifest_digest,
        }
        assert answer == vector["expect"], vector["name"]


@pytest.mark.parametrize("source", [None, ""])
def test_no_source_digests_the_number_of_jobs_alone(source: str | None) -> None:
    found = evaluate([job("x"), job("y", ("x", 3))], source, 7)
    assert found.verdict is DivergenceVerdict.NO_DIVERGENCE
    assert found.manifest_digest == sha256('{"divergence": "NONE", "jobs": "2"}')


def test_a_source_nobody_read_in_the_window_is_isolated() -> None:
    found = evaluate([job("x", ("x", 9)), job("y", ("x", 6))], "x", 7)
    assert (found.verdict, found.affected_job_ids) == (DivergenceVerdict.DIVERGENCE_ISOLATED, ())
    assert found.manifest_digest == sha256('{"affected": "NONE", "divergent": "x", "epoch": "7"}')


def test_direct_readers_are_affected_sorted_and_counted_as_often_as_they_stand() -> None:
    found = evaluate([job("z", ("x", 7)), job("y", ("x", 99)), job("y", ("x", 8)), job("w", ("y", 9))], "x", 7)
    assert found.affected_job_ids == ("y", "y", "z")
    assert found.directive.endswith("contaminated 3 jobs: ['y', 'y', 'z']. Quarantine all.")
    assert found.manifest_digest == sha256('{"affected": ["y", "y", "z"], "divergent": "x", "epoch": "7"}')


def test_the_verdicts_have_the_reference_values() -> None:
    assert [verdict.value for verdict in DivergenceVerdict] == [1, 2, 3, 4]
