"""What a blob store promises, wherever the bytes are (contract C2).

Laws: what `put_bytes` returned reads back as the same bytes; putting the same content again changes no byte; bytes
that do not have the digest they are stored under are never handed out; nothing here modifies or unlinks a stored
object. What gc and fsck may do to one stands in `ftpipeline.store.upkeep`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from pathlib import Path

from ftpipeline.digest import Digest
from ftpipeline.errors import CorruptArtifactError

Dependants = Callable[[Digest], Sequence[str]]
"""Asked for the digests that need a corrupt one, to be named in the error."""

Absence = Callable[[Digest], str]
"""Asked what an absent blob is: missing, or erased on purpose."""


def no_dependants(digest: Digest) -> Sequence[str]:
    """Name nobody: for a blob store without a database beside it."""
    return ()


def missing(digest: Digest) -> str:
    """Call every absent blob missing: for a blob store without a database beside it."""
    return "missing"


class Blobs(ABC):
    """Where the bytes are: a folder here, an object store elsewhere."""

    def __init__(self, dependants: Dependants = no_dependants, absence: Absence = missing) -> None:
        """Name `dependants` and the kind of `absence` in errors."""
        self._dependants = dependants
        self._absence = absence

    def corrupt(self, digest: Digest, dependants: Sequence[str]) -> CorruptArtifactError:
        """Return the error for an object that does not verify: missing, erased or altered."""
        problem = self._absence(digest) if self.size(digest) is None else "altered"
        return CorruptArtifactError(digest, problem, dependants)

    def _corrupt(self, digest: Digest, problem: str) -> CorruptArtifactError:
        return CorruptArtifactError(digest, problem, self._dependants(digest))

    def stamp(self, digest: Digest) -> Hashable | None:
        """Return what differs once the stored bytes were touched, without reading them; None where nothing tells.

        Equal stamps spare a hash in between, and nothing else: what is handed out is hashed.
        """
        return None

    @abstractmethod
    def put_bytes(self, data: bytes) -> Digest:
        """Store `data` durably and return its digest.

        Raises:
            StoreError: the bytes could not be written; nothing of them is visible.
            CorruptArtifactError: an object of another size stands under the digest.
        """

    @abstractmethod
    def put_file(self, path: Path) -> tuple[Digest, int]:
        """Store the file's bytes durably, in bounded memory; return their digest and their number.

        Raises:
            StoreError: the bytes could not be read or written; nothing of them is visible.
            CorruptArtifactError: an object of another size stands under the digest.
        """

    @abstractmethod
    def read_bytes(self, digest: Digest) -> bytes:
        """Return the verified bytes of `digest`, all in memory.

        Raises:
            CorruptArtifactError: they are missing, or were twice read with another digest.
            StoreError: the store could not be read.
        """

    @abstractmethod
    def verify(self, digest: Digest) -> None:
        """Hash the whole object, in bounded memory.

        Raises:
            CorruptArtifactError: it is missing, or was twice read with another digest.
            StoreError: the store could not be read.
        """

    @abstractmethod
    def checkout(self, digest: Digest, target: Path) -> None:
        """Make the verified bytes of `digest` appear as the new read-only file `target`.

        Raises:
            CorruptArtifactError: the bytes are missing or altered; `target` is not made.
            StoreError: `target` exists, or the bytes could not be read or written.
        """

    @abstractmethod
    def size(self, digest: Digest) -> int | None:
        """Return the stored size of `digest` in bytes without reading it; None when it is absent."""
