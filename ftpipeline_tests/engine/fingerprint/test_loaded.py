"""Code that was edited after it was loaded is refused; code that only moved is not."""

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from ftpipeline.engine.fingerprint import require_loaded_equals_source
from ftpipeline.errors import StepDefinitionError
from ftpipeline_tests.engine.fingerprint.projects import Project

_SOURCE = '''
import functools
from dataclasses import dataclass


def run(x):
    """Say what."""
    return [x + n for n in range(3)]


@functools.lru_cache
def cached():
    return 1


@dataclass
class Record:
    n: int = 1

    @property
    def twice(self):
        return self.n * 2

    @classmethod
    def made(cls):
        return cls(5)
'''


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


@pytest.fixture
def module(project: Project, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    project.write({"loaded_code.py": _SOURCE})
    monkeypatch.syspath_prepend(str(project.root))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield importlib.import_module("loaded_code")
    del sys.modules["loaded_code"]


def test_unchanged_code_is_accepted(module: ModuleType) -> None:
    require_loaded_equals_source([module.run, module.Record, "loaded_code"])


@pytest.mark.parametrize(
    "text",
    [f"# a comment\n\n{_SOURCE}", _SOURCE.replace("Say what.", "Say more."), f"{_SOURCE}\n\ndef new(): return 1\n"],
    ids=["comment", "docstring", "new function"],
)
def test_what_the_loaded_code_does_not_notice_is_accepted(project: Project, module: ModuleType, text: str) -> None:
    project.write({"loaded_code.py": text})
    require_loaded_equals_source([module.run])


@pytest.mark.parametrize(
    ("old", "new", "name"),
    [
        ("range(3)", "range(4)", "run"),
        ("return 1", "return 2", "cached"),
        ("self.n * 2", "self.n * 3", "Record.twice"),
        ("cls(5)", "cls(6)", "Record.made"),
    ],
)
def test_an_edit_after_loading_is_refused_by_name(
    project: Project, module: ModuleType, old: str, new: str, name: str
) -> None:
    require_loaded_equals_source(["loaded_code"])
    project.write({"loaded_code.py": _SOURCE.replace(old, new)})
    with pytest.raises(StepDefinitionError, match=rf"loaded_code\.{name} differs .* restart the code server"):
        require_loaded_equals_source(["loaded_code"])


def test_a_module_that_is_not_loaded_is_left_out() -> None:
    require_loaded_equals_source(["not_loaded_anywhere"])
