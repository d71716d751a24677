"""Step `report`: join the evaluations of a candidate, and of the pinned production, into what a gate compares."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ftpipeline.digest import Digest, canonical_json, parse, parse_json
from ftpipeline.errors import CanonicalFormError, GateRecordError
from ftpipeline.records import Facts, step
from ftpipeline.schema import ROLES
from ftpipeline.steps.evaluate import REPORT_FILE

SIDES = ("candidate", "production")


@step("report", code_version="1")
def report(inputs: Mapping[str, Path], params: Mapping[str, Any], out: Path) -> Facts:
    """Write `candidate.json` and, when production is pinned, `production.json`.

    Args:
        inputs: `candidate_<role>` and, when production is pinned, `production_<role>`: outputs of `evaluate`.
        params: the digests `candidate` and `production`; production is None when there is none to compare with.
        out: receives the reports, in the form that `gate_reports` describes, with `details` per role.

    Raises:
        GateRecordError: an evaluation is missing, unreadable, or about another artifact or role.
    """
    sides = {side: parse(params[side]) for side in SIDES if params[side] is not None}
    needed = {f"{side}_{role}" for side in sides for role in ROLES}
    if inputs.keys() != needed:
        odd = ", ".join(sorted(inputs.keys() ^ needed))
        raise GateRecordError(f"evaluations missing or not asked for: {odd}; evaluate each artifact on every role")
    metrics: dict[str, Any] = {}
    for side, artifact in sides.items():
        joined = _join(artifact, {role: inputs[f"{side}_{role}"] for role in ROLES})
        (out / f"{side}.json").write_bytes(canonical_json(joined))
        metrics[side] = joined["metrics"]
    return {"metrics": metrics, "candidate": params["candidate"], "production": params["production"]}


def _join(artifact: Digest, folders: Mapping[str, Path]) -> dict[str, Any]:
    evaluations = {role: _read(folder, role, artifact) for role, folder in folders.items()}
    scorers = {"{name}/{version}".format(**evaluation["scorer"]) for evaluation in evaluations.values()}
    if len(scorers) > 1:
        names = ", ".join(sorted(scorers))
        raise GateRecordError(f"{artifact} was scored by {names}; evaluate every role with one scorer")
    return {
        "artifact": artifact,
        "eval_sets": {role: evaluation["eval_set"]["digest"] for role, evaluation in evaluations.items()},
        "scorer": scorers.pop(),
        "metrics": {role: evaluation["score"] for role, evaluation in evaluations.items()},
        "counts": {role: evaluation["counts"] for role, evaluation in evaluations.items()},
        "details": {role: evaluation["metrics"] for role, evaluation in evaluations.items()},
    }


def _read(folder: Path, role: str, artifact: Digest) -> dict[str, Any]:
    try:
        evaluation = dict(parse_json((folder / REPORT_FILE).read_bytes()))
        about = evaluation["artifact"], evaluation["role"]
    except (OSError, KeyError, TypeError, ValueError, CanonicalFormError) as error:
        raise GateRecordError(f"{role} evaluation of {artifact} cannot be read ({error}); evaluate it again") from error
    if about != (artifact, role):
        raise GateRecordError(f"evaluation of {about} stands where {(artifact, role)} is needed; evaluate that again")
    return evaluation
