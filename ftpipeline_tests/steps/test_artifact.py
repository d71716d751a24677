"""The record of an export is read back as it was written."""

import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from ftpipeline.steps.artifact import ExportRecord, read_export_record, write_export_record
from ftpipeline.steps.calibrate import Calibration

hex64 = st.text("0123456789abcdef", min_size=64, max_size=64)
labels = st.lists(st.text(st.characters(exclude_categories=["Cs"])), min_size=2, max_size=5, unique=True).map(tuple)
shares = st.floats(0.0, 1.0)
calibrations = st.builds(Calibration, shares, st.integers(1, 10**6), st.integers(0, 10**6), shares)
records = st.builds(
    ExportRecord,
    task=st.just("sequence_classification"),
    labels=labels,
    max_length=st.integers(1, 10**4),
    quantize=st.sampled_from(["int8", "none"]),
    base_model=hex64.map("sha256:{}".format),
    tokenizer_sha256=hex64,
    abstention=st.none() | calibrations,
)


@given(records)
def test_a_record_is_read_as_it_was_written(record: ExportRecord) -> None:
    with tempfile.TemporaryDirectory() as folder:
        write_export_record(Path(folder), record)
        assert read_export_record(Path(folder)) == record
