from pathlib import Path

import pytest

from ftpipeline_tests.requirements import require


@pytest.fixture(autouse=True)
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program in a folder that is not on PATH."""
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    path = tmp_path / "bin" / "program"
    path.parent.mkdir()
    path.touch(mode=0o755)
    return path


def test_a_program_is_found_on_the_path_or_in_the_folders_given(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert require("other", "program", how="", folders=[program.parent]) == program
    monkeypatch.setenv("PATH", str(program.parent))
    assert require("program", how="") == program


@pytest.mark.parametrize("ci", ["", "false"])
def test_a_missing_program_skips_with_the_way_to_get_it(monkeypatch: pytest.MonkeyPatch, ci: str) -> None:
    monkeypatch.setenv("CI", ci)
    with pytest.raises(pytest.skip.Exception, match="program not found; install it"):
        require("program", how="install it")


def test_a_missing_program_fails_in_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="program not found; install it"):
        require("program", how="install it")
