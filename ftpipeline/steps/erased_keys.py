"""Whose rows are not taken in any more. Only hashes are kept: the list of the erased must not name them."""

from collections.abc import Collection, Sequence

from ftpipeline.digest import of_bytes

ID = "id"


class ErasedKeys:
    """Erased group keys and ids.

    Attributes:
        digests: of their keys, `<column>=<value>` as in groups, or `id=<value>`.
    """

    code_version = "1"

    def __init__(self, digests: Collection[str]) -> None:
        self.digests = frozenset(digests)

    def covers(self, ident: str | None, groups: Sequence[str]) -> bool:
        """Tell whether a row belongs to an erased key."""
        return bool(self.digests) and any(key_digest(key) in self.digests for key in (f"{ID}={ident}", *groups))


def key_digest(key: str) -> str:
    """Return what is kept of a key."""
    return of_bytes(key.encode("utf-8", "surrogatepass"))
