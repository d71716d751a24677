"""Loading the code location, against importing Dagster and SQLAlchemy alone: whole processes, CPU-seconds, in turn."""

import sys
from pathlib import Path

from _measure import Figure, arguments, at_most, ratio, report

_PIPELINE = Path(__file__).resolve().parents[1] / "ftpipeline" / "example" / "pipeline.yaml"
_BARE = [sys.executable, "-c", "import dagster, sqlalchemy"]
_LOADED = [sys.executable, "-c", "import ftpipeline.definitions"]


def main() -> None:
    """Measure both ways in which pipelines are named."""
    options = arguments(__doc__ or "").parse_args()
    named, seconds, bare = ratio(_LOADED, _BARE, environment={"FTPIPELINE_PIPELINES": str(_PIPELINE)})
    component, _, _ = ratio(_LOADED, _BARE, environment={"FTPIPELINE_PIPELINES": ""})
    report(
        [
            at_most("pipelines from FTPIPELINE_PIPELINES, ratio", named, 1.2),
            Figure("pipelines from the defs folder (Dagster's own loader), ratio", component),
            Figure("loading the code location", seconds, "CPU-s"),
            Figure("importing dagster and sqlalchemy", bare, "CPU-s"),
        ],
        options.json,
    )


if __name__ == "__main__":
    main()
