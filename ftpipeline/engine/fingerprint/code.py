"""The code fingerprint: one digest over everything in the project that can change a step's result (contract C4)."""

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ftpipeline.digest import Digest
from ftpipeline.engine.fingerprint.cache import FactsCache, Stamp, is_unchanged, settled_stamp
from ftpipeline.engine.fingerprint.closure import Closure
from ftpipeline.engine.fingerprint.document import digest_of
from ftpipeline.engine.fingerprint.inputs import EVERYTHING, DataFiles, environment_names
from ftpipeline.engine.fingerprint.live import LiveModules
from ftpipeline.engine.fingerprint.modules import Finder
from ftpipeline.engine.fingerprint.resolve import Project
from ftpipeline.engine.fingerprint.roots import Root, roots_of
from ftpipeline.engine.fingerprint.values import read_value, usual_places


@dataclass(frozen=True)
class CodeFingerprint:
    """What the code of a step is, as far as the project goes.

    Attributes:
        digest: changes when anything that can change the result has changed.
        members: `module:name` of every definition that was reached.
        modules: files of the modules that are imported on the way.
        module_names: dotted names of the modules that are imported on the way.
        data_files: data files of the project's packages that the code names.
        environment: environment variables that are set and may be read while modules are imported.
        escalations: what was widened to a whole module or to the project, and why, in words.
        distributions: installed distributions that the code imports.
    """

    digest: Digest
    members: tuple[str, ...]
    modules: tuple[str, ...]
    module_names: tuple[str, ...]
    data_files: tuple[str, ...]
    environment: tuple[str, ...]
    escalations: tuple[str, ...]
    distributions: tuple[str, ...]


@dataclass(frozen=True)
class _Known:
    """A fingerprint with what it was taken from; the roots must live as long as they are told apart by identity."""

    roots: Sequence[Root]
    fingerprint: CodeFingerprint
    stamps: dict[str, Stamp]
    environment: dict[str, str | None]

    def holds(self) -> bool:
        environment = {name: os.environ.get(name) for name in self.environment}
        return environment == self.environment and all(is_unchanged(*stamp) for stamp in self.stamps.items())


_known: dict[tuple[Any, ...], _Known] = {}


def code_fingerprint(
    roots: Sequence[Callable[..., Any] | type | str],
    project_roots: Sequence[Path] | None = None,
    *,
    cache: Path | None = None,
) -> CodeFingerprint:
    """Return the fingerprint of everything that `roots` can run.

    Args:
        roots: step functions, classes (all their methods), and dotted names of modules that are read without being
            imported, such as a worker's.
        project_roots: folders whose code is first-party. By default all code counts as first-party that is neither of
            the standard library nor installed, and the top-level packages of the roots wherever they stand.
        cache: folder in which facts of files are kept between processes.

    Raises:
        StepDefinitionError: a root has no source that can be found.
    """
    found = roots_of(roots)
    key = (tuple(root.identity for root in found), tuple(project_roots or ()), tuple(sys.path))
    known = _known.get(key)
    if known is None or not known.holds():
        known = _known[key] = _compute(found, project_roots, FactsCache(cache))
    return known.fingerprint


def _compute(roots: Sequence[Root], project_roots: Sequence[Path] | None, cache: FactsCache) -> _Known:
    finder = Finder([root.module for root in roots], project_roots)
    for root in roots:
        root.require_source(finder)
    project = Project(finder, cache)
    closure = Closure(project, LiveModules(project, [root.module for root in roots if root.value is not None]))
    described = [_reach(root, closure, project) for root in roots]
    closure.run()
    reached = closure.reached
    files = DataFiles(cache)
    data = _data_files(closure, project, files)
    names = environment_names(reached.environment_literals) if reached.reads_environment else ()
    environment = {name: os.environ.get(name) for name in names}  # one that is set later changes the fingerprint
    places = usual_places(finder.bases)
    contents = {relative: files.digest(path) for relative, path in data.items()}
    values = {name: read_value(value, places).digest for name, value in environment.items() if value is not None}
    fingerprint = CodeFingerprint(
        digest=digest_of(closure, project, described, contents, values),
        members=tuple(sorted(reached.members)),
        modules=tuple(sorted(_paths(reached.imported, finder))),
        module_names=tuple(sorted(reached.imported)),
        data_files=tuple(sorted(data.values())),
        environment=tuple(values),
        escalations=tuple(sorted(reached.escalations)),
        distributions=tuple(sorted(reached.distributions)),
    )
    consulted = {*fingerprint.modules, *fingerprint.data_files, *finder.folders, *files.folders, *sys.path}
    return _Known(roots, fingerprint, {path: settled_stamp(path) for path in consulted}, environment)


def _reach(root: Root, closure: Closure, project: Project) -> list[str]:
    """Add a root to the closure and return what identifies it."""
    if root.value is None:
        closure.add_module(root.module)
        return [root.label]
    value = read_value(root.value, usual_places(project.finder.bases), project.owns)
    closure.add_definition(root.module, root.top)
    for reference in value.code:
        closure.add_code(reference)
    for kind in value.opaque:
        closure.add_module(root.module, f"{root.label} holds a {kind}, which has no canonical form")
    return [root.label, value.digest]


def _data_files(closure: Closure, project: Project, files: DataFiles) -> dict[str, str]:
    """Return the data files that literals of the reached code name: path relative to the package to absolute path."""
    literals: dict[str, set[str]] = {}
    for module, index in closure.reached.links:
        literals.setdefault(module.partition(".")[0], set()).update(project.facts(module).items[index].strings)
    for module in closure.listing_modules():
        literals.setdefault(module.partition(".")[0], set()).add(EVERYTHING)
    packages = {top: project.finder.locate(top) for top in sorted(literals)}
    return {
        relative: path
        for top, package in packages.items()
        if package
        for relative, path in files.named(package, literals[top])
    }


def _paths(names: set[str], finder: Finder) -> set[str]:
    located = (finder.locate(name) for name in names)
    return {module.path for module in located if module and module.path}
