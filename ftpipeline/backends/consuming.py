"""Checkpoints of other jobs that a training uses: asked for by name, read only once the ledger says so."""

import json
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from peft import PeftModel
from peft.utils import get_peft_model_state_dict
from torch import Tensor
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from ftpipeline.backends import checkpoint
from ftpipeline.backends.adapter_loading import fitting_weights
from ftpipeline.backends.channel import Channel
from ftpipeline.backends.lifetime import StopRequest
from ftpipeline.backends.protocol import answer_file, revived
from ftpipeline.errors import InputError
from ftpipeline.schema import Consumption

_LOOK_SECONDS, _ASK_AGAIN_SECONDS = 0.02, 1.0

Weights = dict[str, Tensor]
"""The trained weights of an adapter and the modules saved with it, by their names in the adapter's file."""


class Desk:
    """Where a worker asks its launcher for checkpoints; it waits for one that another job is still to make."""

    def __init__(self, exchange: Path | None, channel: Channel, stop: StopRequest) -> None:
        """Ask through `channel` and look for answers in `exchange`; `stop` ends the waiting."""
        self._exchange = exchange
        self._channel = channel
        self._stop = stop
        self._ticket = 0

    def ask(self, wanted: Consumption, at_step: int) -> Path:
        """Return the folder of a checkpoint, verified.

        Args:
            wanted: which, and what for.
            at_step: step of this training at which it is read.

        Raises:
            CheckpointError: it is not complete.
            FtpipelineError: why it may not be read.
            WorkerInterruptedError: a signal came while it was waited for.
        """
        while True:
            answer = self._answer(wanted, at_step)
            if "folder" in answer:
                folder = Path(answer["folder"])
                checkpoint.verify(folder)
                return folder
            if "error" in answer:
                raise revived(answer["error"])
            self._pause(_ASK_AGAIN_SECONDS, wanted)

    def _answer(self, wanted: Consumption, at_step: int) -> dict[str, Any]:
        if self._exchange is None:
            raise InputError("train.consumes names checkpoints of other jobs; train through a launcher with a ledger")
        self._ticket += 1
        question = {"ticket": self._ticket, "use": wanted.use, "job": wanted.job, "step": wanted.step}
        self._channel.consume(question | {"at_step": at_step})
        file = answer_file(self._exchange, self._ticket)
        while not file.exists():
            self._pause(_LOOK_SECONDS, wanted)
        answer: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        return answer

    def _pause(self, seconds: float, wanted: Consumption) -> None:
        self._stop.check(f"while checkpoint {wanted.step} of job {wanted.job} was waited for")
        time.sleep(seconds)


@dataclass(frozen=True)
class Sources:
    """What a training uses of other jobs.

    Attributes:
        wanted: as the manifest names it.
        desk: hands it out.
        model: the model that is trained.
    """

    wanted: Sequence[Consumption]
    desk: Desk
    model: PeftModel

    def warm_start(self) -> None:
        """Begin with the weights of other jobs; a training that goes on from a checkpoint holds them already.

        Raises:
            AdapterKeysError: the other adapter has another shape.
            BaseModelMismatchError: it was trained on another base.
        """
        for wanted in self._for("warm_start"):
            _copy(self._weights(wanted, at_step=0), live_weights(self.model))

    def merges(self) -> list[TrainerCallback]:
        """Return what merges other jobs' weights in, each before its step.

        Raises:
            InputError: a merge names no step.
        """
        merges = self._for("merge")
        if any(wanted.at_step is None for wanted in merges):
            raise InputError("train.consumes: a merge needs at_step, the step of this training before which it happens")
        return [_Merge(self, wanted, wanted.at_step) for wanted in merges if wanted.at_step is not None]

    def reference(self, at_step: int) -> Weights | None:
        """Return the weights that the drift is measured from; None for the base model's own answers."""
        found = [self._weights(wanted, at_step) for wanted in self._for("reference")]
        return found[-1] if found else None

    def teachers(self, at_step: int) -> list[tuple[Weights, float]]:
        """Return the weights that are distilled from, each with its share of the loss.

        Raises:
            InputError: the shares are more than the whole loss.
        """
        teachers = self._for("teacher")
        if sum(wanted.weight for wanted in teachers) > 1.0:
            raise InputError("train.consumes: the weights of the teachers add up to more than 1.0; lower them")
        return [(self._weights(wanted, at_step), wanted.weight) for wanted in teachers]

    def merge(self, wanted: Consumption, at_step: int) -> None:
        """Average another job's weights into the model's."""
        other, live = self._weights(wanted, at_step), live_weights(self.model)
        share = wanted.weight
        _copy({name: tensor * (1.0 - share) + other[name].to(tensor) * share for name, tensor in live.items()}, live)

    def _for(self, use: str) -> list[Consumption]:
        return [wanted for wanted in self.wanted if wanted.use == use]

    def _weights(self, wanted: Consumption, at_step: int) -> Weights:
        return fitting_weights(self.model, self.desk.ask(wanted, at_step))


class _Merge(TrainerCallback):
    """Merges before one step; the optimizer keeps its state."""

    def __init__(self, sources: Sources, wanted: Consumption, at_step: int) -> None:
        self._sources = sources
        self._wanted = wanted
        self._at_step = at_step

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Refuse a step that never comes."""
        if self._at_step > state.max_steps:
            raise InputError(
                f"train.consumes: at_step {self._at_step} is beyond the last step {state.max_steps}; lower it"
            )

    def on_step_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Merge if the step that begins is the declared one."""
        if state.global_step + 1 == self._at_step:
            self._sources.merge(self._wanted, self._at_step)


@contextmanager
def holding(model: PeftModel, weights: Weights) -> Iterator[None]:
    """Let the model have other weights for a while; no gradient may be pending."""
    live = live_weights(model)
    own = {name: tensor.clone() for name, tensor in live.items()}
    _copy(weights, live)
    try:
        yield
    finally:
        _copy(own, live)


def live_weights(model: PeftModel) -> Weights:
    """Return the trained weights of a model; to write into one is to change the model."""
    weights: Weights = get_peft_model_state_dict(model, save_embedding_layers=False)
    return weights


def _copy(weights: Weights, live: Weights) -> None:
    with torch.no_grad():
        for name, tensor in live.items():
            tensor.copy_(weights[name])
