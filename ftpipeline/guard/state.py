"""What is remembered of a job between two looks at it.

Law: `State.from_json(state.to_json()) == state`, and its size does not grow with the number of points.
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar

from pydantic import ConfigDict, TypeAdapter

from ftpipeline.errors import InputError
from ftpipeline.guard.config import Config
from ftpipeline.guard.loss_rules import LossRules
from ftpipeline.guard.other_rules import DivergenceRule, GradNormRule, ScoreRule, ValidationRule
from ftpipeline.guard.points import Event
from ftpipeline.guard.runs import Run
from ftpipeline.guard.verdicts import Evidence, EvidenceKind, Level, Reading

SCHEMA = "ftpipeline.detector_state/1"


@dataclass
class Alarm:
    """A rule that alarms.

    Attributes:
        step: step at which it began to.
    """

    level: Level
    step: int
    onset: int
    last_good: int | None

    @classmethod
    def of(cls, alarms: Iterable["Alarm"]) -> "Alarm | None":
        """Return what several alarms amount to: the onset that the first one saw, what none of them doubts."""
        merged = list(alarms)
        if not merged:
            return None
        first = min(merged, key=lambda alarm: alarm.step)
        goods = [alarm.last_good for alarm in merged if alarm.last_good is not None]
        return cls(
            level=max(alarm.level for alarm in merged),
            step=first.step,
            onset=first.onset,
            last_good=min(goods) if len(goods) == len(merged) else None,
        )


@dataclass
class Declared:
    """The declared change in force: until it is over, nothing that it can explain is confirmed.

    Attributes:
        kind: what changed.
        step: from which step on.
        limit: the smoothed loss that would have been a rise before the change; None if no reference was known.
        above: losses in a row above it.
    """

    kind: str
    step: int
    limit: float | None
    above: Run = field(default_factory=Run)

    @classmethod
    def by(cls, event: Event, losses: LossRules, config: Config) -> "Declared":
        """Return the change that `event` declares for a job that has come so far."""
        best = losses.reference.best
        limit = None if best is None else best + losses.reference.margin(config)
        return cls(event.kind.value, event.step, limit)

    def reading(self, step: int, smoothed: float, config: Config) -> Reading:
        """Return what the smoothed loss says of the change: at most, that somebody should look."""
        limit = smoothed if self.limit is None else self.limit
        self.above.extend(smoothed > limit, step)
        rises = self.above.length(step) >= config.suspect_steps
        level = Level.SUSPECT if rises else Level.QUIET
        return Reading(EvidenceKind.SUSTAINED_RISE, "loss", level, smoothed, limit, self.step, self.step - 1)

    def is_over(self, step: int, config: Config) -> bool:
        """Tell whether a new reference stands and the loss is back under the old one, or has had time to settle."""
        age = step - self.step
        return age >= 2 * config.warm_up or (age >= config.warm_up and self.above.start is None)


@dataclass
class State:
    """Everything that is remembered of a job's current attempt.

    Attributes:
        attempt: the attempt; None before the first point.
        first: first step that was seen of it, or of the attempts that it continues.
        last: highest step that was seen.
        late: points that came too late to be compared.
        confirmed: whether the attempt was confirmed as diverged.
        incident: the disturbance that is open, or that was confirmed.
        alarms: rules that alarm, by kind and metric.
    """

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid", allow_inf_nan=False)

    attempt: int | None = None
    first: int | None = None
    last: int | None = None
    late: int = 0
    confirmed: bool = False
    incident: Alarm | None = None
    losses: LossRules = field(default_factory=LossRules)
    grad_norm: GradNormRule = field(default_factory=GradNormRule)
    validation: ValidationRule = field(default_factory=ValidationRule)
    divergence: DivergenceRule = field(default_factory=DivergenceRule)
    scores: dict[str, ScoreRule] = field(default_factory=dict)
    alarms: dict[str, Alarm] = field(default_factory=dict)
    declared: Declared | None = None
    evidence: list[Evidence] = field(default_factory=list)

    def last_of(self, metric: str) -> int | None:
        """Return the step of the last finite value of a metric; None before the first."""
        match metric:
            case "loss":
                return self.losses.reference.last
            case "grad_norm":
                return self.grad_norm.last
            case "val_loss":
                return self.validation.last
            case "kl":
                return self.divergence.last
        return self.scores[metric].last if metric in self.scores else None

    def to_json(self) -> dict[str, Any]:
        """Return strict JSON."""
        evidence = [item.to_json() for item in self.evidence]
        return {"schema": SCHEMA} | asdict(self) | {"evidence": evidence}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> "State":
        """Return the state that `to_json` wrote.

        Raises:
            InputError: the document is no detector state, or one of another schema.
        """
        try:
            fields = dict(document)
            schema = fields.pop("schema")
            if schema != SCHEMA:
                raise InputError(f"detector state has schema {schema!r}, not {SCHEMA!r}; detect from the start")
            fields["evidence"] = [Evidence.from_json(item) for item in fields["evidence"]]
            return _STATE.validate_python(fields)
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"detector state cannot be read ({error!r}); detect from the start") from error


_STATE: TypeAdapter[State] = TypeAdapter(State)
