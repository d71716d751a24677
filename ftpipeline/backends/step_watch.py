"""What is measured at every optimizer step beside the training itself."""

from typing import Any

from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from ftpipeline.backends.channel import Channel
from ftpipeline.backends.history import History
from ftpipeline.steps.ports import MetricPoint

MEASURED = ("loss", "grad_norm", "learning_rate")


class StepWatch(TrainerCallback):
    """Records each step: what the Trainer logs of it, its tokens and how many batches it was accumulated from."""

    def __init__(self, history: History, channel: Channel) -> None:
        """Record into `history` and tell `channel` of the progress."""
        self._history = history
        self._channel = channel
        self._batches = 0
        self._tokens_before = 0

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Count tokens from where a resumed training stands."""
        self._tokens_before = state.num_input_tokens_seen

    def on_substep_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Count a batch whose gradient is kept for the next optimizer step."""
        self._batches += 1

    def on_log(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        """Record one step; the Trainer's summaries, which hold no `loss`, are its own affair."""
        logs = kwargs["logs"]
        if "loss" not in logs:
            return
        state.log_history.clear()  # kept in the history; here it would grow with every checkpoint
        values = {name: float(logs[name]) for name in MEASURED}
        values["tokens"] = state.num_input_tokens_seen - self._tokens_before
        values["accumulation"] = self._batches + 1
        self._batches, self._tokens_before = 0, state.num_input_tokens_seen
        self._history.add_step(MetricPoint(state.global_step, state.epoch or 0.0, values))
        self._channel.progress(state.global_step, state.max_steps, f"loss {values['loss']:.4f}")
