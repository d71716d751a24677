"""A new version of an eval set: production and the last candidates are scored on it before the next gate."""

from typing import Any

import dagster as dg
import pytest

from ftpipeline.digest import parse_json
from ftpipeline_tests.scenarios.release_site import NAME, ReleaseSite

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

SETS = ("task", "regression", "safety")


def rescore(site: ReleaseSite) -> list[dict[str, Any]]:
    """Run the job of the eval sets and return the table of scores that it shows."""
    job = site.location.definitions.resolve_job_def(f"{NAME}_eval_sets_job")
    result = job.execute_in_process(instance=site.location.instance, raise_on_error=False)
    assert result.success
    key = dg.AssetKey([NAME, "rescored"])
    (event,) = (event for event in result.get_asset_materialization_events() if event.asset_key == key)
    shown = event.materialization.metadata["scores"]
    assert isinstance(shown, dg.TableMetadataValue)
    return [dict(record.data) for record in shown.records]


def test_production_and_the_last_candidates_are_scored_on_the_new_version_alone(site: ReleaseSite) -> None:
    scores = rescore(site.with_a_new_task_set())
    assert {row["stage"] for row in scores} == {"candidate", "production"}
    assert len(scores) == len(site.made) * len(SETS)
    executed = {row["eval set"] for row in scores if row["action"] == "executed"}
    assert executed == {"tiny-gold v2"}
    assert {row["action"] for row in scores if row["eval set"] == "tiny-gold v2"} == {"executed"}


def test_the_next_gate_finds_every_score_and_compares_like_with_like(site: ReleaseSite) -> None:
    newer = site.with_a_new_task_set()
    rescore(newer)
    scored = len(site.store.results.of_step("evaluate"))
    newer.point("second", "split", "export")
    result = newer.run("manifest", "evaluate", "gate")
    assert result.success
    assert len(site.store.results.of_step("evaluate")) == scored
    report = newer.location.digest(result, "evaluate")
    sides = [
        parse_json(site.store.trees.read(report, f"{side}.json"))["eval_sets"] for side in ("candidate", "production")
    ]
    assert sides[0] == sides[1]
    assert sides[0]["task"] == site.store.eval_sets.find("tiny-gold", "v2")
    assert newer.location.shown(result, "gate")["verdict"].value != "refused"


def test_a_policy_moves_a_passing_candidate_as_far_as_it_says(site: ReleaseSite) -> None:
    result = site.declared(release={"automatic": "canary"}).run("register")
    assert result.success
    assert site.location.shown(result, "register")["promotion"].value == "shadow, canary"
    assert site.registry.entry(NAME, site.made["second"]["export"]).stage == "canary"
    assert site.registry.production(NAME).digest == site.made["first"]["export"]
