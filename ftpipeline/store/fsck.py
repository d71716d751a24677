"""Checking a store: every object is hashed, and everything that a row leads to must be there.

Bytes that do not have their digest are moved aside to `lost+found`, so that the sound ones can take their place when
they are put again; nothing else ever moves them. Nothing is repaired here.
"""

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from enum import StrEnum

from sqlalchemy import select

from ftpipeline.digest import Digest, parse
from ftpipeline.errors import TreeError
from ftpipeline.store.opened import Store
from ftpipeline.store.reach import Roots, pointer_roots, roots_of
from ftpipeline.store.tables import step_results
from ftpipeline.store.trees import TreeEntry


class Kind(StrEnum):
    """What can be wrong."""

    MISSING = "missing"
    """Something needs the object, and it is not there."""
    TRUNCATED = "truncated"
    """Fewer bytes than a tree lists; moved aside."""
    ALTERED = "altered"
    """Other bytes than were put; moved aside."""
    DANGLING_POINTER = "dangling_pointer"
    """A pointer leads to a tree that is not there."""
    DANGLING_RESULT = "dangling_result"
    """A step result that stands for its key lost its output."""
    TREE_MALFORMED = "tree_malformed"
    """The bytes are the ones that were put, and they are no tree, or list a wrong size."""


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong.

    Attributes:
        digest: the object.
        kind: what is wrong with it.
        dependants: trees that list it, and outputs that were made from it or them.
    """

    digest: Digest
    kind: Kind
    dependants: tuple[Digest, ...]


@dataclass(frozen=True)
class Report:
    """What a check found.

    Attributes:
        problems: by digest.
        objects: number of objects that were hashed.
        size: their bytes.
    """

    problems: tuple[Problem, ...]
    objects: int
    size: int


@dataclass(frozen=True)
class _Seen:
    """What is stored, and what the rows lead to."""

    sound: Mapping[Digest, int]
    bad: Mapping[Digest, int]
    pointers: Set[Digest]
    outputs: Set[Digest]
    others: Set[Digest]


def check(store: Store, sources: Iterable[Roots]) -> Report:
    """Hash every object, follow every row, and move altered bytes aside.

    Args:
        store: the open store.
        sources: who names digests that must be there, beside pointers and step results.

    Raises:
        StoreError: the store cannot be read, or bytes cannot be moved aside.
    """
    seen = _look(store, sources)
    kinds = dict.fromkeys(seen.bad, Kind.ALTERED)
    listed_by: dict[Digest, list[Digest]] = {}
    for digest in sorted(seen.pointers | seen.outputs | seen.others):
        entries = _entries(store, seen, digest, kinds)
        for entry in entries:
            listed_by.setdefault(entry.sha256, []).append(digest)
            _judge(store, seen, digest, entry, kinds)
    for digest in seen.bad:
        store.upkeep.set_aside(digest)
    problems = (Problem(digest, kinds[digest], _dependants(store, digest, listed_by)) for digest in sorted(kinds))
    return Report(tuple(problems), len(seen.sound) + len(seen.bad), sum((*seen.sound.values(), *seen.bad.values())))


def _look(store: Store, sources: Iterable[Roots]) -> _Seen:
    sound: dict[Digest, int] = {}
    bad: dict[Digest, int] = {}
    for item in store.upkeep.objects():
        (sound if store.upkeep.is_sound(item) else bad)[item.digest] = item.size
    with store.database.read() as connection:
        outputs = select(step_results.c.output).where(step_results.c.tombstone.is_(None))
        standing = {parse(digest) for digest in connection.scalars(outputs)}
        return _Seen(sound, bad, pointer_roots(connection), standing, roots_of(connection, sources))


def _entries(store: Store, seen: _Seen, digest: Digest, kinds: dict[Digest, Kind]) -> Sequence[TreeEntry]:
    """Return the entries of what a row leads to, or say what is wrong with it."""
    if digest in seen.bad:
        return ()
    if digest not in seen.sound:
        _note_absence(store, digest, _absence(seen, digest), kinds)
        return ()
    try:
        return store.trees.entries(digest)
    except TreeError:
        if digest in seen.pointers or digest in seen.outputs:  # any other root may be a blob that stands for itself
            kinds[digest] = Kind.TREE_MALFORMED
        return ()


def _judge(store: Store, seen: _Seen, tree: Digest, entry: TreeEntry, kinds: dict[Digest, Kind]) -> None:
    member = entry.sha256
    if member in seen.bad:
        if seen.bad[member] < entry.size:
            kinds[member] = Kind.TRUNCATED
    elif member not in seen.sound:
        _note_absence(store, member, Kind.MISSING, kinds)
    elif seen.sound[member] != entry.size:
        kinds[tree] = Kind.TREE_MALFORMED


def _absence(seen: _Seen, digest: Digest) -> Kind:
    if digest in seen.pointers:
        return Kind.DANGLING_POINTER
    return Kind.DANGLING_RESULT if digest in seen.outputs else Kind.MISSING


def _note_absence(store: Store, digest: Digest, kind: Kind, kinds: dict[Digest, Kind]) -> None:
    """What was erased on purpose is no problem."""
    if store.erased.reason(digest) is None:
        kinds.setdefault(digest, kind)


def _dependants(store: Store, digest: Digest, listed_by: Mapping[Digest, Sequence[Digest]]) -> tuple[Digest, ...]:
    trees = listed_by.get(digest, ())
    made = (output for needed in (digest, *trees) for output in store.results.dependants(needed))
    return tuple(dict.fromkeys((*trees, *made)))
