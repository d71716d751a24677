"""The mutation matrix through the engine: what can change a result executes again (0 stale), nothing else (0 needless).

Both calls of a row have processes of their own and share one home, so the second finds every cache of the first warm.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from ftpipeline_tests.scenarios.mutation_rows import CODE_EXECUTES, CODE_REUSES, EXECUTES, REUSES, Row, Side

_ROOT = Path(__file__).parents[2]
_SERVER = "ftpipeline_tests.scenarios.mutation_process"


@dataclass(frozen=True)
class Engine:
    """Runs calls in fresh processes.

    Attributes:
        server: the process that forks them.
        empty: a home with an empty store.
    """

    server: subprocess.Popen[str]
    empty: Path

    def run(self, row: Row, folder: Path) -> tuple[dict[str, str], dict[str, str]]:
        """Return the answers to both calls of a row."""
        shutil.copytree(self.empty, folder / "home")
        _arrange(row.before, folder)
        before = self.call(row.before, folder)
        if row.after.project != row.before.project:
            target = folder / row.after.project
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.move(folder / row.before.project, target)
        _arrange(row.after, folder)
        return before, self.call(row.after, folder)

    def call(self, side: Side, folder: Path) -> dict[str, str]:
        """Return action, output and key of one call."""
        project = folder / side.project
        request = {
            "path": [str(project), str(project / "env" / "site-packages")],
            "home": str(folder / "home"),
            "step": "work:work",
            "inputs": {name: str(project / place) for name, place in side.inputs.items()},
            **{name: getattr(side, name) for name in ("env", "ports", "params", "machine")},
        }
        assert self.server.stdin is not None
        assert self.server.stdout is not None
        self.server.stdin.write(json.dumps(request) + "\n")
        self.server.stdin.flush()
        answer: dict[str, Any] = json.loads(self.server.stdout.readline())
        return answer


def _arrange(side: Side, folder: Path) -> None:
    project = folder / side.project
    for path in sorted(project.rglob("*"), reverse=True):
        if path.is_dir() and not any(path.iterdir()):
            path.rmdir()
        elif path.is_file() and str(path.relative_to(project)) not in side.files:
            path.unlink()
    for relative, text in side.files.items():
        path = project / relative
        path.parent.mkdir(parents=True, exist_ok=True)
        content = dedent(text).lstrip("\n")
        if not path.exists() or path.read_text() != content:
            path.write_text(content)
        if side.times is not None:
            os.utime(path, (side.times, side.times))


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    empty = tmp_path_factory.mktemp("empty") / "home"
    prepare = "import sys; from pathlib import Path; from ftpipeline.store.home import Home\n"
    prepare += "Home(Path(sys.argv[1])).open().close()"
    environment = {"PATH": os.environ["PATH"], "HOME": os.environ["HOME"], "PYTHONPATH": str(_ROOT)}
    subprocess.run([sys.executable, "-c", prepare, str(empty)], env=environment, check=True)
    with subprocess.Popen(
        [sys.executable, "-m", _SERVER], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        yield Engine(server, empty)
        assert server.stdin is not None
        server.stdin.close()


def _rows(rows: tuple[Row, ...], code: tuple[Row, ...]) -> list[Any]:
    slow = [pytest.param(row, marks=pytest.mark.slow, id=f"code: {row.name}") for row in code]
    return [*(pytest.param(row, id=row.name) for row in rows), *slow]


@pytest.mark.parametrize("row", _rows(EXECUTES, CODE_EXECUTES))
def test_what_can_change_the_result_executes_again(row: Row, engine: Engine, tmp_path: Path) -> None:
    before, after = engine.run(row, tmp_path)
    assert before["key"] != after["key"]
    assert (before["action"], after["action"]) == ("executed", "executed")


@pytest.mark.parametrize("row", _rows(REUSES, CODE_REUSES))
def test_what_cannot_change_the_result_is_reused(row: Row, engine: Engine, tmp_path: Path) -> None:
    before, after = engine.run(row, tmp_path)
    assert (before["action"], after["action"]) == ("executed", "reused")
    assert before["output"] == after["output"]
