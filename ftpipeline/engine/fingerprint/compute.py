"""Makes a code fingerprint by following the closure, and traces what it is made from."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ftpipeline.digest import Digest
from ftpipeline.engine.fingerprint.cache import FactsCache
from ftpipeline.engine.fingerprint.closure import Closure
from ftpipeline.engine.fingerprint.disk import Disk
from ftpipeline.engine.fingerprint.document import digest_of
from ftpipeline.engine.fingerprint.inputs import EVERYTHING, DataFiles, environment_names
from ftpipeline.engine.fingerprint.installed import Installation
from ftpipeline.engine.fingerprint.live import LiveModules, always_imported
from ftpipeline.engine.fingerprint.modules import Finder
from ftpipeline.engine.fingerprint.question import Question
from ftpipeline.engine.fingerprint.reached import Reached
from ftpipeline.engine.fingerprint.resolve import Project
from ftpipeline.engine.fingerprint.roots import Root
from ftpipeline.engine.fingerprint.shelf import Shelf
from ftpipeline.engine.fingerprint.trace import Trace, environment_digests
from ftpipeline.engine.fingerprint.values import usual_places

_KIND = "facts"


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

    def to_row(self) -> dict[str, Any]:
        """Return the fingerprint as JSON; `from_row` reads it back."""
        return asdict(self)

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> "CodeFingerprint":
        """Return the fingerprint that `to_row` wrote."""
        fields: dict[str, Any] = {name: tuple(value) for name, value in row.items() if name != "digest"}
        return cls(digest=Digest(row["digest"]), **fields)


def compute(question: Question, cache: Path | None) -> tuple[Trace, CodeFingerprint]:
    """Follow the closure of the question's roots.

    Args:
        question: the roots and where code is.
        cache: folder in which facts of files are kept between processes.

    Raises:
        StepDefinitionError: a root has no source that can be found.
        StoreError: the cache folder cannot be written.
    """
    disk, installation = Disk(), Installation(question.search_path)
    finder = Finder(disk, question.modules, question.project_roots)
    for root in question.roots:
        root.require_source(finder)
    facts = FactsCache(disk, Shelf(cache, _KIND), question.facts_key)
    project = Project(finder, disk, facts)
    places = usual_places(finder.bases)
    modules = always_imported(project, [root.module for root in question.roots if root.value is not None])
    live = LiveModules(modules, places, project.owns)
    closure = Closure(project, live, installation)
    roots = [_reach(root, closure, project) for root in question.roots]
    closure.run()
    facts.save()
    files = _data_files(closure, project, DataFiles(disk))
    reads = closure.reached.environment_literals if closure.reached.reads_environment else ()
    environment = environment_digests(environment_names(reads), places)  # one that is set later counts too
    values = {name: value for name, value in environment.items() if value is not None}
    contents = {relative: disk.digest(path) for relative, path in files.items()}
    labelled = [[root.label, value] for root, value in zip(question.roots, roots, strict=True)]
    digest = digest_of(closure, project, labelled, contents, values)
    trace = Trace(
        files=disk.files,
        folders=disk.folders,
        places=finder.places,
        installed=installation.metadata,
        environment=environment,
        roots=roots,
        modules=modules,
        loaded=live.loaded,
        values=live.seen,
    )
    return trace, _described(digest, closure.reached, finder, files.values(), values)


def _described(
    digest: Digest, reached: Reached, finder: Finder, files: Iterable[str], environment: Iterable[str]
) -> CodeFingerprint:
    return CodeFingerprint(
        digest=digest,
        members=tuple(sorted(reached.members)),
        modules=tuple(sorted(_paths(reached.imported, finder))),
        module_names=tuple(sorted(reached.imported)),
        data_files=tuple(sorted(files)),
        environment=tuple(environment),
        escalations=tuple(sorted(reached.escalations)),
        distributions=tuple(sorted(reached.distributions)),
    )


def _reach(root: Root, closure: Closure, project: Project) -> str:
    """Add a root to the closure and return the digest of its own value."""
    value = root.read(project.finder)
    if root.value is None:
        closure.add_module(root.module)
    else:
        closure.add_definition(root.module, root.top)
    for reference in value.code:
        closure.add_code(reference)
    for kind in value.opaque:
        closure.add_module(root.module, f"{root.label} holds a {kind}, which has no canonical form")
    return value.digest


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
