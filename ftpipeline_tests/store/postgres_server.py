"""A private PostgreSQL server that listens on a unix socket only."""

import os
import pwd
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import psycopg

from ftpipeline_tests.requirements import missing, require

_HOW = "install the server, for example with 'apt-get install postgresql'"
_USER = "ft"
_DATABASE = "postgres"


@dataclass(frozen=True)
class PostgresServer:
    """A running server.

    Attributes:
        folder: of its socket.
    """

    folder: Path
    _numbers: Iterator[int] = field(default_factory=lambda: count(1))

    @contextmanager
    def empty_database(self) -> Iterator[str]:
        """Yield the URL of a database without tables; those made are dropped afterwards.

        It is a schema of its own in one database, which takes a hundredth of the time of a new database.
        """
        name = f"test_{next(self._numbers)}"
        self._run(f"CREATE SCHEMA {name}")
        yield f"postgresql+psycopg://{_USER}@/{_DATABASE}?host={self.folder}&options=-csearch_path%3D{name}"
        self._run(f"DROP SCHEMA {name} CASCADE")

    def _run(self, statement: str) -> None:
        with psycopg.connect(host=str(self.folder), user=_USER, dbname=_DATABASE, autocommit=True) as connection:
            connection.execute(statement.encode())


@contextmanager
def private_server(*, durable: bool = False) -> Iterator[PostgresServer]:
    """Start a server in a folder of its own; stop it and remove the folder afterwards.

    Args:
        durable: wait for the disk at every commit, which tests need not.
    """
    fsync = "on" if durable else "off"
    newest_first = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=_version, reverse=True)
    initdb, pg_ctl = (str(require(name, how=_HOW, folders=newest_first)) for name in ("initdb", "pg_ctl"))
    folder = Path(tempfile.mkdtemp(prefix="ftpipeline-"))  # short: a socket's path has about 100 characters
    user = _as_server_user(folder)
    data, log = str(folder / "data"), str(folder / "log")
    try:
        initdb_options = ["-U", _USER, "-A", "trust", "--no-sync", "--no-locale", "-E", "UTF8"]
        _run([*user, initdb, "-D", data, *initdb_options])
        _run(
            [
                *user,
                pg_ctl,
                "-D",
                data,
                "-w",
                "-l",
                log,
                "-o",
                f"-c listen_addresses='' -c fsync={fsync} -k {folder}",
                "start",
            ]
        )
        try:
            yield PostgresServer(folder)
        finally:
            _run([*user, pg_ctl, "-D", data, "-w", "-m", "immediate", "stop"])
    finally:
        shutil.rmtree(folder)


def _version(folder: Path) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", folder.parent.name))


def _as_server_user(folder: Path) -> list[str]:
    """Give the folder to the user who runs the server, and return the command prefix; root may not run it."""
    if os.geteuid() != 0:
        return []
    try:
        entry = pwd.getpwnam("postgres")
    except KeyError:
        missing(f"root may not run PostgreSQL and there is no user 'postgres'; {_HOW}")
    os.chown(folder, entry.pw_uid, entry.pw_gid)
    setpriv = require("setpriv", how="install util-linux")
    return [str(setpriv), "--reuid=postgres", "--regid=postgres", "--init-groups"]


def _run(command: list[str]) -> None:
    done = subprocess.run(command, cwd="/", text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert done.returncode == 0, f"{' '.join(command)}:\n{done.stdout}"
