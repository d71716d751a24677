"""Groups stay whole, and no eval row is left in what a model learns from or is calibrated on."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ftpipeline.errors import EmptyResultError, LeakageError, PipelineFileError
from ftpipeline.steps.rows import CuratedRow, Leak, Variant
from ftpipeline.steps.split import LEAKAGE_RECORD, LEAKS, SPLIT_RECORD
from ftpipeline.steps.tables import read_rows
from ftpipeline.steps.text import words
from ftpipeline_tests.steps.data_steps import SPLIT, content, curated_row, json_at, run_split

WORDS = [f"word{n}" for n in range(10)]


def distinct(n: int) -> str:
    """Return a text that shares no shingle with that of another number."""
    return " ".join(f"{word}of{n}" for word in WORDS)


def sides(out: Path) -> tuple[list[CuratedRow], list[CuratedRow]]:
    train, validation = (read_rows(out / f"{side}.parquet", CuratedRow) for side in ("train", "validation"))
    return train, validation


def leaks(out: Path) -> list[Leak]:
    return read_rows(out / LEAKS, Leak)


tied = st.lists(st.lists(st.sampled_from([f"c={n}" for n in range(9)]), max_size=2), min_size=12, max_size=25)


@given(keys=tied, seed=st.integers(0, 3))
def test_a_group_is_never_on_both_sides(keys: list[list[str]], seed: int, tmp_path_factory: Any) -> None:
    rows = [curated_row(f"T{n:02}", distinct(n), groups=row) for n, row in enumerate([*keys, [], []])]
    out, facts = run_split(rows, tmp_path_factory.mktemp("split"), seed=seed)
    train, validation = sides(out)
    assert not {key for row in train for key in row.groups} & {key for row in validation for key in row.groups}
    assert sorted(row.id for row in train + validation) == [row.id for row in rows]
    assert train
    assert validation
    assert facts["validation_fraction"]["reached"] == len(validation) / len(rows)


def test_keys_of_two_columns_tie_rows_through_each_other(tmp_path: Path) -> None:
    linked = [["c=1", "t=1"], ["c=2", "t=1"], ["c=2", "t=2"], ["c=3", "t=2"]]
    rows = [curated_row(f"T{n}", distinct(n), groups=keys) for n, keys in enumerate([*linked, ["c=4", "t=3"]])]
    train, validation = sides(run_split(rows, tmp_path)[0])
    assert [row.id for row in train] == ["T0", "T1", "T2", "T3"]
    assert [row.id for row in validation] == ["T4"]


def test_a_group_larger_than_the_wanted_share_stays_in_train_and_the_reached_share_is_told(tmp_path: Path) -> None:
    groups = ["c=big"] * 14 + [f"c={n}" for n in range(14, 20)]
    rows = [curated_row(f"T{n:02}", distinct(n), groups=[key]) for n, key in enumerate(groups)]
    out, facts = run_split(rows, tmp_path)
    train, validation = sides(out)
    assert {"c=big"} < {row.groups[0] for row in train}
    assert facts["validation_fraction"] == {"wanted": 0.2, "reached": len(validation) / 20}
    assert facts["groups"]["count"] == 7
    assert facts["groups"]["largest"] == 14


def test_a_row_that_equals_an_eval_row_is_dropped_wherever_it_was_assigned(tmp_path: Path) -> None:
    rows = [curated_row(f"T{n:02}", distinct(n), groups=[f"c={n}"]) for n in range(20)]
    evals = [f"{distinct(n).upper()} !" for n in range(0, 20, 2)]
    out, facts = run_split(rows, tmp_path, {"task": evals, "safety": ["nothing alike"]})
    train, validation = sides(out)
    assert not {words(row.text) for row in train + validation} & {words(text) for text in evals}
    assert len(train) + len(validation) == 10
    assert facts["leaked"] + facts["leaked_from_validation"] == 10
    assert facts["leaked_from_validation"] > 0
    assert {(leak.eval_set, leak.rule, leak.score) for leak in leaks(out)} == {("task", "equal", 1.0)}
    verdict = json_at(out / LEAKAGE_RECORD)
    assert (verdict["verdict"], verdict["threshold"], verdict["method"]) == ("dropped", 0.5, "exact")
    assert verdict["sets"]["task"]["leaked_tickets"] == 10
    assert verdict["sets"]["safety"] == dict.fromkeys(verdict["sets"]["task"], 0) | {"rows_checked": 1}


def test_every_row_that_holds_enough_of_an_eval_row_is_dropped_not_the_best_alone(tmp_path: Path) -> None:
    question = " ".join(f"q{n}" for n in range(12))
    rows = [curated_row(f"T{n:02}", distinct(n)) for n in range(10)]
    rows += [curated_row("T90", f"hello {question} bye"), curated_row("T91", " ".join(question.split()[:11]))]
    rows += [curated_row("T92", " ".join(question.split()[:9]))]  # two of its five shingles: not enough
    out, _ = run_split(rows, tmp_path, {"task": [question]})
    found = [(leak.train_id, leak.rule, leak.score) for leak in leaks(out) if leak.eval_set == "task"]
    assert found == [("T90", "containment", 1.0), ("T91", "containment", 0.8)]
    assert not {"T90", "T91"} & {row.id for side in sides(out) for row in side}


def test_train_is_checked_against_validation(tmp_path: Path) -> None:
    rows = [curated_row(f"T{n:02}", distinct(n % 10), groups=[f"c={n}"]) for n in range(20)]
    out, facts = run_split(rows, tmp_path)
    train, validation = sides(out)
    assert not {row.text for row in train} & {row.text for row in validation}
    assert facts["leaked"] == len(leaks(out)) > 0
    assert {leak.eval_set for leak in leaks(out)} == {"validation"}
    assert facts["leaked_from_validation"] == 0


def test_a_row_is_looked_for_in_every_wording_it_stands_for(tmp_path: Path) -> None:
    rows = [curated_row(f"T{n}", distinct(n)) for n in range(8)]
    out, _ = run_split(rows, tmp_path, {"task": ["another wording"]}, variants=[Variant("T3", "Another wording!")])
    assert [(leak.train_id, leak.eval_row) for leak in leaks(out)] == [("T3", "task-0")]


def test_an_eval_text_is_also_looked_for_as_curation_would_have_written_it(tmp_path: Path) -> None:
    rows = [curated_row(f"T{n}", distinct(n)) for n in range(8)] + [curated_row("T9", "mail me at [EMAIL]")]
    out, _ = run_split(rows, tmp_path, {"task": ["Mail me at a@b.example\n\n-- \nMira"]})
    assert [(leak.train_id, leak.rule) for leak in leaks(out)] == [("T9", "equal")]


def test_the_source_rows_behind_a_leak_are_named_and_counted(tmp_path: Path) -> None:
    rows = [curated_row(f"T{n}", distinct(n)) for n in range(8)]
    rows[2] = CuratedRow("T2", "hello there", "login", rows[2].event_time, (), ("T2", "T77", "T78"))
    out, facts = run_split(rows, tmp_path, {"task": ["Hello there!", "hello, THERE"]})
    assert [leak.members for leak in leaks(out)] == [("T2", "T77", "T78")] * 2
    assert facts["leaks"][0] == {
        "eval_set": "task",
        "rows_checked": 2,
        "leaked_eval_rows": 2,
        "leaked": facts["leaked"],
        "leaked_from_validation": facts["leaked_from_validation"],
        "leaked_tickets": 3,
        "by_equal": 1,
        "by_containment": 0,
        "by_short": 0,
        "by_characters": 0,
    }


def test_a_leak_is_counted_under_the_rule_that_found_it(tmp_path: Path) -> None:
    rows = [curated_row(f"T{n}", distinct(n)) for n in range(8)]
    rows[2] = curated_row("T2", "once more: the parcel came back to us today, said the carrier")
    _, facts = run_split(rows, tmp_path, {"task": ["parcel came back to us", distinct(5)]})
    found = {name: count for name, count in facts["leaks"][0].items() if name.startswith("by_")}
    assert found == {"by_equal": 1, "by_containment": 0, "by_short": 1, "by_characters": 0}


def test_the_policy_fail_refuses_and_names_the_counts(tmp_path: Path) -> None:
    rows = [curated_row(f"T{n}", distinct(n)) for n in range(8)]
    leakage = {"threshold": 0.5, "policy": "fail"}
    run_split(rows, tmp_path / "clean", {"task": ["nothing alike"]}, leakage=leakage)
    with pytest.raises(LeakageError, match=r"by eval set: task 2\)"):
        run_split(rows, tmp_path / "leaky", {"task": [distinct(1), distinct(2)], "safety": ["x"]}, leakage=leakage)
    assert content(tmp_path / "leaky" / "split") == {}


def test_a_clean_split_says_so(tmp_path: Path) -> None:
    out, facts = run_split([curated_row(f"T{n}", distinct(n)) for n in range(8)], tmp_path, {"task": ["nothing alike"]})
    assert json_at(out / LEAKAGE_RECORD)["verdict"] == "clean"
    assert (leaks(out), facts["leaked"]) == ([], 0)


def test_labels_missing_from_a_side_are_told(tmp_path: Path) -> None:
    rows = [curated_row(f"T{n}", distinct(n), "rare" if n == 0 else "billing") for n in range(10)]
    out, facts = run_split(rows, tmp_path)
    missing = json_at(out / SPLIT_RECORD)["missing_labels"]
    assert sorted(missing["train"] + missing["validation"]) == ["rare"]
    assert sum(line["train"] + line["validation"] for line in facts["labels"]) == 10


def test_rows_that_are_all_tied_cannot_be_split(tmp_path: Path) -> None:
    rows = [curated_row(f"T{n}", distinct(n), groups=["c=1"]) for n in range(5)]
    with pytest.raises(EmptyResultError, match="tie all 5 rows into one group"):
        run_split(rows, tmp_path)


def test_an_empty_side_is_an_error(tmp_path: Path) -> None:
    rows, evals = [curated_row(f"T{n}", distinct(n)) for n in range(5)], [distinct(n) for n in range(5)]
    with pytest.raises(EmptyResultError, match="is empty after the split"):
        run_split(rows, tmp_path, {"task": evals} if evals else None)
    assert content(tmp_path / "split") == {}


@pytest.mark.parametrize(
    "changes",
    [
        {"leakage": {"threshold": 0.5, "policy": "warn"}},
        {"leakage": {"threshold": 0, "policy": "drop"}},
        {"validation_fraction": 0},
        {"validation_fraction": 1},
        {"validation_fraction": float("nan")},
    ],
)
def test_a_parameter_out_of_range_is_refused(tmp_path: Path, changes: dict[str, Any]) -> None:
    with pytest.raises(PipelineFileError):
        run_split([curated_row(f"T{n}", distinct(n)) for n in range(8)], tmp_path, **{**SPLIT, **changes})


def test_equal_inputs_give_equal_bytes(tmp_path: Path) -> None:
    rows = [curated_row(f"T{n:02}", distinct(n % 15), groups=[f"c={n}"]) for n in range(20)]
    trees = [content(run_split(rows, tmp_path / name, {"task": [distinct(3)]})[0]) for name in ("a", "b")]
    assert trees[0] == trees[1]
