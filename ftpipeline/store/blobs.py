"""The content-addressed blob store (contract C2).

Laws: what `put_bytes` returned reads back as the same bytes; putting the same content again changes nothing; bytes that
do not have the digest they are stored under are never handed out. Nothing here modifies or unlinks a stored object.
"""

import os
import secrets
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from ftpipeline.digest import Digest, hex_of, of_bytes, of_file, parse
from ftpipeline.errors import CorruptArtifactError, StoreError
from ftpipeline.store.durable import chunks_of, link, make_folder, publish, sync_folder, write_new

Dependants = Callable[[Digest], Sequence[str]]
"""Asked for the digests that need a corrupt one, to be named in the error."""

_LOOKS = 2  # a second look tells bytes that were read badly from bytes that are bad


def no_dependants(digest: Digest) -> Sequence[str]:
    """Name nobody: for a blob store without a database beside it."""
    return ()


class Blobs(ABC):
    """Where the bytes are: a folder here, an object store elsewhere."""

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


class LocalBlobs(Blobs):
    """Blobs as read-only files `<root>/objects/sha256/ab/<hex>`.

    An object is staged under `<root>/staging`, in the same file system, synced, and only then linked to its final name:
    a process that dies in a put leaves a staged file and no object.
    """

    def __init__(self, root: Path, dependants: Dependants = no_dependants) -> None:
        """Keep blobs under `root`, which the first put creates."""
        self.root = root
        self._objects = root / "objects" / "sha256"
        self._staging = root / "staging"
        self._dependants = dependants

    def __repr__(self) -> str:
        """Name the folder."""
        return f"LocalBlobs({str(self.root)!r})"

    def path(self, digest: Digest) -> Path:
        """Return where the object stands, or would stand.

        Raises:
            DigestError: `digest` is not one, so it could lead anywhere.
        """
        name = hex_of(parse(digest))
        return self._objects / name[:2] / name

    def put_bytes(self, data: bytes) -> Digest:
        """Store `data`, staged, synced and linked."""
        with self._errors("bytes cannot be stored"):
            return self._put([data])[0]

    def put_file(self, path: Path) -> tuple[Digest, int]:
        """Store a copy of the file: its owner may go on changing it."""
        with self._errors(f"file {str(path)!r} cannot be stored"):
            return self._put(chunks_of(path))

    def read_bytes(self, digest: Digest) -> bytes:
        """Return the verified bytes of `digest`."""
        with self._reading(digest) as path:
            for _ in range(_LOOKS):
                data = path.read_bytes()
                if of_bytes(data) == digest:
                    return data
        raise self._corrupt(digest, "altered")

    def verify(self, digest: Digest) -> None:
        """Hash the whole object."""
        with self._reading(digest) as path:
            if not any(of_file(path) == digest for _ in range(_LOOKS)):
                raise self._corrupt(digest, "altered")

    def checkout(self, digest: Digest, target: Path) -> None:
        """Link the verified object to `target`; copy it where links are not possible."""
        self.verify(digest)
        with self._errors(f"{digest} cannot be checked out to {str(target)!r}"):
            if not link(self.path(digest), target):
                self._copy(digest, target)

    def size(self, digest: Digest) -> int | None:
        """Return the size of the object's file; None when it is absent."""
        with self._errors(f"{digest} cannot be looked up"):
            try:
                return self.path(digest).stat().st_size
            except FileNotFoundError:
                return None

    def _put(self, chunks: Iterable[bytes]) -> tuple[Digest, int]:
        make_folder(self._staging)
        staged = self._staging / f"{os.getpid()}-{secrets.token_hex(8)}"
        digest, size = write_new(staged, chunks)
        try:
            self._publish(staged, digest, size)
        finally:
            staged.unlink(missing_ok=True)
        return digest, size

    def _publish(self, staged: Path, digest: Digest, size: int) -> None:
        final = self.path(digest)
        make_folder(final.parent)
        try:
            publish(staged, final)
        except FileExistsError:
            stored = final.stat().st_size
            if stored != size:
                raise self._corrupt(digest, f"altered ({stored} bytes stand where {size} belong)") from None
        # Also after another writer's link, which that writer may not have synced yet.
        sync_folder(final.parent)
        sync_folder(final.parent.parent)

    def _copy(self, digest: Digest, target: Path) -> None:
        copied, _ = write_new(target, chunks_of(self.path(digest)))
        if copied != digest:
            target.unlink()
            raise self._corrupt(digest, "altered")

    def _corrupt(self, digest: Digest, problem: str) -> CorruptArtifactError:
        return CorruptArtifactError(digest, problem, self._dependants(digest))

    @contextmanager
    def _reading(self, digest: Digest) -> Iterator[Path]:
        with self._errors(f"{digest} cannot be read"):
            try:
                yield self.path(digest)
            except FileNotFoundError:
                raise self._corrupt(digest, "missing") from None

    @contextmanager
    def _errors(self, what: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise StoreError(
                f"store {str(self.root)!r}: {what} ({error.strerror}); check the path, its free space and permissions"
            ) from error
