"""`erase` says what went and which models saw it; a key that nobody has is kept out from now on."""

from pathlib import Path

import pytest

from ftpipeline.steps.erased_keys import key_digest
from ftpipeline.store.erasures import ErasedKeyList
from ftpipeline_tests.cli.command import ftpipeline, open_home


def test_an_unknown_key_is_listed_by_its_hash(tmp_path: Path) -> None:
    done = ftpipeline("erase", "customer_id=C7", "--reason", "request 1", "--home", tmp_path / "home", "--json")
    assert done.code == 0
    assert done.document == {"rows": 0, "snapshots": [], "trees": [], "blobs": [], "freed": 0, "models": []}
    with open_home(tmp_path / "home") as store:
        assert ErasedKeyList(store.database).digests() == (key_digest("customer_id=C7"),)


def test_a_person_reads_what_was_erased(tmp_path: Path) -> None:
    done = ftpipeline("erase", "T7", "--reason", "request 1", "--home", tmp_path / "home")
    assert "0 rows erased from 0 snapshots" in done.stdout


@pytest.mark.parametrize("arguments", [("", "--reason", "why"), ("customer_id=C7", "--reason", " ")])
def test_a_blank_key_or_reason_is_one_line(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    done = ftpipeline("erase", *arguments, "--home", tmp_path / "home", "--json")
    assert (done.code, done.stdout) == (2, "")
    assert "erase needs a key such as customer_id=C7" in " ".join(done.stderr.split())
