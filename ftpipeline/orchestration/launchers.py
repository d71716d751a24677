"""Launchers that Dagster hears: the worker talks through a Pipes session, live."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dagster as dg

from ftpipeline.backends.outcome import JobJournal, WorkerOutcome
from ftpipeline.cycle.launch import SubprocessLauncher


class PipesLauncher(SubprocessLauncher):
    """Runs a worker as a subprocess with a Pipes session open, so that its messages reach the run while it trains."""

    def __init__(self, context: dg.AssetExecutionContext, journal: JobJournal | None = None) -> None:
        super().__init__(journal=journal)
        self._context = context

    @contextmanager
    def _session(self, outcome: WorkerOutcome, folder: Path) -> Iterator[Mapping[str, str]]:
        with dg.open_pipes_session(
            # Dagster reads attributes that it has deprecated on the asset context.
            context=self._context.op_execution_context,
            context_injector=dg.PipesFileContextInjector(str(folder / "context.json")),
            message_reader=_HearingReader(outcome.hear, folder / "messages.jsonl"),
        ) as session:
            yield session.get_bootstrap_env_vars()


class _HearingReader(dg.PipesMessageReader):
    """Reads the messages of a file and tells of each custom one as it comes, not only at the end."""

    def __init__(self, hear: Callable[[Mapping[str, Any]], None], file: Path) -> None:
        self._hear = hear
        self._reader = dg.PipesFileMessageReader(str(file))

    @contextmanager
    def read_messages(self, handler: Any) -> Iterator[Any]:
        """Read while the session is open."""
        hearing: Any = _HearingHandler(handler, self._hear)
        with self._reader.read_messages(hearing) as params:
            yield params

    @property
    def expected_writer_count(self) -> int:
        """One worker writes."""
        return 1

    def no_messages_debug_text(self) -> str:
        """Say where messages were looked for."""
        return self._reader.no_messages_debug_text()


class _HearingHandler:
    """Passes everything on to Dagster's own handler."""

    def __init__(self, handler: Any, hear: Callable[[Mapping[str, Any]], None]) -> None:
        self._handler = handler
        self._hear = hear

    def handle_message(self, message: Mapping[str, Any]) -> None:
        """Hear a custom message; all messages are passed on."""
        if message.get("method") == "report_custom_message":
            self._hear(message["params"]["payload"])
        self._handler.handle_message(message)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._handler, name)
