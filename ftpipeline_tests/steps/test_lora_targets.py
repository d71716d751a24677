import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ftpipeline.errors import DeadTargetError
from ftpipeline.steps.lora_targets import match_targets
from ftpipeline_tests.shared import shared


def test_a_target_that_matches_nothing_is_refused_with_what_the_others_match() -> None:
    case = json.loads(shared("cases", "c", "lora_targets_partial.json").read_text())
    with pytest.raises(DeadTargetError, match="gate_prj: 0") as caught:
        match_targets("LoRA target", case["config"]["target_modules"], case["module_names"], ["q_proj"])
    assert "v_proj: 3 (3 of 4 layers, not in 2)" in str(caught.value)
    assert caught.value.evidence["matches"] == {"q_proj": 4, "v_proj": 3, "gate_prj": 0}


def test_a_target_in_some_layers_only_is_reported() -> None:
    case = json.loads(shared("cases", "c", "lora_targets_partial.json").read_text())
    whole, part = match_targets("LoRA target", ["q_proj", "v_proj"], case["module_names"], [])
    assert (whole.layers, whole.skipped) == ((0, 1, 2, 3), ())
    assert (part.layers, part.skipped, part.coverage) == ((0, 1, 3), (2,), "3 of 4 layers, not in 2")


@given(st.integers(1, 12), st.integers(1, 12))
def test_layers_of_another_stack_are_not_missed(first: int, second: int) -> None:
    modules = [f"encoder.layer.{n}.query" for n in range(first)] + [f"decoder.layer.{n}.cross" for n in range(second)]
    (match,) = match_targets("LoRA target", ["query"], modules, [])
    assert (match.count, match.skipped) == (first, ())


def test_a_name_is_a_whole_path_or_its_last_parts_and_no_part_of_a_name() -> None:
    modules = ["bert.pooler", "bert.pooler.dense", "classifier"]
    assert [match.count for match in match_targets("target", ["classifier", "pooler.dense"], modules, [])] == [1, 1]
    with pytest.raises(DeadTargetError, match="ooler: 0"):
        match_targets("target", ["ooler"], modules, [])
