"""The published schemas describe what is written."""

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest

from ftpipeline.ledger.events import Draft, Kind, next_events, number
from ftpipeline.ledger.manifest import consumption_ledger, manifest
from ftpipeline_tests.ledger.chains import NOON
from ftpipeline_tests.ledger.test_manifest import fleet_of
from ftpipeline_tests.ledger.world import opened, point
from ftpipeline_tests.store.rows import digest

FORMATS = Path(__file__).resolve().parents[2] / "docs" / "formats"
jsonschema = pytest.importorskip("jsonschema")

PAYLOADS: dict[Kind, dict[str, Any]] = {
    Kind.JOB_OPENED: opened(holder="me", keep=3, resumed_from={"attempt": 1, "step": 2, "tree": digest("tree")}),
    Kind.METRICS: {"points": [point(1), point(2, number(float("inf")))]},
    Kind.EVALUATION: {"val_loss": number(float("nan")), "kl": 0.1, "scores": {"macro_f1": 0.5}, "probe": digest("p")},
    Kind.CHECKPOINT_SAVED: {"tree": digest("tree")},
    Kind.CHECKPOINT_CONSUMED: {
        "producer": "a",
        "producer_attempt": 1,
        "producer_step": 2,
        "producer_event": digest("event"),
        "tree": digest("tree"),
        "use": "merge",
        "at_step": 3,
    },
    Kind.ARTIFACT_CONSUMED: {"name": "split", "tree": digest("t"), "maker": {"job_id": "a"}, "kind": "data"},
    Kind.DIVERGENCE_DETECTED: {"receipt": digest("receipt"), "stage": "confirmed", "onset": 5, "last_good": None},
    Kind.ISOLATION_ACTION: {"receipt": digest("receipt"), "action": "halt"},
    Kind.JOB_CLOSED: {"reason": "failed", "output": None, "error": "loss is NaN"},
}


def validator(name: str) -> Any:
    """Return the validator of a published schema."""
    schema = json.loads((FORMATS / f"{name}.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def document_of(kind: Kind) -> dict[str, Any]:
    """Return an event of the kind as JSON."""
    draft = Draft(kind, 1, 0.1, PAYLOADS[kind])
    document: dict[str, Any] = next_events("job", 1, (0, digest("head")), [draft], NOON)[0].document()
    return document


@pytest.mark.parametrize("kind", list(Kind))
def test_every_kind_of_event_is_described(kind: Kind) -> None:
    validator("ledger_event").validate(document_of(kind))


@pytest.mark.parametrize("kind", [kind for kind in Kind if kind is not Kind.EVALUATION])
def test_what_the_ledger_refuses_the_schema_refuses(kind: Kind) -> None:
    document = document_of(kind)
    document["payload"] = {}
    assert not validator("ledger_event").is_valid(document)
    assert not validator("ledger_event").is_valid({**document_of(kind), "kind": "checkpoint_merged"})
    assert not validator("ledger_event").is_valid({**document_of(kind), "schema": "ftpipeline.ledger_event/2"})


@pytest.mark.parametrize("seed", range(5))
def test_the_recorded_elements_are_described(seed: int) -> None:
    chains = fleet_of(Random(seed), 60).chains
    for name, fold in (("concurrent_jobs_manifest", manifest), ("checkpoint_consumption_ledger", consumption_ledger)):
        document = json.loads(json.dumps(fold(chains)))
        validator(name).validate(document)
        assert not validator(name).is_valid({**document, "root": "sha256:0"})
