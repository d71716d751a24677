"""The IO manager: what passes between assets is a digest, which run holds which is a row (contract C6)."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import dagster as dg

from ftpipeline.errors import FtpipelineError, UnknownNameError
from ftpipeline.orchestration.failures import as_failure
from ftpipeline.orchestration.workbench import Workbench
from ftpipeline.records import ArtifactRef

if TYPE_CHECKING:
    from ftpipeline.store.pointers import Pointer


class ArtifactIOManager(dg.IOManager):
    """Writes run-scoped pointers and hands out lazy references; bytes are read by the step that is missed."""

    def __init__(self, workbench: Workbench) -> None:
        self._workbench = workbench

    def handle_output(self, context: dg.OutputContext, obj: ArtifactRef) -> None:
        """Point this run's asset partition at the artifact."""
        asset, partition = _place(context)
        self.point(asset, partition, context.run_id, context.step_context.previous_attempt_count, obj)

    def load_input(self, context: dg.InputContext) -> ArtifactRef:
        """Return what this run wrote, else what the runs it re-executes wrote, else the latest committed.

        Raises:
            Failure: nothing was ever written for this asset partition, or what was written is under quarantine.
        """
        asset, partition = _place(context)
        run = context.step_context.dagster_run
        runs = [run.run_id, *parent_runs(context.instance, run.parent_run_id)]
        try:
            pointer = self.find(asset, partition, runs)
        except FtpipelineError as error:
            raise as_failure(error) from error
        if pointer.run_id not in runs:
            context.log.info(f"{asset}: taking the latest committed {pointer.digest}, written by run {pointer.run_id}")
        return ArtifactRef(pointer.digest)

    def point(self, asset: str, partition: str | None, run_id: str, attempt: int, ref: ArtifactRef) -> None:
        """Write that an attempt of a run made an asset partition."""
        self._workbench.store.pointers.put(asset, partition, run_id, attempt, ref.digest)

    def find(self, asset: str, partition: str | None, runs: Sequence[str]) -> "Pointer":
        """Return what a run reads.

        Args:
            asset: the asset's name.
            partition: partition key; None for an unpartitioned asset.
            runs: the run, then those that it re-executes, nearest first.

        Raises:
            UnknownNameError: nothing was ever written.
            QuarantinedError: what was written is under quarantine.
        """
        pointer = self._workbench.store.pointers.usable(asset, partition, runs)
        if pointer is None:
            where = f" for {partition}" if partition else ""
            raise UnknownNameError(f"asset {asset} was never materialised{where}; materialise it first")
        return pointer


def _place(context: dg.InputContext | dg.OutputContext) -> tuple[str, str | None]:
    partition = context.asset_partition_key if context.has_asset_partitions else None
    return asset_name(context.asset_key), partition


def asset_name(key: dg.AssetKey) -> str:
    """Return an asset key as the text that pointers are kept under."""
    return key.to_user_string()


def parent_runs(instance: dg.DagsterInstance, run_id: str | None) -> tuple[str, ...]:
    """Return the chain of runs that a re-execution descends from, nearest first."""
    chain: list[str] = []
    while run_id is not None and run_id not in chain:
        chain.append(run_id)
        run = instance.get_run_by_id(run_id)
        run_id = run.parent_run_id if run is not None else None
    return tuple(chain)
