"""What all verbs share: options, output, and errors as one line with an exit code."""

import json
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Annotated, Any

import typer
from rich.console import Console

from ftpipeline.errors import FtpipelineError, WorkerInterruptedError
from ftpipeline.store.home import Home
from ftpipeline.store.opened import Store

HomeOption = Annotated[
    Path | None,
    typer.Option("--home", help="Where everything is kept; FTPIPELINE_HOME, else ./.ftpipeline.", show_default=False),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one strict JSON document on stdout.")]

stderr = Console(stderr=True, highlight=False)
stdout = Console(highlight=False, soft_wrap=True)


def emit(document: Any, as_json: bool, show: Callable[[], None]) -> None:
    """Print a document as strict JSON, or show it to a person."""
    if as_json:
        json.dump(document, sys.stdout, allow_nan=False, ensure_ascii=False, indent=2)
        sys.stdout.write("\n")
    else:
        show()


def open_store(home: Path | None) -> Store:
    """Open the home that the options and the environment name; a name with a slip in it makes no new home.

    Raises:
        StoreError: there is no home there.
    """
    return Home.locate(home).open(create=False)


class _StoppedError(KeyboardInterrupt):
    """A class of its own: where a KeyboardInterrupt itself was handled, Python may still end by the signal."""


def _stop(number: int, frame: FrameType | None) -> None:
    raise _StoppedError


@contextmanager
def stoppable() -> Iterator[None]:
    """Let SIGINT and SIGTERM end what is done here in order and with one line, also where a shell had SIGINT ignored.

    Raises:
        WorkerInterruptedError: one of them has come.
    """
    earlier = {number: signal.signal(number, _stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    except KeyboardInterrupt:
        raise WorkerInterruptedError("stopped; what is finished is kept, run again") from None
    finally:
        for number, handler in earlier.items():
            signal.signal(number, handler)


def short(digest: str) -> str:
    """Return a digest as people compare it: algorithm and 12 digits."""
    return digest[:19]


def fail(error: FtpipelineError) -> int:
    """Print an error on one line and return its exit code."""
    stderr.print(f"[bold red]error[/]: {type(error).__name__}: ", end="")
    stderr.print(" ".join(str(error).split()), markup=False, soft_wrap=True)
    return error.exit_code
