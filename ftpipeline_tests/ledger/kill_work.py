"""What writers do that are killed on the way; each acknowledges in a file what the ledger has told it is written."""

from contextlib import closing
from pathlib import Path

from ftpipeline.ledger.events import Use
from ftpipeline.store.database import Database
from ftpipeline_tests.ledger.world import World, metrics, saved
from ftpipeline_tests.store.rows import digest

URL, ACKNOWLEDGED = "url", "acknowledged"


def acknowledge(home: Path, what: str) -> None:
    """Say what is known to be written."""
    with (home / ACKNOWLEDGED).open("a") as file:
        file.write(f"{what}\n")


def acknowledged(home: Path) -> list[str]:
    """Return what was said before the end."""
    path = home / ACKNOWLEDGED
    return path.read_text().splitlines() if path.exists() else []


def append_and_consume(home: Path) -> None:
    """Let `b` train, save, consume from `a` and go on."""
    with closing(Database.open((home / URL).read_text())) as database:
        world = World.at(home, database)
        writer = world.ledger.seize("b", "killed", 600)
        writer.append([metrics(1, 2), metrics(3, 4), saved(4, digest("tree"))])
        acknowledge(home, "appended")
        writer.consume("a", 10, Use.MERGE, 4)
        acknowledge(home, "consumed")
        writer.append([metrics(5, 6)])
        acknowledge(home, "went on")


def append_for_ever(home: Path) -> None:
    """Let `b` train until somebody ends it."""
    with closing(Database.open((home / URL).read_text())) as database:
        writer = World.at(home, database).ledger.seize("b", "killed", 600)
        step = 1
        while True:
            writer.append([metrics(step), metrics(step + 1)])
            acknowledge(home, str(step))
            step += 2
