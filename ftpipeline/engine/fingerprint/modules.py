"""Where modules stand on disk, found without importing them, and whose they are: the project's, or a distribution's."""

import os
import site
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib.machinery import EXTENSION_SUFFIXES, ModuleSpec
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from ftpipeline.engine.fingerprint.disk import Disk

_INSTALLED_FOLDERS = frozenset({"site-packages", "dist-packages"})
OWN_PACKAGE: Final = __name__.partition(".")[0]
"""First-party as far as names lead into it; code elsewhere that is dynamic does not widen the closure to all of it."""
_SUFFIXES = (".py", *EXTENSION_SUFFIXES)


@dataclass(frozen=True)
class Located:
    """A module on disk.

    Attributes:
        name: dotted name.
        path: its file; None for a namespace package.
        folders: where its submodules stand; empty unless it is a package.
    """

    name: str
    path: str | None
    folders: tuple[str, ...] = ()


class Finder:
    """Finds modules of the project.

    Attributes:
        places: top-level module to where Python finds it: its file, if it has one, and the folders of its submodules.
    """

    def __init__(self, disk: Disk, roots: Iterable[str], project_roots: Iterable[Path] | None = None) -> None:
        """Look for first-party code.

        Args:
            disk: lists the folders.
            roots: dotted names of the modules that the closure starts from; their top-level packages are first-party.
            project_roots: folders whose code is first-party, apart from what is installed in them.
        """
        self.places: dict[str, list[str | None]] = {}
        self._disk = disk
        self._located: dict[str, Located | None] = {}
        self._project_roots = [os.path.realpath(root) for root in project_roots or ()]
        self._tops = sorted({name.partition(".")[0] for name in roots})
        self._packages = [place for top in {*self._tops, OWN_PACKAGE} for place in self._package_places(top)]

    @property
    def bases(self) -> tuple[str, ...]:
        """Folders that the project's code stands in, as paths in its values may begin."""
        parents = [os.path.dirname(form) for place in self._packages for form in (place, os.path.realpath(place))]
        return tuple(sorted({*self._project_roots, *parents} - {os.sep}))

    def locate(self, name: str) -> Located | None:
        """Return the first-party module called `name`; None if there is none, or it is not first-party."""
        if name not in self._located:
            self._located[name] = self._locate(name)
        return self._located[name]

    def project_packages(self) -> set[str]:
        """Return the top-level packages of the roots, and those that stand in the project's folders."""
        found = {entry.partition(".")[0] for folder in self._project_roots for entry in self._disk.entries(folder)}
        return {*self._tops, *filter(str.isidentifier, found)}

    def modules_below(self, name: str) -> Iterator[Located]:
        """Yield a first-party module and every module inside it."""
        located = self.locate(name)
        if located is None:
            return
        yield located
        for folder in located.folders:
            for entry in sorted(self._disk.entries(folder)):
                stem = entry.partition(".")[0]
                if stem.isidentifier() and not entry.startswith("__"):
                    yield from self.modules_below(f"{name}.{stem}")

    def _locate(self, name: str) -> Located | None:
        parent, _, last = name.rpartition(".")
        if not parent:
            return self._locate_top(name)
        package = self.locate(parent)
        return self._search(name, last, package.folders) if package else None

    def _locate_top(self, name: str) -> Located | None:
        if name in sys.stdlib_module_names:
            return None
        path, *folders = self._place(name)
        located = Located(name, path, tuple(folder for folder in folders if folder))
        places = [located.path] if located.path else list(located.folders)
        return located if places and all(self._is_first_party(os.path.realpath(place)) for place in places) else None

    def _package_places(self, top: str) -> list[str]:
        path, *folders = self._place(top)
        return [] if top in sys.stdlib_module_names else [place for place in folders or [path] if place]

    def _place(self, top: str) -> list[str | None]:
        if top not in self.places:
            self.places[top] = place_of(top)
        return self.places[top]

    def _search(self, name: str, last: str, folders: tuple[str, ...]) -> Located | None:
        namespaces = []
        for folder in folders:
            entries = self._disk.entries(folder)
            inner = os.path.join(folder, last)
            if last in entries and "__init__.py" in self._disk.entries(inner):
                return Located(name, os.path.join(inner, "__init__.py"), (inner,))
            for suffix in _SUFFIXES:
                if last + suffix in entries:
                    return Located(name, inner + suffix)
            if entries.get(last):
                namespaces.append(inner)
        return Located(name, None, tuple(namespaces)) if namespaces else None

    def _is_first_party(self, path: str) -> bool:
        for owned in [*self._project_roots, *map(os.path.realpath, self._packages)]:
            if path == owned or path.startswith(owned + os.sep):
                return not _INSTALLED_FOLDERS & set(path[len(owned) :].split(os.sep))
        installed = any(path.startswith(folder + os.sep) for folder in installed_folders())
        return not installed and not _INSTALLED_FOLDERS & set(path.split(os.sep))


def place_of(top: str) -> list[str | None]:
    """Return where Python finds a top-level module: its file, or None, and the folders of its submodules."""
    spec = _spec_of(top)
    if spec is None:
        return [None]
    origin = os.fspath(spec.origin) if spec.has_location and spec.origin else None
    return [origin, *map(os.fspath, spec.submodule_search_locations or ())]  # a loaded module may hold paths


def _spec_of(top: str) -> ModuleSpec | None:
    try:
        return find_spec(top)
    except (ImportError, ValueError):  # ValueError: a loaded module without a spec, such as __main__
        return None


@cache
def installed_folders() -> tuple[str, ...]:
    """Return the folders that distributions are installed in; what stands there is not first-party."""
    paths = [sysconfig.get_paths()[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    return tuple({os.path.realpath(path) for path in [*paths, *site.getsitepackages(), site.getusersitepackages()]})
