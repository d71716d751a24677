"""Blobs in an object store, used through a local cache of limited size.

The remote object is the blob; what stands in the cache is a copy that can be fetched again at any time, so a bad or
evicted copy is fetched anew and never an error. Laws: every read is verified; the cache holds at most its limit plus
what was used in the last minutes.
"""

import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TypeVar

from ftpipeline.digest import Digest
from ftpipeline.errors import CorruptArtifactError, StoreError
from ftpipeline.store.blobs import LocalBlobs
from ftpipeline.store.durable import chunks_of
from ftpipeline.store.port import Absence, Blobs, Dependants, missing, no_dependants
from ftpipeline.store.remote import FRESH, RemoteObjects
from ftpipeline.store.upkeep import LOOKS, LocalUpkeep

_IN_USE = timedelta(minutes=10)  # a copy that was used this lately may be in the hands of another process
_ROOM = 0.9  # how full an overfull cache is afterwards, so that not every fetch has to look through it

Result = TypeVar("Result")


class CachedBlobs(Blobs):
    """Blobs of an object store, with verified local copies."""

    def __init__(
        self,
        remote: RemoteObjects,
        copies: LocalBlobs,
        limit: int,
        dependants: Dependants = no_dependants,
        absence: Absence = missing,
    ) -> None:
        """Keep blobs in `remote`, and copies of them in `copies`, at most `limit` bytes."""
        super().__init__(dependants, absence)
        self._remote = remote
        self._copies = copies
        self._upkeep = LocalUpkeep(copies)
        self._limit = limit
        self._held: int | None = None  # bytes in the cache, as far as this process knows; None before the first look

    def __repr__(self) -> str:
        """Name the remote store."""
        return f"CachedBlobs({self._remote.where!r})"

    def put_bytes(self, data: bytes) -> Digest:
        """Store `data` in the cache, then remotely."""
        return self._put([data], "bytes cannot be stored")[0]

    def put_file(self, path: Path) -> tuple[Digest, int]:
        """Store a copy of the file in the cache, then upload that: its owner may go on changing the file."""
        return self._put(chunks_of(path), f"file {str(path)!r} cannot be stored")

    def read_bytes(self, digest: Digest) -> bytes:
        """Return the verified bytes of `digest`, fetched first when no copy is here."""
        return self._through_copy(digest, self._copies.read_bytes)

    def verify(self, digest: Digest) -> None:
        """See that the object is there with its size, and hash the copy of it; fsck hashes the object itself."""
        self._through_copy(digest, self._copies.verify)
        if self.size(digest) != self._copies.size(digest):
            raise self.corrupt(digest, self._dependants(digest))

    def checkout(self, digest: Digest, target: Path) -> None:
        """Link the verified copy to `target`."""
        self._through_copy(digest, lambda copy: self._copies.checkout(copy, target))

    def size(self, digest: Digest) -> int | None:
        """Return the remote object's size; a copy in the cache proves nothing."""
        found = self._remote.find(digest)
        return None if found is None else found.size

    def _put(self, chunks: Iterable[bytes], what: str) -> tuple[Digest, int]:
        with self._copies.errors(what):
            digest, size = self._copies.put_chunks(chunks)
        known = self._remote.find(digest)
        if known is not None and known.size != size:
            raise self._corrupt(digest, f"altered ({known.size} bytes stand where {size} belong)")
        if known is None or known.modified < datetime.now(UTC) - FRESH:
            self._remote.upload(digest, self._copies.path(digest), size)
        self._make_room(size)
        return digest, size

    def _through_copy(self, digest: Digest, use: Callable[[Digest], Result]) -> Result:
        for _ in range(LOOKS):
            self._fetch(digest)
            try:
                result = use(digest)
            except CorruptArtifactError:
                self._copies.path(digest).unlink(missing_ok=True)  # altered here, or evicted by another process
            else:
                self._note_use(digest)
                return result
        raise StoreError(f"cache {str(self._copies.root)!r} does not keep what is put in it; check its disk")

    def _fetch(self, digest: Digest) -> None:
        if self._copies.size(digest) is not None:
            return
        item = self._remote.find(digest)
        if item is None:
            raise self._corrupt(digest, self._absence(digest))
        for _ in range(LOOKS):
            with self._copies.errors(f"{digest} cannot be fetched"):
                found, size = self._copies.put_chunks(self._remote.chunks(item))
            self._make_room(size)
            if found == digest:
                return
        raise self._corrupt(digest, "altered")

    def _note_use(self, digest: Digest) -> None:
        """Make the copy the youngest; the oldest is evicted first."""
        with suppress(FileNotFoundError):  # evicted by another process since
            os.utime(self._copies.path(digest))

    def _make_room(self, added: int) -> None:
        """Evict the copies that were not used for longest, if there are more bytes than the limit allows."""
        if self._held is None or self._held + added > self._limit:
            self._held = self._evict()
        else:
            self._held += added

    def _evict(self) -> int:
        """Look through the cache and return the bytes that it holds afterwards."""
        with self._copies.errors("the cache cannot be looked through"):
            copies = sorted(self._upkeep.objects(), key=lambda copy: copy.modified)
            held = sum(copy.size for copy in copies)
            if held <= self._limit:
                return held
            in_use = datetime.now(UTC) - _IN_USE
            for copy in copies:
                if held > _ROOM * self._limit and self._upkeep.remove(copy.digest, in_use):
                    held -= copy.size
            return held
