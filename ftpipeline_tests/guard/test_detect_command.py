"""The verb on real files: what it prints, and how it ends."""

import json
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner, Result

from ftpipeline.cli.detect import detect
from ftpipeline.errors import InputError, SourceUnavailableError

app = typer.Typer()
app.command()(detect)


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def metrics(tmp_path: Path) -> Path:
    """Metrics of a run that is healthy for 200 steps and doubles its loss then, and a torn and a wrong line."""
    losses = [1.0 + 0.01 * (step % 7) for step in range(200)] + [2.5 + 0.01 * (step % 7) for step in range(100)]
    rows = [json.dumps({"step": step, "loss": loss}) for step, loss in enumerate(losses, 1)]
    path = tmp_path / "metrics.jsonl"
    path.write_text("\n".join([*rows[:250], '{"step": 251, "loss"', *rows[250:]]) + '\n{"step": 301', "utf-8")
    return path


def test_json_holds_the_verdict_and_what_was_not_read(metrics: Path) -> None:
    result = run(metrics, "--json")
    document: dict[str, Any] = json.loads(result.stdout)
    assert result.exit_code == 1
    assert (document["stage"], document["onset_step"]) == ("confirmed", 201)
    assert 150 < document["last_good_step"] <= 200
    assert {"kind", "step", "value", "limit"} <= document["evidence"][0].keys()
    assert (document["bad_lines"], document["unread_bytes"]) == (1, 12)
    assert document["bad"] == [{"line": 251, "reason": "cannot be parsed: JSONDecodeError"}]


def test_people_are_told_when_and_why_and_what_was_not_read(metrics: Path) -> None:
    result = run(metrics)
    assert "confirmed" in result.stdout
    assert "onset 201" in result.stdout
    assert "line 251 not used" in result.stderr
    assert "12 bytes after the last newline not read" in result.stderr


def test_a_healthy_run_ends_well_and_a_short_one_does_not(tmp_path: Path) -> None:
    table = tmp_path / "metrics.csv"
    rows = [f"{step},{1 + 0.01 * (step % 7)}" for step in range(1, 201)]
    table.write_text("\n".join(["step,loss", *rows]) + "\n", "utf-8")
    assert run(table).exit_code == 0
    table.write_text("\n".join(["step,loss", *rows[:5]]) + "\n", "utf-8")
    short = run(table, "--json")
    assert (short.exit_code, json.loads(short.stdout)["stage"]) == (1, "insufficient")


def test_a_declared_change_is_for_review(metrics: Path) -> None:
    document = json.loads(run(metrics, "--event", "mixture_switch@201", "--json").stdout)
    assert document["stage"] == "suspect"
    assert {item["event"] for item in document["evidence"]} == {"mixture_switch"}


@pytest.mark.parametrize("text", ["mixture_switch", "reboot@3", "mixture_switch@x"])
def test_an_event_that_is_none_is_refused(metrics: Path, text: str) -> None:
    assert isinstance(run(metrics, "--event", text).exception, InputError)


def test_a_missing_file_is_the_surroundings_fault(tmp_path: Path) -> None:
    error = run(tmp_path / "none.jsonl").exception
    assert isinstance(error, SourceUnavailableError)
    assert error.exit_code == 3
