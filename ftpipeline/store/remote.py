"""Objects in S3, GCS or Azure, through `obstore`.

An object's name is its content's digest, so putting it twice is harmless and no conditional write is needed, which few
servers honour. Every request has a deadline and a bounded number of retries. The client does not survive a fork: it
would hang there, so its use in a forked process is refused.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ftpipeline.digest import Digest, hex_of, parse
from ftpipeline.errors import StoreError
from ftpipeline.store.endpoint import DEFAULT_LIMITS, Limits, open_url, shown
from ftpipeline.store.upkeep import LOOKS, StoredObject, Upkeep, digest_of, is_object_name

if TYPE_CHECKING:
    from obstore.store import ObjectStore

PART = 8 << 20
"""Bytes of one request; a few of them are all the memory that a transfer takes."""

FRESH = timedelta(hours=12)
"""An object that is younger than this need not be uploaded again to be safe from gc."""

_OBJECTS = "objects/sha256"
_MOST_PARTS = 9_000  # S3 takes 10,000 parts an object
_CONCURRENT_PARTS = 3
_ADVICE = (
    "check the address, and the provider's credentials in the environment: AWS_ACCESS_KEY_ID and "
    "AWS_SECRET_ACCESS_KEY, GOOGLE_APPLICATION_CREDENTIALS, or AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY"
)


class RemoteObjects(Upkeep):
    """The objects under one prefix of a bucket."""

    shortest_grace = 2 * FRESH

    def __init__(self, store: "ObjectStore", where: str) -> None:
        """Use an open `store`; `where` names it in errors, without anything secret."""
        self.where = where
        self._store = store
        self._process = os.getpid()

    @classmethod
    def connect(cls, url: str, limits: Limits = DEFAULT_LIMITS) -> "RemoteObjects":
        """Return the objects at `url`, after one request that shows that they can be listed.

        Args:
            url: `s3://bucket/prefix`, `gs://bucket/prefix` or `az://container/prefix`; everything else, such as the
                endpoint and the credentials, comes from the provider's environment variables.
            limits: deadlines and retries.

        Raises:
            StoreError: the URL is not one, the store cannot be reached, or the credentials are missing or refused.
            MissingDependencyError: obstore is not installed.
        """
        where = shown(url)
        with _problems(where, "cannot be opened"):
            objects = cls(open_url(url, limits), where)
        next(objects.objects(), None)
        return objects

    def upload(self, digest: Digest, path: Path, size: int) -> None:
        """Store the file under its digest, in bounded memory, and see that it arrived whole.

        Raises:
            StoreError: the file could not be stored.
        """
        part = max(PART, size // _MOST_PARTS + 1)
        with self._client("cannot be written") as obstore:
            obstore.put(self._store, _name(digest), path, chunk_size=part, max_concurrency=_CONCURRENT_PARTS)
        stored = self.find(digest)
        if stored is None or stored.size != size:
            raise StoreError(f"store {self.where}: {digest} is not there after its upload; run again")

    def chunks(self, item: StoredObject) -> Iterator[bytes]:
        """Yield the object's bytes in order, at most `PART` at a time.

        Raises:
            StoreError: it could not be read.
        """
        for start in range(0, item.size, PART):
            length = min(PART, item.size - start)
            with self._client("cannot be read") as obstore:
                part = obstore.get_range(self._store, _name(item.digest), start=start, length=length)
            yield bytes(part)

    def find(self, digest: Digest) -> StoredObject | None:
        """Return what is known of an object without reading it; None when it is absent.

        Raises:
            StoreError: the store did not answer.
        """
        name = _name(digest)
        with self._client("cannot be read") as obstore:
            try:
                meta = obstore.head(self._store, name)
            except FileNotFoundError:
                return None
        return StoredObject(digest, meta["size"], meta["last_modified"])

    def objects(self) -> Iterator[StoredObject]:
        """Yield every object, in no order."""
        with self._client("cannot be listed") as obstore:
            for batch in obstore.list(self._store, _OBJECTS, chunk_size=1000):
                for meta in batch:
                    name = meta["path"].rpartition("/")[2]
                    if is_object_name(name):
                        yield StoredObject(Digest(f"sha256:{name}"), meta["size"], meta["last_modified"])

    def is_sound(self, item: StoredObject) -> bool:
        """Download the object and hash it."""
        return any(digest_of(self.chunks(item)) == item.digest for _ in range(LOOKS))

    def set_aside(self, digest: Digest) -> None:
        """Move the object to `lost+found`, under a name with the time."""
        with self._client("cannot be moved aside") as obstore:
            stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S%f")
            obstore.rename(self._store, _name(digest), f"lost+found/{hex_of(digest)}-{stamp}")

    def remove(self, digest: Digest, before: datetime) -> bool:
        """Remove the object if it is still older than `before`; a fresh upload within the same instant is not seen."""
        found = self.find(digest)
        if found is None or found.modified >= before:
            return False
        with self._client("cannot be removed") as obstore:
            obstore.delete(self._store, _name(digest))
        return True

    @contextmanager
    def _client(self, what: str) -> Iterator[Any]:
        if os.getpid() != self._process:
            raise StoreError(f"store {self.where} was opened before a fork; open it again in the new process")
        import obstore

        with _problems(self.where, what):
            yield obstore


def _name(digest: Digest) -> str:
    name = hex_of(parse(digest))
    return f"{_OBJECTS}/{name[:2]}/{name}"


@contextmanager
def _problems(where: str, what: str) -> Iterator[None]:
    """Turn what the store did into one line."""
    try:
        yield
    except Exception as error:
        from obstore.exceptions import BaseError

        if not isinstance(error, BaseError | ValueError | OSError):
            raise
        problem = str(error).partition("\n")[0]
        raise StoreError(f"store {where} {what} ({problem}); {_ADVICE}") from error
