"""What the steps need from the outside: one abstract private method a port, one public wrapper that normalises errors.

A port's implementation carries a `code_version`; the engine makes it part of the key of every step it is bound to.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ftpipeline.errors import ExportCheckError, FtpipelineError, InputError, MissingDependencyError, WorkerError
from ftpipeline.records import Facts

if TYPE_CHECKING:
    import pyarrow

Progress = Callable[[int, int, str], None]
"""`progress(done, total, note)`; called at any rate, throttled by whoever shows it."""


def silent(done: int, total: int, note: str = "") -> None:
    """Show nothing."""


REPLAYED = "replayed"
"""The parameter by which a worker knows that it replays another training, with a seed of its own.

`WorkerRequest.resume` then is a checkpoint of the other training: weights, optimizer and schedule go on as they were
saved, the order of the data and the dropout are drawn anew, and what comes out depends on it.
"""


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


class ModelConverter(ABC):
    """Turns a base model in another format into the files that are trained from."""

    code_version = "1"

    def convert(self, source: Path, out: Path) -> None:
        """Write config.json, safetensors and tokenizer files of the model in the file `source` under `out`.

        Raises:
            InputError: the file is damaged, or holds a model of a kind that is not known here.
            MissingDependencyError: what reads the format is not installed.
        """
        try:
            self._convert(source, out)
        except ImportError as error:
            raise MissingDependencyError(f"{source.name} needs {error.name}; install ftpipeline[train]") from error
        except (FtpipelineError, KeyboardInterrupt):
            raise
        except Exception as error:
            raise InputError(
                f"{source.name} cannot be converted: {type(error).__name__}: {error}; give an undamaged file"
            ) from error

    @abstractmethod
    def _convert(self, source: Path, out: Path) -> None: ...


class Terminator(ABC):
    """Ends runs of the orchestrator in order: what they train is saved, their children end, their slots come free."""

    def terminate(self, run_ids: Collection[str]) -> frozenset[str]:
        """Ask runs to end, wait for them, and return those that have ended, or of which nothing is known.

        Raises:
            WorkerError: the orchestrator cannot be asked.
        """
        try:
            return self._terminate(run_ids) if run_ids else frozenset()
        except FtpipelineError:
            raise
        except Exception as error:
            raise WorkerError(
                f"runs {', '.join(run_ids)} could not be asked to end ({type(error).__name__}: {error}); "
                "end them in the orchestrator, then isolate again"
            ) from error

    @abstractmethod
    def _terminate(self, run_ids: Collection[str]) -> frozenset[str]: ...


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

    def on(self, base_model: Path) -> "Scorer":
        """Return a scorer of artifacts that are adapters on the model in `base_model`.

        Raises:
            ExportCheckError: this runtime serves whole models only.
        """
        raise ExportCheckError(
            f"{type(self).__name__} serves whole models, not an adapter on its base; set export.merge_adapter to true"
        )

    def runtime(self, artifact: Path) -> str | None:
        """Return the library that answers for `artifact`, with its version; None where the scorer is all there is."""
        return None

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

    def write(
        self, artifact: Path, texts: Sequence[str], *, max_new_tokens: int, progress: Progress = silent
    ) -> list[str] | None:
        """Return what the model itself writes about each text, always the likeliest token next.

        Returns:
            A text per text, cut after `max_new_tokens` tokens; None for a model that writes nothing.

        Raises:
            ExportCheckError: as `score`.
        """
        try:
            return self._write(artifact, texts, max_new_tokens, progress)
        except (FtpipelineError, KeyboardInterrupt):
            raise
        except Exception as error:
            raise ExportCheckError(
                f"artifact in {artifact.name} cannot answer: {type(error).__name__}: {error}; export it again"
            ) from error

    def _write(self, artifact: Path, texts: Sequence[str], max_new_tokens: int, progress: Progress) -> list[str] | None:
        return None


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
