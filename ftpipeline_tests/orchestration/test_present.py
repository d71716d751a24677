"""How facts look in the UI: values in, metadata out."""

import base64
import re
from collections.abc import Mapping
from typing import Any
from xml.etree import ElementTree

import dagster as dg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ftpipeline.digest import of_bytes
from ftpipeline.orchestration import plots
from ftpipeline.orchestration.checks import results_of_checks
from ftpipeline.orchestration.metadata import fact, table
from ftpipeline.orchestration.present import present
from ftpipeline.records import Action, StepResult

KEY, OUTPUT = of_bytes(b"key"), of_bytes(b"output")
SVG = "{http://www.w3.org/2000/svg}"
NAMES = st.text(min_size=1, max_size=40).filter(lambda text: all(letter.isprintable() for letter in text))
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | NAMES
JSON = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3))

TRAIN = {
    "loss_curve": [[1, 1.2], [2, 0.9], [3, 0.4]],
    "steps": 3,
    "validation": {"loss": 0.7, "accuracy": 0.8, "macro_f1": 0.75},
}
SPLIT = {
    "rows": {"train": 90, "validation": 10},
    "labels": [{"label": "billing", "train": 50, "validation": 6}, {"label": "login", "train": 40, "validation": 4}],
    "missing_labels": {"train": [], "validation": ["shipping"]},
    "leakage": {"verdict": "dropped", "method": "exact", "threshold": 0.5, "sets": {}},
    "leaks": [{"by_equal": 2, "eval_set": "task", "leaked": 2, "rows_checked": 30}],
    "leaked": 2,
}
EVALUATE = {
    "candidate": OUTPUT,
    "production": None,
    "metrics": {"candidate": {"task": 0.8}, "production": None},
    "evaluations": {
        "candidate_task": {"metrics": {"macro_f1": 0.8, "accuracy": 0.75}, "counts": {"n": 4, "abstained": 1}},
        "production_task": {"metrics": {"macro_f1": 0.6, "accuracy": 0.5}, "counts": {"n": 4, "abstained": 0}},
    },
    "confusion": [
        {"expected": "billing", "predicted": "billing", "count": 2},
        {"expected": "login", "predicted": "billing", "count": 1},
        {"expected": "login", "predicted": "abstain", "count": 1},
    ],
}
GATE = {
    "verdict": "fail",
    "reasons": [{"code": "task_gain_below_threshold", "message": "task: gain -0.2 is below 0.005"}],
    "warnings": [],
    "differences": {"task": "-0.2", "safety": "0"},
    "intervals": {"task": {"low": -0.25, "high": -0.15}},
    "band": "unmeasured",
    "metrics": {"candidate": {"task": 0.6, "safety": 1.0}, "production": {"task": 0.8, "safety": 1.0}},
}


def shown(stage: str, facts: Mapping[str, Any], **origin: dg.MetadataValue[Any]) -> dict[str, dg.MetadataValue[Any]]:
    return present(stage, StepResult(stage, Action.EXECUTED, KEY, OUTPUT, dict(facts), 1.5), origin)


def rows(value: dg.MetadataValue[Any]) -> list[dict[str, Any]]:
    """Return the rows of a table; the UI looks cells up by the names that the schema gives to columns."""
    assert isinstance(value, dg.TableMetadataValue)
    columns = [column.name for column in value.schema.columns]
    return [{column: record.data[column] for column in columns} for record in value.records]


def picture(value: dg.MetadataValue[Any]) -> ElementTree.Element:
    """Return the SVG that a markdown value holds inline."""
    assert isinstance(value, dg.MarkdownMetadataValue)
    encoded = re.fullmatch(r"!\[[^\]]+\]\(data:image/svg\+xml;base64,([A-Za-z0-9+/=]+)\)", value.md_str or "")
    assert encoded
    return ElementTree.fromstring(base64.b64decode(encoded[1]))


def texts(svg: ElementTree.Element) -> list[str]:
    return [text.text or "" for text in svg.iter(f"{SVG}text")]


def test_digests_and_keys_stand_whole_and_last() -> None:
    metadata = shown("snapshot", {"labels": {"billing": 2}, "read": 2}, origin=dg.MetadataValue.text("there"))
    assert list(metadata)[-2:] == ["digest", "step key"]
    assert (metadata["digest"].value, metadata["step key"].value) == (OUTPUT, KEY)
    assert metadata["action"].value == "executed"
    assert list(metadata).index("origin") < list(metadata).index("read")


def test_a_stage_without_a_view_shows_each_fact() -> None:
    metadata = shown("base_model", {"vocab_size": 99, "weights": {"model.safetensors": KEY}, "gone": None})
    assert metadata["vocab size"].value == 99
    assert rows(metadata["weights"]) == [{"file": "model.safetensors", "digest": KEY[:19]}]
    assert metadata["gone"].value == "none"


def test_label_counts_are_a_table_and_a_picture_with_the_largest_first() -> None:
    metadata = shown("snapshot", {"labels": {"billing": 3, "login": 7}, "read": 10, "rejects": {"no text": 1}})
    assert rows(metadata["labels"]) == [{"label": "billing", "rows": "3"}, {"label": "login", "rows": "7"}]
    assert texts(picture(metadata["label distribution"])) == ["login", "7", "billing", "3"]
    assert metadata["read"].value == 10
    assert rows(metadata["rejects"]) == [{"reason": "no text", "rows": "1"}]


def test_curation_shows_how_many_rows_each_of_its_stages_left() -> None:
    stages = [{"after": 9, "before": 10, "stage": "exact_duplicates"}]
    metadata = shown("curate", {"labels": {"billing": 9}, "stages": stages})
    assert list(rows(metadata["stages"])[0].items()) == [
        ("stage", "exact_duplicates"),
        ("before", "10"),
        ("after", "9"),
    ]


def test_a_split_shows_what_leaked_and_which_label_is_missing() -> None:
    metadata = shown("split", SPLIT)
    assert metadata["leakage"].value == "dropped (exact, threshold 0.5)"
    assert list(rows(metadata["leaks"])[0]) == ["eval set", "rows checked", "leaked", "by equal"]
    assert rows(metadata["missing labels"]) == [{"part": "validation", "label": "shipping"}]
    (check,) = results_of_checks("split", StepResult("split", Action.EXECUTED, KEY, OUTPUT, SPLIT, 0.0))
    assert check.passed
    assert check.metadata["leaked"].value == 2


def test_training_shows_its_loss_curve_and_the_validation_loss() -> None:
    svg = picture(shown("train", TRAIN)["loss curve"])
    (line,) = svg.iter(f"{SVG}polyline")
    assert len(line.attrib["points"].split()) == 3
    assert len(list(svg.iter(f"{SVG}circle"))) == 1
    assert {"training loss", "validation loss at the end", "optimizer step"} <= set(texts(svg))


def test_an_export_shows_its_worst_weights_only() -> None:
    errors = {f"weight{index}": index / 100 for index in range(50)}
    metadata = shown("export", {"quantization_errors": errors, "files": {"model.onnx": 10}})
    worst = [row["weight"] for row in rows(metadata["largest quantization errors"])]
    assert worst == ["weight49", "weight48", "weight47", "weight46", "weight45"]
    assert "largest quantization errors" not in shown("export", {"files": {"model.onnx": 10}})


def test_an_evaluation_shows_scores_of_both_artifacts_and_the_confusion() -> None:
    metadata = shown("evaluate", EVALUATE)
    assert [(row["artifact"], row["eval set"], row["macro f1"]) for row in rows(metadata["scores"])] == [
        ("candidate", "task", "0.8"),
        ("production", "task", "0.6"),
    ]
    titles = [title.text for title in picture(metadata["confusion"]).iter(f"{SVG}title")]
    assert titles == [
        "billing answered billing: 2 of 2",
        "login answered billing: 1 of 2",
        "login answered abstain: 1 of 2",
    ]


def test_a_gate_shows_candidate_production_and_difference_side_by_side() -> None:
    metadata = shown("gate", GATE)
    assert next(iter(metadata.items()))[1].value == "fail"
    assert rows(metadata["comparison"]) == [
        {
            "eval set": "task",
            "candidate": "0.6",
            "production": "0.8",
            "difference": "-0.2",
            "95 % interval": "-0.2500 to -0.1500",
        },
        {"eval set": "safety", "candidate": "1", "production": "1", "difference": "0", "95 % interval": ""},
    ]
    assert metadata["band"].value == "unmeasured"
    assert rows(metadata["reasons"])[0]["code"] == "task_gain_below_threshold"


def test_a_gate_without_production_shows_the_candidate_alone() -> None:
    first = {**GATE, "verdict": "first_release", "differences": {}, "intervals": {}, "reasons": []}
    first["metrics"] = {"candidate": {"task": 0.6}, "production": None}
    metadata = shown("gate", first)
    assert rows(metadata["comparison"]) == [
        {"eval set": "task", "candidate": "0.6", "production": "", "difference": ""}
    ]
    assert metadata["reasons"].value == "none"


@pytest.mark.parametrize(
    ("stage", "facts", "passed"),
    [
        ("split", {**SPLIT, "leakage": {**SPLIT["leakage"], "verdict": "leaked"}}, False),  # type: ignore[dict-item]
        ("gate", GATE, False),
        *(("gate", {**GATE, "verdict": verdict}, True) for verdict in ("pass", "first_release", "already_production")),
        *(("gate", {**GATE, "verdict": verdict}, False) for verdict in ("inconclusive", "refused")),
    ],
)
def test_a_check_passes_only_for_a_good_answer(stage: str, facts: dict[str, Any], passed: bool) -> None:
    (check,) = results_of_checks(stage, StepResult(stage, Action.EXECUTED, KEY, OUTPUT, facts, 0.0))
    assert check.passed is passed
    assert check.severity is dg.AssetCheckSeverity.ERROR


@given(value=JSON)
def test_any_fact_can_be_shown_and_stored(value: Any) -> None:
    value_shown: Any = fact("anything", value)
    assert dg.deserialize_value(dg.serialize_value(value_shown)) == value_shown


def test_cells_of_a_table_are_text_and_digests_in_it_are_short() -> None:
    value = table([{"a": 1, "b": 0.123456}, {"b": None, "c": KEY}], first=("c",))
    assert rows(value) == [{"c": "", "a": "1", "b": "0.1235"}, {"c": KEY[:19], "a": "", "b": ""}]


POINTS = st.tuples(st.floats(0, 1e6), st.floats(-1e6, 1e6))


@given(series=st.dictionaries(NAMES, st.lists(POINTS, max_size=5), max_size=3))
def test_any_curve_is_a_well_formed_picture_inside_its_frame(series: dict[str, list[tuple[float, float]]]) -> None:
    svg = ElementTree.fromstring(plots.curves(series, "step"))
    width, height = float(svg.attrib["width"]), float(svg.attrib["height"])
    for line in svg.iter(f"{SVG}polyline"):
        for point in line.attrib["points"].split():
            x, y = map(float, point.split(","))
            assert 0 <= x <= width
            assert 0 <= y <= height


@given(counts=st.dictionaries(st.tuples(NAMES, NAMES), st.integers(1, 10**6), max_size=8))
def test_any_confusion_is_a_well_formed_picture_with_a_field_a_pair(counts: dict[tuple[str, str], int]) -> None:
    svg = ElementTree.fromstring(plots.heatmap(counts))
    assert len(list(svg.iter(f"{SVG}title"))) == len(counts)


@given(counts=st.dictionaries(NAMES, st.integers(0, 10**6), max_size=8))
def test_any_distribution_is_a_well_formed_picture_with_a_bar_a_name(counts: dict[str, int]) -> None:
    svg = ElementTree.fromstring(plots.bars(counts))
    assert len(list(svg.iter(f"{SVG}title"))) == len(counts)
