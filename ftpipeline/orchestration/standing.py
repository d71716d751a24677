"""Where the entries of a name stand, and how they came to, as tables for a person who is about to move one."""

from typing import TYPE_CHECKING

from ftpipeline.orchestration.metadata import Metadata, table

if TYPE_CHECKING:
    from ftpipeline.registry.reader import RegistryReader
    from ftpipeline.registry.records import HistoryRow


def standing(registry: "RegistryReader", name: str) -> Metadata:
    """Return what each stage of a name holds at which generation, and every move that led there, newest first.

    Raises:
        UnknownNameError: nothing was ever registered under the name.
    """
    history = registry.history(name)
    pointers = registry.pointers(name).values()
    return {
        "stages": table(
            [
                {"stage": str(pointer.stage), "artifact": pointer.digest, "generation": pointer.generation}
                for pointer in pointers
            ]
        ),
        "stage history": table([_move(row) for row in reversed(history)]),
    }


def _move(row: "HistoryRow") -> dict[str, object]:
    return {
        "time": row.time,
        "artifact": row.digest,
        "from": None if row.from_stage is None else str(row.from_stage),
        "to": str(row.to_stage),
        "generation": row.generation,
        "actor (stated)": row.actor,
        "reason": row.reason,
        "gate record": row.receipt,
    }
