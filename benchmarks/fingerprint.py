"""Fingerprinting a step that reaches 200 generated modules, cold and with a warm cache: CPU-ms in fresh processes."""

import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from _measure import Figure, arguments, at_most, report

from ftpipeline_tests.engine.fingerprint.projects import Project, large_project

_MODULES = 200
_ROUNDS = 7
_PROGRAM = """
import json, sys, time
from pathlib import Path
import pkg.step
from ftpipeline.engine.fingerprint import code_fingerprint, environment_fingerprint, require_loaded_equals_source
cache = Path(sys.argv[1])
times = [time.process_time()]
code = code_fingerprint([pkg.step.run], cache=cache)
times.append(time.process_time())
code_fingerprint([pkg.step.run], cache=cache)
times.append(time.process_time())
environment_fingerprint(["dagster", "pandas"], cache=cache)
times.append(time.process_time())
require_loaded_equals_source(code.module_names, cache=cache)
times.append(time.process_time())
print(json.dumps([1000 * (end - start) for start, end in zip(times, times[1:])]))
"""


def main() -> None:
    """Measure cold and warm processes in turn."""
    options = arguments(__doc__ or "").parse_args()
    with tempfile.TemporaryDirectory() as folder:
        project = Project(Path(folder) / "project")
        project.write(large_project(_MODULES))
        _measure(project, Path(folder) / "compiled")
        caches = [Path(folder) / f"cache{number}" for number in range(_ROUNDS)]
        pairs = [(_measure(project, cache), _measure(project, cache)) for cache in caches]
    cold, warm = (
        [statistics.median(figures) for figures in zip(*side, strict=True)] for side in zip(*pairs, strict=True)
    )
    report(
        [
            at_most(f"code, {_MODULES} modules, no cache yet, written", cold[0], 400, "CPU-ms"),
            at_most(f"code, {_MODULES} modules, cache of another process", warm[0], 15, "CPU-ms"),
            at_most(f"code, {_MODULES} modules, again in one process", warm[1], 15, "CPU-ms"),
            Figure("environment of dagster and pandas, no cache yet", cold[2], "CPU-ms"),
            Figure("environment of dagster and pandas, cache", warm[2], "CPU-ms"),
            Figure("loaded code compared with its source, no cache yet", cold[3], "CPU-ms"),
            Figure("loaded code compared with its source, cache", warm[3], "CPU-ms"),
        ],
        options.json,
    )


def _measure(project: Project, cache: Path) -> list[float]:
    """Return the CPU-ms of each part in a process of its own."""
    root = Path(__file__).resolve().parents[1]
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            f"import sys; sys.path[:0] = {[str(project.root), str(root)]!r}\n{_PROGRAM}",
            str(cache),
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    figures: list[float] = json.loads(done.stdout)
    return figures


if __name__ == "__main__":
    main()
