"""A tiny pipeline with its home in one folder, driven through the command line and copied to branch off."""

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ftpipeline_tests.cli.command import Outcome, ftpipeline
from ftpipeline_tests.tiny_pipeline import build_tiny_pipeline, write_pipeline

NAME = "tiny"
GATES = {"task_min_gain_vs_prod": 0.0, "regression_max_drop": 1.0, "safety_max_drop": 1.0}
RETICENT = {"max_abstain": 0.4}
"""Abstention of a first release that leaves the second something to gain."""

_TRAIN = {
    "seed": 1,
    "lr": 0.01,
    "max_steps": 60,
    "batch_size": 8,
    "max_length": 16,
    "modules_to_save": ["classifier", "pooler"],
    "lora": {"r": 4, "lora_alpha": 8, "target_modules": ["query", "key", "value"]},
}


@dataclass(frozen=True)
class Site:
    """A pipeline and its home.

    Attributes:
        folder: of both.
        last: what the last run of this site, or of the one that it is a copy of, printed.
    """

    folder: Path
    last: Any = None

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def file(self) -> Path:
        return self.folder / "pipeline.yaml"

    @property
    def artifact(self) -> str:
        """What the last run exported."""
        return str(self.last["artifact"])

    @property
    def outputs(self) -> dict[str, Any]:
        """Digest by step of the last run."""
        return {step["name"]: step["digest"] for step in self.last["steps"]}

    @property
    def executed(self) -> set[str]:
        """The steps that the last run did not reuse."""
        return {step["name"] for step in self.last["steps"] if step["action"] == "executed"}

    def copy(self, folder: Path) -> "Site":
        return Site(Path(shutil.copytree(self.folder, folder)), self.last)

    def declare(self, **sections: Any) -> None:
        """Write the pipeline file anew, some sections other than usual."""
        write_pipeline(self.file, name=NAME, **{"train": _TRAIN, "gates": GATES, **sections})

    def command(self, *arguments: object) -> Outcome:
        return ftpipeline(*arguments, "--home", self.home)

    def document(self, *arguments: object, code: int = 0) -> Any:
        """What a command prints for scripts."""
        done = self.command(*arguments, "--json")
        assert done.code == code, done.stderr
        return done.document

    def run(self, week: str, code: int = 0) -> "Site":
        """Run a week and return the site with what it printed."""
        return Site(self.folder, self.document("run", self.file, "--week", week, code=code))

    def promote(self, to: str, expect: int) -> Any:
        """Promote what the last run exported."""
        arguments = ("--to", to, "--expect", expect, "--reason", "it is better")
        return self.document("promote", NAME, self.artifact, *arguments)

    def production(self) -> str:
        return str(self.document("resolve", f"{NAME}@production")["digest"])


def build_site(folder: Path) -> Site:
    """Write everything that the pipeline needs; its file is still to be declared."""
    build_tiny_pipeline(folder, name=NAME)
    return Site(folder)
