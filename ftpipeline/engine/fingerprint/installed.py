"""Which installed distribution provides a module, read from the folder names and file lists of the installation."""

import os
import re
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from ftpipeline.engine.fingerprint.stamps import Stamp, is_unchanged, settled_stamp

_METADATA_SUFFIXES = (".dist-info", ".egg-info")
_RECORDED_TOP = re.compile(rb"^([A-Za-z_]\w*)(?:/|\.py,|\.[\w-]+\.so,)", re.MULTILINE)


def normalised(name: str) -> str:
    """Return a distribution's name in the one spelling it is compared in."""
    return re.sub(r"[-_.]+", "-", name).lower()


class Installation:
    """What is installed on a search path now.

    Attributes:
        metadata: the metadata folders of all distributions, in the order of the path; their names hold the versions.
    """

    def __init__(self, path: Sequence[str]) -> None:
        """List the folders of `path`."""
        self.metadata = tuple(found for entry in path for found in _metadata_folders(entry))

    def providers_of(self, module: str) -> tuple[str, ...]:
        """Return the distributions that provide the top-level package of `module`; empty if none does.

        The names are normalised. Packages shared by several distributions (namespaces) name all of them.
        """
        top = module.partition(".")[0]
        return () if top in sys.stdlib_module_names else tuple(sorted(_providers(self.metadata).get(top, ())))

    def declaring_entry_points(self) -> tuple[str, ...]:
        """Return the distributions that declare entry points."""
        declaring = (folder for folder in self.metadata if os.path.isfile(os.path.join(folder, "entry_points.txt")))
        return tuple(sorted({_name(folder) for folder in declaring}))


@cache
def _providers(metadata: tuple[str, ...]) -> dict[str, set[str]]:
    table: dict[str, set[str]] = {}
    for folder in metadata:
        for top in _tops(Path(folder)):
            table.setdefault(top, set()).add(_name(folder))
    return table


_listed: dict[str, tuple[Stamp, list[str]]] = {}


def _metadata_folders(entry: str) -> list[str]:
    """List the metadata folders of one entry of the path, from memory while nothing was added there or removed."""
    known = _listed.get(entry)
    if known is None or not is_unchanged(entry, known[0]):
        known = _listed[entry] = (settled_stamp(entry), _list(entry))
    return known[1]


def _list(entry: str) -> list[str]:
    try:
        names = sorted(os.listdir(entry))
    except (FileNotFoundError, NotADirectoryError, PermissionError):  # Python's own finder passes over these too
        return []
    folders = (os.path.join(entry, name) for name in names if name.endswith(_METADATA_SUFFIXES))
    return [folder for folder in folders if os.path.isdir(folder)]


def _name(folder: str) -> str:
    return normalised(os.path.basename(folder).partition("-")[0])


def _tops(folder: Path) -> set[str]:
    listed = folder / "top_level.txt"
    if listed.is_file():
        return set(listed.read_text("utf-8").split())
    record = folder / "RECORD"
    return {top.decode() for top in _RECORDED_TOP.findall(record.read_bytes())} if record.is_file() else set()
