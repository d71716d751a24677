"""Whether a replay diverged: what it measured, looked at as the ledger's points of a job are, with the same thresholds.

What was measured up to the checkpoint is looked at first, so that the detector knows the job as it knew it then.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ftpipeline.cycle.training_points import Memory, look
from ftpipeline.digest import Digest, parse_json
from ftpipeline.guard.config import Envelope
from ftpipeline.guard.verdicts import Detection, Stage
from ftpipeline.ledger.events import Event, Kind
from ftpipeline.steps.replay import OUTCOME
from ftpipeline.steps.train_output import EVALUATIONS, METRICS
from ftpipeline.store.trees import Trees

_DIVERGENCES = (
    "NonFiniteError",
    "ZeroLossError",
    "GradientSpikeError",
    "LossExplosionError",
    "OverfittingError",
)
"""Checks that end a training before the detector needs to be sure; one that learns nothing has not diverged."""


@dataclass(frozen=True)
class Judgement:
    """What is said of a replay.

    Attributes:
        detection: the detector's verdict.
        ended: the check that ended the training before its last step; None for none.
    """

    detection: Detection
    ended: str | None

    @property
    def diverged(self) -> bool | None:
        """Whether the detector is sure of it, or a check ended it for what a divergence is.

        None where an alarm stands at the end and is neither confirmed nor gone: such a replay speaks for nothing.
        """
        if self.detection.stage is Stage.CONFIRMED or self.ended in _DIVERGENCES:
            return True
        return None if self.detection.onset_step is not None else False


def judge(trees: Trees, output: Digest, opened: Mapping[str, Any], envelope: Envelope | None) -> Judgement:
    """Judge what a replay measured.

    Args:
        trees: hold it.
        output: the replay's tree.
        opened: payload with which the replayed job opened; it may declare changes of the training.
        envelope: bound on the divergence from the reference model that the job was judged by.
    """
    rows = [_event(Kind.METRICS, row, {"points": [row]}) for row in _rows(trees.read(output, METRICS))]
    rows += [_event(Kind.EVALUATION, row, row) for row in _rows(trees.read(output, EVALUATIONS))]
    events = [_event(Kind.JOB_OPENED, {"step": 0, "epoch": 0.0}, opened), *_in_order(rows)]
    memory, _ = look(Memory(envelope=envelope), events)
    ended = parse_json(trees.read(output, OUTCOME))["ended"]
    return Judgement(memory.verdict(), None if ended is None else ended["error"])


def _rows(text: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.decode().splitlines()]


def _event(kind: Kind, place: Mapping[str, Any], payload: Mapping[str, Any]) -> Event:
    return Event("replay", 1, 0, None, place["step"], place["epoch"], "", kind, payload)


def _in_order(events: Iterable[Event]) -> Sequence[Event]:
    """Return events by step; a step is measured before it is evaluated."""
    return sorted(events, key=lambda event: (event.step, event.kind is Kind.EVALUATION))
