"""The leakage check on generated tickets: one thread, CPU-seconds end to end from Parquet, loading and compiling apart.

Every run is a process of its own, so that peak memory is that of one check. `--reference` also runs the specification's
loop and compares the output (some 200 CPU-seconds at the default size); `--peers` runs datasketch and rensa where they
are installed, each with exact verification of its candidates, on a part of the rows.
"""

import argparse
import importlib.util
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from _measure import Figure, arguments, at_least, at_most, report
from _tickets import KINDS, write_tickets

TARGETS = {"b": 600e3, "canned": 180e3, "family": 250e3, "typographic": 400e3}
"""Training rows per CPU-second by kind."""

_THRESHOLD = 0.5
_PEER_ROWS = 20_000
_WARM_TEXTS = [
    "one two three four five six seven eight nine",
    "one two three four five",
    "\u5929\u6c14" * 6,
    "\u00dfx \u2019",
]


def main() -> None:
    """Measure what the options ask for."""
    options = _options()
    if options.worker:
        json.dump(_WORKERS[options.worker](Path(options.data), options), sys.stdout)
        return
    figures = [_cold_start()]
    for kind in options.kinds:
        with tempfile.TemporaryDirectory() as folder:
            write_tickets(Path(folder), kind, options.train, options.eval)
            figures += _figures(kind, folder, options)
    if options.grown:
        figures.append(_growth(options))
    report(figures, options.json)


def _options() -> argparse.Namespace:
    parser = arguments(__doc__ or "")
    parser.add_argument("--kinds", nargs="+", choices=list(KINDS), default=list(TARGETS))
    parser.add_argument("--train", type=int, default=200_000, help="training rows")
    parser.add_argument("--eval", type=int, default=8_000, help="eval rows")
    parser.add_argument(
        "--grown", type=int, default=0, help="training rows of the first kind to compare the cost a row with"
    )
    parser.add_argument("--reference", action="store_true", help="run the specification's loop on the same rows")
    parser.add_argument("--peers", action="store_true", help="run datasketch and rensa on a part of the rows")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    parser.add_argument("--method", default="exact", help=argparse.SUPPRESS)
    parser.add_argument("--data", help=argparse.SUPPRESS)
    return parser.parse_args()


def _figures(kind: str, folder: str, options: argparse.Namespace) -> list[Figure]:
    size = f"{kind} {options.train:,} x {options.eval:,}"
    exact, reference, minhash = (_run("check", folder, method) for method in ("exact", "reference", "minhash"))
    rate = options.train / exact["seconds"]
    target = TARGETS.get(kind)
    exact_rows, minhash_rows = ({hit[0] for hit in done["hits"]} for done in (exact, minhash))
    figures = [
        at_least(f"{size}, exact", rate, target, "rows/s") if target else Figure(f"{size}, exact", rate, "rows/s"),
        at_most(f"{size}, exact, peak memory", exact["megabytes"], 550, "MB"),
        Figure(f"{size}, eval rows found", len(exact_rows), "rows"),
        Figure(f"{size}, reference", options.train / reference["seconds"], "rows/s"),
        Figure(f"{size}, posting touches a row", reference["touches"] / options.train),
        Figure(f"{size}, verifications a row", reference["verifications"] / options.train),
        Figure(f"{size}, minhash", options.train / minhash["seconds"], "rows/s"),
        at_least(f"{size}, minhash, recall", len(minhash_rows & exact_rows) / len(exact_rows), 0.99),
        at_least(f"{size}, minhash, precision", len(minhash_rows & exact_rows) / len(minhash_rows), 1.0),
    ]
    if options.reference:
        loop = _run("loop", folder)
        figures += [
            at_least(f"{size}, specification's loop, ratio", loop["seconds"] / reference["seconds"], 200),
            at_least(f"{size}, same output as the loop", float(loop["hits"] == reference["hits"]), 1),
        ]
    if options.peers:
        figures += _peer_figures(size, folder)
    return figures


def _growth(options: argparse.Namespace) -> Figure:
    """Compare the cost of a row with that among more rows; the generator's row groups are of one size."""
    cost = []
    for rows in (options.train, options.grown):
        with tempfile.TemporaryDirectory() as folder:
            write_tickets(Path(folder), options.kinds[0], rows, options.eval)
            cost.append(_run("check", folder)["seconds"] / rows)
    return at_most(f"cost a row at {options.grown:,} rows, ratio", cost[1] / cost[0], 1.15)


def _cold_start() -> Figure:
    with tempfile.TemporaryDirectory() as folder:
        write_tickets(Path(folder), "b", 1_000, 100)
        done = _run("check", folder, environment={"NUMBA_CACHE_DIR": folder})
    return at_most("cold start: importing and compiling", done["cold"], 15, "CPU-s")


def _run(
    worker: str, folder: str, method: str = "exact", environment: Mapping[str, str] | None = None
) -> dict[str, Any]:
    command = [sys.executable, __file__, "--worker", worker, "--data", folder, "--method", method]
    variables = {**_environment(), **(environment or {})}
    done = subprocess.run(command, check=True, env=variables, stdout=subprocess.PIPE)
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def _environment() -> dict[str, str]:
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "ARROW_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
    return os.environ | threads


# --- in a process of its own ----------------------------------------------------------------------------------------


def _check(folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    from ftpipeline.steps.leakage.check import find_best
    from ftpipeline.steps.leakage.columns import read_column, read_strings
    from ftpipeline.steps.leakage.texts import from_strings

    find_best([from_strings(_WARM_TEXTS)], _WARM_TEXTS, _THRESHOLD, options.method)
    cold = time.process_time()
    evals = read_strings(folder / "eval.parquet", "text")
    findings = find_best(read_column(folder / "train.parquet", "text"), evals, _THRESHOLD, options.method)
    return {
        "cold": cold,
        "seconds": time.process_time() - cold,
        "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "hits": [[hit.eval_row, hit.score] for hit in findings.hits],
        "touches": findings.touches,
        "verifications": findings.verifications,
    }


def _loop(folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Index every training shingle, then count for each eval row how often each training row is met."""
    started = time.process_time()
    train, evals = _texts(folder)
    rows_of: dict[bytes, set[int]] = defaultdict(set)
    for number, text in enumerate(train):
        for digest in _digests(text):
            rows_of[digest].add(number)
    hits = []
    for row, text in enumerate(evals):
        wanted = _digests(text)
        met: Counter[int] = Counter()
        for digest in wanted & rows_of.keys():
            met.update(rows_of[digest])
        share = max(met.values(), default=0) / max(len(wanted), 1)
        if share >= _THRESHOLD:
            hits.append([row, round(share, 2)])
    return {"seconds": time.process_time() - started, "hits": hits}


def _peer(folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Index the eval rows in a peer's LSH, and verify what it proposes."""
    train, evals = _texts(folder)
    started = time.process_time()
    wanted = [_shingles(text) for text in evals]
    query = _PEERS[options.method](wanted)
    proposed: set[int] = set()
    verified: set[int] = set()
    for text in train[:_PEER_ROWS]:
        held = _shingles(text)
        candidates = query(held) if held else ()
        proposed.update(candidates)
        verified.update(row for row in candidates if len(wanted[row] & held) >= _THRESHOLD * len(wanted[row]))
    return {"seconds": time.process_time() - started, "proposed": sorted(proposed), "verified": sorted(verified)}


def _truth(folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    from ftpipeline.steps.leakage.check import find_best
    from ftpipeline.steps.leakage.texts import batches

    train, evals = _texts(folder)
    hits = find_best(batches(train[:_PEER_ROWS]), evals, _THRESHOLD, "reference").hits
    return {"hits": [hit.eval_row for hit in hits]}


def _datasketch(wanted: Sequence[set[str]]) -> Callable[[set[str]], Sequence[int]]:
    from datasketch import MinHash, MinHashLSH

    def signature(shingles: set[str]) -> Any:
        minhash = MinHash(num_perm=128)
        minhash.update_batch([shingle.encode() for shingle in shingles])
        return minhash

    index = MinHashLSH(threshold=_THRESHOLD, num_perm=128)
    for row, shingles in enumerate(wanted):
        if shingles:
            index.insert(row, signature(shingles))
    return lambda held: index.query(signature(held))


def _rensa(wanted: Sequence[set[str]]) -> Callable[[set[str]], Sequence[int]]:
    from rensa import RMinHash, RMinHashLSH

    def signature(shingles: set[str]) -> Any:
        minhash = RMinHash(num_perm=128, seed=1)
        minhash.update(list(shingles))
        return minhash

    index = RMinHashLSH(threshold=_THRESHOLD, num_perm=128, num_bands=32)
    for row, shingles in enumerate(wanted):
        if shingles:
            index.insert(row, signature(shingles))
    return lambda held: index.query(signature(held))


def _peer_figures(size: str, folder: str) -> list[Figure]:
    figures = []
    truth = set(_run("truth", folder)["hits"])
    for name in (name for name in _PEERS if importlib.util.find_spec(name)):
        done = _run("peer", folder, name)
        proposed, verified = set(done["proposed"]), set(done["verified"])
        figures += [
            Figure(f"{size}, {name}, first {_PEER_ROWS:,} rows", _PEER_ROWS / done["seconds"], "rows/s"),
            Figure(f"{size}, {name}, precision of its proposals", len(proposed & truth) / max(len(proposed), 1)),
            Figure(f"{size}, {name}, recall when verified", len(verified & truth) / max(len(truth), 1)),
        ]
    return figures


def _texts(folder: Path) -> tuple[list[str], list[str]]:
    from pyarrow import parquet

    train, evals = (parquet.read_table(folder / f"{side}.parquet")["text"].to_pylist() for side in ("train", "eval"))
    return train, evals


def _shingles(text: str) -> set[str]:
    tokens = re.findall(r"\w+", text.lower())
    return {" ".join(tokens[i : i + 8]) for i in range(len(tokens) - 7)}


def _digests(text: str) -> set[bytes]:
    return {blake2b(shingle.encode(), digest_size=8).digest() for shingle in _shingles(text)}


_PEERS = {"datasketch": _datasketch, "rensa": _rensa}
_WORKERS = {"check": _check, "loop": _loop, "peer": _peer, "truth": _truth}


if __name__ == "__main__":
    main()
