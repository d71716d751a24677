import pytest
import yaml
from huggingface_hub import ModelCard, ModelCardData

from ftpipeline.registry.model_card import model_card
from ftpipeline_tests.registry.card_facts import ARTIFACT, MANIFEST, SETS, card_facts


def test_the_hub_reads_every_score_with_its_eval_set() -> None:
    data = ModelCard(model_card(card_facts()), ignore_metadata_errors=False).data
    assert isinstance(data, ModelCardData)
    assert data.eval_results is not None
    read = {
        (result.dataset_name, result.dataset_revision, result.metric_type, result.metric_value)
        for result in data.eval_results
    }
    assert read == {
        ("gold-task v3", SETS["task"]["digest"], "f1", 0.8125),
        ("gold-regression v3", SETS["regression"]["digest"], "f1", 0.75),
        ("gold-safety v3", SETS["safety"]["digest"], "accuracy", 1.0),
    }
    assert (data.base_model, data.pipeline_tag) == ("acme/mini-bert", "text-classification")
    assert data.model_name == "tickets-router"


def test_a_base_model_that_is_not_on_the_hub_is_named_in_the_text_only() -> None:
    local = {**MANIFEST, "base_model": {**MANIFEST["base_model"], "repo": "folder://base"}}
    text = model_card(card_facts(manifest=local))
    assert "base_model" not in yaml.safe_load(text.split("---")[1])
    assert "`folder://base`" in text


def test_equal_facts_give_the_equal_card() -> None:
    assert model_card(card_facts()) == model_card(card_facts())


def test_the_text_tells_of_artifact_evidence_and_the_moves_of_this_artifact() -> None:
    text = model_card(card_facts())
    for said in (ARTIFACT, "production", "OnnxScorer/1", "| task: gold-task | v3 | 120 | 0.8125 | 7 |", "ana"):
        assert said in text
    assert "not this one" not in text


def test_a_persons_words_do_not_break_the_table() -> None:
    (row,) = (line for line in model_card(card_facts()).splitlines() if "ana" in line)
    assert row.endswith("| ana | a \\| b c |")


@pytest.mark.parametrize("missing", ["labels", "data", "base_model", "task"])
def test_a_card_without_its_facts_is_not_written(missing: str) -> None:
    manifest = {name: value for name, value in MANIFEST.items() if name != missing}
    with pytest.raises(KeyError):
        model_card(card_facts(manifest=manifest))
