"""Inputs of code that are not code: data files of the project's packages, and environment variables read at import.

A data file counts when a text literal of the reached code names it: by its name, its folder, its suffix or a pattern.
"""

import fnmatch
import os
import re
from collections.abc import Collection, Iterable, Iterator, Sequence

from ftpipeline.engine.fingerprint.disk import Disk
from ftpipeline.engine.fingerprint.modules import Located

EVERYTHING = "\0every data file of the package\0"
"""Stands among the literals for every data file of a package; no file name can hold it."""

_NOT_DATA = (".py", ".pyc", ".pyi", ".so", ".pyd")
_SKIPPED_FOLDERS = frozenset({"node_modules", "site-packages", "dist-packages"})
_ENVIRONMENT_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SUFFIX = re.compile(r"(\.\w+)+")
_PATTERN = re.compile(r"[\w.\-]*[*?][\w.\-*?]*")  # what may be a pattern for files, and is no regular expression


class DataFiles:
    """Finds the data files beside the modules of a package."""

    def __init__(self, disk: Disk) -> None:
        """List folders and read files from `disk`."""
        self._disk = disk
        self._listed: dict[str, tuple[str, ...]] = {}

    def named(self, package: Located, literals: Collection[str]) -> Iterator[tuple[str, str]]:
        """Yield `(path relative to the package, absolute path)` of the data files that one of `literals` names.

        Args:
            package: a top-level module; beside one that is no package, only files in its own folder are found.
            literals: short text literals of the package's reached code; `EVERYTHING` stands for all files.
        """
        for folder in _folders(package):
            files = self._files(folder, deep=bool(package.folders))
            for relative in _matching(files, literals) if files else ():
                yield f"{package.name}/{relative}", os.path.join(folder, relative)

    def digest(self, path: str) -> str:
        """Return the digest of a data file's bytes."""
        return self._disk.digest(path)

    def _files(self, folder: str, *, deep: bool) -> tuple[str, ...]:
        if folder not in self._listed:
            self._listed[folder] = tuple(sorted(self._walk(folder, "", deep=deep)))
        return self._listed[folder]

    def _walk(self, folder: str, prefix: str, *, deep: bool) -> Iterator[str]:
        for name, is_folder in self._disk.entries(folder).items():
            if name.startswith(".") or name in _SKIPPED_FOLDERS:
                continue
            if is_folder:
                if deep:
                    yield from self._walk(os.path.join(folder, name), f"{prefix}{name}/", deep=True)
            elif not name.endswith(_NOT_DATA):
                yield prefix + name


def environment_names(literals: Iterable[str]) -> tuple[str, ...]:
    """Return those of `literals` that can be names of environment variables."""
    return tuple(sorted(text for text in set(literals) if _ENVIRONMENT_NAME.fullmatch(text)))


def _folders(package: Located) -> Sequence[str]:
    return package.folders or ((os.path.dirname(package.path),) if package.path else ())


def _matching(files: Sequence[str], literals: Collection[str]) -> Iterator[str]:
    names: set[str] = set()
    patterns = ["*"] if EVERYTHING in literals else []
    for literal in literals:
        last = literal.rstrip("/").rpartition("/")[2]
        if _SUFFIX.fullmatch(last):
            patterns.append(f"*{last}")
        elif _PATTERN.fullmatch(last) and "." in last.strip("."):
            patterns.append(last)
        names.add(last)
    for file in files:
        parts = file.split("/")
        if not names.isdisjoint(parts) or any(fnmatch.fnmatchcase(parts[-1], pattern) for pattern in patterns):
            yield file
