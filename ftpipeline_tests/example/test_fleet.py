"""The example's fleet: pipelines that load, made of bytes that are the same every time."""

import csv
from pathlib import Path

import pytest

from ftpipeline import pipeline as pipelines
from ftpipeline.digest import of_bytes
from ftpipeline.example.fleet import BLEND, HOT, NAMES, QUEUES, SECOND_BLEND, STEADY, write_fleet
from ftpipeline.example.tickets import generate


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("demo")
    generate(folder, per_week=20, weeks=4)
    return folder


def test_every_file_of_the_fleet_is_a_pipeline_whose_data_is_there(demo: Path) -> None:
    files = write_fleet(demo / "fleet")
    loaded = {name: pipelines.load(file) for name, file in files.items()}
    assert tuple(loaded) == NAMES
    for name, pipeline in loaded.items():
        assert pipeline.name == name
        assert pipeline.labels == QUEUES
        assert all(pipeline.resolve(each.file).is_file() for each in pipeline.file.eval_sets.by_role().values())


def test_each_reads_of_whom_it_is_said_to(demo: Path) -> None:
    files = write_fleet(demo / "fleet")
    read = {name: [each.job for each in pipelines.load(file).file.train.consumes] for name, file in files.items()}
    assert read == {HOT: [], BLEND: [HOT], SECOND_BLEND: [BLEND], STEADY: []}


def test_the_eval_sets_hold_the_fleets_queues_only(demo: Path) -> None:
    write_fleet(demo / "fleet")
    with (demo / "fleet" / "gold_v1.csv").open(encoding="utf-8", newline="") as lines:
        assert {row["queue"] for row in csv.DictReader(lines)} == set(QUEUES)


def test_what_is_written_is_the_same_every_time(demo: Path) -> None:
    assert content(write_fleet(demo / "fleet")[HOT].parent) == content(write_fleet(demo / "again")[HOT].parent)


def content(folder: Path) -> dict[str, str]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): of_bytes(path.read_bytes()) for path in files}
