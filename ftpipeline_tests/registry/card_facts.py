"""What a model card is written from: the documents that a week leaves behind, in small."""

from typing import Any

from ftpipeline.digest import of_bytes
from ftpipeline.registry.model_card import CardFacts
from ftpipeline.registry.records import Entry, HistoryRow
from ftpipeline.registry.stages import Stage

ARTIFACT = of_bytes(b"artifact")
SETS = {
    role: {"name": f"gold-{role}", "version": "v3", "digest": of_bytes(role.encode())}
    for role in ("task", "regression", "safety")
}
MANIFEST: dict[str, Any] = {
    "task": "sequence_classification",
    "labels": ["billing", "login"],
    "base_model": {"repo": "hub://acme/mini-bert", "revision": "f" * 40, "tree_sha256": of_bytes(b"base")},
    "data": {"train": f"snap://t/w/train@{of_bytes(b't')}", "val": f"snap://t/w/val@{of_bytes(b'v')}"},
    "eval_sets": {role: "evalset://{name}/{version}@{digest}".format(**used) for role, used in SETS.items()},
}
REPORT: dict[str, Any] = {
    "artifact": ARTIFACT,
    "scorer": "OnnxScorer/1",
    "metrics": {"task": 0.8125, "regression": 0.75, "safety": 1.0},
    "counts": {role: {"n": 120, "abstained": 7} for role in SETS},
}


def card_facts(**changes: Any) -> CardFacts:
    entry = Entry(
        id=1,
        name="tickets-router",
        artifact=ARTIFACT,
        manifest=of_bytes(b"manifest"),
        base_model=of_bytes(b"base"),
        report=of_bytes(b"report"),
        gate=of_bytes(b"gate"),
        verdict="pass",
        reasons=(),
        stage=Stage.PRODUCTION,
        run_id="run-1",
        week="2026-09-28",
        registered="2026-10-05T04:00:00+00:00",
    )
    time = "2026-10-05T09:00:00+00:00"
    history = [
        HistoryRow(1, ARTIFACT, None, Stage.CANDIDATE, "run run-1", "gate verdict pass", of_bytes(b"gate"), time),
        HistoryRow(1, ARTIFACT, Stage.CANDIDATE, Stage.SHADOW, "ana", "a | b\nc", of_bytes(b"gate"), time),
        HistoryRow(1, of_bytes(b"other"), None, Stage.CANDIDATE, "bob", "not this one", None, time),
    ]
    facts = {"entry": entry, "history": history, "manifest": MANIFEST, "eval_sets": SETS, "report": REPORT}
    return CardFacts(**{**facts, **changes})
