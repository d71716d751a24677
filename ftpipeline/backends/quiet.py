"""Silence what libraries say of their own insides; what of it matters is checked and refused by whoever calls them."""

import io
import logging
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr

from transformers.utils import logging as transformers_logging


@contextmanager
def reading_gguf_quietly() -> Iterator[None]:
    """Keep the bar that transformers draws while it restores a GGUF file's weights off stderr; nothing turns it off."""
    with redirect_stderr(io.StringIO()):
        yield


@contextmanager
def writing_gguf_quietly() -> Iterator[None]:
    """Silence what the writer of GGUF files says of byte order and sizes."""
    with _errors_only("gguf.gguf_writer"):
        yield


@contextmanager
def loading_quietly() -> Iterator[None]:
    """Keep the transformers load report and progress bar off stderr."""
    level = transformers_logging.get_verbosity()
    bars = transformers_logging.is_progress_bar_enabled()
    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    try:
        yield
    finally:
        transformers_logging.set_verbosity(level)
        if bars:
            transformers_logging.enable_progress_bar()


@contextmanager
def attaching_quietly() -> Iterator[None]:
    """Silence a call inside peft that transformers has renamed."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="`is_gradient_checkpointing`", category=FutureWarning)
        yield


@contextmanager
def exporting_quietly() -> Iterator[None]:
    """Silence torch.onnx: deprecated calls it makes itself, axes that share a name, what its optimizer folds."""
    with ExitStack() as quiet:
        for name in ("torch.onnx", "onnxscript", "onnx_ir"):
            quiet.enter_context(_errors_only(name))
        quiet.enter_context(warnings.catch_warnings())
        warnings.filterwarnings("ignore", message=".*LeafSpec", category=FutureWarning)
        warnings.filterwarnings("ignore", message=".*axis name", category=UserWarning)
        yield


@contextmanager
def quantizing_quietly() -> Iterator[None]:
    """Silence what onnxruntime's quantizer logs, through the root logger, of tensors that it rightly leaves alone."""
    with _errors_only(None):
        yield


@contextmanager
def _errors_only(name: str | None) -> Iterator[None]:
    logger = logging.getLogger(name)
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)
