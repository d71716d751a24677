"""The checks that may end a training, told of everything that is measured."""

from ftpipeline.backends.history import EvaluationPoint
from ftpipeline.schema import Checks
from ftpipeline.steps.fail_fast import FailFast
from ftpipeline.steps.ports import MetricPoint


class TrainingChecks:
    """Hands every measurement to `steps.fail_fast`, whose errors end the training (`history.Check`)."""

    def __init__(self, checks: Checks) -> None:
        """Judge by the declared limits."""
        self._fail_fast = FailFast(checks)

    def on_step(self, point: MetricPoint) -> None:
        """Judge an optimizer step."""
        values = point.values
        self._fail_fast.step(point.step, values["loss"], values["grad_norm"], values["learning_rate"])

    def on_evaluation(self, point: EvaluationPoint) -> None:
        """Judge an evaluation."""
        self._fail_fast.evaluation(point.step, point.epoch, point.val_loss)
