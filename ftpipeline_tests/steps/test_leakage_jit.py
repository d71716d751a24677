"""Machine code is kept where it can be written, apart for every content of the kernels, and never in the package."""

import sys
from pathlib import Path

import numba
import pytest

import ftpipeline
from ftpipeline.errors import MissingDependencyError
from ftpipeline.steps.leakage import jit

cache_folder = jit.cache_folder.__wrapped__


def test_the_folder_that_numba_is_given_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    assert cache_folder().parent == tmp_path
    assert cache_folder().is_dir()


def test_without_one_it_stands_in_the_home_and_not_in_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder().is_relative_to(tmp_path)
    assert not cache_folder().is_relative_to(Path(ftpipeline.__file__).parent)


def test_a_place_that_cannot_be_written_is_replaced_by_a_private_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "file"))
    folder = cache_folder()
    assert folder.stat().st_mode & 0o077 == 0
    assert folder != cache_folder()


def test_kernel_modules_are_all_named() -> None:
    package = Path(jit.__file__).parent
    compiled = {path.name for path in package.glob("*.py") if "@kernel" in path.read_text()}
    assert compiled <= set(jit.KERNEL_MODULES)
    assert all((package / name).is_file() for name in jit.KERNEL_MODULES)


def test_numba_missing_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numba", None)
    with pytest.raises(MissingDependencyError, match="pip install numba"):
        jit.kernel(lambda: None)
