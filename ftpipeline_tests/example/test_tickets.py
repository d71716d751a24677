"""Laws of the generated example, checked on what was written and not on the generator's own variables."""

import csv
import re
from collections import Counter, defaultdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pytest

from ftpipeline.errors import InputError, StoreError
from ftpipeline.example.history import CUSTOMERS
from ftpipeline.example.tickets import GeneratedExample, generate
from ftpipeline.example.weeks import END, LATE_START

PERSONAL = re.compile(r"example\.com|202 555 01\d\d|4111([ -]?1111){3}")
LATE_QUEUE = "gift_card_activation"

Row = dict[str, Any]


def tickets_of(example: GeneratedExample) -> list[Row]:
    with duckdb.connect(str(example.tickets), read_only=True) as connection:
        rows: list[Row] = connection.sql("SELECT * FROM tickets ORDER BY ticket_id").to_arrow_table().to_pylist()
    return rows


def eval_rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def labels_of(example: GeneratedExample) -> list[str]:
    return example.labels.read_text(encoding="utf-8").splitlines()


def share(tickets: list[Row], matching: int) -> float:
    return matching / len(tickets)


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> GeneratedExample:
    return generate(tmp_path_factory.mktemp("example"))


@pytest.fixture(scope="module")
def tickets(example: GeneratedExample) -> list[Row]:
    return tickets_of(example)


def test_the_same_seed_gives_the_same_rows_and_another_seed_does_not(tmp_path: Path) -> None:
    first, again, other = (
        generate(tmp_path / name, seed=seed, per_week=40, weeks=4)
        for name, seed in (("first", 3), ("again", 3), ("other", 4))
    )
    assert tickets_of(first) == tickets_of(again)
    assert tickets_of(first) != tickets_of(other)
    for part in ("gold", "regression", "safety", "labels"):
        assert getattr(first, part).read_bytes() == getattr(again, part).read_bytes()


def test_the_eval_sets_do_not_depend_on_the_length_of_the_history(example: GeneratedExample, tmp_path: Path) -> None:
    short = generate(tmp_path, per_week=5, weeks=2)
    for part in ("gold", "regression", "safety", "labels"):
        assert getattr(short, part).read_bytes() == getattr(example, part).read_bytes()


def test_generating_again_replaces_what_stood_there_and_leaves_nothing_else(tmp_path: Path) -> None:
    generate(tmp_path, per_week=30, weeks=3)
    example = generate(tmp_path, per_week=20, weeks=2)
    assert len(tickets_of(example)) == 40
    assert {path.name for path in tmp_path.iterdir()} == {
        "tickets.duckdb", "gold_v1.csv", "regression_v1.csv", "safety_v1.csv", "labels.txt",
    }  # fmt: skip


@pytest.mark.parametrize(("per_week", "weeks"), [(0, 26), (260, 0)])
def test_an_empty_history_is_refused_and_nothing_is_written(tmp_path: Path, per_week: int, weeks: int) -> None:
    with pytest.raises(InputError, match="at least 1"):
        generate(tmp_path / "example", per_week=per_week, weeks=weeks)
    assert not (tmp_path / "example").exists()


def test_a_folder_that_cannot_be_made_is_refused_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    with pytest.raises(StoreError, match="cannot be written") as refusal:
        generate(tmp_path / "file", per_week=1, weeks=1)
    assert "\n" not in str(refusal.value)


def test_the_counts_are_those_of_the_files(example: GeneratedExample, tickets: list[Row]) -> None:
    assert example.ticket_count == len(tickets) == 260 * 26
    assert example.gold_count == len(eval_rows(example.gold)) == 400
    assert example.regression_count == len(eval_rows(example.regression)) == 200
    assert example.safety_count == len(eval_rows(example.safety)) == 150
    assert example.label_count == len(labels_of(example)) == 40


def test_the_column_types_are_text_and_points_in_time(example: GeneratedExample) -> None:
    with duckdb.connect(str(example.tickets), read_only=True) as connection:
        described = connection.execute("SELECT column_name, data_type FROM information_schema.columns").fetchall()
    moments = {name for name, kind in described if kind == "TIMESTAMP WITH TIME ZONE"}
    texts = {name for name, kind in described if kind == "VARCHAR"}
    assert moments == {"created_at", "ingested_at"}
    assert texts == {"ticket_id", "thread_id", "customer_id", "channel", "queue", "label_source", "body"}


def test_ids_are_unique_text_that_no_reader_takes_for_a_number(example: GeneratedExample, tickets: list[Row]) -> None:
    ids = [ticket["ticket_id"] for ticket in tickets]
    for path in (example.gold, example.regression, example.safety):
        ids += [row["id"] for row in eval_rows(path)]
    assert len(ids) == len(set(ids))
    assert all(re.fullmatch(r"[A-Za-z]-\d+", name) for name in ids)


def test_every_week_from_monday_to_sunday_has_its_tickets(tickets: list[Row]) -> None:
    assert datetime(2026, 11, 16, tzinfo=UTC) == END
    weeks = Counter((END - ticket["created_at"]) // timedelta(weeks=1) for ticket in tickets)
    assert min(ticket["created_at"] for ticket in tickets) >= datetime(2026, 5, 18, tzinfo=UTC)
    assert max(ticket["created_at"] for ticket in tickets) < END
    assert weeks == dict.fromkeys(range(26), 260)


def test_tickets_follow_the_working_week(tickets: list[Row]) -> None:
    times = [ticket["created_at"].astimezone(UTC) for ticket in tickets]
    assert times == sorted(times)
    assert share(tickets, sum(time.weekday() < 5 for time in times)) > 0.85
    assert share(tickets, sum(7 <= time.hour < 18 for time in times)) > 0.7


def test_a_few_rows_are_ingested_days_late_and_none_before_it_is_written(tickets: list[Row]) -> None:
    delays = [ticket["ingested_at"] - ticket["created_at"] for ticket in tickets]
    assert min(delays) > timedelta(0)
    assert 0.003 < share(tickets, sum(delay >= timedelta(days=2) for delay in delays)) < 0.02


def test_gold_and_regression_cover_every_queue_equally(example: GeneratedExample) -> None:
    labels = labels_of(example)
    assert labels == sorted(set(labels))
    assert Counter(row["queue"] for row in eval_rows(example.gold)) == dict.fromkeys(labels, 10)
    assert Counter(row["queue"] for row in eval_rows(example.regression)) == dict.fromkeys(labels, 5)


def test_eval_texts_are_distinct_and_free_of_personal_data(example: GeneratedExample) -> None:
    for path in (example.gold, example.regression, example.safety):
        texts = [row["text"] for row in eval_rows(path)]
        assert len(texts) == len(set(texts))
        assert not any(PERSONAL.search(text) for text in texts)


def test_every_safety_question_expects_abstention(example: GeneratedExample) -> None:
    assert {row["expected"] for row in eval_rows(example.safety)} == {"abstain"}


def test_planted_leaks_stand_in_the_tickets_as_they_are_in_boilerplate_and_signed(
    example: GeneratedExample, tickets: list[Row]
) -> None:
    gold = {row["text"]: row["queue"] for row in eval_rows(example.gold)}
    forms = Counter[str]()
    for ticket in tickets:
        pieces = [ticket["body"], *ticket["body"].split("\n\n")]
        if not any(piece in gold for piece in pieces):
            continue
        form = "exact" if ticket["body"] in gold else "signed" if PERSONAL.search(ticket["body"]) else "boilerplate"
        forms[form] += 1
    assert example.leak_count == 25
    assert forms.total() >= example.leak_count
    assert min(forms[form] for form in ("exact", "signed", "boilerplate")) >= 3


def test_labels_outside_the_list_are_few_and_spelled_in_different_ways(
    example: GeneratedExample, tickets: list[Row]
) -> None:
    labels = set(labels_of(example))
    bad = [ticket["queue"] for ticket in tickets if ticket["queue"] not in labels]
    assert 0.001 < share(tickets, len(bad)) < 0.01
    assert "unknown_queue" in bad
    assert any(label.startswith(" ") and label.strip().lower() in labels for label in bad)


def test_some_labels_were_accepted_by_a_machine(tickets: list[Row]) -> None:
    sources = Counter(ticket["label_source"] for ticket in tickets)
    assert set(sources) == {"auto_accepted", "human_confirmed", "human_corrected"}
    assert 0.10 < share(tickets, sources["auto_accepted"]) < 0.14


def test_the_late_queue_appears_six_weeks_before_the_end(tickets: list[Row]) -> None:
    late = [t for t in tickets if LATE_QUEUE in t["queue"].lower()]
    assert len(late) >= 40
    assert timedelta(0) <= min(ticket["created_at"] for ticket in late) - LATE_START < timedelta(weeks=1)
    early = [ticket["body"].lower() for ticket in tickets if ticket["created_at"] < LATE_START]
    assert not any("gift card" in body for body in early)


def test_threads_are_reopened_and_some_are_shared_by_two_customers(tickets: list[Row]) -> None:
    threads: dict[str, list[str]] = defaultdict(list)
    for ticket in tickets:
        threads[ticket["thread_id"]].append(ticket["customer_id"])
    assert 0.08 < share(tickets, sum(len(customers) - 1 for customers in threads.values())) < 0.12
    assert 0.01 < share(tickets, sum(len(set(customers)) == 2 for customers in threads.values())) < 0.03
    assert max(len(set(customers)) for customers in threads.values()) == 2


def test_customers_are_many_and_a_tenth_of_them_writes_a_quarter_of_the_tickets(tickets: list[Row]) -> None:
    customers = Counter(ticket["customer_id"] for ticket in tickets)
    assert 0.85 * CUSTOMERS < len(customers) <= CUSTOMERS
    busiest = customers.most_common(len(customers) // 10)
    assert 0.25 < share(tickets, sum(count for _, count in busiest)) < 0.6


def test_repeats_forms_and_personal_data_have_their_shares(tickets: list[Row]) -> None:
    bodies = [ticket["body"] for ticket in tickets]
    forms = sum(body.startswith(("Contact form.", "Automatic request", "Chat ended")) for body in bodies)
    wrapped = sum("CAUTION:" in b or "not monitored" in b or "\n\nSent from" in b or "\n\nThis m" in b for b in bodies)
    assert 0.02 < share(tickets, len(bodies) - len(set(bodies))) < 0.06
    assert 0.08 < share(tickets, forms) < 0.12
    assert 0.015 < share(tickets, wrapped) < 0.05
    assert 0.04 < share(tickets, sum(bool(PERSONAL.search(body)) for body in bodies)) < 0.08


def test_personal_data_is_recognisably_made_up(tickets: list[Row]) -> None:
    bodies = "\n".join(ticket["body"] for ticket in tickets)
    assert {address.split("@")[1] for address in re.findall(r"\S+@[\w.]+\w", bodies)} == {
        "example.com", "mail.example.com",
    }  # fmt: skip
    assert all(number.startswith("+1 202 555 01") for number in re.findall(r"\+\d[\d ]+", bodies))
