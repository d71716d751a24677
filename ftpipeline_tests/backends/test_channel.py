import json
import math
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from ftpipeline.backends.channel import JsonlMetricSink, metric_record
from ftpipeline.steps.ports import MetricPoint


@given(value=st.floats())
def test_a_metric_is_strict_json_and_keeps_its_value_or_its_mark(value: float) -> None:
    text = json.dumps(metric_record(MetricPoint(3, 0.5, {"loss": value})), allow_nan=False)
    loss = json.loads(text)["loss"]
    if math.isfinite(value):
        assert loss == value
    else:
        assert loss == {"non_finite": str(value)}


def test_points_are_kept_one_a_line_in_order_and_an_old_file_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "metrics.jsonl").write_text("of an earlier attempt\n")
    sink = JsonlMetricSink(tmp_path / "metrics.jsonl")
    for step in (1, 2):
        sink.emit(MetricPoint(step, step / 4, {"loss": 1.5}))
    assert (tmp_path / "metrics.jsonl").read_text() == (
        '{"step": 1, "epoch": 0.25, "loss": 1.5}\n{"step": 2, "epoch": 0.5, "loss": 1.5}\n'
    )
