"""What an artifact was made from, as far as it is recorded, and whether anything of it is under quarantine."""

import json
from collections.abc import Collection

from sqlalchemy import Connection, select

from ftpipeline.digest import Digest
from ftpipeline.errors import QuarantinedError
from ftpipeline.store.quarantine import refuse_marked
from ftpipeline.store.tables import quarantine_marks, step_results


def origins(connection: Connection, artifact: Digest) -> frozenset[Digest]:
    """Return the artifact and every input and manifest that it was made from, at any distance.

    Of several results that made the same bytes, the inputs of all count.
    """
    reached: set[Digest] = {artifact}
    waiting: Collection[Digest] = [artifact]
    columns = select(step_results.c.inputs, step_results.c.manifest)
    while waiting:
        found: set[Digest] = set()
        for inputs, manifest in connection.execute(columns.where(step_results.c.output.in_(sorted(waiting)))):
            found.update(json.loads(inputs).values())
            found.update([manifest] if manifest is not None else [])
        waiting = found - reached
        reached |= found
    return frozenset(reached)


def refuse_tainted(connection: Connection, artifact: Digest, made_from: Collection[Digest] | None = None) -> None:
    """Refuse an artifact that is under quarantine, or that was made from something that is.

    Args:
        connection: a transaction.
        artifact: the artifact.
        made_from: its origins, where they are known already.

    Raises:
        QuarantinedError: it is; the error names what is marked.
    """
    refuse_marked(connection, artifact)
    standing = connection.scalars(select(quarantine_marks.c.digest).where(quarantine_marks.c.lifted.is_(None)))
    marked = {Digest(digest) for digest in standing if digest is not None}
    if not marked:
        return
    everything = origins(connection, artifact) if made_from is None else made_from
    if tainted := sorted(marked.intersection(everything)):
        raise QuarantinedError(tainted[0], f"{artifact} was made from it")
