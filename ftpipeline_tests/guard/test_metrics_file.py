"""Metrics files of every form, whole, growing, torn, rotated and wrong."""

import json
import math
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ftpipeline.errors import InputError, SourceError, SourceUnavailableError
from ftpipeline.guard.detect import detect
from ftpipeline.guard.metric_lines import Cursor, MetricsRead
from ftpipeline.guard.metrics_file import read_metrics
from ftpipeline.guard.points import Event, EventKind, Point
from ftpipeline.guard.verdicts import EvidenceKind, Stage
from ftpipeline_tests.shared import shared

values = st.one_of(
    st.floats(), st.integers(-5, 5), st.none(), st.booleans(), st.sampled_from(["NaN", "x", "", {"non_finite": "inf"}])
)
names = st.sampled_from(["step", "loss", "grad_norm", "eval_loss", "attempt", "event", "job", "train_loss", "kl"])
rows = st.dictionaries(names, values)
lines = st.one_of(st.binary(max_size=20), rows.map(lambda row: json.dumps(row).encode()))


def jsonl(*documents: object) -> bytes:
    return b"".join(json.dumps(document).encode() + b"\n" for document in documents)


def losses(read: MetricsRead) -> list[tuple[int, float | None]]:
    return [(point.step, point.loss) for point in read.points]


@example([b'{"step": 0, "loss": "NaN"}'], [])
@example([b'{"step": 0, "loss": Infinity}'], [])
@given(st.lists(lines, max_size=12), st.lists(st.integers(0, 400), max_size=5))
def test_a_file_read_while_it_grows_gives_what_it_gives_whole(written: list[bytes], cuts: list[int]) -> None:
    data = b'{"step": 0, "loss": 1}\n' + b"\n".join(written) + b"\n"
    whole = read_metrics(data)
    cursor, points, bad, ignored = Cursor(), list[Point](), 0, 0
    for cut in [*sorted(cuts), len(data)]:
        read = read_metrics(data[:cut], cursor)
        assert not read.rotated
        cursor = Cursor.from_json(json.loads(json.dumps(read.cursor.to_json(), allow_nan=False)))
        points, bad, ignored = points + list(read.points), bad + len(read.bad_lines), ignored + read.ignored
    assert repr(points) == repr(list(whole.points))
    assert (bad, ignored, cursor.offset) == (len(whole.bad_lines), whole.ignored, len(data))


@example(b"\r\x01\n")
@example(b'step,loss\n1,"2\n')
@given(st.binary(max_size=200))
def test_bytes_of_any_kind_are_read_or_refused_and_never_a_crash(data: bytes) -> None:
    with suppress(SourceError):
        assert read_metrics(data).waiting <= len(data)


@given(st.lists(lines.filter(lambda line: b"\n" not in line and b"\r" not in line), max_size=12))
def test_every_line_is_a_point_an_event_a_summary_blank_or_a_bad_line(written: list[bytes]) -> None:
    read = read_metrics(b'{"step": 0, "loss": 1}\n' + b"".join(line + b"\n" for line in written))
    blank = sum(not line.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace").strip() for line in written)
    assert len(read.points) + len(read.events) + len(read.bad_lines) + read.ignored + blank == 1 + len(written)


def test_a_byte_limit_reads_whole_lines_and_all_of_them_in_the_end() -> None:
    data = jsonl(*({"step": step, "loss": 1.0} for step in range(50)))
    cursor, steps = Cursor(), list[int]()
    for _ in range(50):
        read = read_metrics(data, cursor, max_bytes=60)
        assert len(read.points) <= 3
        cursor, steps = read.cursor, steps + [point.step for point in read.points]
    assert steps == list(range(50))


def test_half_a_line_waits() -> None:
    part1, part2 = (shared("cases", "h", f"metrics_truncated_tail_part{part}.jsonl").read_bytes() for part in (1, 2))
    first = read_metrics(part1)
    assert (losses(first), first.waiting, first.bad_lines) == ([(10, 1.9), (20, 1.7)], 28, ())
    assert losses(read_metrics(part1 + part2, first.cursor)) == [(30, 9.9), (40, 12.0)]


def test_numbers_are_read_whichever_way_they_are_written() -> None:
    read = read_metrics(shared("cases", "h", "metrics_value_kinds.jsonl"))
    assert repr(losses(read)) == "[(10, 1.5), (20, nan), (40, inf), (70, 1.4), (90, None)]"
    assert (read.points[-1].val_loss, read.ignored, read.bad_lines) == (1.3, 1, ())


def test_our_mark_of_a_non_finite_value_is_one() -> None:
    read = read_metrics(jsonl({"step": 1, "loss": {"non_finite": "nan"}}, {"step": 2, "loss": {"non_finite": "-inf"}}))
    assert repr(losses(read)) == "[(1, nan), (2, -inf)]"


def test_the_last_attempt_counts_and_its_seam_is_no_alarm() -> None:
    read = read_metrics(shared("cases", "h", "metrics_resume_dupes.jsonl"))
    assert [(point.attempt, point.step) for point in read.points[4:6]] == [(1, 50), (2, 40)]
    assert len(read.points) == 10
    assert not detect(read.points).evidence


@pytest.mark.parametrize(
    ("steps", "attempts"),
    [
        ([10, 20, 30, 20, 30, 40], [1, 1, 1, 2, 2, 2]),  # resumed from a checkpoint
        ([10, 20, 40, 30, 50], [1, 1, 1, 1, 1]),  # out of order
        ([10, 20, 20, 30], [1, 1, 1, 1]),  # training and evaluation of one step
        ([100, 110, 0, 10], [1, 1, 2, 2]),  # started over
    ],
)
def test_a_repeated_step_is_a_resumed_run_and_one_out_of_order_is_not(steps: list[int], attempts: list[int]) -> None:
    read = read_metrics(jsonl(*({"step": step, "loss": 1.0} for step in steps)))
    assert [point.attempt for point in read.points] == attempts


def test_a_loss_that_hides_nan_is_seen_by_its_gradient_norm() -> None:
    found = detect(read_metrics(shared("cases", "c", "trainer_log_nan_hidden.jsonl")).points)
    assert (found.stage, found.onset_step) == (Stage.CONFIRMED, 20)
    assert found.evidence[0].metric == "grad_norm"


def test_a_gradient_norm_that_never_was_a_number_is_not_measured() -> None:
    read = read_metrics(jsonl(*({"step": step, "loss": 1.0 + step, "grad_norm": None} for step in range(3))))
    assert {point.grad_norm for point in read.points} == {None}
    read = read_metrics(jsonl(*({"step": step, "loss": 1.0, "grad_norm": None} for step in range(2))))
    assert math.isnan(read.points[1].grad_norm or 0.0)


def test_a_table_whose_cells_are_empty_or_nan_says_only_what_was_measured() -> None:
    table = b"step,loss,grad_norm,val_loss\n1,1.5,0.5,\n2,1.4,0.5,nan\n3,1.3,,1.4\n4,nan,0.5,\n5,1.2\n6,1.1,x,\n"
    read = read_metrics(table)
    assert [point.val_loss for point in read.points] == [None, None, 1.4, None]
    assert math.isnan(read.points[3].loss or 0.0)
    assert [(bad.line, bad.reason) for bad in read.bad_lines] == [
        (6, "2 cells under 4 columns"),
        (7, "grad_norm is 'x', not a number"),
    ]


def test_an_evaluation_of_nan_on_a_row_of_its_own_is_not_finite() -> None:
    assert math.isnan(read_metrics(b'{"step": 1, "eval_loss": NaN}\n').points[0].val_loss or 0.0)


@pytest.mark.parametrize("indent", [None, 2])
def test_a_trainer_state_is_read_entry_by_entry(indent: int | None) -> None:
    entries: list[dict[str, Any]] = [{"step": step, "loss": 1.0, "epoch": 0.1} for step in (10, 20)]
    state: dict[str, Any] = {"best_metric": None, "log_history": entries}
    first = read_metrics(json.dumps(state, indent=indent).encode())
    assert losses(first) == [(10, 1.0), (20, 1.0)]
    entries += [{"step": 20, "eval_loss": 1.1}, {"step": 20, "train_loss": 1.0}, {"step": 30, "loss": math.nan}]
    state["best_metric"] = 1.1
    more = read_metrics(json.dumps(state, indent=indent).encode(), first.cursor)
    assert [(point.step, point.val_loss) for point in more.points] == [(20, 1.1), (30, None)]
    assert (more.ignored, more.rotated) == (1, False)


def test_a_trainer_state_that_is_being_written_waits() -> None:
    data = json.dumps({"log_history": [{"step": 10, "loss": 1.0}]}).encode()
    torn = read_metrics(data[:-5])
    assert (torn.points, torn.bad_lines, torn.waiting) == ((), (), len(data) - 5)
    assert losses(read_metrics(data, torn.cursor)) == [(10, 1.0)]


def test_a_rotated_file_is_read_from_its_start() -> None:
    old = jsonl({"step": 1, "loss": 1.0}, {"step": 2, "loss": 1.0})
    cursor = read_metrics(old).cursor
    shorter = read_metrics(jsonl({"step": 3, "loss": 1.0}), cursor)
    assert (losses(shorter), shorter.rotated) == ([(3, 1.0)], True)
    longer = read_metrics(jsonl(*({"step": step, "loss": 2.0} for step in (3, 4, 5))), cursor)
    assert ([point.step for point in longer.points], longer.rotated) == ([3, 4, 5], True)


def test_a_rotated_file_that_begins_in_the_middle_of_a_line_has_one_bad_line() -> None:
    read = read_metrics(b'ss": 9.9}\n{"step": 40, "loss": 12.0}\n')
    assert (losses(read), len(read.bad_lines)) == ([(40, 12.0)], 1)


def test_rows_of_another_job_do_not_belong_to_the_curve() -> None:
    read = read_metrics(jsonl({"job": "A", "step": 1, "loss": 1.0}, {"job": "B", "step": 2, "loss": 9.0}))
    assert losses(read) == [(1, 1.0)]
    assert read.bad_lines[0].reason == "row of job 'B' in a file of job 'A'"


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b'{"step": 1, "loss": tru', "cannot be parsed: JSONDecodeError"),
        (b'{"step": 1, "loss": "high"}', "loss is 'high', not a number"),
        (b'{"step": 1, "loss": true}', "loss is True, not a number"),
        (b'{"loss": 1.0}', "no step"),
        (b'{"step": 1.5, "loss": 1.0}', "step is 1.5, not a whole number from 0 on"),
        (b'{"step": -1, "loss": 1.0}', "step is -1, not a whole number from 0 on"),
        (b'{"step": NaN, "loss": 1.0}', "step is nan, not a whole number from 0 on"),
        (b'{"step": 1, "loss": 1.0, "attempt": "x"}', "attempt is 'x', not a number"),
        (b'{"step": 1, "event": "reboot"}', "event 'reboot' is not one of lr_restart, mixture_switch"),
        (b"[1, 2]", "not an object"),
        (b'{"step": 1, "loss": \xff}', "cannot be parsed: UnicodeDecodeError"),
        (b"[" * 100_000, "cannot be parsed: RecursionError"),
    ],
)
def test_a_line_that_cannot_be_used_is_counted_with_its_reason(line: bytes, reason: str) -> None:
    read = read_metrics(jsonl({"step": 1, "loss": 1.0}) + line + b"\n" + jsonl({"step": 2, "loss": 1.0}))
    assert len(read.points) == 2
    assert [(bad.line, bad.reason[: len(reason)]) for bad in read.bad_lines] == [(2, reason)]


def test_a_declared_change_may_stand_in_the_file() -> None:
    read = read_metrics(jsonl({"step": 120, "event": "mixture_switch"}))
    assert read.events == (Event(120, EventKind.MIXTURE_SWITCH),)


def test_a_byte_order_mark_and_carriage_returns_are_no_part_of_a_row() -> None:
    assert losses(read_metrics(b'\xef\xbb\xbf{"step": 1, "loss": 1.0}\r\n')) == [(1, 1.0)]
    assert losses(read_metrics(b"\xef\xbb\xbfstep,loss\r\n1,1.0\r\n")) == [(1, 1.0)]


def test_scores_are_read_by_name_and_other_names_are_not() -> None:
    row = {"step": 1, "eval_accuracy": 0.5, "score/task": 0.7, "eval_runtime": 3.0}
    assert read_metrics(jsonl(row)).points[0].scores == {"eval_accuracy": 0.5, "score/task": 0.7}


def test_a_missing_file_and_a_file_of_another_kind_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(SourceUnavailableError, match="check the path"):
        read_metrics(tmp_path / "none.jsonl")
    with pytest.raises(SourceError, match="no column 'step'"):
        read_metrics(b"a,b\n1,2\n")
    with pytest.raises(SourceError, match="cannot be read"):
        read_metrics(b"\xff\xfe\n")


@pytest.mark.parametrize("document", [{"offset": "x"}, {"rows": 3}])
def test_a_cursor_of_another_form_is_refused(document: dict[str, object]) -> None:
    with pytest.raises(InputError, match="from its start"):
        Cursor.from_json(document)


@pytest.mark.parametrize(
    ("name", "stages", "onset", "detected_by"),
    [
        ("bad_divergence", {Stage.CONFIRMED}, range(116, 127), 130),
        ("bad_slow_drift", {Stage.CONFIRMED, Stage.SUSPECT}, range(80, 121), 200),
        ("ok_single_batch_spike", {Stage.HEALTHY}, None, None),
        ("ok_warmup_cold_start", {Stage.HEALTHY}, None, None),
        ("short_job_5_steps", {Stage.INSUFFICIENT}, range(4, 6), 5),
        ("warn_mixture_switch", {Stage.SUSPECT}, None, 200),
    ],
)
def test_the_shared_curves_get_their_verdicts(
    name: str, stages: set[Stage], onset: range | None, detected_by: int | None
) -> None:
    found = detect(read_metrics(shared("cases", "i", f"{name}.jsonl")).points)
    assert found.stage in stages
    assert onset is None or found.onset_step in onset
    assert detected_by is None or (found.detected_step or math.inf) <= detected_by


def test_a_declared_mixture_switch_is_for_review() -> None:
    points = read_metrics(shared("cases", "i", "warn_mixture_switch.jsonl")).points
    found = detect(points, events=[Event(120, EventKind.MIXTURE_SWITCH)])
    assert found.stage is Stage.SUSPECT
    assert {item.event for item in found.evidence} == {"mixture_switch"}


def test_a_non_finite_value_is_found_in_a_file_that_is_not_strict_json() -> None:
    found = detect(read_metrics(shared("cases", "c", "trainer_log_nan.jsonl")).points)
    assert (found.stage, found.onset_step) == (Stage.CONFIRMED, 30)
    assert {item.kind for item in found.evidence} == {EvidenceKind.NON_FINITE}


def test_no_real_healthy_curve_alarms() -> None:
    folder = shared("curves")
    labels = json.loads((folder / "META.json").read_text("utf-8"))
    healthy = [name for name, label in labels.items() if label["label"] == "healthy"]
    assert len(healthy) == 15
    for name in healthy:
        read = read_metrics(folder / f"{name}.csv")
        found = detect(read.points)
        assert (name, found.stage, found.evidence, read.bad_lines) == (name, Stage.HEALTHY, (), ())


@pytest.mark.parametrize(
    ("name", "confirmed"),
    [("lrbug_x100_at600", True), ("lrblip_x30_600_605", False), ("hot_3e-2_noclip", False)],
)
def test_a_real_run_that_does_not_come_back_is_confirmed_and_one_that_does_is_not(name: str, confirmed: bool) -> None:
    found = detect(read_metrics(shared("curves", f"tiny_ft_{name}.csv")).points)
    assert (found.stage is Stage.CONFIRMED) == confirmed
    assert not confirmed or 580 <= (found.onset_step or 0) <= 605
