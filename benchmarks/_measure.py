"""What the benchmarks share: processes run in turn, in CPU-seconds, and a report that people and scripts read."""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class Figure:
    """One measured figure.

    Attributes:
        name: what was measured.
        value: the figure.
        unit: its unit; a ratio has none.
        target: what it should reach, in words; empty where it is only reported.
        met: whether it does; None where there is no target.
    """

    name: str
    value: float
    unit: str = ""
    target: str = ""
    met: bool | None = None


def at_most(name: str, value: float, limit: float, unit: str = "") -> Figure:
    """Return a figure that should not exceed `limit`."""
    return Figure(name, value, unit, f"<= {limit:g}", value <= limit)


def at_least(name: str, value: float, limit: float, unit: str = "") -> Figure:
    """Return a figure that should reach `limit`."""
    return Figure(name, value, unit, f">= {limit:g}", value >= limit)


def cpu_seconds(command: Sequence[str], environment: Mapping[str, str] | None = None) -> float:
    """Run a command to its end and return the CPU time of it and its children; its output is thrown away."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = {**os.environ, **(environment or {})}
    subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def ratio(
    one: Sequence[str], other: Sequence[str], *, rounds: int = 7, environment: Mapping[str, str] | None = None
) -> tuple[float, float, float]:
    """Return the median ratio of two commands run in turn, and the median CPU-seconds of each."""
    cpu_seconds(one, environment)
    cpu_seconds(other, environment)
    pairs = [(cpu_seconds(one, environment), cpu_seconds(other, environment)) for _ in range(rounds)]
    medians = [statistics.median(pair[side] for pair in pairs) for side in (0, 1)]
    return statistics.median(a / b for a, b in pairs), medians[0], medians[1]


def arguments(description: str) -> argparse.ArgumentParser:
    """Return a parser with the options every benchmark has."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    return parser


def report(figures: Sequence[Figure], as_json: bool) -> None:
    """Print the figures for people, or as one JSON document."""
    if as_json:
        json.dump({"figures": [asdict(figure) for figure in figures]}, sys.stdout, indent=2)
        sys.stdout.write("\n")
        return
    for figure in figures:
        verdict = "" if figure.met is None else f"  target {figure.target}: {'met' if figure.met else 'NOT MET'}"
        print(f"{figure.name:<56} {figure.value:12.4g} {figure.unit:<8}{verdict}")
