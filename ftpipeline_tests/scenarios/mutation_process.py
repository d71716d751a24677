"""Runs one call of one step through the engine, in a process of its own: `python -m` this serves requests on stdin.

The server has loaded the engine and nothing else. It forks for each request, so no request meets what another one has
loaded or remembers, and none pays for importing the engine.
"""

import ast
import functools
import importlib
import json
import os
import sys
from contextlib import closing
from pathlib import Path
from typing import Any
from unittest.mock import patch

from ftpipeline.engine import identity
from ftpipeline.engine.bind import BoundPort, BoundStep
from ftpipeline.engine.fingerprint import environment_fingerprint
from ftpipeline.engine.runner import Call, Runner
from ftpipeline.records import RunContext, StepResult
from ftpipeline.store.home import Home
from ftpipeline.store.opened import Store


class _Silent:
    """An observer that nobody listens to."""

    def started(self, step: str) -> None: ...

    def progress(self, step: str, done: int, total: int, note: str = "") -> None: ...

    def said(self, step: str, level: str, text: str) -> None: ...

    def finished(self, result: StepResult) -> None: ...


def serve() -> None:
    """Answer one JSON request a line, until the input ends."""
    for line in sys.stdin:
        if (child := os.fork()) == 0:
            print(json.dumps(_answer(json.loads(line))), flush=True)
            os._exit(0)
        if os.waitpid(child, 0)[1] != 0:  # the child has said why on stderr
            print(json.dumps({"action": "failed", "output": "", "key": ""}), flush=True)


def _answer(request: dict[str, Any]) -> dict[str, str]:
    os.environ.update(request["env"])
    sys.dont_write_bytecode = True
    sys.path[:0] = request["path"]
    fingerprint = functools.partial(environment_fingerprint, **request["machine"])  # another machine than this one
    with (
        patch.object(identity, "environment_fingerprint", fingerprint),
        closing(Home(Path(request["home"])).open()) as store,
    ):
        result = _run(request, store)
        return {"action": str(result.action), "output": result.output, "key": result.key}


def _run(request: dict[str, Any], store: Store) -> StepResult:
    module, _, name = request["step"].partition(":")
    ports = {port: BoundPort(target) for port, target in request["ports"].items()}
    bound = BoundStep(getattr(importlib.import_module(module), name), ports)
    inputs = {name: store.trees.put(Path(folder)) for name, folder in request["inputs"].items()}
    call = Call(bound, inputs, ast.literal_eval(request["params"]))
    return Runner(store, _Silent()).run(call, RunContext("run", "matrix"))


if __name__ == "__main__":
    serve()
