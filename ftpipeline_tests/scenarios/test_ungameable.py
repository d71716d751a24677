"""Every way to talk an artifact into production is refused, each with an error of its own, and moves nothing.

Assets are materialised one at a time, as anybody may in the UI, after pointing the ones before them at something else.
"""

import json
from collections.abc import Callable
from functools import partial

import pytest

from ftpipeline.digest import canonical_json, of_bytes
from ftpipeline.errors import CorruptArtifactError, ProtectedArtifactError
from ftpipeline.registry import Client
from ftpipeline_tests.orchestration.location import LEARNING, Result
from ftpipeline_tests.scenarios.release_site import (
    NAME,
    WHO,
    ReleaseSite,
    artifact_file,
    refusal,
)
from ftpipeline_tests.store.damage import flip_a_bit
from ftpipeline_tests.tiny_pipeline import NEXT_WEEK, WEEK

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

AFTER_NEXT = "2026-10-19"
RECEIPT = of_bytes(b"receipt")


def refused(site: ReleaseSite, attempt: Callable[[], Result]) -> str:
    """Return the class of the error that an attempt is refused with; it must have moved nothing."""
    before = site.registry.entries(NAME), site.registry.pointers(NAME), site.registry.history(NAME)
    error, _ = refusal(attempt())
    assert (site.registry.entries(NAME), site.registry.pointers(NAME), site.registry.history(NAME)) == before
    return error


def release_the_second(site: ReleaseSite) -> None:
    """Bring the second artifact to production by the way that is open."""
    for stage in ("shadow", "canary", "production"):
        assert site.promote("second", stage).success


def test_the_open_way_is_open(site: ReleaseSite) -> None:
    release_the_second(site)
    assert site.registry.resolve(NAME, "production").digest == site.made["second"]["export"]


def test_registering_without_evaluating(site: ReleaseSite) -> None:
    for stage in ("manifest", "export", "gate"):
        site.store.pointers.put(f"{NAME}/{stage}", AFTER_NEXT, "somebody's run", 0, site.made["second"][stage])
    error, line = refusal(site.run("register", week=AFTER_NEXT))
    assert error == "UnknownNameError"
    assert f"{NAME}/evaluate was never materialised" in line


def test_the_report_of_another_artifact(site: ReleaseSite) -> None:
    site.point("first", "evaluate")
    assert refused(site, lambda: site.run("register")) == "ForeignReportError"


def test_the_report_of_the_unquantised_artifact(site: ReleaseSite) -> None:
    unquantised = site.declared(export={"quantize": "none"})
    result = unquantised.run("manifest", "export", "evaluate")
    assert result.success
    assert unquantised.location.digest(result, "export") != site.made["second"]["export"]
    site.point("second", "manifest", "export", "gate")
    assert refused(site, lambda: site.run("register")) == "ForeignReportError"


def test_the_adapter_in_place_of_the_exported_artifact(site: ReleaseSite) -> None:
    site.point_at("export", site.made["second"]["train"])
    assert refused(site, lambda: site.run("register")) == "UnexportedArtifactError"


def test_an_edited_report(site: ReleaseSite) -> None:
    def better(report: bytes) -> bytes:
        document = json.loads(report)
        document["metrics"]["task"] = 1.0
        return canonical_json(document)

    site.point_at("evaluate", site.edited(site.made["second"]["evaluate"], "candidate.json", better))
    assert refused(site, lambda: site.run("register")) == "UnevaluatedError"


def test_an_edited_report_that_was_gated(site: ReleaseSite) -> None:
    """The gate judges what it is handed; what it says of a report that no evaluation made is not registered."""

    def better(report: bytes) -> bytes:
        document = json.loads(report)
        document["metrics"]["task"] = 1.0
        return canonical_json(document)

    site.point_at("evaluate", site.edited(site.made["second"]["evaluate"], "candidate.json", better))
    site.run("gate")
    site.point("second", "evaluate")
    assert refused(site, lambda: site.run("register")) == "UnevaluatedError"


def test_a_report_edited_where_it_is_stored(site: ReleaseSite) -> None:
    flip_a_bit(site.store, artifact_file(site.store, site.made["second"]["evaluate"], "candidate.json"))
    assert refused(site, lambda: site.run("register")) == "CorruptArtifactError"


def test_an_edited_gate_record(site: ReleaseSite) -> None:
    def first_release(record: bytes) -> bytes:
        document = json.loads(record)
        return canonical_json(document | {"verdict": "pass", "reasons": []})

    site.point_at("gate", site.edited(site.made["third"]["gate"], "gate.json", first_release))
    assert refused(site, lambda: site.run("register")) == "UnevaluatedError"


def test_a_gate_on_an_old_version_of_an_eval_set(site: ReleaseSite) -> None:
    newer = site.with_a_new_task_set()
    assert newer.run("eval_task").success
    assert refused(newer, lambda: newer.promote("second", "shadow")) == "StaleEvalSetError"


def test_a_failed_leakage_verdict(site: ReleaseSite) -> None:
    def leaked(record: bytes) -> bytes:
        return canonical_json(json.loads(record) | {"verdict": "leaked"})

    site.point_at("split", site.edited(site.made["second"]["split"], "leakage.json", leaked))
    assert refused(site, lambda: site.run("train")) == "LeakageError"


def test_an_input_under_quarantine(site: ReleaseSite) -> None:
    site.store.quarantine.mark(site.made["second"]["train"], RECEIPT, "its job diverged")
    assert refused(site, lambda: site.run("export")) == "QuarantinedError"
    assert refused(site, lambda: site.run("register")) == "QuarantinedError"
    assert refused(site, lambda: site.promote("second", "shadow")) == "QuarantinedError"


def test_an_artifact_under_quarantine(site: ReleaseSite) -> None:
    site.store.quarantine.mark(site.made["second"]["export"], RECEIPT, "its job diverged")
    for stage in ("evaluate", "gate", "register"):
        assert refused(site, partial(site.run, stage)) == "QuarantinedError"
    assert refused(site, lambda: site.promote("second", "shadow")) == "QuarantinedError"


def test_a_rejected_entry(site: ReleaseSite) -> None:
    assert site.decide("rejection", artifact=site.made["second"]["export"]).success
    assert refused(site, lambda: site.promote("second", "shadow")) == "RejectedEntryError"
    assert site.run("register").success
    assert site.registry.entry(NAME, site.made["second"]["export"]).stage == "rejected"


def test_a_skipped_stage(site: ReleaseSite) -> None:
    assert refused(site, lambda: site.promote("second", "canary")) == "SkippedStageError"
    assert refused(site, lambda: site.promote("second", "production")) == "SkippedStageError"


def test_deleting_production_and_the_production_before(site: ReleaseSite) -> None:
    with pytest.raises(ProtectedArtifactError, match="production holds"):
        site.registry.delete(NAME, site.made["first"]["export"], **WHO)
    release_the_second(site)
    with pytest.raises(ProtectedArtifactError, match="full traffic cycle"):
        site.registry.delete(NAME, site.made["first"]["export"], **WHO)


def test_edited_bytes_under_production(site: ReleaseSite) -> None:
    production = site.made["first"]["export"]
    with Client(site.store.home.root) as client:
        assert client.resolve(NAME, "production").digest == production
        flip_a_bit(site.store, artifact_file(site.store, production, "model.onnx"))
        with pytest.raises(CorruptArtifactError):
            client.resolve(NAME, "production")
    with pytest.raises(CorruptArtifactError):
        site.registry.resolve(NAME, "production")
    release_the_second(site)
    assert refused(site, lambda: site.decide("rollback", expect=2)) == "CorruptArtifactError"
    assert site.registry.production(NAME).digest == site.made["second"]["export"]


def test_a_gate_against_an_older_generation_of_production(site: ReleaseSite) -> None:
    release_the_second(site)
    assert refused(site, lambda: site.promote("third", "shadow")) == "StaleGateError"


def test_an_old_gate_record_once_more(site: ReleaseSite) -> None:
    release_the_second(site)
    stages = ("manifest", "train", "export", "evaluate", "gate")
    site.point("third", *stages)
    assert site.declared(train={**LEARNING, "max_steps": 90}).run("evaluate", "gate", "register").success
    site.point("third", "evaluate", "gate")
    assert refused(site, lambda: site.run("register")) == "ReplayedGateError"


def test_a_promotion_from_what_production_was(site: ReleaseSite) -> None:
    assert site.promote("second", "shadow").success
    result = site.decide("promotion", artifact=site.made["third"]["export"], to="shadow", expect=0)
    error, line = refusal(result)
    assert error == "StaleGenerationError"
    assert site.made["second"]["export"] in line


def test_the_artifacts_are_three_two_of_them_of_one_week(site: ReleaseSite) -> None:
    assert len({made["export"] for made in site.made.values()}) == 3
    assert WEEK < NEXT_WEEK < AFTER_NEXT
