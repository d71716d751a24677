"""What is changed between two calls of one step, and whether it has to execute again: all but code itself."""

import base64
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ftpipeline import manifest
from ftpipeline_tests.engine.fingerprint.mutations import NEUTRAL, SEMANTIC, Mutation

_WORK = """
from ftpipeline.records import step
from pkg.step import run

@step("work", code_version="1"{declared})
def work(inputs, params, out{ports}):
    read = {{name: [file.read_text() for file in sorted(folder.iterdir())] for name, folder in inputs.items()}}
    (out / "result.txt").write_text(repr((run({arguments}), read, params)))
    return {{}}
"""


@dataclass(frozen=True)
class Side:
    """One of a row's two calls of `work:work`.

    Attributes:
        files: path relative to the project's folder to text; everything else there is removed.
        project: name of the project's folder.
        env: environment variables that are set.
        ports: port name to `module:Class`.
        inputs: input name to a folder relative to the project's.
        params: parameters as a Python literal.
        machine: what is injected into the environment fingerprint.
        times: access and modification time of every file, in seconds; None leaves them.
    """

    files: Mapping[str, str]
    project: str = "checkout"
    env: Mapping[str, str] = field(default_factory=dict)
    ports: Mapping[str, str] = field(default_factory=dict)
    inputs: Mapping[str, str] = field(default_factory=dict)
    params: str = "{}"
    machine: Mapping[str, str] = field(default_factory=dict)
    times: int | None = None


@dataclass(frozen=True)
class Row:
    """A change between two calls."""

    name: str
    before: Side
    after: Side


def work(run: str, *, declared: str = "", ports: str = "", arguments: str = "", **others: str) -> dict[str, str]:
    """Return the files of a project whose step calls `pkg.step:run`, with text files of the package by module name."""
    step = _WORK.format(declared=declared and f", {declared}", ports=ports and f", *, {ports}", arguments=arguments)
    modules = {f"pkg/{name}.py": text for name, text in others.items()}
    return {"work.py": step, "pkg/__init__.py": "", "pkg/step.py": run, **modules}


def _edited(name: str, side: Side, path: str, old: str, new: str) -> Row:
    text = side.files[path]
    assert old in text, f"row {name!r} changes nothing"
    return Row(name, side, replace(side, files={**side.files, path: text.replace(old, new)}))


def _distribution(name: str, version: str, code: str = "", requires: str = "") -> dict[str, str]:
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    metadata += f"Requires-Dist: {requires}\n" if requires else ""
    recorded = base64.urlsafe_b64encode(hashlib.sha256(code.encode()).digest()).rstrip(b"=").decode()
    folder = f"env/site-packages/{name}-{version}.dist-info"
    return {
        f"env/site-packages/{name}.py": code,
        f"{folder}/METADATA": metadata,
        f"{folder}/RECORD": f"{name}.py,sha256={recorded},{len(code)}\n",
    }


def _installed(name: str, before: Mapping[str, str], after: Mapping[str, str]) -> Row:
    project = work("def run():\n    import reached\n    return reached.VALUE\n")
    reached = _distribution("reached", "1", "VALUE = 1\n", requires="beneath")
    files = {**project, **reached, **_distribution("beneath", "1"), **_distribution("apart", "1")}
    kept = {path: text for path, text in files.items() if path not in before}
    return Row(name, Side({**kept, **before}), Side({**kept, **after}))


def _params(name: str, before: object, after: object) -> Row:
    files = work("def run(): return 1\n")
    return Row(name, Side(files, params=repr(before)), Side(files, params=repr(after)))


_HASH = "ab" * 32
_MANIFEST: Mapping[str, Any] = {
    "run_id": "router-2026-W40",
    "base_model": {"repo": "org/base", "revision": "cd" * 20, "tree_sha256": f"sha256:{_HASH}"},
    "tokenizer_sha256": _HASH,
    "data": {"train": f"snap://t/w/train@sha256:{_HASH}", "val": f"snap://t/w/val@sha256:{_HASH}"},
    "eval_sets": {role: f"evalset://{role}/v1@sha256:{_HASH}" for role in ("task", "regression", "safety")},
    "code": {"git_commit": "cd" * 20},
    "train": {"seed": 1, "lr": 0.01, "epochs": 2, "lora": {"r": 8, "lora_alpha": 16, "target_modules": ["query"]}},
    "export": {},
    "gates": {"task_min_gain_vs_prod": 0.005, "regression_max_drop": 0.01, "safety_max_drop": 0.0},
}


def _manifest(name: str, **changed: object) -> Row:
    """Return the row of a training step before and after a change of the manifest that it is run under."""
    before, after = (manifest.parse(document, "m") for document in (_MANIFEST, {**_MANIFEST, **changed}))
    assert before != after, f"row {name!r} changes nothing"
    return _params(name, before.projection("train"), after.projection("train"))


_DECLARED = {"file of a computed name read at import": "reads=['pkg/step.json']"}
"""What a step has to declare before its wall lets it read what no literal of its code names."""


def _code(mutation: Mutation, *, declared: str = "") -> Row:
    project = work("", declared=declared)
    return Row(
        mutation.name,
        Side({**project, **_packages(mutation.before)}),
        Side({**project, **_packages({**mutation.before, **mutation.after})}, env=mutation.env),
    )


def _declaring(mutation: Mutation) -> Row:
    return _code(mutation, declared=f"env={list(mutation.env)}" if mutation.env else _DECLARED.get(mutation.name, ""))


def _packages(files: Mapping[str, str]) -> dict[str, str]:
    """Return `files` with an `__init__.py` in every folder that holds a module."""
    folders = {path.rpartition("/")[0] for path in files if path.endswith(".py")}
    return {**{f"{folder}/__init__.py": "" for folder in folders}, **files}


_PLAIN = Side(work("def run(): return 1\n"))
_PORTED = Side(
    work(
        "def run(port): return port.make()\n",
        ports="port",
        arguments="port",
        port="from pkg.made import make\nclass Port:\n    def make(self): return make() + 1\n",
        other="class Port:\n    def make(self): return 5\n",
        made="def make(): return 1\n",
    ),
    ports={"port": "pkg.port:Port"},
)
_READING = Side(
    {**work("def run(): return 1\n"), "in/data/rows.csv": "a\n", "in/data/schema.txt": "one column\n"},
    inputs={"data": "in/data"},
)
_BASE = Side(
    {**work("def run(): return 1\n"), "in/base/tokenizer.json": "{}", "in/base/chat_template.txt": "{{ text }}"},
    inputs={"base_model": "in/base"},
)
_EVALUATED = Side(
    {**work("def run(): return 1\n"), "in/v1/set.csv": "text,label\na,b\n", "in/v2/set.csv": "text,label\na,c\n"},
    inputs={"eval_set": "in/v1"},
)
_LIMITED = Side(
    work("import os\ndef run(): return os.environ['LIMIT']\n", declared="env=['LIMIT']"), env={"LIMIT": "1"}
)
_EXTRA = Side(
    {
        **work(
            "from pathlib import Path\ndef run(): return (Path(__file__).parents[1] / 'extra.txt').read_text()\n",
            declared="reads=['extra.txt']",
        ),
        "extra.txt": "1",
    }
)
_CONFUSED = [
    ("0 and False", 0, False),
    ("0 and 0.0", 0, 0.0),
    ("0.0 and -0.0", 0.0, -0.0),
    ('0 and "0"', 0, "0"),
    ("False and 0.0", False, 0.0),
    ('None and "None"', None, "None"),
    ("a tuple and a list", (1, 2), [1, 2]),
]

EXECUTES = (
    _edited("implementation of a bound port", _PORTED, "pkg/port.py", "+ 1", "+ 2"),
    _edited("function that a bound port calls", _PORTED, "pkg/made.py", "return 1", "return 2"),
    Row("another implementation bound to a port", _PORTED, replace(_PORTED, ports={"port": "pkg.other:Port"})),
    _installed("reached distribution upgraded", _distribution("reached", "1", "VALUE = 1\n", "beneath"),
               _distribution("reached", "2", "VALUE = 2\n", "beneath")),
    _installed("reached distribution rebuilt at the same version", _distribution("reached", "1", "VALUE = 1\n"),
               _distribution("reached", "1", "VALUE = 2\n")),
    _installed("distribution that a reached one requires upgraded", _distribution("beneath", "1"),
               _distribution("beneath", "2")),
    Row("declared environment variable", _LIMITED, replace(_LIMITED, env={"LIMIT": "2"})),
    _edited("declared extra file", _EXTRA, "extra.txt", "1", "2"),
    _edited("input bytes at the same path", _READING, "in/data/rows.csv", "a", "b"),
    Row("new file in an input", _READING, replace(_READING, files={**_READING.files, "in/data/more.csv": "b\n"})),
    *(_params(f"parameters {name}", {"p": one}, {"p": other}) for name, one, other in _CONFUSED),
    _params("parameters with an int key and a str key", {"p": {1: 2}}, {"p": {"1": 2}}),
    _manifest("projected manifest field", train={**_MANIFEST["train"], "lr": 0.02}),
    _edited("tokenizer file", _BASE, "in/base/tokenizer.json", "{}", '{"a": 1}'),
    _edited("template file", _BASE, "in/base/chat_template.txt", "text", "words"),
    Row("new version of an eval set", _EVALUATED, replace(_EVALUATED, inputs={"eval_set": "in/v2"})),
    Row("accelerator kind", _PLAIN, replace(_PLAIN, machine={"accelerator": "cuda"})),
    Row("Python minor version", _PLAIN, replace(_PLAIN, machine={"python": "CPython 3.99"})),
    Row("thread setting", _PLAIN, replace(_PLAIN, env={"OMP_NUM_THREADS": "7"})),
)  # fmt: skip

REUSES = (
    Row("nothing", _PLAIN, _PLAIN),
    _installed("unreached distribution upgraded", _distribution("apart", "1"), _distribution("apart", "2")),
    _installed("unreached distribution removed", _distribution("apart", "1"), {}),
    _manifest("gates in the manifest", gates={**_MANIFEST["gates"], "regression_max_drop": 0.02}),
    _manifest("run_id in the manifest", run_id="router-2026-W41"),
    Row("moved checkout folder", _READING, replace(_READING, project="elsewhere/checkout")),
    Row("home folder of another user", _READING, replace(_READING, env={"HOME": "/home/other"})),
    Row("file times", _READING, replace(_READING, times=10**9)),
    Row("undeclared environment variable", _PLAIN, replace(_PLAIN, env={"LIMIT": "2"})),
    Row("file beside an input", _READING, replace(_READING, files={**_READING.files, "in/notes.txt": "b\n"})),
)

CODE_EXECUTES = tuple(map(_declaring, SEMANTIC))
CODE_REUSES = tuple(map(_code, NEUTRAL))
