"""What must be kept: from the roots, through lineage, to every blob.

Roots come in through a port: whoever keeps digests in the database says which. From a root everything it was made from
is reached, input by input, so that the audit walk back to the snapshot stays possible; and from a tree its members.
"""

import json
from collections.abc import Callable, Collection, Iterable

from sqlalchemy import Connection, select

from ftpipeline.digest import Digest, parse
from ftpipeline.errors import TreeError
from ftpipeline.store.tables import eval_set_versions, leases, pointers, step_results
from ftpipeline.store.trees import Trees

Roots = Callable[[Connection], Iterable[Digest]]
"""Asked, inside one transaction, for digests that must be kept with everything they were made from."""


def pointer_roots(connection: Connection) -> set[Digest]:
    """Return what every committed pointer holds, also of old runs: no pointer ever leads to missing bytes."""
    return {parse(digest) for digest in connection.scalars(select(pointers.c.digest))}


def eval_set_roots(connection: Connection) -> set[Digest]:
    """Return the content of every claimed version of an eval set."""
    return {parse(digest) for digest in connection.scalars(select(eval_set_versions.c.digest))}


def lease_roots(connection: Connection) -> set[Digest]:
    """Return the results of the step keys that somebody holds a lease on."""
    is_held = (leases.c.name == step_results.c.key, leases.c.holder.is_not(None))
    return {parse(digest) for digest in connection.scalars(select(step_results.c.output).where(*is_held))}


STORE_ROOTS: tuple[Roots, ...] = (pointer_roots, eval_set_roots, lease_roots)
"""What the store itself knows of; the floors above add theirs."""


def roots_of(connection: Connection, sources: Iterable[Roots]) -> set[Digest]:
    """Return the roots of all sources together."""
    return {digest for source in sources for digest in source(connection)}


def made_from(connection: Connection, roots: Collection[Digest]) -> set[Digest]:
    """Return the roots and every recorded input and manifest that they were made from, at any distance."""
    needs: dict[str, set[Digest]] = {}
    columns = select(step_results.c.output, step_results.c.inputs, step_results.c.manifest)
    for output, inputs, manifest in connection.execute(columns):
        needed = {*json.loads(inputs).values(), *([manifest] if manifest is not None else [])}
        needs.setdefault(output, set()).update(needed)
    reached: set[Digest] = set()
    waiting = list(roots)
    while waiting:
        digest = waiting.pop()
        if digest not in reached:
            reached.add(digest)
            waiting += needs.get(digest, ())
    return reached


def made_with(connection: Connection, roots: Collection[Digest]) -> set[Digest]:
    """Return the outputs of every recorded result that has one of the roots among what it was made from."""
    users: dict[Digest, set[Digest]] = {}
    for output, inputs in connection.execute(select(step_results.c.output, step_results.c.inputs)):
        for used in json.loads(inputs).values():
            users.setdefault(used, set()).add(output)
    reached: set[Digest] = set()
    waiting = list(roots)
    while waiting:
        found = users.get(waiting.pop(), set()) - reached
        reached |= found
        waiting += found
    return reached


def with_members(trees: Trees, digests: Iterable[Digest], stored: Collection[Digest]) -> set[Digest]:
    """Return the digests and the members of those that are stored trees.

    Raises:
        CorruptArtifactError: a stored tree is altered, so that nobody knows which blobs it needs.
    """
    needed = set(digests)
    for digest in sorted(needed & set(stored)):
        try:
            needed.update(entry.sha256 for entry in trees.entries(digest))
        except TreeError:
            continue  # a blob that stands for itself
    return needed
