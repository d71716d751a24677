"""Whether what is to be registered came about as the cycle makes it: by steps that were run here, on these very bytes.

An orchestrator hands digests over, and a person may have pointed an asset at another artifact. The records of the steps
say what made each output and from what, and those nobody can point elsewhere.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from ftpipeline.cycle.audit import walk
from ftpipeline.cycle.cycle import Cycle
from ftpipeline.cycle.data import Inputs
from ftpipeline.digest import Digest
from ftpipeline.errors import (
    ForeignReportError,
    LeakageError,
    StaleEvalSetError,
    UnevaluatedError,
    UnexportedArtifactError,
)
from ftpipeline.records import LineageRecord
from ftpipeline.registry.evidence import pinned_eval_sets
from ftpipeline.schema import ROLES

_SAFE = ("clean", "dropped")


def check_release(cycle: Cycle, inputs: Inputs) -> None:
    """Refuse what the steps of this home do not vouch for.

    Args:
        cycle: the pipeline in its store.
        inputs: what `register` takes: `export`, `evaluate`, `gate` and `manifest`.

    Raises:
        UnexportedArtifactError: no export made the artifact.
        LeakageError: its training rows were not found free of eval rows.
        UnevaluatedError: no report step made the report, or no gate judged it.
        ForeignReportError: the report is about another artifact.
        StaleEvalSetError: it was measured on other eval sets than the manifest pins.
    """
    artifact, report = inputs["export"], inputs["evaluate"]
    if not _made(cycle, artifact, "export"):
        raise UnexportedArtifactError(f"no export step made {artifact}; register what the export of the week made")
    _check_leakage(cycle, artifact)
    evaluations = _evaluations(cycle, report, artifact)
    pinned = pinned_eval_sets(cycle.store.trees, inputs["manifest"])
    for role in ROLES:
        _check_evaluation(cycle, evaluations[f"candidate_{role}"], artifact, role, pinned[role]["digest"])
    if all(record.inputs.get("report") != report for record in _made(cycle, inputs["gate"], "gate")):
        raise UnevaluatedError(f"gate record {inputs['gate']} does not judge report {report}; run the gate again")


def _check_leakage(cycle: Cycle, artifact: Digest) -> None:
    splits = [record for record in walk(cycle.store, artifact).records if record.step == "split"]
    verdicts = {split.output: _verdict(split.facts) for split in splits}
    if not verdicts:
        raise LeakageError(f"no split is on record behind {artifact}; train it on rows that were checked for leakage")
    for split, verdict in verdicts.items():
        if verdict not in _SAFE:
            raise LeakageError(f"leakage verdict of split {split}, behind {artifact}, is {verdict!r}; train it again")


def _verdict(facts: Mapping[str, Any]) -> object:
    leakage = facts.get("leakage")
    return leakage.get("verdict") if isinstance(leakage, Mapping) else None


def _evaluations(cycle: Cycle, report: Digest, artifact: Digest) -> Mapping[str, Digest]:
    """Return what a report was joined from."""
    records = _made(cycle, report, "report")
    if not records:
        raise UnevaluatedError(f"no evaluation made report {report}; evaluate {artifact} again")
    for record in records:
        if record.params["plain"]["candidate"] == artifact:
            return record.inputs
    about = records[0].params["plain"]["candidate"]
    raise ForeignReportError(f"report {report} is about {about}, not about {artifact}; evaluate that artifact")


def _check_evaluation(cycle: Cycle, output: Digest, artifact: Digest, role: str, eval_set: str) -> None:
    measured = [record.inputs for record in _made(cycle, output, "evaluate")]
    if all(inputs["artifact"] != artifact for inputs in measured):
        raise UnevaluatedError(f"no evaluation of {artifact} on {role} made {output}; evaluate it again")
    if all(inputs["eval_set"] != eval_set for inputs in measured):
        raise StaleEvalSetError(
            f"{artifact} was measured on {role} {measured[0]['eval_set']}, pinned is {eval_set}; evaluate it again"
        )


def _made(cycle: Cycle, output: Digest, step: str) -> Sequence[LineageRecord]:
    return [record for record in cycle.store.results.made(output) if record.step == step]
