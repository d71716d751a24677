"""`ftpipeline replay`: what a job that an incident exposed does without the checkpoint that is in doubt."""

import secrets
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from ftpipeline.cli.common import HomeOption, JsonOption, emit, open_store, short, stderr, stdout, stoppable
from ftpipeline.cli.show import ProgressBar
from ftpipeline.cycle.replay import Replayer
from ftpipeline.cycle.watch import signer_of
from ftpipeline.guard.attribute import LEAST_SEEDS
from ftpipeline.ledger.ledger import ledger_of


def replay(
    job: Annotated[
        str, typer.Argument(metavar="JOB", help="A job that an isolated incident exposed.", show_default=False)
    ],
    seeds: Annotated[int, typer.Option(min=1, help="Replays of each arm; fewer than 3 decide nothing.")] = LEAST_SEEDS,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Train an exposed job again, as recorded and without what is in doubt, and tell what speaks for which cause."""
    store = open_store(home)
    with stoppable(), ProgressBar() as bar:
        replayer = Replayer(store, ledger_of(store), signer_of(store), bar, tell=_tell)
        made, receipt = replayer.replay(job, f"replay-{secrets.token_hex(4)}", seeds)
    document = {"job": job, **made.to_json(), "receipt": receipt}
    emit(document, as_json, lambda: _show(document))


def _tell(line: str) -> None:
    stderr.print(line, markup=False)


def _show(document: Mapping[str, Any]) -> None:
    start = document["start"]
    since = "the beginning" if start is None else f"attempt {start['attempt']}, step {start['step']}"
    stdout.print(f"{document['job']}: [bold]{document['cause']}[/], replayed from {since}")
    stdout.print(f"  {arms_line(document['outcomes'])}", markup=False)
    stdout.print(f"  receipt {short(document['receipt'])}", markup=False)


def arms_line(outcomes: Mapping[str, Mapping[str, int]]) -> str:
    """Return k of n by arm, as people read it."""
    return ", ".join(f"{arm}: {each['diverged']} of {each['runs']} diverged" for arm, each in outcomes.items())
