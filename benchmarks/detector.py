"""The detector beside published rules: on simulated curves, on curves of the same kinds, and on real healthy ones.

A false alarm is a rising edge on a healthy step; edges closer than 100 steps count once. An alarm at or after the onset
detects. `--curves` names a folder with `curves.parquet` and `labels.csv`, `--real` one of CSV files and `META.json`.
"""

import json
import math
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby, pairwise
from pathlib import Path

import numpy as np
from _measure import Figure, arguments, at_least, at_most, report

_ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(_ROOT))

from ftpipeline.guard.config import Config, Envelope  # noqa: E402
from ftpipeline.guard.detect import observe  # noqa: E402
from ftpipeline.guard.metrics_file import read_metrics  # noqa: E402
from ftpipeline.guard.points import Point  # noqa: E402
from ftpipeline.guard.state import State  # noqa: E402
from ftpipeline.guard.verdicts import Stage  # noqa: E402
from ftpipeline_tests.guard.curves import Curve, Kind, curve, fleet, healthy_kl  # noqa: E402

_SHARED = _ROOT.parent / "shared" / "curves"
_SEED = 20261129
_APART = 100  # steps within which two edges are one alarm
_BESIDE = 20  # simulated curves of each kind that the loss does not show

Rule = Callable[[Sequence[Point]], list[int]]
"""Steps at which an alarm begins."""


@dataclass
class Score:
    """How a rule did."""

    healthy_steps: int = 0
    false_alarms: int = 0
    diverging: int = 0
    delays: list[int] = field(default_factory=list)

    def add(self, edges: Iterable[int], onset: int | None, last: int) -> None:
        """Count the alarms on one curve."""
        steps = sorted(edges)
        healthy = last if onset is None else onset - 1
        self.healthy_steps += healthy
        before: int | None = None
        for step in (step for step in steps if step <= healthy):
            self.false_alarms += before is None or step - before >= _APART
            before = step
        if onset is not None:
            self.diverging += 1
            self.delays += [step - onset for step in steps if step >= onset][:1]

    @property
    def detected(self) -> float:
        """Share of the diverging curves on which the rule alarmed in time."""
        return len(self.delays) / self.diverging if self.diverging else math.nan

    @property
    def rate(self) -> float:
        """False alarms per 10,000 healthy steps."""
        return 1e4 * self.false_alarms / self.healthy_steps


def ours(stage: Stage, config: Config) -> Rule:
    """Return the detector as a rule: what it says at `stage` or beyond."""

    def edges(points: Sequence[Point]) -> list[int]:
        _, evidence = observe(State(), points, config)
        return [item.step for item in evidence if stage is Stage.SUSPECT or item.level is Stage.CONFIRMED]

    return edges


def mean_ratio(points: Sequence[Point]) -> list[int]:
    """Five losses in a row of at least twice the mean of the last hundred."""
    losses = np.array([math.nan if point.loss is None else point.loss for point in points])
    sums = np.concatenate([[0.0], np.cumsum(losses)])
    mean = np.full(len(losses), math.nan)
    mean[100:] = (sums[100:-1] - sums[:-101]) / 100
    high = losses >= 2 * mean
    runs = np.convolve(high, np.ones(5))[: len(high)] >= 5
    return _edges(points, runs.tolist())


def z_score(points: Sequence[Point]) -> list[int]:
    """A loss more than 2.5 standard deviations above an exponential mean, both with a memory of 50."""
    mean = variance = 0.0
    high = []
    for number, point in enumerate(points):
        loss = math.nan if point.loss is None else point.loss
        high.append(number > 100 and loss > mean + 2.5 * math.sqrt(variance))
        weight = 1 / min(number + 1, 50)
        variance += weight * ((loss - mean) ** 2 - variance)
        mean += weight * (loss - mean)
    return _edges(points, high)


def page_hinkley(points: Sequence[Point]) -> list[int]:
    """The sum of losses above their running mean, in units of the noise of the first hundred, rises by 50, or NaN."""
    losses = [math.nan if point.loss is None else point.loss for point in points]
    noise = statistics.median(abs(b - a) for a, b in pairwise(losses[:100])) or 1e-9
    mean = total = least = 0.0
    high = []
    for number, loss in enumerate(losses):
        mean += (loss - mean) / min(number + 1, 300)
        total += (loss - mean) / noise - 0.2
        least = min(least, total)
        high.append(number > 100 and not total - least <= 50)
    return _edges(points, high)


def _edges(points: Sequence[Point], high: Sequence[bool]) -> list[int]:
    return [point.step for number, point in enumerate(points) if high[number] and not (number and high[number - 1])]


def stored(folder: Path) -> Iterator[Curve]:
    """Yield labelled curves of a folder."""
    import duckdb

    rows = duckdb.execute(
        "SELECT curve, onset_step, step, loss, grad_norm, val_loss "
        "FROM read_parquet($curves) JOIN read_csv($labels) USING (curve) ORDER BY curve, step",
        {"curves": str(folder / "curves.parquet"), "labels": str(folder / "labels.csv")},
    ).fetchall()
    for (name, onset), measured in groupby(rows, key=lambda row: (row[0], row[1])):
        points = [
            Point(step, loss=_measured(loss), grad_norm=_measured(norm), val_loss=val)
            for _, _, step, loss, norm, val in measured
        ]
        yield Curve(str(name), Kind.OK, None if onset is None else int(onset), tuple(points))


def _measured(value: float | None) -> float:
    """Return a number of every step; the file has no other form for one that was not finite."""
    return math.nan if value is None else value


def judge(curves: Sequence[Curve], rules: dict[str, Rule]) -> dict[str, Score]:
    """Return how each rule did on the curves."""
    scores = {name: Score() for name in rules}
    for item in curves:
        for name, rule in rules.items():
            scores[name].add(rule(item.points), item.onset, item.points[-1].step)
    return scores


def figures(curves: Sequence[Curve], where: str) -> list[Figure]:
    """Return the figures of the detector and its peers on curves of loss and validation."""
    config = Config()
    rules: dict[str, Rule] = {
        "SUSPECT": ours(Stage.SUSPECT, config),
        "CONFIRMED": ours(Stage.CONFIRMED, config),
        "mean ratio": mean_ratio,
        "z score": z_score,
        "Page-Hinkley": page_hinkley,
    }
    scores = judge(curves, rules)
    limits = {"SUSPECT": (0.97, 2.0), "CONFIRMED": (0.94, 0.05)}
    found = []
    for name, score in scores.items():
        share, rate = f"{where}: {name}, detected", f"{where}: {name}, false alarms per 10 k"
        least, most = limits.get(name, (None, None))
        found += [
            Figure(share, score.detected) if least is None else at_least(share, score.detected, least),
            Figure(rate, score.rate) if most is None else at_most(rate, score.rate, most),
            Figure(f"{where}: {name}, median delay", statistics.median(score.delays or [math.nan]), "steps"),
        ]
    return found


def beside_the_loss() -> list[Figure]:
    """Return the figures on what the loss does not show: divergence from the reference, and forgetting."""
    random = np.random.default_rng(_SEED)
    steps = np.arange(1.0, 3001)
    seeds = [dict(enumerate(healthy_kl(random, steps).tolist(), 1)) for _ in range(5)]
    config = Config(kl_envelope=Envelope.of_runs(seeds))
    rules: dict[str, Rule] = {"CONFIRMED": ours(Stage.CONFIRMED, config), "mean ratio": mean_ratio}
    found = []
    for kind in (Kind.KL, Kind.FORGETTING):
        curves = [curve(random, item, "") for item in (kind, Kind.OK) for _ in range(_BESIDE)]
        for name, score in judge(curves, rules).items():
            found += [
                Figure(f"simulated {kind}: {name}, detected", score.detected),
                Figure(f"simulated {kind}: {name}, false alarms per 10 k", score.rate),
            ]
    return found


def real(folder: Path) -> list[Figure]:
    """Return the alarms on real curves that are labelled healthy."""
    labels = json.loads((folder / "META.json").read_text("utf-8"))
    healthy = [name for name, label in labels.items() if label["label"] == "healthy"]
    alarms, steps = 0, 0
    for name in healthy:
        points = read_metrics(folder / f"{name}.csv").points
        _, evidence = observe(State(), points)
        alarms, steps = alarms + len(evidence), steps + len(points)
    return [at_most(f"{len(healthy)} real healthy curves, {steps:,} steps: alarms", alarms, 0)]


def speed() -> Figure:
    """Return how many points are looked at a second."""
    points = [point for item in fleet(1, 5) for point in item.points]
    start = time.perf_counter()
    observe(State(), points)
    return Figure("points looked at", len(points) / (time.perf_counter() - start), "1/s")


def main() -> None:
    """Judge the detector and its peers."""
    parser = arguments(__doc__ or "")
    parser.add_argument("--curves", type=Path, default=_SHARED / "synthetic")
    parser.add_argument("--real", type=Path, default=_SHARED)
    parser.add_argument("--count", type=int, default=300, help="simulated curves")
    options = parser.parse_args()
    found = figures(list(fleet(_SEED, options.count)), "simulated")
    found += beside_the_loss()
    if (options.curves / "curves.parquet").exists():
        found += figures(list(stored(options.curves)), "given")
    if (options.real / "META.json").exists():
        found += real(options.real)
    report([*found, speed()], options.json)


if __name__ == "__main__":
    main()
