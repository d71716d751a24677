"""A simulator of training curves whose onset of divergence is known.

In all of them: decay, warm-up, stairs at the epochs, heavy-tailed autocorrelated noise, single bad batches.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from ftpipeline.guard.points import Point

Array = NDArray[np.float64]

VALIDATE_EVERY = 50
PROBE_EVERY = 25
_FORGETTING = 0.25  # how far the evaluation score of a job that forgets falls, of at most 1


class Kind(StrEnum):
    """What happens to a simulated job."""

    OK = "ok"
    BENIGN = "benign"
    """One to three spikes that recover."""
    JUMP = "jump"
    RAMP = "ramp"
    DRIFT = "drift"
    EXPLODE = "explode"
    NAN = "nan"
    VALIDATION = "validation"
    """Validation loss rises while the training loss falls."""
    KL = "kl"
    """The model moves away from the reference faster than healthy seeds do, while its loss looks healthy."""
    FORGETTING = "forgetting"
    """An evaluation score falls, while the losses look healthy."""


HEALTHY = (Kind.OK, Kind.BENIGN)
_SHARES = {
    Kind.OK: 31,
    Kind.BENIGN: 21,
    Kind.JUMP: 11,
    Kind.RAMP: 11,
    Kind.DRIFT: 8,
    Kind.EXPLODE: 7,
    Kind.NAN: 6,
    Kind.VALIDATION: 5,
}


@dataclass(frozen=True)
class Curve:
    """A simulated job; `onset` is the step at which its divergence begins, None for a healthy one."""

    name: str
    kind: Kind
    onset: int | None
    points: tuple[Point, ...]


def fleet(seed: int, count: int) -> Iterator[Curve]:
    """Yield curves of all loss and validation kinds, healthy ones about as often as diverging ones."""
    random = np.random.default_rng(seed)
    kinds, shares = list(_SHARES), np.array(list(_SHARES.values()), float)
    for number in range(count):
        kind = kinds[random.choice(len(kinds), p=shares / shares.sum())]
        yield curve(random, kind, f"{seed}/{number}")


def curve(random: Generator, kind: Kind, name: str = "") -> Curve:
    """Return one curve of 800 to 3,000 steps, every step logged."""
    steps = int(random.integers(800, 3000))
    onset = int(random.integers(300, int(0.8 * steps)))
    step = np.arange(1.0, steps + 1)
    base = _base(random, step)
    loss = base + _noise(random, steps) * np.maximum(base, 0.02)
    norm = np.exp(random.normal(np.log(random.uniform(0.2, 2)), 0.25, steps))
    bad = random.random(steps) < 0.0015
    loss[bad] *= random.uniform(1.5, 5, bad.sum())
    validation = base * (1 + random.uniform(0, 0.1))
    if kind is Kind.BENIGN:
        _add_spikes(random, step, loss, norm)
    elif kind not in HEALTHY:
        _diverge(random, kind, onset, step, base[onset - 1], loss, norm, validation)
    validation = validation + random.normal(0, 0.006, steps) * np.maximum(base, 0.05)
    kl = healthy_kl(random, step) * (random.uniform(3, 8) if kind is Kind.KL else 1)
    score = np.minimum(0.9, 0.5 + 0.4 * step / 400) + random.normal(0, 0.005, steps)
    if kind is Kind.FORGETTING:
        score -= _FORGETTING * np.clip((step - onset) / 200, 0, 1)
    start = {Kind.OK: None, Kind.BENIGN: None, Kind.KL: 1}.get(kind, onset)
    return Curve(name, kind, start, _points(step, loss, norm, validation, kl, score))


def healthy_kl(random: Generator, step: Array) -> Array:
    """Return the divergence of a healthy seed from the reference, nats per token, by step."""
    rise = 0.08 * (1 - np.exp(-step / 90))
    return np.asarray(rise * np.exp(random.normal(0, 0.1)) * np.exp(random.normal(0, 0.05, len(step))))


def _base(random: Generator, step: Array) -> Array:
    """Return what the loss would be without noise: warm-up, decay to a floor, a stair at each epoch."""
    top, floor, pace = random.uniform(1.5, 4), random.uniform(0, 1.8), random.uniform(80, 700)
    base = floor + (top - floor) * np.exp(-step / pace) - random.uniform(0, 0.0003) * step
    warm_up = np.clip(1 - step / random.integers(10, 120), 0, 1)
    base += random.uniform(-0.1, 0.4) * warm_up * top / 2
    base *= (1 - random.uniform(0, 0.04)) ** (step // random.integers(150, 900))
    return np.asarray(np.maximum(base, random.uniform(0.001, 0.05)))


def _noise(random: Generator, steps: int) -> Array:
    """Return relative noise of 1 to 15 %: Student's t, each step remembering up to 60 % of the one before."""
    memory = random.uniform(0, 0.6)
    shocks = random.standard_t(random.uniform(3, 8), steps) * np.sqrt(1 - memory**2)
    noise: Array = np.empty(steps)
    last = 0.0
    for number, shock in enumerate(shocks):
        noise[number] = last = memory * last + shock
    return noise * float(np.exp(random.uniform(np.log(0.01), np.log(0.15))))


def _add_spikes(random: Generator, step: Array, loss: Array, norm: Array) -> None:
    for _ in range(int(random.integers(1, 4))):
        start = int(random.integers(150, len(step) - 100))
        decay = np.exp(-(step[start:] - step[start]) / random.uniform(2, 14))
        loss[start:] += random.uniform(0.4, 4) * decay
        norm[start:] *= 1 + random.uniform(5, 50) * decay


def _diverge(
    random: Generator,
    kind: Kind,
    onset: int,
    step: Array,
    level: float,
    loss: Array,
    norm: Array,
    validation: Array,
) -> None:
    """Change the curve from `onset` on; `level` is the noiseless loss just before."""
    after = np.clip(step - onset, 0, None)
    rise: Array = np.zeros(len(step))
    match kind:
        case Kind.JUMP:
            rise = random.uniform(0.5, 4) * (step >= onset).astype(float)
        case Kind.RAMP:
            rise = random.uniform(0.8, 5) * np.clip(after / random.uniform(30, 200), 0, 1)
            norm *= 1 + random.uniform(1, 12) * np.clip(after / 60, 0, 1)
        case Kind.DRIFT:
            rise = random.uniform(0.3, 1.6) * np.clip(after / random.uniform(250, 900), 0, 1) * max(1, level)
        case Kind.EXPLODE:
            growth = np.expm1(np.minimum(after / random.uniform(15, 70), 12))
            rise = np.minimum(random.uniform(0.005, 0.05) * growth, random.uniform(10, 30))
            norm *= 1 + 0.3 * np.minimum(rise, 20)
        case Kind.NAN:
            broken = norm if random.random() < 0.3 else loss
            broken[onset - 1 :] = np.nan
        case Kind.VALIDATION:
            grown = np.clip(after / random.uniform(150, 600), 0, 3)
            validation += grown * random.uniform(0.15, 0.6) * max(level, 0.1)
    loss += rise
    validation += rise


def _points(step: Array, loss: Array, norm: Array, validation: Array, kl: Array, score: Array) -> tuple[Point, ...]:
    return tuple(
        Point(
            step=int(number),
            loss=float(loss[row]),
            grad_norm=float(norm[row]),
            val_loss=float(validation[row]) if number % VALIDATE_EVERY == 0 else None,
            kl=float(kl[row]) if number % PROBE_EVERY == 0 else None,
            scores={"score/task": float(score[row])} if number % VALIDATE_EVERY == 0 else {},
        )
        for row, number in enumerate(step)
    )
