"""The mutation matrix beside other tools: how many changes each does not notice, and how many it notices for nothing.

A result is *stale* if it is reused although what it is made from has changed, and *needless* if it is made again
although nothing that counts has. Every call runs for real, in a process of its own, with the caches of the call before.

The other tools are run if they are installed in the interpreter that --peers names:

    python3 -m venv /tmp/peers && /tmp/peers/bin/pip install joblib sf-hamilton redun
    python benchmarks/mutation_matrix.py --peers /tmp/peers/bin/python
"""

import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from _measure import Figure, arguments, at_most, report

from ftpipeline_tests.scenarios.mutation_engine import Engine, Processes, arrange, move, request_for
from ftpipeline_tests.scenarios.mutation_rows import CODE_EXECUTES, CODE_REUSES, EXECUTES, REUSES, Row, Side

_TOOLS = ("ftpipeline", "joblib", "hamilton", "redun")
_SERVER = Path(__file__).with_name("_peers.py")
_WORK = """
from pkg.step import run
{port}
def work(inputs, params):
    read = {{name: [open(file).read() for file in files] for name, files in inputs.items()}}
    return repr((run({argument}), read, params))
"""

Notices = Callable[[Row, Path], bool | None]
"""Runs both calls of a row in a folder and tells whether the second was executed; None if the tool cannot run one."""


def main() -> None:
    """Run every tool over every row."""
    parser = arguments((__doc__ or "").partition("\n")[0])
    parser.add_argument("--peers", default=sys.executable, help="interpreter in which the other tools are installed")
    parser.add_argument("--every", type=int, default=1, help="take only every n-th row of the code")
    parser.add_argument("--tools", nargs="+", choices=_TOOLS, default=_TOOLS, help="which tools to run")
    options = parser.parse_args()
    figures: list[Figure] = []
    for tool in options.tools:
        if tool == "ftpipeline":
            with _engine() as notices:
                figures += _figures(tool, notices, options.every, target=True)
        elif subprocess.run([options.peers, "-c", f"import {tool}"], capture_output=True, check=False).returncode:
            print(f"{tool}: not installed in {options.peers}; this file's head says how to", file=sys.stderr)
        else:
            with Processes.start([options.peers, str(_SERVER), tool]) as processes:
                figures += _figures(tool, _peer(processes), options.every, target=False)
    report(figures, options.json)


def _figures(tool: str, notices: Notices, every: int, *, target: bool) -> Iterator[Figure]:
    """Yield stale and needless counts of one tool, and list on stderr the rows it gets wrong."""
    for word, rows, right in (
        ("stale", [*EXECUTES, *CODE_EXECUTES[::every]], True),
        ("needless", [*REUSES, *CODE_REUSES[::every]], False),
    ):
        seen = [(row.name, _in_a_folder(notices, row)) for row in rows]
        wrong = [row for row, noticed in seen if noticed not in {right, None}]
        name = f"{tool}: {word} of {sum(noticed is not None for _, noticed in seen)}"
        print(f"{name}: {'; '.join(wrong) or 'none'}", file=sys.stderr)
        yield at_most(name, len(wrong), 0) if target else Figure(name, len(wrong))


def _in_a_folder(notices: Notices, row: Row) -> bool | None:
    with tempfile.TemporaryDirectory() as folder:
        return notices(row, Path(folder))


@contextmanager
def _engine() -> Iterator[Notices]:
    with tempfile.TemporaryDirectory() as folder, Engine.start(Path(folder)) as engine:

        def notices(row: Row, place: Path) -> bool:
            before, after = engine.run(row, place)
            if before["action"] != "executed" or after["action"] == "failed":
                raise RuntimeError(f"row {row.name!r} cannot be run: {before}, {after}")
            return after["action"] == "executed"

        yield notices


def _peer(processes: Processes) -> Notices:
    def notices(row: Row, place: Path) -> bool | None:
        if row.after.machine:  # injected into our fingerprint; no other tool can be told
            return None
        sides = [_plain(side) for side in (row.before, row.after)]
        arrange(sides[0], place)
        first = _call(processes, sides[0], place)
        move(row, place)
        arrange(sides[1], place)
        second = _call(processes, sides[1], place)
        return second if first else None

    return notices


def _plain(side: Side) -> Side:
    """Return the side with a plain function in the place of the step; a row about code has one already."""
    if not _is_about_code(side):
        name = next(iter(side.ports.values()), "")
        module, _, port = name.partition(":")
        text = _WORK.format(port=f"from {module} import {port}" if name else "", argument=f"{port}()" if name else "")
        return replace(side, files={**side.files, "work.py": text})
    return side


def _is_about_code(side: Side) -> bool:
    return side.params == "{}" and not (side.ports or side.inputs or side.machine)


def _call(processes: Processes, side: Side, place: Path) -> bool | None:
    """Call the function through the tool and return whether it was executed; None if that failed."""
    inputs = {name: sorted(map(str, (place / side.project / at).iterdir())) for name, at in side.inputs.items()}
    passed = "{}" if _is_about_code(side) else f"{{'inputs': {inputs!r}, 'params': {side.params}}}"
    function = "pkg.step:run" if _is_about_code(side) else "work:work"
    answer = processes.ask({**request_for(side, place), "function": function, "arguments": passed})
    if "error" in answer:
        print(answer["error"].strip().splitlines()[-1], file=sys.stderr)
    return answer.get("executed")


if __name__ == "__main__":
    main()
