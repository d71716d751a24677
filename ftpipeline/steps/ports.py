"""What the steps need from the outside: one abstract private method a port, one public wrapper that normalises errors.

A port's implementation carries a `code_version`; the engine makes it part of the key of every step it is bound to.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ftpipeline.errors import ExportCheckError, FtpipelineError, MissingDependencyError, WorkerError
from ftpipeline.records import Facts

if TYPE_CHECKING:
    import pyarrow

Progress = Callable[[int, int, str], None]
"""`progress(done, total, note)`; called at any rate, throttled by whoever shows it."""


def silent(done: int, total: int, note: str = "") -> None:
    """Show nothing."""


@dataclass(frozen=True)
class WorkerRequest:
    """What a worker process is started with.

    Attributes:
        module: module run with `python -m`.
        inputs: input name to folder.
        params: JSON parameters, the projection of the manifest the worker may read.
        out: folder whose content becomes the step's output.
        exchange: folder where checkpoints are left for the launcher and answers are found; None where nobody keeps any.
        resume: a complete checkpoint to go on from; what comes out is the same with it and without.
        checkpoint_steps: optimizer steps between two checkpoints; None for none but the one of a stop.
    """

    module: str
    inputs: Mapping[str, Path]
    params: Mapping[str, Any]
    out: Path
    exchange: Path | None = None
    resume: Path | None = None
    checkpoint_steps: int | None = None


class Launcher(ABC):
    """Starts a worker process and waits for it."""

    code_version = "1"

    def launch(self, request: WorkerRequest, progress: Progress = silent) -> None:
        """Run the worker to its end.

        Raises:
            TrainingFailedError: the worker said why the training cannot be used.
            WorkerInterruptedError: the worker was asked to stop.
            WorkerError: the worker could not be started, or died without a word.
        """
        try:
            self._launch(request, progress)
        except OSError as error:
            raise WorkerError(
                f"worker {request.module} could not be started ({error}); check that the environment is installed"
            ) from error

    @abstractmethod
    def _launch(self, request: WorkerRequest, progress: Progress) -> None: ...


class Exporter(ABC):
    """Turns a base model and an adapter into the files that are served."""

    code_version = "1"

    def export(self, base_model: Path, adapter: Path, params: Mapping[str, Any], out: Path) -> Facts:
        """Write the served model under `out` and return what was measured on the way.

        Raises:
            ExportCheckError: the model could not be exported, or the files do not verify.
        """
        try:
            return self._export(base_model, adapter, params, out)
        except (FtpipelineError, KeyboardInterrupt):
            raise
        except Exception as error:
            raise ExportCheckError(
                f"export failed: {type(error).__name__}: {error}; check the adapter against its base model"
            ) from error

    @abstractmethod
    def _export(self, base_model: Path, adapter: Path, params: Mapping[str, Any], out: Path) -> Facts: ...


@dataclass(frozen=True)
class Scores:
    """Answers of a classifier.

    Attributes:
        predicted: class id per text, shape (n,).
        confidence: probability of the predicted class per text, shape (n,), in [0, 1].
    """

    predicted: Sequence[int]
    confidence: Sequence[float]


class Scorer(ABC):
    """Runs an exported artifact in its serving runtime."""

    code_version = "1"

    def score(self, artifact: Path, texts: Sequence[str], *, batch_size: int, progress: Progress = silent) -> Scores:
        """Score `texts` in order with a fixed batch size.

        Raises:
            ExportCheckError: the artifact cannot be loaded from its folder alone, or answers a non-finite number.
        """
        try:
            return self._score(artifact, texts, batch_size, progress)
        except (FtpipelineError, KeyboardInterrupt):
            raise
        except Exception as error:
            raise ExportCheckError(
                f"artifact in {artifact.name} cannot be scored: {type(error).__name__}: {error}; export it again"
            ) from error

    @abstractmethod
    def _score(self, artifact: Path, texts: Sequence[str], batch_size: int, progress: Progress) -> Scores: ...


class ModelHub(ABC):
    """Fetches a model repository at a commit."""

    code_version = "1"

    def fetch(self, repo: str, revision: str, target: Path) -> None:
        """Write the files of `repo` at the 40-hex commit `revision` under `target`.

        Raises:
            MissingDependencyError: no hub client is installed.
            WorkerError: the hub did not answer, or refused.
        """
        try:
            self._fetch(repo, revision, target)
        except ImportError as error:
            raise MissingDependencyError(f"a hub client is needed for {repo!r}; install ftpipeline[train]") from error
        except FtpipelineError:
            raise
        except Exception as error:
            raise WorkerError(
                f"model {repo!r} at {revision[:12]} could not be fetched ({type(error).__name__}); "
                "check the network and the token in HF_TOKEN"
            ) from error

    @abstractmethod
    def _fetch(self, repo: str, revision: str, target: Path) -> None: ...


@dataclass(frozen=True)
class MetricPoint:
    """One optimizer step's metrics, or an evaluation at a step.

    Attributes:
        step: optimizer step, from 1.
        values: metric name to value; a non-finite float is kept as it is here and marked by the sink.
    """

    step: int
    epoch: float
    values: Mapping[str, float] = field(default_factory=dict)


class MetricSink(ABC):
    """Takes metrics while a worker trains."""

    def emit(self, point: MetricPoint) -> None:
        """Record one point; a sink that fails raises, because unmeasured training is not training."""
        try:
            self._emit(point)
        except OSError as error:
            raise WorkerError(f"metrics could not be written ({error}); free space and run again") from error

    @abstractmethod
    def _emit(self, point: MetricPoint) -> None: ...


class RowSource(ABC):
    """A database that a source query is asked of."""

    code_version = "1"

    def fetch(self, sql: str, parameters: Mapping[str, object]) -> "pyarrow.Table":
        """Return the query's rows; parameters are bound, never pasted.

        Raises:
            SourceUnavailableError: the database is missing, locked or unreadable.
            SourceError: the query does not run on it (a column, a table, a type, an unbound parameter).
        """
        return self._fetch(sql, parameters)

    @abstractmethod
    def _fetch(self, sql: str, parameters: Mapping[str, object]) -> "pyarrow.Table": ...
