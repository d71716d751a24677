"""Which modules of a model the names in `target_modules` and `modules_to_save` match.

peft skips a name that matches nothing as long as another one matches, and says nothing of a name that matches in some
layers only.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from ftpipeline.errors import DeadTargetError


@dataclass(frozen=True)
class TargetMatch:
    """What one name matches.

    Attributes:
        name: as it was declared.
        count: modules that it matches.
        layers: numbers of the layers that it matches in.
        skipped: numbers of the other layers of the same stacks.
    """

    name: str
    count: int
    layers: tuple[int, ...]
    skipped: tuple[int, ...]

    def __str__(self) -> str:
        if not self.skipped:
            return f"{self.name}: {self.count}"
        return f"{self.name}: {self.count} ({self.coverage})"

    @property
    def coverage(self) -> str:
        """Return how many layers it matches in, and which it does not."""
        skipped = ", ".join(map(str, self.skipped))
        return f"{len(self.layers)} of {len(self.layers) + len(self.skipped)} layers, not in {skipped}"


def match_targets(role: str, names: Iterable[str], modules: Collection[str], known: Sequence[str]) -> list[TargetMatch]:
    """Match names with the paths of modules as peft does: a name is a whole path, or its last parts.

    Args:
        role: what the names are for, for the message.
        names: the declared names.
        modules: path of every module of the model.
        known: names of layers that could be declared, for the message.

    Raises:
        DeadTargetError: a name matches nothing.
    """
    matches = [_match(name, modules) for name in names]
    if not all(match.count for match in matches):
        found = ", ".join(map(str, matches))
        raise DeadTargetError(
            f"{role} matches nothing (matches: {found}); layers of this base model are {', '.join(known)}",
            {"kind": "dead_target", "matches": {match.name: match.count for match in matches}},
        )
    return matches


def _match(name: str, modules: Collection[str]) -> TargetMatch:
    paths = [path for path in modules if path == name or path.endswith(f".{name}")]
    numbered = [found for path in paths if (found := _layer(path)) is not None]
    stacks = {stack for stack, _ in numbered}
    there = {found for path in modules if (found := _layer(path)) is not None and found[0] in stacks}
    skipped = there - set(numbered)
    return TargetMatch(name, len(paths), _numbers(numbered), _numbers(skipped))


def _layer(path: str) -> tuple[str, int] | None:
    """Return the stack that a module is in and the number of its layer: the first part of its path that is a number."""
    parts = path.split(".")
    at = next((index for index, part in enumerate(parts) if part.isdecimal()), None)
    return None if at is None else (".".join(parts[:at]), int(parts[at]))


def _numbers(layers: Iterable[tuple[str, int]]) -> tuple[int, ...]:
    return tuple(sorted({number for _, number in layers}))
