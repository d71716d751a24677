"""The `ftpipeline` command."""

import sys

import typer

from ftpipeline.cli.audit import lineage, upgrade
from ftpipeline.cli.bundle import verify
from ftpipeline.cli.common import fail
from ftpipeline.cli.demo import demo
from ftpipeline.cli.detect import detect
from ftpipeline.cli.erase import erase
from ftpipeline.cli.gate import gate
from ftpipeline.cli.leakage import leakage
from ftpipeline.cli.ledger import app as ledger_app
from ftpipeline.cli.maintenance import app as quarantine_app
from ftpipeline.cli.maintenance import fsck, gc
from ftpipeline.cli.manifests import app as manifest_app
from ftpipeline.cli.registry import app as registry_app
from ftpipeline.cli.registry import promote, resolve, rollback
from ftpipeline.cli.replay import replay
from ftpipeline.cli.run import run
from ftpipeline.cli.source import app as source_app
from ftpipeline.cli.trace import isolate, trace
from ftpipeline.errors import FtpipelineError

app = typer.Typer(
    name="ftpipeline",
    help="Weekly LoRA retraining as Dagster assets that can be trusted and audited.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)
_VERBS = (
    *(demo, run, lineage, verify, resolve, promote, rollback),
    *(leakage, detect, trace, isolate, replay, gate, fsck, gc, erase, upgrade),
)
for verb in _VERBS:
    app.command(verb.__name__)(verb)
app.add_typer(registry_app, name="registry")
app.add_typer(manifest_app, name="manifest")
app.add_typer(ledger_app, name="ledger")
app.add_typer(quarantine_app, name="quarantine")
app.add_typer(source_app, name="source")


def main() -> None:
    """Run the command line; errors of the tree are one line and their exit code."""
    try:
        app()
    except FtpipelineError as error:
        sys.exit(fail(error))


if __name__ == "__main__":
    main()
