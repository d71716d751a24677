"""The state of every random generator that a training draws from."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

Generators = dict[str, Any]
"""State by generator, under the names that the Trainer reads from its `rng_state.pth`."""


def capture() -> Generators:
    """Return the state of the generators of Python, NumPy, torch and, where there is one, the GPU."""
    state: Generators = {
        "python": random.getstate(),
        "numpy": np.random.get_state(),
        "cpu": torch.random.get_rng_state(),
    }
    if torch.cuda.is_available():
        state["cuda"] = torch.cuda.random.get_rng_state()
    return state


def restore(state: Generators) -> None:
    """Put the generators back. Law: what is drawn after `restore(capture())` is what would have been drawn."""
    random.setstate(state["python"])
    np.random.set_state(state["numpy"])
    torch.random.set_rng_state(state["cpu"])
    if "cuda" in state:
        torch.cuda.random.set_rng_state(state["cuda"])


@contextmanager
def undisturbed() -> Iterator[None]:
    """Let the block draw what it likes: after it the generators stand where they stood."""
    state = capture()
    try:
        yield
    finally:
        restore(state)
