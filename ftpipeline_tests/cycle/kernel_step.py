"""Steps that look for leaks with the compiled engine, as a large split does."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ftpipeline.records import Facts, step
from ftpipeline.steps.leakage.engine import Engine
from ftpipeline.steps.leakage.hits import needed_for
from ftpipeline.steps.leakage.jit import KERNELS
from ftpipeline.steps.leakage.texts import from_strings
from ftpipeline.steps.tables import write_record


@step("search", code_version="1", distributions=["numba"], caches=[KERNELS])
def search(inputs: Mapping[str, Path], params: Mapping[str, Any], out: Path) -> Facts:
    """Find one text in another; say how many kernels had to be compiled."""
    from numba.core import event

    text = "one two three four five six seven eight nine"
    with event.install_recorder("numba:compile") as recorder:
        engine = Engine([text, "one two three four five"], needed_for(0.5), every=True)
        engine.feed(from_strings([f"{text} and {params['number']}"]))
        found = sorted((rule, row) for rule, row, _, _ in engine.pairs())
    write_record(out / "found.json", {"found": found, "compiled": len(recorder.buffer)})
    return {}


@step("undeclared", code_version="1")
def undeclared(inputs: Mapping[str, Path], params: Mapping[str, Any], out: Path) -> Facts:
    """Say which caches there are."""
    write_record(out / "found.json", {"caches": [name for name in os.environ if name.startswith("FTPIPELINE_CACHE_")]})
    return {}
