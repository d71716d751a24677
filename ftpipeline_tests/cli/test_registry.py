"""Bad input to the verbs of the registry: one line with the cure, the right exit code, and nothing moved."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import text

from ftpipeline.receipts import SigningKey
from ftpipeline.store.home import Home
from ftpipeline.store.schema import VERSION_TABLE
from ftpipeline_tests.cli.command import ftpipeline, named_places_only
from ftpipeline_tests.registry.world import NAME, World

NOWHERE = "sha256:" + "0" * 64
WHY = ("--reason", "a test asks for it")


class Registered:
    """A home with a production and a candidate."""

    def __init__(self, home: Path, world: World) -> None:
        self.home = home
        self.world = world

    def refuse(self, *arguments: object) -> tuple[int, str]:
        """Run a verb that is refused, and return its exit code and its one line."""
        before = self.world.registry.history(NAME)
        done = ftpipeline(*arguments, "--home", self.home)
        assert done.stdout == ""
        assert done.stderr.count("\n") == 1
        assert self.world.registry.history(NAME) == before
        return done.code, done.stderr


@pytest.fixture
def registered(tmp_path: Path) -> Iterator[Registered]:
    with named_places_only(), closing(Home(tmp_path / "home").open()) as store:
        world = World(store.database, store.home.store_root, NAME, SigningKey.of_home(store.home.root))
        world.release("a")
        world.register("b")
        yield Registered(store.home.root, world)


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("promote", NAME, "{b}", "--to", "staging", "--expect", 0, *WHY), 2, "the stages are"),
        (("promote", NAME, "{b}", "--to", "canary", "--expect", 0, *WHY), 1, "SkippedStageError"),
        (("promote", NAME, "{b}", "--to", "shadow", "--expect", 9, *WHY), 1, "StaleGenerationError"),
        (("promote", NAME, "{b}", "--to", "shadow", "--expect", 0, "--reason", " "), 2, "a reason"),
        (("promote", NAME, NOWHERE, "--to", "shadow", "--expect", 0, *WHY), 2, "registry list"),
        (("promote", NAME, "3", "--to", "shadow", "--expect", 0, *WHY), 2, "names no artifact"),
        (("promote", "nobody", "{b}", "--to", "shadow", "--expect", 0, *WHY), 2, "nobody"),
        (("rollback", NAME, *WHY), 1, "no earlier production"),
        (("rollback", NAME, "--expect", 9, *WHY), 1, "no earlier production"),
        (("resolve", NAME), 2, "NAME@STAGE"),
        (("resolve", f"{NAME}@shadow"), 2, "is empty"),
        (("resolve", f"{NAME}@retired"), 2, "is no single artifact"),
        (("registry", "reject", NAME, "{a}", *WHY), 1, "production may go to"),
        (("registry", "delete", NAME, "{a}", *WHY), 1, "production holds"),
        (("registry", "history", "nobody"), 2, "nothing is registered"),
    ],
)
def test_what_the_registry_refuses_is_one_line_and_moves_nothing(
    registered: Registered, arguments: tuple[object, ...], code: int, said: str
) -> None:
    digests = {label: registered.world.artifact(label) for label in "ab"}
    found, line = registered.refuse(*(str(argument).format(**digests) for argument in arguments))
    assert found == code
    assert said in line


def test_a_digest_whose_bytes_are_gone_is_neither_promoted_nor_resolved(registered: Registered) -> None:
    for label in "ab":
        registered.world.damage(label)
    promote = ("promote", NAME, registered.world.artifact("b"), "--to", "shadow", "--expect", 0, *WHY)
    for arguments in (promote, ("resolve", f"{NAME}@production")):
        code, line = registered.refuse(*arguments)
        assert code == 1
        assert "CorruptArtifactError" in line


def test_a_registry_that_a_newer_version_wrote_is_refused_with_the_cure(registered: Registered) -> None:
    with registered.world.database.write() as connection:
        connection.execute(text(f"UPDATE {VERSION_TABLE} SET version_num = '9999'"))
    for arguments in (("resolve", f"{NAME}@production"), ("registry", "list")):
        code, line = registered.refuse(*arguments)
        assert code == 3
        assert "install a newer ftpipeline" in line
