"""The pipeline file: every fault is named on one line, before anything runs."""

from pathlib import Path
from typing import Any

import pytest

from ftpipeline import pipeline
from ftpipeline.errors import PipelineFileError
from ftpipeline.orchestration.schedules import weekly_schedule
from ftpipeline_tests.shared import shared
from ftpipeline_tests.tiny_pipeline import write_pipeline

ONE_SET_TWICE = {
    "task": {"name": "questions", "version": "v1", "file": "questions.csv"},
    "regression": {"name": "regression", "version": "v1", "file": "regression.csv"},
    "safety": {"name": "questions", "version": "v1", "file": "questions.csv"},
}


def test_a_pipeline_file_reads_with_its_labels_and_paths(tmp_path: Path) -> None:
    loaded = pipeline.load(write_pipeline(tmp_path / "pipeline.yaml"))
    assert loaded.name == "tiny"
    assert loaded.labels == ("billing", "login", "shipping")
    assert loaded.resolve("tickets.duckdb") == tmp_path / "tickets.duckdb"
    assert loaded.resolve("/elsewhere/x") == Path("/elsewhere/x")


@pytest.mark.parametrize(
    ("sections", "said"),
    [
        ({"split": {"leakage": {"policy": "warn"}}}, "split.leakage.policy: input should be 'drop' or 'fail'"),
        ({"surprise": 1}, "surprise is not a known key"),
        ({"week": {"timezone": "Europe/Atlantis"}}, "no time zone 'Europe/Atlantis'"),
        ({"week": {"starts": "monday", "first": "2026-09-08"}}, "is no monday"),
        ({"week": {"first": "2026-02-31"}}, "is no date"),
        ({"schedule": {"cron": "nonsense"}}, "schedule.cron: 'nonsense' is no cron schedule"),
        ({"schedule": {"cron": "0 24 * * 1"}}, "schedule.cron: '0 24 * * 1' is no cron schedule"),
        ({"schedule": {"cron": "0 4 * * 5-1"}}, "is no cron schedule"),
        ({"schedule": {"cron": "*/0 4 * * 1"}}, "is no cron schedule"),
        ({"schedule": {"timezone": "Mars/Base"}}, "schedule.timezone: no time zone 'Mars/Base'"),
        ({"schedule": {"timezone": "../UTC"}}, "no time zone '../UTC'"),
        ({"labels": ["a", "a"]}, "'a' stands twice"),
        ({"labels": ["only"]}, "at least two"),
        ({"labels": ["a", "abstain"]}, "'abstain' is the answer under the threshold"),
        ({"labels": ["a", " "]}, "is not usable text"),
        ({"labels": None}, "give either labels or labels_file"),
        ({"labels_file": "labels.txt"}, "give either labels or labels_file"),
        ({"labels": None, "labels_file": "labels.txt"}, "cannot be read"),
        ({"base_model": {"name": "m", "source": "hub://org/m", "revision": "main"}}, "base_model.revision: 'main'"),
        ({"base_model": {"name": "m", "source": "hub://org/m"}}, "full 40 hexadecimal digits"),
        ({"base_model": {"name": "m", "source": "package://m/x"}}, "pinned by its tree digest"),
        ({"name": "Tickets Router"}, "name: 'Tickets Router'"),
        ({"eval_sets": ONE_SET_TWICE}, "eval_sets: task and safety are both named 'questions'"),
    ],
)
def test_a_fault_is_named_on_one_line(tmp_path: Path, sections: dict[str, Any], said: str) -> None:
    with pytest.raises(PipelineFileError) as refused:
        pipeline.load(write_pipeline(tmp_path / "pipeline.yaml", **sections))
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("cron", ["0 4 * * 1", "*/15 0-6,22 1,15 jan-mar MON", "5-50/5 * 31 12 0,6"])
def test_a_cron_schedule_of_five_fields_is_taken_by_dagster_too(tmp_path: Path, cron: str) -> None:
    path = write_pipeline(tmp_path / "pipeline.yaml", schedule={"cron": cron, "timezone": "Europe/Berlin"})
    loaded = pipeline.load(path)
    assert loaded.file.schedule.cron == cron
    assert weekly_schedule(loaded, "job").cron_schedule == cron


def test_labels_that_yaml_turned_into_other_types_are_refused(tmp_path: Path) -> None:
    text = shared("cases", "c", "labels_norway.yaml").read_text("utf-8").replace("queues:", "labels:")
    path = write_pipeline(tmp_path / "pipeline.yaml")
    lines = [line for line in path.read_text("utf-8").split("\n") if not line.startswith(("labels:", "- "))]
    path.write_text("\n".join(lines) + "\n" + text, "utf-8")
    with pytest.raises(PipelineFileError, match=r"labels\.2: YAML read False as bool; quote it"):
        pipeline.load(path)


def test_a_label_list_comes_from_a_text_or_a_json_file(tmp_path: Path) -> None:
    (tmp_path / "labels.txt").write_text("b\na\n", "utf-8")
    (tmp_path / "labels.json").write_text('["b", "a"]', "utf-8")
    for name in ("labels.txt", "labels.json"):
        loaded = pipeline.load(write_pipeline(tmp_path / "pipeline.yaml", labels=None, labels_file=name))
        assert loaded.labels == ("b", "a")


def test_pipelines_are_named_in_the_environment_as_in_a_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FTPIPELINE_PIPELINES", "a.yaml:/b/c.yaml:")
    assert pipeline.from_environment() == (Path("a.yaml"), Path("/b/c.yaml"))
    monkeypatch.delenv("FTPIPELINE_PIPELINES")
    assert pipeline.from_environment() == ()
