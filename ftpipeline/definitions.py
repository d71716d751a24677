"""The composition root that workspace.yaml loads.

The pipelines are those named in FTPIPELINE_PIPELINES. Where it is empty they are the components under
`ftpipeline/defs`, and from an installed wheel, which is no dg project, the packaged example itself.
"""

from pathlib import Path

import dagster as dg

from ftpipeline import pipeline as pipelines
from ftpipeline.orchestration.build import build_definitions

PACKAGE = Path(__file__).parent


def load_definitions() -> dg.Definitions:
    """Return the definitions of every pipeline of this code location."""
    files = pipelines.from_environment()
    if not files and (PACKAGE.parent / "pyproject.toml").is_file():
        return dg.load_from_defs_folder(path_within_project=PACKAGE)
    files = files or (PACKAGE / "example" / "pipeline.yaml",)
    return dg.Definitions.merge(*(build_definitions(pipelines.load(file)) for file in files))


defs = load_definitions()
