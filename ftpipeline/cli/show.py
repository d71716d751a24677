"""The progress bar and the lines of a run."""

from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from ftpipeline.cli.common import short, stderr
from ftpipeline.records import StepResult


class ProgressBar:
    """Draws one bar for the step that is executing; draws nothing where stderr is no terminal."""

    def __init__(self, console: Console = stderr) -> None:
        self._bars = Progress(
            TextColumn("{task.description:<12}"),
            BarColumn(),
            TextColumn("{task.completed:.0f}/{task.total:.0f}"),
            TimeElapsedColumn(),
            TextColumn("{task.fields[note]}"),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._task: TaskID | None = None

    def __enter__(self) -> Self:
        self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._bars.stop()

    def started(self, step: str) -> None:
        """Start a bar."""
        self._clear()
        self._task = self._bars.add_task(step, total=1, note="")

    def progress(self, step: str, done: int, total: int, note: str = "") -> None:
        """Move the bar."""
        if self._task is not None:
            self._bars.update(self._task, completed=done, total=max(total, 1), note=note)

    def said(self, step: str, level: str, text: str) -> None:
        """Print a step's line above the bar."""
        self._bars.console.print(f"{step}: {text}", markup=False)

    def finished(self, result: StepResult) -> None:
        """Take the bar away."""
        self._clear()

    def _clear(self) -> None:
        if self._task is not None:
            self._bars.remove_task(self._task)
            self._task = None


def step_line(stage: str, result: StepResult) -> str:
    """Return one line of a run: what was done, to what end, how long it took."""
    return f"{stage:<16} {result.action:<9} {short(result.output)}  {result.seconds:7.1f} s"
