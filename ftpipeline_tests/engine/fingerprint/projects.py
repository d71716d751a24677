"""Small projects on disk, fingerprinted in fresh interpreters."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import dedent
from typing import Any

import ftpipeline

_PROGRAM = """
import importlib, json, sys
from pathlib import Path
from ftpipeline.engine.fingerprint import code_fingerprint
request = json.loads(sys.argv[1])
def root(name):
    module, _, attribute = name.partition(":")
    return getattr(importlib.import_module(module), attribute) if attribute else module
roots = [root(name) for name in request["roots"]]
cache = request["cache"] and Path(request["cache"])
fingerprint = code_fingerprint(roots, cache=cache)
result = repr(roots[0]()) if request["call"] else None
print(json.dumps({**vars(fingerprint), "result": result, "loaded": sorted(sys.modules)}))
"""


@dataclass(frozen=True)
class Project:
    """A project of source and data files under `root`.

    Attributes:
        root: folder that is put on the import path.
        files: relative path to text.
    """

    root: Path
    files: Mapping[str, str] = field(default_factory=dict)

    def write(self, files: Mapping[str, str]) -> None:
        """Write `files`; a package folder needs no `__init__.py` in `files`, it gets an empty one."""
        for relative, text in files.items():
            path = self.root / relative
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(dedent(text).lstrip("\n"), "utf-8")
            for folder in path.relative_to(self.root).parents:
                package = self.root / folder / "__init__.py"
                if folder != Path() and path.suffix == ".py":
                    package.touch()

    def fingerprint(
        self,
        roots: Sequence[str] = ("pkg.step:run",),
        *,
        env: Mapping[str, str] | None = None,
        call: bool = True,
        cache: Path | None = None,
        also: Sequence[Path] = (),
    ) -> dict[str, Any]:
        """Return the fingerprint's fields, the first root's `result`, and the names of the `loaded` modules."""
        path = [str(self.root), *map(str, also), str(Path(ftpipeline.__file__).parents[1])]
        request = {"roots": list(roots), "call": call, "cache": str(cache) if cache else None}
        done = subprocess.run(
            [sys.executable, "-B", "-W", "error", "-c", _PROGRAM, json.dumps(request)],
            env={"PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join(path), **(env or {})},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        fields: dict[str, Any] = json.loads(done.stdout)
        return fields


_CHAINS = 10


def large_project(modules: int) -> dict[str, str]:
    """Return the files of a package `pkg` of `modules` modules in five folders; `pkg.step:run` reaches all of them."""
    names = [f"pkg.part{number % 5}.module{number}" for number in range(modules)]
    imports = "".join(f"from {name} import last as last{index}\n" for index, name in enumerate(names[-_CHAINS:]))
    calls = ", ".join(f"last{index}({{}}, 3)" for index in range(len(names[-_CHAINS:])))
    files = {"pkg/step.py": f"{imports}\n\ndef run():\n    return {calls}\n"}
    for number, name in enumerate(names):
        previous = f"from {names[number - _CHAINS]} import last as previous" if number >= _CHAINS else "previous = None"
        files[f"{name.replace('.', '/')}.py"] = _large_module(number, previous)
    return files


def _large_module(number: int, previous: str) -> str:
    functions = "".join(
        f'''

def work_{index}(rows, limit=LIMIT):
    """Filter and count {index}."""
    kept = [row for row in sorted(rows) if len(str(row)) <= limit + {index}]
    table = {{key: value for key, value in enumerate(kept) if PATTERN.match(str(value))}}
    total = sum(table) + len(table) * {number}
    if total > limit and any(kept):
        raise ValueError(f"too many rows: {{total}} of {{len(kept)}}")
    return {f"work_{index - 1}(kept, limit)" if index else "total"}
'''
        for index in range(6)
    )
    return f"""import re
from collections.abc import Mapping
{previous}

LIMIT = {number}
PATTERN = re.compile(r"[a-z]+{number}")


class Record:
    def __init__(self, values: Mapping, limit: int = LIMIT) -> None:
        self.values = dict(values)
        self.limit = limit

    def scaled(self, factor):
        return [value * factor for value in self.values if value < self.limit]
{functions}

def last(values, factor):
    found = Record(values).scaled(factor) + [work_5(values)]
    return previous(values, factor) + found if previous else found
"""
