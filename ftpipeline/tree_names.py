"""Which relative file names a tree may hold, so that it checks out the same on every file system."""

import unicodedata
from collections.abc import Iterable

from ftpipeline.errors import TreeError


def check_names(paths: Iterable[str]) -> None:
    """Refuse names that could leave the folder, or that some file systems take for one another.

    Args:
        paths: posix paths of files, relative to the tree.

    Raises:
        TreeError: a path is not relative and normal, or two of them (or folders above them) collide.
    """
    names: dict[str, str] = {}
    files: set[str] = set()
    folders: set[str] = set()
    for path in paths:
        _check_form(path)
        parts = path.split("/")
        prefixes = ["/".join(parts[:count]) for count in range(1, len(parts) + 1)]
        for name in prefixes:
            known = names.setdefault(_folded(name), name)
            if known != name:
                raise TreeError(f"names {known!r} and {name!r} collide by case or Unicode form; rename one of them")
        files.add(path)
        folders.update(prefixes[:-1])
    for name in sorted(files & folders):
        raise TreeError(f"name {name!r} is both a file and a folder; rename one of them")


def _folded(name: str) -> str:
    """Return what is equal for names that differ by case or Unicode form only (canonical caseless matching)."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFD", name).casefold())


def _check_form(path: str) -> None:
    if any(part in ("", ".", "..") for part in path.split("/")):
        raise TreeError(f"path {path!r} is not relative and normal; use names without '..', '.' or a leading '/'")
    if "\\" in path or "\0" in path:
        raise TreeError(f"path {path!r} holds a backslash or a null; rename the file")
    try:
        path.encode()
    except UnicodeEncodeError as error:
        raise TreeError(f"path {path!r} is not UTF-8; rename the file") from error
