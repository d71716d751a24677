"""What a fingerprint is asked for: under it, the answer is kept in the process and on disk."""

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ftpipeline import digest
from ftpipeline.engine.fingerprint.modules import installed_folders
from ftpipeline.engine.fingerprint.roots import Root

Identity = tuple[tuple[tuple[str, int], ...], tuple[Path, ...], tuple[str, ...]]


@dataclass(frozen=True)
class Question:
    """The roots, and where Python and the user say that code is.

    Attributes:
        roots: what the closure starts from.
        project_roots: folders whose code is first-party; None for the default.
        search_path: `sys.path`, with the current folder in place of the empty entry.
    """

    roots: Sequence[Root]
    project_roots: Sequence[Path] | None
    search_path: tuple[str, ...]

    @property
    def identity(self) -> Identity:
        """What tells this question from all others in the process."""
        return tuple(root.identity for root in self.roots), tuple(self.project_roots or ()), self.search_path

    @property
    def modules(self) -> list[str]:
        """The modules of the roots."""
        return [root.module for root in self.roots]

    @property
    def facts_key(self) -> str:
        """What tells apart sets of files that are read together: the roots, in whatever checkout they stand."""
        return digest.of_json(sorted(root.label for root in self.roots)).removeprefix("sha256:")

    @property
    def key(self) -> str:
        """What tells this question from those of other processes, checkouts and environments."""
        roots = [[root.label, root.value is None] for root in self.roots]
        folders = [os.path.realpath(root) for root in self.project_roots or ()]
        interpreter = [sys.prefix, sys.base_prefix, sorted(installed_folders())]
        return digest.of_json([roots, folders, list(self.search_path), interpreter]).removeprefix("sha256:")


def search_path() -> tuple[str, ...]:
    """Return where Python looks for modules now."""
    return tuple(dict.fromkeys(entry or os.getcwd() for entry in sys.path))
