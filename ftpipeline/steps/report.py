"""Step `report`: join the evaluations of a candidate, and of the pinned production, into what a gate compares."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ftpipeline.digest import Digest, canonical_json, parse, parse_json
from ftpipeline.errors import CanonicalFormError, GateRecordError
from ftpipeline.records import Facts, step
from ftpipeline.schema import ROLES
from ftpipeline.steps.evaluate import ANSWERS_FILE, REPORT_FILE
from ftpipeline.steps.gate_files import PAIRS_FILE
from ftpipeline.steps.paired import SIDES, Pairs

if TYPE_CHECKING:
    import pyarrow


@step("report", code_version="2")
def report(inputs: Mapping[str, Path], params: Mapping[str, Any], out: Path) -> Facts:
    """Write `candidate.json` and, when production is pinned, `production.json` and `pairs.json`.

    Args:
        inputs: `candidate_<role>` and, when production is pinned, `production_<role>`: outputs of `evaluate`.
        params: the digests `candidate` and `production`; production is None when there is none to compare with.
        out: receives the reports, in the form that `gate_reports` describes, with `details` per role, and the paired
            answers by role.

    Raises:
        GateRecordError: an evaluation is missing, unreadable, about another artifact or role, or on other rows.
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
    if len(sides) == len(SIDES):
        pairs = {role: _pair(role, *(inputs[f"{side}_{role}"] for side in SIDES)).to_json() for role in ROLES}
        (out / PAIRS_FILE).write_bytes(canonical_json(pairs))
    return {"metrics": metrics, "candidate": params["candidate"], "production": params["production"]}


def _join(artifact: Digest, folders: Mapping[str, Path]) -> dict[str, Any]:
    evaluations = {role: _read(folder, role, artifact) for role, folder in folders.items()}
    scorers = {_scorer(evaluation["scorer"]) for evaluation in evaluations.values()}
    if len(scorers) > 1:
        names = ", ".join(sorted(scorers))
        raise GateRecordError(f"{artifact} was scored by {names}; evaluate every role with one scorer")
    return {
        "artifact": artifact,
        "eval_sets": {role: evaluation["eval_set"]["digest"] for role, evaluation in evaluations.items()},
        "scorer": scorers.pop(),
        "averaging": evaluations["task"]["averaging"],
        "classes": {role: _classes(evaluation) for role, evaluation in evaluations.items()},
        "metrics": {role: evaluation["score"] for role, evaluation in evaluations.items()},
        "counts": {role: evaluation["counts"] for role, evaluation in evaluations.items()},
        "details": {role: evaluation["metrics"] for role, evaluation in evaluations.items()},
    }


def _classes(evaluation: Mapping[str, Any]) -> list[str]:
    """Return the answers that the set expects, which macro-F1 is the mean over."""
    return sorted(label for label, counts in evaluation["per_label"].items() if counts["tp"] + counts["fn"])


def _pair(role: str, candidate: Path, production: Path) -> Pairs:
    one, other = (_answers(folder) for folder in (candidate, production))
    rows = ["id", "expected"]
    if not one.select(rows).equals(other.select(rows)):
        raise GateRecordError(f"{role}: candidate and production answered different rows; evaluate both again")
    expected, given, production_given = one["expected"], one["predicted"], other["predicted"]
    return Pairs.of_answers(expected.to_pylist(), given.to_pylist(), production_given.to_pylist())


def _answers(folder: Path) -> "pyarrow.Table":
    import pyarrow
    import pyarrow.parquet

    try:
        return pyarrow.parquet.read_table(folder / ANSWERS_FILE, columns=["id", "expected", "predicted"])
    except (OSError, KeyError, pyarrow.ArrowException) as error:
        raise GateRecordError(f"answers of {folder.name} cannot be read ({error}); evaluate it again") from error


def _scorer(scorer: Mapping[str, Any]) -> str:
    """Name what has scored; answers of two runtimes are not compared."""
    name = "{name}/{version}".format(**scorer)
    return name if scorer["runtime"] is None else f"{name} on {scorer['runtime']}"


def _read(folder: Path, role: str, artifact: Digest) -> dict[str, Any]:
    try:
        evaluation = dict(parse_json((folder / REPORT_FILE).read_bytes()))
        about = evaluation["artifact"], evaluation["role"]
    except (OSError, KeyError, TypeError, ValueError, CanonicalFormError) as error:
        raise GateRecordError(f"{role} evaluation of {artifact} cannot be read ({error}); evaluate it again") from error
    if about != (artifact, role):
        raise GateRecordError(f"evaluation of {about} stands where {(artifact, role)} is needed; evaluate that again")
    return evaluation
