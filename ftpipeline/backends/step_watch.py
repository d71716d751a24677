"""What happens at every optimizer step beside the training itself."""

import math
from collections.abc import Sequence
from typing import Any

from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from ftpipeline.backends.channel import Channel
from ftpipeline.backends.lifetime import StopRequest
from ftpipeline.errors import TrainingFailedError
from ftpipeline.steps.ports import MetricPoint, MetricSink

MEASURED = ("loss", "grad_norm", "learning_rate")


class StepWatch(TrainerCallback):
    """Records each step, fails at the first loss or gradient norm that is not finite, and stops when asked.

    Args:
        sinks: take every step's metrics, also those of the step that fails.
        channel: told of the progress.
        stop: asked at every step, of training and of validation.
    """

    def __init__(self, sinks: Sequence[MetricSink], channel: Channel, stop: StopRequest) -> None:
        self._sinks = sinks
        self._channel = channel
        self._stop = stop

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        """Stop between two optimizer steps."""
        self._stop.check(f"after step {state.global_step}")

    def on_prediction_step(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Stop between two validation batches."""
        self._stop.check("during validation")

    def on_log(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        """Record one step; the Trainer's summaries, which hold no `loss`, are its own affair."""
        logs = kwargs["logs"]
        if "loss" not in logs:
            return
        values = {name: float(logs[name]) for name in MEASURED}
        for sink in self._sinks:
            sink.emit(MetricPoint(state.global_step, state.epoch or 0.0, values))
        for name, value in values.items():
            if not math.isfinite(value):
                raise TrainingFailedError(
                    f"{name} is {value} at step {state.global_step} of {state.max_steps}; "
                    "lower the learning rate or look for broken rows"
                )
        self._channel.progress(state.global_step, state.max_steps, f"loss {values['loss']:.4f}")
