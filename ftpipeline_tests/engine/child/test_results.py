import filecmp
import sys
import threading
from pathlib import Path

import pytest

from ftpipeline.engine.child import Level, PortSpec, StepHost
from ftpipeline.engine.fingerprint.environment import cpu_flags, thread_settings
from ftpipeline_tests.engine.child.conftest import SAMPLES, Runs
from ftpipeline_tests.engine.child.sample_steps import sums


@pytest.fixture
def table(tmp_path: Path) -> Path:
    import pyarrow
    import pyarrow.parquet

    folder = tmp_path / "table"
    folder.mkdir()
    pyarrow.parquet.write_table(pyarrow.table({"x": [i / 7 for i in range(1000)]}), folder / "t.parquet")
    return folder


def test_a_confined_step_writes_the_bytes_that_an_unconfined_one_writes(
    run: Runs, level: Level, table: Path, tmp_path: Path
) -> None:
    plain = tmp_path / "plain"
    plain.mkdir()
    facts = sums({"table": table}, {"seed": 3}, plain)
    outcome = run("sums", {"seed": 3}, level, inputs={"table": table})
    assert outcome.facts == facts
    assert filecmp.cmp(plain / "s.parquet", run.out / "s.parquet", shallow=False)


def test_the_step_sees_the_processor_and_settings_that_its_caller_sees(run: Runs, level: Level) -> None:
    outcome = run("works_in_scratch", level=level)
    assert outcome.cpu_flags == cpu_flags()
    assert outcome.settings == thread_settings()


def test_an_outcome_tells_cost_level_and_opened_files(run: Runs, level: Level, table: Path) -> None:
    outcome = run("sums", {"seed": 1}, level, inputs={"table": table})
    assert outcome.level is level
    assert outcome.max_rss_bytes > 20 << 20
    assert outcome.cpu_seconds > 0
    assert outcome.wall_seconds > 0
    assert str(table / "t.parquet") in outcome.opens or level is Level.OBSERVED
    assert any(path.endswith("sample_steps.py") for path in outcome.opens)
    assert not any(str(run.out) in path or sys.prefix in path for path in outcome.opens)


@pytest.mark.parametrize("value", [(1, 2), [1, 2], 0, 0.0, False, "0", None, {1: "a", "1": (2.5,)}], ids=repr)
def test_parameters_and_port_arguments_keep_their_types(run: Runs, value: object) -> None:
    port = PortSpec(f"{SAMPLES}:Suffix", {"text": "ab", "times": 2, "folder": Path("/x"), "scale": 1.0})
    outcome = run("echo", {"value": value}, ports={"suffix": port})
    assert outcome.facts["params"] == repr(value)
    assert outcome.facts["type"] == type(value).__name__
    assert (run.out / "echo.txt").read_text() == "abab/x1.0"


def test_a_step_works_in_temporary_folders_and_leaves_none(run: Runs, level: Level) -> None:
    assert run("works_in_scratch", level=level).facts == {"entries": ["a"]}
    assert [path.name for path in run.out.parent.iterdir()] == ["out"]


def test_progress_and_logs_are_heard_and_raw_output_goes_to_the_streams(
    run: Runs, level: Level, capfd: pytest.CaptureFixture[str]
) -> None:
    run("talks", level=level, shows_progress=True)
    progress = [message["progress"] for message in run.heard if "progress" in message]
    assert progress[0][:2] == [1, 200]
    assert progress[-1] == [200, 200, "rows"]
    assert len(progress) < 100
    assert {"log": ["WARNING", "odd row 3"]} in run.heard
    captured = capfd.readouterr()
    assert "to standard output" in captured.out
    assert "to standard error" in captured.err


def test_one_zygote_serves_many_steps(run: Runs) -> None:
    wardens = set()
    for _ in range(20):
        (run.out / "pids").unlink(missing_ok=True)
        run("leaves_processes_and_waits", {"waits": False})
        wardens.add((run.out / "pids").read_text().split()[3])
    assert len(wardens) == 20


def test_two_hosts_in_two_threads_do_not_disturb_each_other(tmp_path: Path) -> None:
    done: list[dict[str, object]] = []

    def serve(name: str) -> None:
        host = StepHost()
        run = Runs(host, tmp_path / name)
        for _ in range(5):
            done.append(run("works_in_scratch").facts)
        host.close()

    threads = [threading.Thread(target=serve, args=(name,)) for name in ("a", "b")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert done == [{"entries": ["a"]}] * 10


def test_one_host_serves_two_threads(run: Runs, tmp_path: Path) -> None:
    others = [Runs(run.host, tmp_path / name) for name in ("a", "b", "c")]
    threads = [threading.Thread(target=other, args=("works_in_scratch",)) for other in others]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all((other.out / "a").exists() for other in others)


def test_preloaded_modules_do_not_change_the_bytes(host: StepHost, table: Path, tmp_path: Path) -> None:
    fresh, warm = Runs(host, tmp_path / "fresh"), Runs(StepHost(["pyarrow.parquet"]), tmp_path / "warm")
    outputs = [run("sums", {"seed": 3}, inputs={"table": table}).facts for run in (fresh, warm)]
    warm.host.close()
    assert outputs[0] == outputs[1]
    assert filecmp.cmp(fresh.out / "s.parquet", warm.out / "s.parquet", shallow=False)


def test_a_locked_connection_reads_what_is_registered_and_no_file(run: Runs, level: Level, secret: Path) -> None:
    facts = run("uses_locked_duckdb", {"path": str(secret.with_suffix(".csv"))}, level).facts
    assert facts == {"sum": 6, "refused": "PermissionException"}
