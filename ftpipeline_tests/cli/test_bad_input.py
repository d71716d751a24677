"""Bad input through the real command line: one line, the right exit code, nothing half written."""

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from ftpipeline import pipeline as pipelines
from ftpipeline.cycle import bindings
from ftpipeline.cycle.cycle import Cycle
from ftpipeline.cycle.stages import STAGES, run_stage
from ftpipeline.digest import Digest
from ftpipeline.orchestration.observe import Observers
from ftpipeline.receipts import SigningKey
from ftpipeline.records import RunContext
from ftpipeline.store.opened import Store
from ftpipeline.store.tables import (
    eval_set_versions,
    registry_entries,
    registry_history,
    registry_pointers,
    step_results,
)
from ftpipeline.store.trees import tree_digest
from ftpipeline_tests.cli.command import Outcome, ftpipeline, ftpipeline_program, open_home
from ftpipeline_tests.registry.world import NAME, World
from ftpipeline_tests.tiny_pipeline import NEXT_WEEK, WEEK, build_tiny_pipeline, write_pipeline

_TABLES = (step_results, eval_set_versions, registry_entries, registry_pointers, registry_history)
_NO_DIGEST = "sha256:" + "0" * 64
_SOURCE = {
    "duckdb": "tickets.duckdb",
    "query": "SELECT * FROM tickets",
    "columns": {
        "id": "ticket_id",
        "text": "body",
        "label": "queue",
        "event_time": "created_at",
        "groups": ["customer_id"],
    },
}
_OPEN_FOR_WRITING = (
    "import sys, duckdb; held = duckdb.connect(sys.argv[1]); print('held', flush=True); sys.stdin.read()"
)


class Bench:
    """A pipeline whose first week got as far as the split, in a home with one registered candidate."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.file = folder / "pipeline.yaml"
        self.home = folder / "home"

    def run(self, week: str = WEEK) -> Outcome:
        return ftpipeline("run", self.file, "--week", week, "--home", self.home)

    def at_home(self, *arguments: object) -> Outcome:
        return ftpipeline(*arguments, "--home", self.home)

    def candidate(self) -> str:
        with open_home(self.home) as store:
            return world(store).registry.resolve(NAME, "candidate").digest

    def written(self) -> list[Any]:
        """Every row that a step or the registry writes, and every step's workspace that is still there."""
        with open_home(self.home) as store, store.database.read() as connection:
            rows = [connection.execute(select(table).order_by(*table.primary_key)).all() for table in _TABLES]
            return [*rows, sorted(store.home.scratch.iterdir())]


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("prepared")
    pipeline = pipelines.load(build_tiny_pipeline(folder))
    with open_home(folder / "home") as store:
        cycle = Cycle(pipeline, store, Observers(()), bindings.SUBPROCESS_LAUNCHER)
        run, made = RunContext("prepared", pipeline.name, date.fromisoformat(WEEK)), dict[str, Digest]()
        for stage in STAGES[: [stage.name for stage in STAGES].index("manifest")]:
            made[stage.name] = run_stage(cycle, stage, run, {name: made[name] for name in stage.after}).output
        world(store).register("first")
    return folder


def world(store: Store) -> World:
    """Return a registry whose gates the home signed: the command trusts no other key."""
    return World(store.database, store.home.store_root, NAME, SigningKey.of_home(store.home.root))


@pytest.fixture
def bench(prepared: Path, tmp_path: Path) -> Bench:
    return Bench(Path(shutil.copytree(prepared, tmp_path / "bench")))


def refused(outcome: Outcome, code: int, *said: str) -> None:
    """Assert that a command ended as bad input must: its code, and one line that says what is wrong."""
    assert (outcome.code, outcome.stderr.count("\n")) == (code, 1), outcome.stderr
    assert outcome.stderr.startswith("error: ")
    assert [words for words in said if words not in outcome.stderr] == []


@contextmanager
def open_for_writing(database: Path) -> Iterator[None]:
    """Hold a DuckDB file open in another process, which locks it."""
    command = [sys.executable, "-c", _OPEN_FOR_WRITING, str(database)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "held\n"
        try:
            yield
        finally:
            writer.communicate()


def missing_database(bench: Bench) -> None:
    (bench.folder / "tickets.duckdb").unlink()


def no_database(bench: Bench) -> None:
    (bench.folder / "tickets.duckdb").write_text("ticket_id,body\n", "utf-8")


def wrong_column(bench: Bench) -> None:
    write_pipeline(bench.file, source=_SOURCE | {"columns": _SOURCE["columns"] | {"text": "mail"}})  # type: ignore[operator]


def broken_query(bench: Bench) -> None:
    write_pipeline(bench.file, source=_SOURCE | {"query": "SELECT * FROM letters"})


def empty_window(bench: Bench) -> None:
    write_pipeline(bench.file, source=_SOURCE | {"query": "SELECT * FROM tickets WHERE created_at < '2020-01-01'"})


def unknown_policy(bench: Bench) -> None:
    write_pipeline(bench.file, split={"leakage": {"policy": "warn"}})


def leak_under_policy_fail(bench: Bench) -> None:
    gold = bench.folder / "gold.csv"
    write_pipeline(bench.file, split={"leakage": {"policy": "fail"}}, eval_sets=_eval_sets("v2"))
    gold.write_text("id,text,queue\ng1,please help invoice charge card number 0,billing\n", "utf-8")


def altered_base_model(bench: Bench) -> None:
    pinned = tree_digest(bench.folder / "base")
    write_pipeline(bench.file, base_model={"name": "tiny-bert", "source": "folder://base", "revision": pinned})
    weights = bench.folder / "base" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"\x7f")


def changed_eval_set(bench: Bench) -> None:
    with (bench.folder / "gold.csv").open("a", encoding="utf-8") as file:
        file.write("g99,where is my parcel,shipping\n")


def missing_eval_set(bench: Bench) -> None:
    (bench.folder / "safety.csv").unlink()


def _eval_sets(version: str) -> dict[str, Any]:
    columns = {"expected": "queue"}
    return {
        "task": {"name": "tiny-gold", "version": version, "file": "gold.csv", "columns": columns},
        "regression": {"name": "tiny-regression", "version": "v1", "file": "regression.csv", "columns": columns},
        "safety": {"name": "tiny-safety", "version": "v1", "file": "safety.csv"},
    }


@pytest.mark.parametrize(
    ("spoil", "week", "code", "said"),
    [
        (missing_database, NEXT_WEEK, 3, "tickets.duckdb does not exist"),
        (no_database, NEXT_WEEK, 3, "not a DuckDB file"),
        (wrong_column, WEEK, 2, "no column 'mail'"),
        (broken_query, WEEK, 2, "letters"),
        (empty_window, WEEK, 2, "holds no row"),
        (unknown_policy, WEEK, 2, "policy"),
        (altered_base_model, WEEK, 1, "pinned is"),
        (changed_eval_set, WEEK, 2, "content changed"),
        (missing_eval_set, WEEK, 2, "safety.csv does not exist"),
    ],
)
def test_a_run_on_bad_input_says_one_line_and_writes_nothing(
    bench: Bench, spoil: Callable[[Bench], None], week: str, code: int, said: str
) -> None:
    before = bench.written()
    spoil(bench)
    refused(bench.run(week), code, said)
    assert bench.written() == before


def test_a_leak_under_the_policy_fail_is_a_verdict_and_leaves_no_split(bench: Bench) -> None:
    before = bench.written()
    leak_under_policy_fail(bench)
    refused(bench.run(), 1, "give eval rows away")
    after = bench.written()
    assert [row.step for row in after[0] if row not in before[0]] == ["eval_set"]  # the new version itself is good
    assert after[2:] == before[2:]


def test_a_database_that_another_process_writes_is_named_as_locked(bench: Bench) -> None:
    before = bench.written()
    with open_for_writing(bench.folder / "tickets.duckdb"):
        refused(bench.run(NEXT_WEEK), 3, "tickets.duckdb", "locked by a writer")
    assert bench.written() == before


@pytest.mark.parametrize(
    ("week", "said"),
    [
        ("2026-W60", "there is no ISO week"),
        ("soon", "is no week"),
        ("2026-10-07", "is no monday"),
        ("2999-W01", "has not ended"),
        ("2020-W01", "lies before week.first"),
    ],
)
def test_a_week_that_cannot_be_run_writes_nothing(bench: Bench, week: str, said: str) -> None:
    before = bench.written()
    refused(bench.run(week), 2, said)
    assert bench.written() == before


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "cannot be read"),
        ("name: [tiny", "not usable YAML"),
        ("name: tiny\nname: tiny\n", "stands twice"),
        ("- name\n", "holds no mapping"),
        ("name: tiny\nseed: 1\n", "seed is not a known key"),
    ],
)
def test_a_pipeline_file_that_cannot_be_used_makes_no_home(tmp_path: Path, text: str | None, said: str) -> None:
    file, home = tmp_path / "pipeline.yaml", tmp_path / "home"
    if text is not None:
        file.write_text(text, "utf-8")
    refused(ftpipeline("run", file, "--home", home), 2, str(file), said)
    assert not home.exists()


@pytest.mark.parametrize(
    "verb", [("run", "pipeline.yaml"), ("registry", "list"), ("lineage", _NO_DIGEST), ("upgrade",)]
)
def test_a_home_that_cannot_be_written_is_a_fault_of_the_environment(bench: Bench, verb: tuple[str, ...]) -> None:
    place = bench.folder / "gold.csv"  # a file in the folder's place: nobody can write there, not even root
    before = place.read_bytes()
    arguments = [bench.file if word == "pipeline.yaml" else word for word in verb]
    refused(ftpipeline(*arguments, "--home", place), 3, "gold.csv")
    assert place.read_bytes() == before


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("lineage", _NO_DIGEST), "nothing in"),
        (("lineage", "latest"), "is not a digest"),
        (("lineage", f"{NAME}@production"), "is empty"),
        (("resolve", f"{NAME}@production"), "is empty"),
        (("resolve", f"{NAME}@finished"), "there is no stage"),
        (("resolve", "another@production"), "nothing is registered"),
        (("resolve", NAME), "names no stage"),
        (("registry", "history", "another"), "nothing is registered"),
        (("rollback", "another", "--reason", "it misroutes"), "nothing is registered"),
    ],
)
def test_what_nothing_is_known_of_is_refused(bench: Bench, arguments: tuple[str, ...], said: str) -> None:
    before = bench.written()
    refused(bench.at_home(*arguments), 2, said)
    assert bench.written() == before


@pytest.mark.parametrize(
    ("to", "expect", "reason", "code", "said"),
    [
        ("production", 7, "first release", 1, "generation"),
        ("production", 0, "  ", 2, "reason"),
        ("canary", 0, "to be measured", 1, "cannot go from candidate to canary"),
        ("finished", 0, "done", 2, "there is no stage"),
    ],
)
def test_a_refused_promotion_moves_nothing(
    bench: Bench, to: str, expect: int, reason: str, code: int, said: str
) -> None:
    before, artifact = bench.written(), bench.candidate()
    moved = bench.at_home("promote", NAME, artifact, "--to", to, "--expect", expect, "--reason", reason)
    refused(moved, code, said)
    assert bench.written() == before


def test_a_rollback_without_an_earlier_production_moves_nothing(bench: Bench) -> None:
    before = bench.written()
    refused(bench.at_home("rollback", NAME, "--reason", "it misroutes"), 1, "no earlier production")
    assert bench.written() == before


@pytest.mark.parametrize(
    "verb",
    [("registry", "list"), ("lineage", _NO_DIGEST), ("resolve", f"{NAME}@production"), ("fsck",), ("gc",)],
)
def test_a_misspelled_home_is_refused_and_not_made(tmp_path: Path, verb: tuple[str, ...]) -> None:
    refused(ftpipeline(*verb, "--home", tmp_path / "typo"), 3, "is no home")
    assert not (tmp_path / "typo").exists()


def test_what_a_person_is_shown_of_the_registry_is_cut_nowhere(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    artifact, reason = bench.candidate(), "first release of the router, " + "agreed with the support team, " * 3
    to = ("--to", "production", "--expect", 0, "--reason", reason)
    assert bench.at_home("promote", NAME, artifact, *to).code == 0
    shown = bench.at_home("registry", "list").stdout + bench.at_home("registry", "history", NAME).stdout
    assert "…" not in shown
    assert reason.strip() in shown
    assert shown.count(artifact[:19]) == 3


def test_the_program_itself_says_one_line_and_no_traceback(bench: Bench) -> None:
    wrong_column(bench)
    refused(ftpipeline_program("run", bench.file, "--week", WEEK, "--home", bench.home), 2, "no column 'mail'")


def test_with_json_a_refused_command_prints_no_document(bench: Bench) -> None:
    changed_eval_set(bench)
    failed = ftpipeline("run", bench.file, "--week", WEEK, "--home", bench.home, "--json")
    assert (failed.code, failed.stdout) == (2, "")
    assert failed.stderr.splitlines()[-1].startswith("error: EvalSetError: ")


def test_with_json_stdout_is_one_strict_document(bench: Bench) -> None:
    listed = bench.at_home("registry", "list", "--json")
    assert [entry["stage"] for entry in listed.document] == ["candidate"]
    assert listed.stderr == ""
    artifact = bench.candidate()
    promoted = bench.at_home(
        "promote", NAME, artifact, "--to", "production", "--expect", 0, "--reason", "first release", "--json"
    )
    resolution = {"name": NAME, "stage": "production", "digest": artifact, "generation": 1}
    assert promoted.document == bench.at_home("resolve", f"{NAME}@production", "--json").document == resolution
    history = bench.at_home("registry", "history", NAME, "--json").document["history"]
    assert [(row["from"], row["to"]) for row in history] == [(None, "candidate"), ("candidate", "production")]
