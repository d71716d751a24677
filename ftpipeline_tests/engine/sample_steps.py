"""Steps and ports for the engine's tests; a module of its own, because pytest rewrites the code of test modules."""

import os
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
    """A port."""

    def __init__(self, word: str) -> None:
        self.word = word


class Other(Word):
    """Another implementation of the port."""


@step("nosy", code_version="1")
def nosy(inputs: Mapping[str, Path], params: Mapping[str, Any], out: Path) -> Facts:
    """Reads a file that it does not declare, and swallows the denial."""
    try:
        text = Path(params["file"]).read_text()
    except OSError:
        text = "denied"
    return {"text": text}


@step("declared", code_version="1", reads=["sample.txt"], env=["FTPIPELINE_TEST_WORD"])
def declared(inputs: Mapping[str, Path], params: Mapping[str, Any], out: Path) -> Facts:
    """Reads a file and a variable that it declares."""
    word = os.environ.get("FTPIPELINE_TEST_WORD", "unset")
    return {"text": Path(__file__).with_name("sample.txt").read_text().strip(), "word": word}


@step("ordered", code_version="1")
def ordered(inputs: Mapping[str, Path], params: Mapping[str, Any], out: Path) -> Facts:
    """Writes its parameters in the order that it gets them."""
    (out / "order.txt").write_text(" ".join(params["weights"]))
    return {}
