"""Only the answer is trained, its end with it, whatever a batch is padded with; equal requests give equal bytes."""

import json
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest
import torch
from torch.nn import functional
from transformers import AutoModelForCausalLM

from ftpipeline.backends.causal_task import CausalLanguageModel
from ftpipeline.backends.channel import Channel
from ftpipeline.backends.lifetime import StopRequest
from ftpipeline.backends.training import train
from ftpipeline.errors import EmptyResultError, LabelError, UnlabelledSampleError
from ftpipeline.schema import Train
from ftpipeline.steps.ports import WorkerRequest
from ftpipeline.steps.train_output import read_training
from ftpipeline_tests.backends.causal.tiny import train_params, train_settings
from ftpipeline_tests.tiny_llama import END
from ftpipeline_tests.tiny_model import LABELS, build_tiny_split

UNTRAINED = -100


@pytest.fixture(scope="module")
def split(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_tiny_split(tmp_path_factory.mktemp("split"))


@pytest.fixture(scope="module")
def recipe(llama: Path) -> CausalLanguageModel:
    return CausalLanguageModel(llama, LABELS, Train.model_validate(train_settings()), StopRequest())


def write_rows(path: Path, *rows: tuple[str, str]) -> Path:
    table = pyarrow.table({"text": [text for text, _ in rows], "label": [label for _, label in rows]})
    pyarrow.parquet.write_table(table, path)
    return path


def run(llama: Path, split: Path, out: Path, **changes: object) -> Path:
    """Train in this process and return the output folder."""
    out.mkdir(parents=True)
    inputs = {"base_model": llama, "split": split}
    train(
        WorkerRequest("worker", inputs, train_params(llama, **changes), out), Channel(lambda said: None), StopRequest()
    )
    return out


@pytest.fixture(scope="module")
def trained(llama: Path, split: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run(llama, split, tmp_path_factory.mktemp("trained") / "out")


def test_the_loss_sees_the_label_and_its_end_and_nothing_else(recipe: CausalLanguageModel, tmp_path: Path) -> None:
    row = recipe.encode(write_rows(tmp_path / "train.parquet", ("my card", "login")))[0]
    trained_on = [token for token in row["labels"] if token != UNTRAINED]
    assert recipe.tokenizer.decode(trained_on) == f"login{END}"
    assert row["input_ids"][-len(trained_on) :] == trained_on


def test_a_batch_is_padded_with_the_end_of_an_answer_and_that_padding_is_not_trained(
    recipe: CausalLanguageModel, tmp_path: Path
) -> None:
    assert recipe.tokenizer.pad_token_id == recipe.tokenizer.eos_token_id
    rows = recipe.encode(write_rows(tmp_path / "train.parquet", ("my card is late", "login"), ("a", "shipping")))
    batch = recipe.collator()([rows[0], rows[1]])
    for index in range(2):
        length = len(rows[index]["input_ids"])
        assert batch["attention_mask"][index].tolist() == [1] * length + [0] * (batch["labels"].shape[1] - length)
        assert batch["labels"][index, length - 1] == recipe.tokenizer.eos_token_id
        assert (batch["labels"][index, length:] == UNTRAINED).all()


def test_the_loss_is_the_mean_over_the_answers_tokens_of_all_batches_of_a_step(
    recipe: CausalLanguageModel, llama: Path, tmp_path: Path
) -> None:
    rows = recipe.encode(write_rows(tmp_path / "train.parquet", ("my card is late", "login"), ("a", "shipping")))
    model = AutoModelForCausalLM.from_pretrained(llama)
    both = recipe.collator()([rows[0], rows[1]])
    loss, items = recipe.loss(), (both["labels"] != UNTRAINED).sum()
    with torch.no_grad():
        whole = loss(model(both["input_ids"], attention_mask=both["attention_mask"]), both["labels"])
        parts = [recipe.collator()([rows[index]]) for index in range(2)]
        summed = torch.stack([loss(model(part["input_ids"]), part["labels"], items) for part in parts]).sum()
        row = rows[1]
        logits = model(torch.tensor([row["input_ids"]])).logits[0, :-1]
        targets = torch.tensor(row["labels"][1:])
        alone = functional.cross_entropy(logits[targets != UNTRAINED], targets[targets != UNTRAINED])
    assert torch.isclose(whole, summed)
    assert torch.isclose(alone, loss(model(parts[1]["input_ids"]), parts[1]["labels"]))


def test_the_model_learns_its_labels_and_is_measured_by_their_likelihood(trained: Path) -> None:
    facts = read_training(trained)
    assert facts["last_loss"] < facts["first_loss"] / 2
    assert facts["validation"]["macro_f1"] > 0.6
    assert facts["drift"]["kl"] > 0


def test_equal_requests_give_equal_bytes(llama: Path, split: Path, trained: Path, tmp_path: Path) -> None:
    again = run(llama, split, tmp_path / "elsewhere" / "out")
    files = [path.relative_to(trained) for path in trained.rglob("*") if path.is_file()]
    assert files
    assert all((trained / file).read_bytes() == (again / file).read_bytes() for file in files)


def test_the_adapter_is_one_of_a_causal_model_and_names_its_base(trained: Path) -> None:
    config = json.loads((trained / "adapter" / "adapter_config.json").read_text("utf-8"))
    assert config["task_type"] == "CAUSAL_LM"
    assert config["base_model_name_or_path"].startswith("sha256:")


def test_a_prompt_without_room_for_an_answer_is_refused_before_anything_is_trained(
    llama: Path, split: Path, tmp_path: Path
) -> None:
    with pytest.raises(UnlabelledSampleError):
        run(llama, split, tmp_path / "out", max_length=30)
    assert not list((tmp_path / "out").iterdir())


def test_rows_that_cannot_be_trained_on_are_refused(recipe: CausalLanguageModel, tmp_path: Path) -> None:
    with pytest.raises(LabelError, match="'refund'"):
        recipe.encode(write_rows(tmp_path / "foreign.parquet", ("my card", "refund")))
    table = pyarrow.table({"text": pyarrow.array([], pyarrow.string()), "label": pyarrow.array([], pyarrow.string())})
    pyarrow.parquet.write_table(table, tmp_path / "empty.parquet")
    with pytest.raises(EmptyResultError):
        recipe.encode(tmp_path / "empty.parquet")


def test_labels_that_no_answer_can_tell_apart_are_refused(llama: Path) -> None:
    with pytest.raises(LabelError, match="are one in an answer"):
        CausalLanguageModel(llama, ["top_up", "top up"], Train.model_validate(train_settings()), StopRequest())
