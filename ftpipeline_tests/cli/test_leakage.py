"""The check alone, through the command line: exit codes, JSON fields, and one line for bad input."""

import json
from pathlib import Path

import pytest

from ftpipeline_tests.cli.command import ftpipeline, ftpipeline_program

QUESTION = "please send the invoice of last month to my new address"


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    train, evals = tmp_path / "train.csv", tmp_path / "eval.jsonl"
    train.write_text(f"id,text\n1,nothing alike\n2,Hello! {QUESTION.upper()} thank you\n")
    evals.write_text("".join(json.dumps({"text": text}) + "\n" for text in ("Nothing alike!", QUESTION, "other")))
    return train, evals


def test_leaks_are_listed_with_rows_from_zero_and_exit_with_one(files: tuple[Path, Path]) -> None:
    done = ftpipeline("leakage", *files, "--json")
    assert done.code == 1
    assert done.document == {
        "method": "exact",
        "threshold": 0.5,
        "train_rows": 2,
        "eval_rows": 3,
        "leaked": [
            {"eval_row": 0, "train_row": 0, "score": 1.0, "rule": "equal"},
            {"eval_row": 1, "train_row": 1, "score": 1.0, "rule": "containment"},
        ],
    }


def test_no_leak_exits_with_zero(files: tuple[Path, Path], tmp_path: Path) -> None:
    other = tmp_path / "other.csv"
    other.write_text("text\nsomething else\n")
    done = ftpipeline("leakage", files[0], other, "--json")
    assert (done.code, done.document["leaked"]) == (0, [])


@pytest.mark.parametrize("method", ["reference", "minhash"])
def test_the_other_methods_name_themselves(files: tuple[Path, Path], method: str) -> None:
    document = ftpipeline("leakage", *files, "--json", "--method", method).document
    assert document["method"] == method
    assert [entry["eval_row"] for entry in document["leaked"]] == ([1] if method == "reference" else [0, 1])


def test_reference_at_threshold_zero_names_no_training_row(files: tuple[Path, Path]) -> None:
    document = ftpipeline("leakage", *files, "--json", "--method", "reference", "--threshold", "0").document
    assert [entry["train_row"] for entry in document["leaked"]] == [None, 1, None]


def test_a_person_sees_counts_by_rule(files: tuple[Path, Path]) -> None:
    done = ftpipeline_program("leakage", *files)
    assert done.code == 1
    assert "2 of 3 eval rows are found in 2 training rows (equal 1, containment 1)" in done.stdout
    assert QUESTION not in done.stdout


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["--column", "body"], 2, "column body: line 1 has no text there"),
        (["--threshold", "2"], 2, "leakage.threshold is 2.0"),
        (["--threshold", "nan", "--method", "reference"], 2, "finite number"),
        (["--method", "fuzzy"], 2, "leakage.method is 'fuzzy'"),
    ],
)
def test_wrong_use_is_one_line(files: tuple[Path, Path], options: list[str], code: int, message: str) -> None:
    done = ftpipeline("leakage", *files, *options)
    assert done.code == code
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_missing_file_exits_with_three(files: tuple[Path, Path], tmp_path: Path) -> None:
    assert ftpipeline("leakage", tmp_path / "gone.csv", files[1]).code == 3
