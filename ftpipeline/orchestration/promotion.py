"""Moves of the registry as assets that a person materialises, with artifact, generation and reason in the launchpad.

They stand in a group of their own: what a person decides is not part of a group that is materialised as a whole.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

import dagster as dg
from pydantic import Field

from ftpipeline.cycle.stages import BY_NAME
from ftpipeline.digest import Digest
from ftpipeline.errors import FtpipelineError
from ftpipeline.orchestration.assets import asset_key
from ftpipeline.orchestration.failures import as_failure
from ftpipeline.orchestration.standing import standing
from ftpipeline.orchestration.workbench import Workbench
from ftpipeline.pipeline import Pipeline

if TYPE_CHECKING:
    from ftpipeline.registry.registry import Registry

_ARTIFACT = Field(description="Digest of the registered artifact, or 12 or more hexadecimal digits of it.")
_EXPECT = Field(description="Generation of the stage as you saw it; 0 if it was never set.")
_REASON = Field(description="Why, in a person's words; kept for ever.")
_ACTOR = Field(description="Who moves it: recorded as stated, not authenticated.")


class Promotion(dg.Config):
    """Which entry goes where."""

    artifact: str = _ARTIFACT
    to: str = Field(description="shadow, canary or production.")
    expect: int = _EXPECT
    reason: str = _REASON
    actor: str = _ACTOR


class Rollback(dg.Config):
    """Back to the production before this one."""

    expect: int = _EXPECT
    reason: str = _REASON
    actor: str = _ACTOR


class Rejection(dg.Config):
    """Which entry is rejected for good."""

    artifact: str = _ARTIFACT
    reason: str = _REASON
    actor: str = _ACTOR


def release_group(pipeline: Pipeline) -> str:
    """Return the group of the assets that a person decides with."""
    return f"{pipeline.name}_release"


def release_assets(pipeline: Pipeline, workbench: Workbench) -> list[dg.AssetsDefinition]:
    """Return the assets `promotion`, `rollback` and `rejection` of a pipeline."""
    model = asset_key(pipeline, BY_NAME["register"])
    name, group = pipeline.name, release_group(pipeline)

    def key(move: str) -> dg.AssetKey:
        return dg.AssetKey([name, move])

    @dg.asset(key=key("promotion"), deps=[model], group_name=group, kinds={"python"})
    def promotion(context: dg.AssetExecutionContext, config: Promotion):  # type: ignore[no-untyped-def]
        """Moves an entry one stage on, or a first release to production."""
        return _moved(
            context,
            pipeline,
            workbench,
            lambda registry: (
                registry.promote(
                    name, config.artifact, config.to, expect=config.expect, reason=config.reason, actor=config.actor
                ).digest
            ),
        )

    @dg.asset(key=key("rollback"), deps=[model], group_name=group, kinds={"python"})
    def rollback(context: dg.AssetExecutionContext, config: Rollback):  # type: ignore[no-untyped-def]
        """Returns to the production before this one."""
        return _moved(
            context,
            pipeline,
            workbench,
            lambda registry: (
                registry.rollback(name, expect=config.expect, reason=config.reason, actor=config.actor).digest
            ),
        )

    @dg.asset(key=key("rejection"), deps=[model], group_name=group, kinds={"python"})
    def rejection(context: dg.AssetExecutionContext, config: Rejection):  # type: ignore[no-untyped-def]
        """Rejects a candidate, shadow or canary for good."""
        return _moved(
            context,
            pipeline,
            workbench,
            lambda registry: registry.reject(name, config.artifact, config.reason, config.actor).artifact,
        )

    return [promotion, rollback, rejection]


def _moved(
    context: dg.AssetExecutionContext, pipeline: Pipeline, workbench: Workbench, move: Callable[["Registry"], Digest]
) -> dg.MaterializeResult[None]:
    """Make a move and show where everything stands since, also on the registered model itself.

    Raises:
        Failure: the registry refuses the move; nothing was moved.
    """
    from ftpipeline.registry.registry import Registry  # with the database library: not needed to load a code location

    registry = Registry.of_store(workbench.store)
    try:
        moved = move(registry)
        entry, tables = registry.entry(pipeline.name, moved), standing(registry, pipeline.name)
    except FtpipelineError as error:
        raise as_failure(error) from error
    model = asset_key(pipeline, BY_NAME["register"])
    context.log_event(dg.AssetObservation(model, metadata=tables, partition=entry.week))
    shown = {"artifact": dg.MetadataValue.text(moved), "stage": dg.MetadataValue.text(str(entry.stage)), **tables}
    return dg.MaterializeResult(metadata=shown, data_version=dg.DataVersion(moved))
