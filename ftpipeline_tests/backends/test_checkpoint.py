"""The folder of a checkpoint: whole and of this training, or refused with the file's name."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ftpipeline.backends.checkpoint import FILES, MARKER, Mark, complete, params_digest, verify
from ftpipeline.errors import CheckpointError

PARAMS = params_digest({"train": {"lr": 0.5}})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write(tmp_path / "checkpoint-7")


def write(folder: Path, step: int = 7, epoch: float = 1.75, last_step: int = 9) -> Path:
    folder.mkdir()
    for name in FILES:
        (folder / name).write_text(f"content of {name}")
    complete(folder, step=step, epoch=epoch, last_step=last_step, params=PARAMS)
    return folder


@given(step=st.integers(1, 10**9), epoch=st.floats(0.0, 1e6), left=st.integers(0, 10**6))
def test_a_complete_checkpoint_says_what_it_was_given(
    tmp_path_factory: pytest.TempPathFactory, step: int, epoch: float, left: int
) -> None:
    folder = write(tmp_path_factory.mktemp("one") / f"checkpoint-{step}", step, epoch, step + left)
    mark = verify(folder, PARAMS)
    assert mark == Mark(step, epoch, step + left, PARAMS, mark.files)
    assert sorted(mark.files) == sorted(FILES)
    assert mark.is_last == (left == 0)


def test_a_checkpoint_without_its_marker_was_torn(folder: Path) -> None:
    (folder / MARKER).unlink()
    with pytest.raises(CheckpointError, match=r"checkpoint-7 has no checkpoint\.json: it was not completed"):
        verify(folder)


@pytest.mark.parametrize("name", FILES)
def test_a_missing_file_is_named(folder: Path, name: str) -> None:
    (folder / name).unlink()
    with pytest.raises(CheckpointError, match=f"has no {name}"):
        verify(folder)


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_was_never_saved_is_named_although_the_marker_agrees(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "checkpoint-7"
    folder.mkdir()
    for other in set(FILES) - {name}:
        (folder / other).write_text("x")
    complete(folder, step=7, epoch=1.0, last_step=9, params=PARAMS)
    with pytest.raises(CheckpointError, match=f"has no {name}"):
        verify(folder)


@pytest.mark.parametrize("name", FILES)
def test_an_altered_file_is_named(folder: Path, name: str) -> None:
    (folder / name).write_text("other content")
    with pytest.raises(CheckpointError, match=f"{name} of checkpoint-7"):
        verify(folder)


def test_a_file_that_the_marker_does_not_list_is_refused(folder: Path) -> None:
    (folder / "optimizer_0.pt").write_text("x")
    with pytest.raises(CheckpointError, match=r"optimizer_0\.pt, which its marker does not list"):
        verify(folder)


def test_another_trainings_checkpoint_is_refused_but_may_be_used(folder: Path) -> None:
    with pytest.raises(CheckpointError, match="other parameters"):
        verify(folder, params_digest({"train": {"lr": 0.25}}))
    assert verify(folder).step == 7


@pytest.mark.parametrize("text", ["", "[]", "{}", "{", '{"schema": "ftpipeline.checkpoint/2"}', "\udcff"])
def test_a_marker_that_cannot_be_read_is_refused(folder: Path, text: str) -> None:
    (folder / MARKER).write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(CheckpointError, match=r"checkpoint\.json of checkpoint-7 cannot be read"):
        verify(folder)


def test_a_marker_with_a_digest_that_is_none_is_refused(folder: Path) -> None:
    document = json.loads((folder / MARKER).read_text())
    (folder / MARKER).write_text(json.dumps(document | {"params": "sha256:0"}))
    with pytest.raises(CheckpointError, match="cannot be read"):
        verify(folder)
