"""`erase` says what went and which models saw it; a key that nobody has is kept out from now on."""

from contextlib import closing
from pathlib import Path

import pytest

from ftpipeline.steps.erased_keys import key_digest
from ftpipeline.store.erasures import ErasedKeyList
from ftpipeline.store.home import Home
from ftpipeline_tests.cli.command import ftpipeline, open_home


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home in which nothing was run yet."""
    with closing(Home(tmp_path / "home").open()):
        return tmp_path / "home"


def test_a_home_that_does_not_exist_is_not_made_by_an_erasure(tmp_path: Path) -> None:
    done = ftpipeline("erase", "customer_id=C7", "--reason", "request 1", "--home", tmp_path / "slip")
    assert done.code == 3
    assert not (tmp_path / "slip").exists()


def test_an_unknown_key_is_listed_by_its_hash(home: Path) -> None:
    done = ftpipeline("erase", "customer_id=C7", "--reason", "request 1", "--home", home, "--json")
    assert done.code == 0
    assert done.document == {"rows": 0, "snapshots": [], "trees": [], "blobs": [], "freed": 0, "models": []}
    with open_home(home) as store:
        assert ErasedKeyList(store.database).digests() == (key_digest("customer_id=C7"),)


def test_a_person_reads_what_was_erased(home: Path) -> None:
    done = ftpipeline("erase", "T7", "--reason", "request 1", "--home", home)
    assert "0 rows erased from 0 snapshots" in done.stdout


@pytest.mark.parametrize("arguments", [("", "--reason", "why"), ("customer_id=C7", "--reason", " ")])
def test_a_blank_key_or_reason_is_one_line(home: Path, arguments: tuple[str, ...]) -> None:
    done = ftpipeline("erase", *arguments, "--home", home, "--json")
    assert (done.code, done.stdout) == (2, "")
    assert "erase needs a key such as customer_id=C7" in " ".join(done.stderr.split())
