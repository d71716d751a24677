"""Quarantine as assets: one partition for every job of an incident, and a check on every asset that may be affected.

They show what stands in the records and enforce nothing: what is under quarantine is refused wherever it is used.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import dagster as dg

from ftpipeline.cycle.stages import STAGES
from ftpipeline.digest import Digest
from ftpipeline.errors import FtpipelineError, UnknownNameError
from ftpipeline.orchestration import plots
from ftpipeline.orchestration.assets import asset_key
from ftpipeline.orchestration.failures import as_failure
from ftpipeline.orchestration.io_manager import asset_name
from ftpipeline.orchestration.metadata import Metadata, table
from ftpipeline.orchestration.taint_graph import taint_graph
from ftpipeline.orchestration.trail import asset_url
from ftpipeline.orchestration.workbench import Workbench
from ftpipeline.pipeline import Pipeline

if TYPE_CHECKING:
    from ftpipeline.cycle.incident import Incident
    from ftpipeline.store.opened import Store

QUARANTINE = dg.AssetKey("quarantine")
PARTITIONS = dg.DynamicPartitionsDefinition(name="quarantine")
CHECK = "not_quarantined"

_FIRST_AFFECTED = "train"
_JOIN = "."
Json = Mapping[str, Any]


def quarantine_asset(workbench: Workbench) -> dg.AssetsDefinition:
    """Return the asset that shows what was found of every job of an incident, and done about it."""

    @dg.asset(
        key=QUARANTINE,
        partitions_def=PARTITIONS,
        group_name="quarantine",
        description="A job that an incident has tainted: verdict, witness path, actions and receipts.",
        kinds={"python"},
    )
    def body(context: dg.AssetExecutionContext) -> dg.MaterializeResult[None]:
        try:
            return dg.MaterializeResult(metadata=shown(workbench.store, context.partition_key))
        except FtpipelineError as error:
            raise as_failure(error) from error

    return body


def affected_jobs(incident: "Incident") -> list[str]:
    """Return the jobs of an isolated incident that something was done about; artifacts that jobs made are not jobs."""
    return sorted((incident.report or {}).get("affected", {}))


def partition_of(incident: "Incident", job_id: str) -> str:
    """Return the partition key of a job of an incident."""
    return f"{incident.name}{_JOIN}{job_id}"


def shown(store: "Store", partition: str) -> Metadata:
    """Return what the UI shows of a partition.

    Raises:
        UnknownNameError: there is no such incident, it is not isolated yet, or did nothing about the job.
    """
    from ftpipeline.cycle.attributions import upgraded  # with the detector: not needed to load a code location
    from ftpipeline.cycle.incident import Incidents
    from ftpipeline.ledger.ledger import ledger_of

    name, _, job_id = partition.partition(_JOIN)
    incident = Incidents(store.database).get(name)
    if incident.report is None or job_id not in affected_jobs(incident):
        raise UnknownNameError(f"incident {name} did nothing about a job {job_id!r}; see 'ftpipeline isolate {name}'")
    jobs = upgraded(ledger_of(store), incident, incident.report["jobs"])
    return _metadata(store, incident, {**incident.report, "jobs": jobs}, job_id)


def _metadata(store: "Store", incident: "Incident", report: Json, job_id: str) -> Metadata:
    found = next(job for job in report["jobs"] if job["job_id"] == job_id)
    action = next(action for action in report["actions"] if action["job_id"] == job_id)
    picture = plots.inline(taint_graph(report["jobs"], job_id), "who consumed whom")
    return {
        "verdict": dg.MetadataValue.text(report["verdict"]),
        "state": dg.MetadataValue.text(found["state"] + (", unrecoverable" if found["unrecoverable"] else "")),
        "action": dg.MetadataValue.text(action["action"]),
        "reason": dg.MetadataValue.text(action["reason"]),
        "tainted from": dg.MetadataValue.text(_clock(found["tainted_from"])),
        "rolled back to": dg.MetadataValue.text(_clock(found["rollback_to"])),
        "exposure": dg.MetadataValue.text(found["exposure"]),
        "replays": table([{"arm": arm, **outcome} for arm, outcome in found.get("replays", {}).items()]),
        "graph": dg.MetadataValue.md(picture),
        "witness path": table([_step(edge) for edge in found["witness"]]),
        "all actions": table([_row(each) for each in report["actions"]]),
        "under quarantine": table([mark for mark in report["marks"] if mark["job_id"] == job_id]),
        "stages": table(report["stages"]),
        "shared causes": table(
            [{"digest": cause["digest"], "jobs": ", ".join(cause["jobs"])} for cause in report["shared_causes"]]
        ),
        "run": dg.MetadataValue.dagster_run(report["affected"][job_id]["run_id"]),
        "incident": dg.MetadataValue.text(incident.name),
        "opened": dg.MetadataValue.text(incident.opened),
        "isolated": dg.MetadataValue.text(incident.isolated or ""),
        **_receipts(store, incident),
    }


def _receipts(store: "Store", incident: "Incident") -> Metadata:
    """Return where the signed receipts are: files of a local store, digests of a remote one."""
    receipts = {
        "divergence receipt": incident.divergence,
        "plan receipt": incident.planned,
        "isolation receipt": incident.executed,
    }
    return {name: _receipt(store, receipt) for name, receipt in receipts.items() if receipt is not None}


def _receipt(store: "Store", receipt: Digest) -> dg.MetadataValue[Any]:
    from ftpipeline.store.blobs import LocalBlobs

    blobs = store.blobs
    return (
        dg.MetadataValue.path(blobs.path(receipt)) if isinstance(blobs, LocalBlobs) else dg.MetadataValue.text(receipt)
    )


def _step(edge: Json) -> dict[str, Any]:
    return {
        "producer": edge["producer"],
        "saved at": _clock(edge["produced_at"]),
        "consumer": edge["consumer"],
        "consumed at": _clock(edge["consumed_at"]),
        "what": edge["kind"],
    }


def _row(action: Json) -> dict[str, Any]:
    return {"job": action["job_id"], "action": action["action"], "reason": action["reason"]}


def _clock(position: Sequence[int] | None) -> str:
    return "none" if position is None else f"attempt {position[0]}, step {position[1]}"


def affected_keys(pipeline: Pipeline) -> list[dg.AssetKey]:
    """Return the assets of a pipeline that hold what a training made, or was made from it."""
    names = [stage.name for stage in STAGES]
    return [asset_key(pipeline, stage) for stage in STAGES[names.index(_FIRST_AFFECTED) :]]


def quarantine_checks(pipeline: Pipeline, workbench: Workbench) -> dg.AssetChecksDefinition:
    """Return the checks that tell which of a pipeline's assets hold something under quarantine."""
    specs = [
        dg.AssetCheckSpec(CHECK, asset=key, description="No week of it holds an artifact under quarantine.")
        for key in affected_keys(pipeline)
    ]

    @dg.multi_asset_check(specs=specs, name=f"{pipeline.name}_not_quarantined", can_subset=True)
    def body(context: dg.AssetCheckExecutionContext) -> Iterator[dg.AssetCheckResult]:
        for check in context.selected_asset_check_keys:
            weeks = quarantined_weeks(workbench.store, check.asset_key)
            yield dg.AssetCheckResult(
                asset_key=check.asset_key,
                check_name=check.name,
                passed=not weeks,
                severity=dg.AssetCheckSeverity.ERROR,
                metadata={"quarantined": table(weeks)},
            )

    return body


def quarantined_weeks(store: "Store", key: dg.AssetKey) -> list[dict[str, Any]]:
    """Return the partitions of an asset that hold something under quarantine, with the reason."""
    standing = {mark.digest: mark for mark in store.quarantine.marks() if mark.lifted is None}
    held = store.pointers.held(asset_name(key))
    return [
        {"week": pointer.partition, "digest": pointer.digest, "reason": standing[pointer.digest].reason}
        for pointer in held
        if pointer.digest in standing
    ]


def failed_checks(incident: "Incident") -> Iterator[dg.AssetCheckEvaluation]:
    """Yield a failed check for the training asset of every pipeline that an isolated incident has tainted."""
    affected: Json = (incident.report or {}).get("affected", {})
    by_pipeline: dict[str, list[str]] = {}
    for job_id, names in sorted(affected.items()):
        by_pipeline.setdefault(names["pipeline"], []).append(job_id)
    for pipeline, job_ids in sorted(by_pipeline.items()):
        yield dg.AssetCheckEvaluation(
            asset_key=dg.AssetKey([pipeline, _FIRST_AFFECTED]),
            check_name=CHECK,
            passed=False,
            severity=dg.AssetCheckSeverity.ERROR,
            description=f"incident {incident.name} has {', '.join(job_ids)} under quarantine",
            metadata={job_id: dg.MetadataValue.url(partition_url(incident, job_id)) for job_id in job_ids},
        )


def partition_url(incident: "Incident", job_id: str) -> str:
    """Return the address of what is shown of a job of an incident."""
    return asset_url(QUARANTINE, partition_of(incident, job_id))
