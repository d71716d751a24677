"""Blobs in a folder, with the write protocol of contract C2; the laws stand in `ftpipeline.store.port`."""

import os
import secrets
from collections.abc import Hashable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from ftpipeline.digest import Digest, hex_of, of_bytes, of_file, parse
from ftpipeline.errors import StoreError
from ftpipeline.store.durable import chunks_of, link, make_folder, publish, shared_turn, sync_folder, write_new
from ftpipeline.store.port import Absence, Blobs, Dependants, missing, no_dependants

STAGING = "staging"
"""Folder, beside the objects, of what is being written."""

_LOOKS = 2  # a second look tells bytes that were read badly from bytes that are bad


class LocalBlobs(Blobs):
    """Blobs as read-only files `<root>/objects/sha256/ab/<hex>`.

    An object is staged under `<root>/staging`, in the same file system, synced, and only then linked to its final name:
    a process that dies in a put leaves a staged file and no object.
    """

    def __init__(self, root: Path, dependants: Dependants = no_dependants, absence: Absence = missing) -> None:
        """Keep blobs under `root`, which the first put creates."""
        super().__init__(dependants, absence)
        self.root = root
        self.objects = root / "objects" / "sha256"
        self.staging = root / STAGING

    def __repr__(self) -> str:
        """Name the folder."""
        return f"LocalBlobs({str(self.root)!r})"

    def path(self, digest: Digest) -> Path:
        """Return where the object stands, or would stand.

        Raises:
            DigestError: `digest` is not one, so it could lead anywhere.
        """
        name = hex_of(parse(digest))
        return self.objects / name[:2] / name

    def put_bytes(self, data: bytes) -> Digest:
        """Store `data`, staged, synced and linked."""
        with self.errors("bytes cannot be stored"):
            return self.put_chunks([data])[0]

    def put_file(self, path: Path) -> tuple[Digest, int]:
        """Store a copy of the file: its owner may go on changing it."""
        with self.errors(f"file {str(path)!r} cannot be stored"):
            return self.put_chunks(chunks_of(path))

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
        with self.errors(f"{digest} cannot be checked out to {str(target)!r}"):
            if not link(self.path(digest), target):
                self._copy(digest, target)

    def size(self, digest: Digest) -> int | None:
        """Return the size of the object's file; None when it is absent."""
        with self.errors(f"{digest} cannot be looked up"):
            try:
                return self.path(digest).stat().st_size
            except FileNotFoundError:
                return None

    def stamp(self, digest: Digest) -> Hashable | None:
        """Return inode, size and times of the object's file; None when it is absent."""
        with self.errors(f"{digest} cannot be looked up"):
            try:
                found = self.path(digest).stat()
            except FileNotFoundError:
                return None
        # The time of the last change, which no program can set, tells an edit whose author put the other one back.
        return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns

    def put_chunks(self, chunks: Iterable[bytes]) -> tuple[Digest, int]:
        """Store the bytes that `chunks` yields; return their digest and their number.

        Raises:
            OSError: the bytes could not be written; nothing of them is visible.
            CorruptArtifactError: an object of another size stands under the digest.
        """
        make_folder(self.staging)
        staged = self.staging / f"{os.getpid()}-{secrets.token_hex(8)}"
        digest, size = write_new(staged, chunks)
        try:
            self._publish(staged, digest, size)
        finally:
            staged.unlink(missing_ok=True)
        return digest, size

    def _publish(self, staged: Path, digest: Digest, size: int) -> None:
        final = self.path(digest)
        make_folder(final.parent)
        with shared_turn(final.parent):
            try:
                publish(staged, final)
            except FileExistsError:
                self._renew(staged, digest, size)
            # Also after another writer's link, which that writer may not have synced yet.
            sync_folder(final.parent)
        sync_folder(final.parent.parent)

    def _renew(self, staged: Path, digest: Digest, size: int) -> None:
        """Make the object that stands as young as the staged one, so that gc leaves it to its new user."""
        final = self.path(digest)
        stored = final.stat().st_size
        if stored != size:
            raise self._corrupt(digest, f"altered ({stored} bytes stand where {size} belong)") from None
        try:
            os.utime(final)
        except PermissionError:
            os.replace(staged, final)  # only the owner may change a file's times; these are the same bytes

    def _copy(self, digest: Digest, target: Path) -> None:
        copied, _ = write_new(target, chunks_of(self.path(digest)))
        if copied != digest:
            target.unlink()
            raise self._corrupt(digest, "altered")

    @contextmanager
    def _reading(self, digest: Digest) -> Iterator[Path]:
        with self.errors(f"{digest} cannot be read"):
            try:
                yield self.path(digest)
            except FileNotFoundError:
                raise self._corrupt(digest, self._absence(digest)) from None

    @contextmanager
    def errors(self, what: str) -> Iterator[None]:
        """Turn what the disk did into one line.

        Raises:
            StoreError: an OSError was raised inside.
        """
        try:
            yield
        except OSError as error:
            raise StoreError(
                f"store {str(self.root)!r}: {what} ({error.strerror}); check the path, its free space and permissions"
            ) from error
