"""From points to a verdict, one point at a time.

Law: however the points are cut into chunks, `observe` over the chunks leaves the state that one `observe` over all of
them leaves; `detect` is that one. A point costs the same however many came before.
"""

from collections.abc import Iterable, Iterator, Sequence
from copy import deepcopy

from ftpipeline.guard.config import Config
from ftpipeline.guard.other_rules import ScoreRule
from ftpipeline.guard.points import Event, Point
from ftpipeline.guard.state import Alarm, Declared, State
from ftpipeline.guard.verdicts import Detection, Evidence, EvidenceKind, Level, Reading, Stage

_DEFAULT = Config()
_KEPT = 32  # evidence that a state keeps; the first of a disturbance say when it began, and an incident stands beside
_AT_ONCE = ("loss", "grad_norm")  # metrics of which one non-finite value is enough
_UNDENIABLE = (EvidenceKind.NON_FINITE, EvidenceKind.COLLAPSE_TO_ZERO)  # no declared change explains these
_CALM_ERRORS = 2.0  # standard errors within which the smoothed training loss counts as not rising
_LARGEST = 3.4028235e38  # what single precision cannot hold is not a loss


def detect(points: Iterable[Point], config: Config = _DEFAULT, events: Sequence[Event] = ()) -> Detection:
    """Return the verdict on a job's points; see `observe`."""
    state, _ = observe(State(), points, config, events)
    return detection(state, config)


def observe(
    state: State, points: Iterable[Point], config: Config = _DEFAULT, events: Sequence[Event] = ()
) -> tuple[State, tuple[Evidence, ...]]:
    """Look at more points of a job.

    Args:
        state: what is remembered of the job; it is not changed.
        points: points in the order in which they were written. A metric that comes after a later value of itself is
            counted as late and only checked for finiteness; a point of an earlier attempt is counted and left out.
        config: thresholds; the same in every call for a job.
        events: all changes that were declared for the job so far, in any order.

    Returns:
        The new state and the evidence that the points gave.
    """
    seen, changes = deepcopy(state), sorted(events, key=lambda event: event.step)
    found: list[Evidence] = []
    for point in points:
        if seen.attempt is not None and point.attempt < seen.attempt:
            seen.late += 1
            continue
        if point.attempt != seen.attempt:
            seen = _begin(seen, point)
        _declare(seen, point, config, changes)
        found += _look(seen, point, config)
    return seen, tuple(found)


def detection(state: State, config: Config = _DEFAULT) -> Detection:
    """Return the verdict that a state amounts to."""
    incident = state.incident
    steps = 0 if state.first is None or state.last is None else state.last - state.first + 1
    stage = _stage(state, steps, config)
    last_good = state.last if stage is Stage.HEALTHY else None
    return Detection(
        stage=stage,
        evidence=tuple(state.evidence),
        last_good_step=last_good if incident is None else incident.last_good,
        onset_step=None if incident is None else incident.onset,
        detected_step=None if incident is None else incident.step,
        attempt=state.attempt or 1,
        steps=steps,
        late_points=state.late,
    )


def _stage(state: State, steps: int, config: Config) -> Stage:
    if state.confirmed:
        return Stage.CONFIRMED
    if steps < config.warm_up or (not state.losses.reference.armed and state.declared is None):
        return Stage.INSUFFICIENT
    return Stage.SUSPECT if state.alarms else Stage.HEALTHY


def _begin(state: State, point: Point) -> State:
    """Return the state with which an attempt begins: a diverged or suspect one hands nothing on."""
    if state.attempt is None or state.confirmed or state.alarms:
        return State(attempt=point.attempt)
    losses = state.losses.resume(point.step)
    first = state.first if losses.reference.best is not None else None
    return State(attempt=point.attempt, first=first, losses=losses, late=state.late)


def _declare(state: State, point: Point, config: Config, events: Sequence[Event]) -> None:
    """Take note of the changes that come into force with this point."""
    for event in events:
        passed = event.step < point.step if state.last is None else event.step <= state.last
        if passed or event.step > point.step or event.attempt not in (None, point.attempt):
            continue
        state.declared = Declared.by(event, state.losses, config)
        state.losses.restart(point.step)


def _look(state: State, point: Point, config: Config) -> list[Evidence]:
    """Take one point into the state and return the evidence it gave."""
    before = None if state.last is None else min(state.last, point.step - 1)
    state.first = point.step if state.first is None else state.first
    state.last = point.step if state.last is None else max(state.last, point.step)
    judged = [_judge(state, point.step, reading) for reading in _readings(state, point, before, config)]
    found = [evidence for evidence in judged if evidence is not None]
    if not state.confirmed:
        state.confirmed = any(alarm.level is Level.CONFIRMED for alarm in state.alarms.values())
        state.incident = Alarm.of(state.alarms.values())
    state.evidence = (state.evidence + found)[-_KEPT:]
    return found


def _readings(state: State, point: Point, before: int | None, config: Config) -> Iterator[Reading]:
    """Yield what every rule says; a rule that was given nothing says nothing."""
    for metric, value in _measured(point):
        finite = abs(value) <= _LARGEST
        level = Level.QUIET if finite else Level.CONFIRMED if metric in _AT_ONCE else Level.SUSPECT
        yield Reading(EvidenceKind.NON_FINITE, metric, level, value, _LARGEST, point.step, before)
        if not finite:
            continue
        last = state.last_of(metric)
        if last is None or point.step > last:
            yield from _ask(state, metric, point.step, value, config)
        else:
            state.late += 1


def _measured(point: Point) -> Iterator[tuple[str, float]]:
    named = (("loss", point.loss), ("grad_norm", point.grad_norm), ("val_loss", point.val_loss), ("kl", point.kl))
    for metric, value in (*named, *point.scores.items()):
        if value is not None:
            yield metric, value


def _ask(state: State, metric: str, step: int, value: float, config: Config) -> Iterator[Reading]:
    match metric:
        case "loss":
            yield from _ask_losses(state, step, value, config)
        case "grad_norm":
            yield state.grad_norm.update(step, value, config)
        case "val_loss":
            reference = state.losses.reference
            tolerance = _CALM_ERRORS * reference.standard_error()
            yield state.validation.update(step, value, reference.smoothed, tolerance, config)
        case "kl":
            reading = state.divergence.update(step, value, config)
            if reading is not None:
                yield reading
        case _:
            yield state.scores.setdefault(metric, ScoreRule()).update(step, metric, value, config)


def _ask_losses(state: State, step: int, value: float, config: Config) -> Iterator[Reading]:
    rise, *others = state.losses.update(step, value, config)
    declared, smoothed = state.declared, state.losses.reference.smoothed
    if declared is not None and smoothed is not None:
        reading = declared.reading(step, smoothed, config)
        if declared.is_over(step, config):
            state.declared = None
        elif rise.level is Level.QUIET:
            rise = reading
    yield rise
    yield from others


def _judge(state: State, step: int, reading: Reading) -> Evidence | None:
    """Open, raise or close the alarm of a reading; return evidence if it was opened or raised."""
    level, event, key = reading.level, None, f"{reading.kind}:{reading.metric}"
    if state.declared is not None and reading.kind not in _UNDENIABLE:
        level, event = min(level, Level.SUSPECT), state.declared.kind
    if level is Level.QUIET:
        state.alarms.pop(key, None)
        return None
    alarm = state.alarms.get(key)
    if alarm is not None and alarm.level >= level:
        return None
    opened = Alarm(level, step, reading.onset, reading.last_good)
    state.alarms[key] = opened if alarm is None else Alarm.of((alarm, opened)) or opened
    return Evidence(
        kind=reading.kind,
        metric=reading.metric,
        level=level.stage,
        step=step,
        value=reading.value,
        limit=reading.limit,
        onset=reading.onset,
        last_good=reading.last_good,
        event=event,
    )
