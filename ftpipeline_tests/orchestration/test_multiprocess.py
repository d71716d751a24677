"""Steps in processes of their own: each confines its child, and what they pass on is a row."""

from contextlib import closing
from pathlib import Path

import dagster as dg
import pytest

from ftpipeline.engine.child import best_level
from ftpipeline.store.home import Home
from ftpipeline_tests.orchestration.multiprocess_job import make_job
from ftpipeline_tests.tiny_pipeline import WEEK, build_tiny_pipeline


@pytest.mark.slow
def test_the_data_stages_run_under_the_multiprocess_executor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = build_tiny_pipeline(tmp_path / "pipeline")
    for name, value in {
        "FTPIPELINE_PIPELINES": str(file),
        "FTPIPELINE_HOME": str(tmp_path / "home"),
        "DAGSTER_HOME": str(tmp_path / "dagster"),
    }.items():
        monkeypatch.setenv(name, value)
    (tmp_path / "dagster").mkdir()
    (tmp_path / "dagster" / "dagster.yaml").touch()
    job, tags = dg.reconstructable(make_job), {"dagster/partition": WEEK}
    with dg.DagsterInstance.get() as instance, dg.execute_job(job, instance, tags=tags) as done:
        assert done.success
    with closing(Home(tmp_path / "home").open()) as store:
        for step in ("curate", "split"):
            assert [record.isolation for record in store.results.of_step(step)] == [str(best_level())]
