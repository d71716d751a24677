"""Curation accounts for every row, and what it keeps does not depend on their order."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ftpipeline.errors import EmptyResultError, LabelError
from ftpipeline.records import Facts
from ftpipeline.steps.curate import VARIANTS
from ftpipeline.steps.rows import CuratedRow, SnapshotRow, Variant
from ftpipeline.steps.tables import RECORD, ROWS, read_rows
from ftpipeline_tests.steps.data_steps import NOON, content, json_at, run_curate, snapshot_row

LONG = "please resend the october invoice for my account as a pdf file today"


def curated(out: Path) -> list[CuratedRow]:
    return read_rows(out / ROWS, CuratedRow)


def after(facts: Facts, name: str) -> int:
    rows: int = next(stage["after"] for stage in facts["stages"] if stage["stage"] == name)
    return rows


def test_only_labels_that_a_person_stands_behind_are_kept_and_the_others_counted_by_source(tmp_path: Path) -> None:
    sources = ["human_confirmed", "auto_accepted", None, "auto_accepted", "human_corrected"]
    rows = [snapshot_row(f"T{n}", f"text {n}", source=source) for n, source in enumerate(sources)]
    out, facts = run_curate(rows, tmp_path, human_sources=["human_confirmed", "human_corrected"])
    assert [row.id for row in curated(out)] == ["T0", "T4"]
    assert facts["dropped_label_sources"] == {"auto_accepted": 2, "(not stated)": 1}


def test_labels_outside_the_closed_list_are_counted_by_raw_spelling(tmp_path: Path) -> None:
    spellings = ["billing", " billing", "Billing", "Billing", "billing\u200b", "refunds"]
    rows = [snapshot_row(f"T{n}", f"text {n}", spelling) for n, spelling in enumerate(spellings)]
    out, facts = run_curate(rows, tmp_path)
    assert [row.label for row in curated(out)] == ["billing", "billing"]
    assert facts["rejected_labels"] == {"Billing": 2, "'billing\\u200b'": 1, "refunds": 1}


def test_texts_are_cleaned_and_what_was_done_is_counted(tmp_path: Path) -> None:
    rows = [
        snapshot_row("T1", "My card  is lost, write to a@b.example\n\n-- \nMira"),
        snapshot_row("T2", "Sent from my phone"),
        snapshot_row("T3", "> all of it\n> is a quote"),
    ]
    out, facts = run_curate(rows, tmp_path)
    assert [row.text for row in curated(out)] == ["My card is lost, write to [EMAIL]", "> all of it\n> is a quote"]
    assert facts["cleaning"] == {
        "markup_removed": 0,
        "replies_stripped": 2,
        "kept_whole": 1,
        "quotes_left": 1,
        "rejected_as_empty": 1,
        "[EMAIL]": 1,
    }


def test_a_row_stands_for_its_duplicates_and_keeps_their_group_keys(tmp_path: Path) -> None:
    rows = [
        snapshot_row("T3", f"{LONG} thanks", groups=["customer=C2", "thread=H2"]),
        snapshot_row("T1", LONG, groups=["customer=C1"]),
        snapshot_row("T2", f"{LONG} ", groups=["customer=C3"]),
        snapshot_row("T4", "cannot sign in"),
    ]
    out, facts = run_curate(rows, tmp_path)
    first, other = curated(out)
    assert (first.id, first.text, first.members) == ("T1", LONG, ("T1", "T2", "T3"))
    assert first.groups == ("customer=C1", "customer=C2", "customer=C3", "thread=H2")
    assert other.members == ("T4",)
    assert read_rows(out / VARIANTS, Variant) == [Variant("T1", f"{LONG} thanks")]
    assert (after(facts, "exact_duplicates"), after(facts, "near_duplicates")) == (3, 2)


def test_the_newest_correction_decides_a_conflict_and_without_one_the_rows_are_rejected(tmp_path: Path) -> None:
    later = NOON + timedelta(hours=1)
    rows = [
        snapshot_row("A1", "one text", "billing", source="human_corrected"),
        snapshot_row("A2", "one text", "login", source="human_corrected", event_time=later),
        snapshot_row("A3", "one text", "billing", source="human_confirmed", event_time=later + timedelta(hours=1)),
        snapshot_row("B1", "another text", "billing", source="human_confirmed"),
        snapshot_row("B2", "another text", "login", source="human_confirmed"),
    ]
    out, facts = run_curate(rows, tmp_path)
    assert [(row.id, row.label, row.members) for row in curated(out)] == [("A1", "login", ("A1", "A2", "A3"))]
    assert facts["stages"][-1] == {"stage": "label_conflicts", "before": 2, "after": 1}


def test_the_record_holds_the_snapshots_record_and_the_curation_version(tmp_path: Path) -> None:
    out, facts = run_curate([snapshot_row("T1", "hello")], tmp_path)
    record = json_at(out / RECORD)
    assert record["snapshot"] == {"query": "SELECT 1"}
    assert record["curation_version"] == facts["curation_version"] == "2"
    assert record["labels"] == {"billing": 1}
    assert record["stages"] == facts["stages"]


def test_facts_hold_no_text_of_a_row(tmp_path: Path) -> None:
    _, facts = run_curate([snapshot_row("T1", "a secret"), snapshot_row("T2", "another secret", "nolabel")], tmp_path)
    assert "secret" not in str(facts)


def test_a_curation_that_keeps_nothing_says_where_the_rows_went(tmp_path: Path) -> None:
    with pytest.raises(EmptyResultError, match="human_verified 1 -> 1, closed_label_list 1 -> 0"):
        run_curate([snapshot_row("T1", "hello", "refunds")], tmp_path)
    assert content(tmp_path / "curated") == {}


def test_an_unusable_label_list_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LabelError):
        run_curate([snapshot_row("T1", "hello")], tmp_path, labels=["billing", "billing "])


words = st.lists(
    st.sampled_from(["pay", "card", "lost", "a@b.example", "\n> quoted\n", "Thanks"]), min_size=1, max_size=7
)
rows = st.lists(st.tuples(words.map(" ".join), st.sampled_from(["billing", "login", "other"])), min_size=1, max_size=10)


@given(given_rows=rows)
def test_every_kept_row_is_a_member_once_and_curating_twice_changes_nothing(
    given_rows: list[tuple[str, str]], tmp_path_factory: Any
) -> None:
    taken = [snapshot_row(f"T{n:02}", text, label) for n, (text, label) in enumerate(given_rows)]
    taken.append(snapshot_row("T99", "a row that is always kept"))
    out, facts = run_curate(taken, tmp_path_factory.mktemp("once"))
    once = curated(out)
    members = [member for row in once for member in row.members]
    assert len(members) == len(set(members))
    assert [row.id for row in once] == sorted(min(row.members) for row in once)
    assert facts["rows"] == len(once)
    again = [SnapshotRow(row.id, row.text, row.label, None, row.event_time, row.groups) for row in once]
    twice, _ = run_curate(again, tmp_path_factory.mktemp("twice"))
    assert [(row.id, row.text, row.label) for row in curated(twice)] == [(row.id, row.text, row.label) for row in once]


def test_equal_inputs_give_equal_bytes(tmp_path: Path) -> None:
    taken = [snapshot_row(f"T{n}", f"{LONG} {n % 3}", groups=[f"c={n % 2}"]) for n in range(9)]
    trees = [content(run_curate(taken, tmp_path / name)[0]) for name in ("a", "b")]
    assert trees[0] == trees[1]
