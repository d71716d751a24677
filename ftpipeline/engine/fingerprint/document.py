"""The document that the code fingerprint is the digest of."""

import json
from collections.abc import Mapping
from typing import Any

from ftpipeline import digest
from ftpipeline.digest import Digest
from ftpipeline.engine.fingerprint.closure import Closure
from ftpipeline.engine.fingerprint.resolve import Project

_FORMAT = "ftpipeline.code/1"


def digest_of(
    closure: Closure, project: Project, roots: list[list[str]], data: Mapping[str, str], environment: Mapping[str, str]
) -> Digest:
    """Return the digest of what a closure has reached.

    Args:
        closure: the closure, run to its end.
        project: the modules it ran over.
        roots: the labels of the roots, with digests of their own values.
        data: data file, relative to its package, to digest.
        environment: variable to digest of its value.
    """
    reached = closure.reached
    binary = {name: project.opaque_digest(name) for name in reached.imported}
    document = {
        "format": _FORMAT,
        "roots": sorted(roots),
        "statements": _statements(closure, project),
        "values": reached.values,
        "binary": {name: content for name, content in binary.items() if content is not None},
        "data": dict(data),
        "environment": dict(environment),
        "docs": _docs(closure, project) if reached.reads_docs else {},
        "source": {name: project.facts(name).source for name in reached.imported} if reached.reads_source else {},
    }
    return digest.of_bytes(json.dumps(document, sort_keys=True, separators=(",", ":")).encode("ascii"))


def _statements(closure: Closure, project: Project) -> dict[str, list[Any]]:
    """Return the reached statements by module; order counts only among those that can see it."""
    table: dict[str, list[tuple[tuple[bool, list[str], int], list[Any]]]] = {}
    for (module, index), links in closure.reached.links.items():
        item = project.facts(module).items[index]
        ordered = _sees_order(closure, project, module, index)
        position = (ordered, [] if ordered else list(item.names), index)
        table.setdefault(module, []).append((position, [item.kind, item.form, links]))
    return {module: [row for _, row in sorted(rows, key=lambda row: row[0])] for module, rows in table.items()}


def _sees_order(closure: Closure, project: Project, module: str, index: int) -> bool:
    facts = project.facts(module)
    item = facts.items[index]
    if item.stores or index in closure.effects.of_module(module).effects:
        return True
    if item.kind in {"def", "class"}:
        return any(len(facts.bound.get(chain.partition(".")[0], ())) > 1 for chain in item.eager)
    return item.kind != "assign" or bool(item.refs or item.calls)


def _docs(closure: Closure, project: Project) -> dict[str, list[str]]:
    docs = {name: [project.facts(name).doc] for name in closure.reached.imported}
    for module, index in closure.reached.links:
        docs[module].append(project.facts(module).items[index].doc)
    return {name: sorted(found) for name, found in docs.items()}
