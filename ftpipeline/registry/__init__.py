"""Which artifact serves under a name: entries, stage pointers moved by compare-and-swap, and their history (C11).

`Client` is how a program gets the artifact of `name@stage` as a local folder.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ftpipeline.registry.client import Client, LocalArtifact

__all__ = ["Client", "LocalArtifact"]


def __getattr__(name: str) -> Any:
    """Import the client when it is first asked for: naming a stage does not need a database library."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from ftpipeline.registry import client

    return getattr(client, name)
