"""Evaluations while a model is trained; the training goes on as if there had been none."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from ftpipeline.backends import generators
from ftpipeline.backends.history import EvaluationPoint, History
from ftpipeline.backends.lifetime import StopRequest
from ftpipeline.errors import WorkerInterruptedError

Measure = Callable[[], Mapping[str, float]]
"""Measures the validation rows: `loss`, and scores beside it."""

Probe = Callable[[], Mapping[str, Any]]
"""Measures something else of the model as it stands, under the names of the protocol."""


class Evaluations(TrainerCallback):
    """Measures every so many steps, without moving a random generator.

    An evaluation that a signal cut off is made again when the training goes on from the checkpoint of its step.
    """

    def __init__(
        self, every: int | None, measure: Measure, probes: Sequence[Probe], history: History, stop: StopRequest
    ) -> None:
        """Evaluate into `history`.

        Args:
            every: optimizer steps between two evaluations; None for none.
            measure: measures the validation rows.
            probes: measure what else there is.
            history: keeps the results.
            stop: asked between two batches.
        """
        self._every = every
        self._measure = measure
        self._probes = probes
        self._history = history
        self._stop = stop

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Make up for an evaluation that was cut off."""
        self.make_up(state.global_step, state.epoch or 0.0)

    def on_prediction_step(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Stop between two batches."""
        self._stop.check("during validation")

    def on_log(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        """Evaluate after a step."""
        if "loss" in kwargs["logs"]:
            self._evaluate_if_due(state.global_step, state.epoch or 0.0)

    def make_up(self, step: int, epoch: float) -> None:
        """Evaluate after `step` if that is due and was not done; stop if asked to, since nothing new is to be saved."""
        self._evaluate_if_due(step, epoch)
        self._stop.check(f"after step {step}")

    def _evaluate_if_due(self, step: int, epoch: float) -> None:
        if self._every is None or step == 0 or step % self._every or self._history.last_evaluated == step:
            return
        try:
            with generators.undisturbed():
                point = self._point(step, epoch)
        except WorkerInterruptedError:
            return  # whoever comes next saves what there is, and stops
        self._history.add_evaluation(point)

    def _point(self, step: int, epoch: float) -> EvaluationPoint:
        measured = dict(self._measure())
        more = {name: value for probe in self._probes for name, value in probe().items()}
        return EvaluationPoint(step, epoch, measured.pop("loss"), measured, more)
