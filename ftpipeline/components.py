"""The Dagster component: `type: ftpipeline.components.FineTunePipeline` in a defs.yaml."""

from pathlib import Path

import dagster as dg

from ftpipeline import pipeline as pipelines
from ftpipeline.errors import FtpipelineError
from ftpipeline.orchestration.build import build_definitions


class FineTunePipeline(dg.Component, dg.Model, dg.Resolvable):
    """A weekly fine-tuning pipeline: its assets, checks, job and schedule, from one pipeline file."""

    pipeline: str
    """Path of the pipeline file, relative to the folder of the defs.yaml."""

    def build_defs(self, context: dg.ComponentLoadContext) -> dg.Definitions:
        """Build the definitions.

        Raises:
            DagsterInvalidDefinitionError: the pipeline file cannot be used; the message names every fault.
        """
        try:
            return build_definitions(pipelines.load(Path(context.path) / self.pipeline))
        except FtpipelineError as error:
            raise dg.DagsterInvalidDefinitionError(str(error)) from error
