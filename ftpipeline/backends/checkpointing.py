"""Saving a training between two optimizer steps, and stopping it there.

The files have the names and forms that the Trainer itself goes on from; that they are complete and unaltered is not
its affair but the marker's (`ftpipeline.backends.checkpoint`).
"""

import os
import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from ftpipeline.backends import adapter, checkpoint, generators
from ftpipeline.backends.channel import Channel
from ftpipeline.backends.history import History
from ftpipeline.backends.lifetime import StopRequest
from ftpipeline.digest import Digest
from ftpipeline.errors import WorkerError

_LOOK_SECONDS = 0.005


@dataclass(frozen=True)
class Exchange:
    """Where checkpoints are left for the launcher.

    Attributes:
        folder: a complete checkpoint appears in it under its own name, whole or not at all.
        every: optimizer steps between two checkpoints; None for none but the last and the one of a stop.
        params: digest of the training's parameters.
    """

    folder: Path
    every: int | None
    params: Digest

    def is_due(self, state: TrainerState) -> bool:
        """Tell whether the step that was just made is saved."""
        return state.global_step >= state.max_steps or (self.every is not None and state.global_step % self.every == 0)


class Checkpoints(TrainerCallback):
    """Saves after every so many steps, after the last, and when the worker is asked to stop; then it stops.

    It comes after all that measures a step: a step that fails a check is not saved.
    """

    def __init__(
        self, exchange: Exchange | None, scaler: Any, history: History, channel: Channel, stop: StopRequest
    ) -> None:
        """Save into `exchange`.

        Args:
            exchange: where checkpoints are left; None where nobody keeps any.
            scaler: of the gradients, where half precision needs one; else None.
            history: saved with the checkpoint.
            channel: told of each one.
            stop: asked after every step.
        """
        self._exchange = exchange
        self._scaler = scaler
        self._history = history
        self._channel = channel
        self._stop = stop

    def on_log(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        """Save the step that was just made if it is time to, and stop if asked."""
        if "loss" not in kwargs["logs"]:
            return
        if self._exchange is not None and (self._stop.requested or self._exchange.is_due(state)):
            self._save(self._exchange, state, kwargs)
            self._stop.kept = f"the checkpoint of step {state.global_step} is kept"
        self._stop.check(f"after step {state.global_step}")

    def _save(self, exchange: Exchange, state: TrainerState, parts: dict[str, Any]) -> None:
        name = checkpoint.name_of(state.global_step)
        partial = exchange.folder / f".{name}"
        shutil.rmtree(partial, ignore_errors=True)
        epoch = state.epoch or 0.0
        self._wait_for_the_one_before(exchange)
        try:
            adapter.save(parts["model"], partial)
            torch.save(parts["optimizer"].state_dict(), partial / checkpoint.OPTIMIZER)
            torch.save(parts["lr_scheduler"].state_dict(), partial / checkpoint.SCHEDULER)
            if self._scaler is not None:
                torch.save(self._scaler.state_dict(), partial / checkpoint.SCALER)
            torch.save(generators.capture(), partial / checkpoint.GENERATORS)
            state.save_to_json(str(partial / checkpoint.STATE))
            self._history.save(partial)
            checkpoint.complete(
                partial, step=state.global_step, epoch=epoch, last_step=state.max_steps, params=exchange.params
            )
            os.rename(partial, exchange.folder / name)
        except OSError as error:
            raise WorkerError(f"{name} cannot be written ({error}); free space and run again") from error
        self._channel.checkpoint(state.global_step, epoch, name)

    def _wait_for_the_one_before(self, exchange: Exchange) -> None:
        """Wait until the launcher has taken it: neither its disk nor what is lost by a kill grows with its delay."""
        while not self._stop.requested and any(exchange.folder.glob(checkpoint.name_of("*"))):
            time.sleep(_LOOK_SECONDS)
