"""Putting 1 GiB into the local store, against `cp` and `sha256sum` of the same bytes: wall time, in turn.

The put copies, hashes and waits until the disk has the bytes; `cp` and `sha256sum` do not wait.
"""

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from _measure import Figure, arguments, at_most, report

_ROUNDS = 3
_MIB = 1 << 20
_PUT = """
import resource, sys, time
from pathlib import Path
from ftpipeline.store.blobs import LocalBlobs
blobs = LocalBlobs(Path(sys.argv[2]))
blobs.put_bytes(b"warm")
before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.perf_counter()
blobs.put_file(Path(sys.argv[1]))
print(time.perf_counter() - start, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)
"""


def main() -> None:
    """Measure time and peak memory."""
    parser = arguments(__doc__ or "")
    parser.add_argument("--mib", type=int, default=1024, help="size of the file in MiB")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "source"
        _write(source, options.mib)
        rounds = [(*_put(source), _copy_and_hash(source)) for _ in range(_ROUNDS)]
    report(
        [
            at_most("put / (cp + sha256sum), ratio", statistics.median(put / base for put, _, base in rounds), 1.3),
            at_most("peak memory of a put above the baseline", max(memory for _, memory, _ in rounds), 100, "MiB"),
            Figure(f"put of {options.mib} MiB", statistics.median(put for put, _, _ in rounds), "s"),
            Figure("cp + sha256sum", statistics.median(base for _, _, base in rounds), "s"),
        ],
        options.json,
    )


def _write(path: Path, mib: int) -> None:
    with path.open("wb") as file:
        for _ in range(mib):
            file.write(os.urandom(_MIB))


def _put(source: Path) -> tuple[float, float]:
    """Return the seconds of one put into an empty store, and the MiB by which it raised the process's peak memory."""
    root = source.with_name("store")
    command = [sys.executable, "-c", _PUT, str(source), str(root)]
    answer = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    shutil.rmtree(root)
    seconds, memory = answer.split()
    return float(seconds), float(memory)


def _copy_and_hash(source: Path) -> float:
    copy = source.with_name("copy")
    start = time.perf_counter()
    subprocess.run(["cp", str(source), str(copy)], check=True)
    subprocess.run(["sha256sum", str(source)], check=True, stdout=subprocess.DEVNULL)
    seconds = time.perf_counter() - start
    copy.unlink()
    return seconds


if __name__ == "__main__":
    main()
