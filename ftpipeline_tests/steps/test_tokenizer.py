from pathlib import Path

import pytest

from ftpipeline.errors import InputError
from ftpipeline.steps.tokenizer import tokenizer_files, tokenizer_sha256
from ftpipeline_tests.tiny_model import build_tiny_bert


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return build_tiny_bert(tmp_path / "model")


def test_the_same_model_has_the_same_tokenizer_wherever_it_stands(model: Path, tmp_path: Path) -> None:
    assert tokenizer_sha256(build_tiny_bert(tmp_path / "elsewhere")) == tokenizer_sha256(model)


@pytest.mark.parametrize(
    "name", ["chat_template.jinja", "tokenizer.json", "tokenizer_config.json", "additional_chat_templates/tool.jinja"]
)
def test_a_change_of_any_tokenizer_file_shows(model: Path, name: str) -> None:
    before = tokenizer_sha256(model)
    (model / name).parent.mkdir(exist_ok=True)
    with (model / name).open("a") as file:
        file.write(" ")
    assert tokenizer_sha256(model) != before


def test_content_under_another_name_is_another_tokenizer(model: Path) -> None:
    before = tokenizer_sha256(model)
    (model / "vocab.txt").rename(model / "merges.txt")
    assert tokenizer_sha256(model) != before


def test_weights_and_configuration_of_the_model_are_no_part_of_it(model: Path) -> None:
    before = tokenizer_sha256(model)
    (model / "model.safetensors").unlink()
    (model / "config.json").write_text("{}")
    assert tokenizer_sha256(model) == before
    assert [file.as_posix() for file in tokenizer_files(model)] == [
        "tokenizer.json",
        "tokenizer_config.json",
        "vocab.txt",
    ]


def test_a_folder_without_a_tokenizer_has_no_digest(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no tokenizer file"):
        tokenizer_sha256(tmp_path)
