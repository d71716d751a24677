"""gate: is the candidate at least as good as what is in production, by the thresholds of its manifest?

The candidate is compared with the production model that was pinned when the run began, never with the base model, and
on the exported artifact. A verdict against is a normal outcome: the step writes it down and does not raise.
"""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ftpipeline.digest import Digest, canonical_json, parse
from ftpipeline.errors import GateRecordError
from ftpipeline.records import Facts, Verdict, step
from ftpipeline.steps.gate_decision import GateDecision, decide
from ftpipeline.steps.gate_files import read_answers, read_report
from ftpipeline.steps.gate_reports import Reason, Report

GATE_RECORD_TYPE = "ftpipeline/gate/v1"


@step("gate", code_version="2", distributions=("numpy",))
def gate(inputs: Mapping[str, Path], params: Mapping[str, Any], out: Path) -> Facts:
    """Join two evaluation reports into a gate record, `gate.json`.

    Args:
        inputs: `report`, a folder with `candidate.json` and, when production is pinned, `production.json` and
            `pairs.json`, the answers of both.
        params: `gates`; the digests `manifest` and `candidate`; `production` `{"digest", "generation"}` as pinned;
            `noise_band`: `{"tree", "seed_scores"}`, or None where it was not measured.
        out: receives `gate.json`, canonical JSON.

    Raises:
        GateRecordError: a report is unreadable or about another artifact.
        InputError: the gates or seed scores cannot be used.
    """
    artifact, pinned, measured = parse(params["candidate"]), params["production"], params["noise_band"]
    expected = None if pinned["digest"] is None else parse(pinned["digest"])
    candidate = read_report(inputs["report"] / "candidate.json", artifact)
    production = _production(inputs["report"], candidate, expected)
    if expected is not None and production is None:
        missing = Reason("production_report_missing", f"production {expected} is pinned but was not evaluated")
        decision = GateDecision(Verdict.REFUSED, (missing,))
    else:
        answers = None if production is None or production is candidate else read_answers(inputs["report"])
        seed_scores = None if measured is None else measured["seed_scores"]
        decision = decide(candidate, production, params["gates"], answers=answers, seed_scores=seed_scores)
    facts = _facts(decision, candidate, production)
    record = {
        "type": GATE_RECORD_TYPE,
        "candidate": artifact,
        "manifest": parse(params["manifest"]),
        "production": {"digest": expected, "generation": pinned["generation"]},
        "eval_sets": _recordable(candidate.get("eval_sets")),
        "scorer": _recordable(candidate.get("scorer")),
        "gates": params["gates"],
        "noise_band": None if measured is None else measured["tree"],
        **facts,
    }
    (out / "gate.json").write_bytes(canonical_json(record))
    return facts


def _production(folder: Path, candidate: Report, expected: Digest | None) -> Report | None:
    path = folder / "production.json"
    if path.exists():
        if expected is None:
            raise GateRecordError("the report has a production.json but no production is pinned; run the week again")
        return read_report(path, expected)
    return candidate if candidate["artifact"] == expected else None


def _facts(decision: GateDecision, candidate: Report, production: Report | None) -> Facts:
    return {
        **decision.to_json(),
        "metrics": {
            "candidate": _recordable(candidate.get("metrics")),
            "production": None if production is None else _recordable(production.get("metrics")),
        },
    }


def _recordable(value: object) -> object:
    """Return a JSON value that a strict reader accepts: a refused NaN stays visible in the record."""
    if isinstance(value, dict):
        return {key: _recordable(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_recordable(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return {"non_finite": str(value)}
    return value
