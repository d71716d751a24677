"""Steps and ports for the engine's tests; a module of its own, because pytest rewrites the code of test modules."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ftpipeline.errors import EmptyResultError
from ftpipeline.records import Facts, StepKind, step


@step("copy", code_version="1")
def copy(inputs: Mapping[str, Path], params: Mapping[str, Any], out: Path) -> Facts:
    text = "".join((inputs[name] / "text.txt").read_text() for name in sorted(inputs))
    (out / "text.txt").write_text(text + params["add"])
    return {"length": len(text) + len(params["add"])}


@step("copy", code_version="2")
def copy_v2(inputs: Mapping[str, Path], params: Mapping[str, Any], out: Path) -> Facts:
    return copy.function(inputs, params, out)


@step("copy", code_version="1", kind=StepKind.SOURCE)
def source(inputs: Mapping[str, Path], params: Mapping[str, Any], out: Path) -> Facts:
    return copy.function(inputs, params, out)


@step("spoiled", code_version="1")
def spoiled(inputs: Mapping[str, Path], params: Mapping[str, Any], out: Path) -> Facts:
    (out / "half.txt").write_text("half")
    raise EmptyResultError("no row is left; widen the window")


@step("infinite", code_version="1")
def infinite(inputs: Mapping[str, Path], params: Mapping[str, Any], out: Path) -> Facts:
    return {"loss": float("inf")}


@step("ported", code_version="1")
def ported(inputs: Mapping[str, Path], params: Mapping[str, Any], out: Path, *, port: Any, progress: Any) -> Facts:
    progress(1, 2, "half way")
    return {"port": port.word}


@step("needy", code_version="1", distributions=["no-such-distribution"])
def needy(inputs: Mapping[str, Path], params: Mapping[str, Any], out: Path) -> Facts:
    return {}


class Word:
    """A port that counts how often it was made."""

    made = 0

    def __init__(self, word: str) -> None:
        Word.made += 1
        self.word = word


class Other(Word):
    """Another implementation of the port."""
