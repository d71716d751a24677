import os
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ftpipeline.digest import of_bytes
from ftpipeline.errors import CorruptArtifactError, DatabaseError, StoreError
from ftpipeline.records import LineageRecord
from ftpipeline.store.home import Home
from ftpipeline.store.opened import Store
from ftpipeline_tests.store.damage import lose


def test_the_home_is_the_one_asked_for_then_the_variable_then_the_current_folder(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert Home.locate(None).root == tmp_path / ".ftpipeline"
    monkeypatch.setenv("FTPIPELINE_HOME", "elsewhere")
    assert Home.locate(None).root == tmp_path / "elsewhere"
    assert Home.locate(Path("given")).root == tmp_path / "given"


def test_a_home_stays_where_it_is_when_the_current_folder_changes(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    relative = Home(Path("home"))
    monkeypatch.chdir("/")
    assert relative.root == home.root


def test_everything_stands_under_the_home_by_default(home: Home) -> None:
    assert home.store_root == home.root / "store"
    assert home.database_url == f"sqlite:///{home.root}/ftpipeline.db"
    assert home.dagster_home == home.root / "dagster"


def test_variables_replace_the_places(home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FTPIPELINE_STORE", str(tmp_path / "blobs"))
    monkeypatch.setenv("FTPIPELINE_DATABASE", "postgresql+psycopg://me@host/db")
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path / "instance"))
    assert home.store_root == tmp_path / "blobs"
    assert home.scratch.is_relative_to(tmp_path / "blobs")
    assert home.database_url == "postgresql+psycopg://me@host/db"
    assert home.dagster_home == tmp_path / "instance"


@pytest.mark.parametrize(
    ("named", "problem"),
    [
        ("s3://key:secret@bucket/prefix", "credentials in the environment"),
        ("s3://bucket/prefix?secret=1", "cannot be used as a store"),
        ("https://bucket/secret", "cannot be used as a store"),
        ("s3://", "cannot be used as a store"),
        ("relative", "absolute path"),
    ],
)
def test_a_store_that_is_no_fixed_folder_is_refused(
    home: Home, monkeypatch: pytest.MonkeyPatch, named: str, problem: str
) -> None:
    monkeypatch.setenv("FTPIPELINE_STORE", named)
    with pytest.raises(StoreError, match=problem) as caught:
        home.open()
    assert caught.value.exit_code == 3
    assert "secret" not in str(caught.value)


def test_a_dagster_home_that_is_no_fixed_folder_is_refused(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DAGSTER_HOME", "relative")
    with pytest.raises(StoreError, match="DAGSTER_HOME='relative' depends on the current folder") as caught:
        _ = home.dagster_home
    assert caught.value.exit_code == 3


@pytest.mark.parametrize("named", ["0", "-1", "many", "nan", "1e3"])
def test_a_cache_limit_that_is_no_positive_number_is_refused(
    home: Home, monkeypatch: pytest.MonkeyPatch, named: str
) -> None:
    assert home.cache_limit == 20 * 2**30
    monkeypatch.setenv("FTPIPELINE_CACHE_GIB", named)
    with pytest.raises(StoreError, match="FTPIPELINE_CACHE_GIB"):
        assert home.cache_limit > 0


def test_copies_of_remote_blobs_and_workspaces_share_a_folder_of_the_home(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FTPIPELINE_STORE", "s3://bucket/prefix")
    assert home.remote_url == "s3://bucket/prefix"
    assert home.store_root.is_relative_to(home.root)
    assert home.scratch.is_relative_to(home.store_root)


def test_opening_makes_what_is_missing_and_finds_it_again(store: Store, tmp_path: Path) -> None:
    digest = store.blobs.put_bytes(b"bytes")
    store.pointers.put("asset", None, "run", 0, digest)
    with closing(store.home.open()) as again:
        pointer = again.pointers.latest("asset", None)
        assert pointer is not None
        assert again.blobs.read_bytes(pointer.digest) == b"bytes"


def test_a_path_that_would_mean_something_in_a_url_is_a_path(tmp_path: Path, home: Home) -> None:
    with closing(Home(tmp_path / "odd ?#%40 home").open()):
        assert (tmp_path / "odd ?#%40 home" / "ftpipeline.db").is_file()


def test_workspaces_and_blobs_share_a_file_system(store: Store) -> None:
    store.blobs.put_bytes(b"bytes")
    assert os.stat(store.home.scratch).st_dev == os.stat(store.home.store_root / "objects").st_dev


def test_a_home_that_cannot_be_written_is_one_line(tmp_path: Path, home: Home) -> None:
    (tmp_path / "file").touch()
    for root in (tmp_path / "file", tmp_path / "file" / "home", Path("/proc/home")):
        with pytest.raises(StoreError) as caught:
            Home(root).open()
        assert "\n" not in str(caught.value)
        assert caught.value.exit_code == 3


def test_a_home_that_was_never_opened_is_not_made_by_who_only_looks(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for root in (tmp_path / "typo", tmp_path / "empty"):
        with pytest.raises(StoreError, match="is no home"):
            Home(root).open(create=False)
    assert [*tmp_path.rglob("*")] == [tmp_path / "empty"]


def test_who_only_looks_finds_what_is_there(store: Store) -> None:
    digest = store.blobs.put_bytes(b"bytes")
    with closing(store.home.open(create=False)) as again:
        assert again.blobs.read_bytes(digest) == b"bytes"


def test_a_named_database_that_is_missing_or_empty_is_not_made_by_who_only_looks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "rows.db"
    monkeypatch.setenv("FTPIPELINE_DATABASE", f"sqlite:///{file}")
    with pytest.raises(DatabaseError, match="holds nothing yet"):
        Home(tmp_path / "home").open(create=False)
    assert not file.exists()
    file.touch()
    with pytest.raises(DatabaseError, match="holds nothing yet"):
        Home(tmp_path / "home").open(create=False)


def test_a_database_that_cannot_be_used_is_said(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FTPIPELINE_DATABASE", "sqlite:///relative.db")
    with pytest.raises(DatabaseError):
        home.open()


def test_a_corrupt_tree_names_the_results_made_from_it(store: Store, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "rows").write_bytes(b"rows")
    tree, output, now = store.trees.put(tmp_path / "in"), of_bytes(b"output"), datetime.now(UTC)
    key, code = of_bytes(b"key"), of_bytes(b"code")
    store.results.record(
        LineageRecord("curate", key, code, {"snapshot": tree}, {}, output, {}, "run", "none", now, now, 0.0, code)
    )
    lose(store, of_bytes(b"rows"))
    with pytest.raises(CorruptArtifactError, match="missing") as caught:
        store.trees.verify(tree)
    assert caught.value.dependants == (tree, output)
