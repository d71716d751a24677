import json
import os
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ftpipeline import errors
from ftpipeline.backends.outcome import WorkerOutcome
from ftpipeline.backends.protocol import described, error_message, read_request, revived, write_request
from ftpipeline.errors import (
    FtpipelineError,
    SourceError,
    TrainingFailedError,
    WorkerError,
    WorkerInterruptedError,
)
from ftpipeline.steps.ports import WorkerRequest

REQUEST = WorkerRequest("worker", {}, {}, Path("out"))
SAID = [errors.TrainingFailedError, errors.LabelError, errors.TokenizerMismatchError, errors.WorkerInterruptedError]


@given(params=st.dictionaries(st.text(), st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()))
def test_a_request_reads_as_it_was_written(tmp_path_factory: pytest.TempPathFactory, params: dict[str, object]) -> None:
    folder = tmp_path_factory.mktemp("request")
    request = WorkerRequest(
        "some.module", {"split": folder / "split"}, params, folder / "out", folder / "exchange", folder / "resume", 5
    )
    write_request(request, folder / "request.json")
    assert read_request(folder / "request.json") == (request, os.getpid())


def test_relative_folders_reach_the_worker_as_absolute_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_request(WorkerRequest("some.module", {"split": Path("split")}, {}, Path("out")), Path("request.json"))
    request, _ = read_request(tmp_path / "request.json")
    assert request.inputs["split"] == tmp_path / "split"
    assert request.out == tmp_path / "out"


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"module": "m", "inputs": [], "params": {}, "out": "o", "parent": 1}']
)
def test_what_is_no_request_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "request.json").write_text(text)
    with pytest.raises(WorkerError, match="start the worker through a launcher"):
        read_request(tmp_path / "request.json")


@pytest.mark.parametrize("error", SAID)
def test_an_error_arrives_as_what_it_was(error: type[FtpipelineError]) -> None:
    outcome = WorkerOutcome(REQUEST)
    outcome.hear_line(json.dumps(error_message(error("what, where, what to do"))))
    with pytest.raises(error, match=r"^what, where, what to do$"):
        outcome.raise_unless_good(error.exit_code, "")


def test_what_a_check_saw_arrives_with_the_error() -> None:
    outcome = WorkerOutcome(REQUEST)
    evidence = {"kind": "zero_loss", "step": 3, "value": 0.0}
    outcome.hear_line(json.dumps(error_message(errors.ZeroLossError("loss is exactly zero", evidence))))
    with pytest.raises(errors.ZeroLossError) as caught:
        outcome.raise_unless_good(1, "")
    assert caught.value.evidence == evidence


OF_A_RELEASE = {errors.GateRecordError, errors.TransitionError, errors.ProtectedArtifactError}
"""Verdicts, with all beneath them, that come after a model is made; no worker says them."""


def from_a_message() -> list[type[FtpipelineError]]:
    """Return every verdict against a training or export that is made from a message alone."""
    found: list[type[FtpipelineError]] = []
    waiting: list[type[FtpipelineError]] = [errors.VerdictError]
    while waiting:
        kind = waiting.pop()
        waiting += set(kind.__subclasses__()) - OF_A_RELEASE
        with suppress(TypeError):
            kind("what, where, what to do")
            found.append(kind)
    return sorted(found, key=lambda kind: kind.__name__)


def test_every_verdict_that_is_made_from_a_message_travels_by_its_own_name() -> None:
    assert len(from_a_message()) > 12
    for kind in from_a_message():
        assert type(revived(described(kind("what, where, what to do")))) is kind


@given(
    kind=st.sampled_from([kind for kind in from_a_message() if issubclass(kind, errors.TrainingFailedError)]),
    message=st.text(),
    evidence=st.dictionaries(st.text(), st.integers() | st.text() | st.floats(allow_nan=False, allow_infinity=False)),
)
def test_what_a_check_saw_arrives_with_its_error(
    kind: type[TrainingFailedError], message: str, evidence: dict[str, object]
) -> None:
    arrived = revived(json.loads(json.dumps(described(kind(message, evidence)))))
    assert isinstance(arrived, kind)
    assert (str(arrived), arrived.evidence) == (message, evidence)


def test_an_error_that_cannot_travel_arrives_as_its_branch() -> None:
    assert error_message(SourceError("no column"))["error"]["type"] == "InputError"


@pytest.mark.parametrize(
    ("returncode", "error", "words"),
    [
        (1, WorkerError, "exit code 1: ImportError: no torch"),
        (0, None, ""),
        (75, WorkerInterruptedError, "asked to stop"),
        (-9, WorkerError, "SIGKILL"),
    ],
)
def test_a_worker_without_a_word_is_judged_by_its_exit_code_and_never_a_verdict(
    returncode: int, error: type[FtpipelineError] | None, words: str
) -> None:
    outcome = WorkerOutcome(REQUEST)
    if error is None:
        outcome.raise_unless_good(returncode, "")
        return
    with pytest.raises(error, match=words):
        outcome.raise_unless_good(returncode, "ImportError: no torch")


def test_a_said_error_counts_even_when_the_worker_ends_with_zero() -> None:
    outcome = WorkerOutcome(REQUEST)
    outcome.hear(error_message(TrainingFailedError("loss is nan")))
    with pytest.raises(TrainingFailedError):
        outcome.raise_unless_good(0, "")


def test_progress_is_passed_on_and_foreign_lines_are_not_ours() -> None:
    heard: list[tuple[int, int, str]] = []
    outcome = WorkerOutcome(REQUEST, lambda done, total, note: heard.append((done, total, note)))
    for line in ("a library prints\n", "[1, 2]\n", '{"progress": [1, 2, "loss 0.5"]}\n', '{"metric": {"step": 1}}\n'):
        outcome.hear_line(line)
    assert heard == [(1, 2, "loss 0.5")]


@pytest.mark.parametrize(
    "message", [{"progress": 3}, {"error": {"type": "SystemExit", "message": ""}}, {"error": "no"}]
)
def test_a_message_of_another_form_is_refused(message: dict[str, object]) -> None:
    with pytest.raises(WorkerError, match="unknown form"):
        WorkerOutcome(REQUEST).hear(message)
