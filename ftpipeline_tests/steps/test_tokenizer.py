import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from transformers.utils.chat_template_utils import render_jinja_template

from ftpipeline.errors import InputError
from ftpipeline.steps.chat_template import PROBES, render
from ftpipeline.steps.tokenizer import chat_templates, tokenizer_files, tokenizer_sha256
from ftpipeline_tests.shared import shared
from ftpipeline_tests.tiny_model import build_tiny_bert

TEMPLATE = (
    "{% for m in messages %}\n"
    "  {% if m.role == 'system' %}<<{{ m.content }}>>{% continue %}{% endif %}\n"
    "<|{{ m['role'] }}|>{% generation %}{{ m | tojson }}{% endgeneration %}{{ eos_token }}\n"
    "{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"
)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return build_tiny_bert(tmp_path / "model")


def configure(model: Path, **changes: Any) -> None:
    path = model / "tokenizer_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def test_the_same_model_has_the_same_tokenizer_wherever_it_stands(model: Path, tmp_path: Path) -> None:
    assert tokenizer_sha256(build_tiny_bert(tmp_path / "elsewhere")) == tokenizer_sha256(model)


@pytest.mark.parametrize("name", ["chat_template.jinja", "tokenizer.json", "additional_chat_templates/tool.jinja"])
def test_a_change_of_any_file_shows(model: Path, name: str) -> None:
    before = tokenizer_sha256(model)
    (model / name).parent.mkdir(exist_ok=True)
    with (model / name).open("a") as file:
        file.write(" ")
    assert tokenizer_sha256(model) != before


@pytest.mark.parametrize(
    "change", [{"do_lower_case": False}, {"model_max_length": 10**30}, {"chat_template": "x"}, {"bos_token": "<s>"}]
)
def test_a_change_of_any_value_of_the_configuration_shows(model: Path, change: dict[str, Any]) -> None:
    before = tokenizer_sha256(model)
    configure(model, **change)
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


def test_a_template_that_moved_is_the_same_and_one_that_was_edited_is_not() -> None:
    digests = [tokenizer_sha256(shared("cases", "c", name)) for name in ("tok_v1", "tok_v2_split", "tok_v3_drift")]
    assert digests[0] == digests[1] != digests[2]


@given(st.text(st.characters(exclude_characters="{}\r", codec="utf-8")))
def test_a_template_has_one_digest_in_any_place_that_holds_it(
    tmp_path_factory: pytest.TempPathFactory, text: str
) -> None:
    folders = [tmp_path_factory.mktemp("model") for _ in range(4)]
    for folder in folders:
        (folder / "tokenizer_config.json").write_text("{}")
    configure(folders[0], chat_template=text)
    configure(folders[1], chat_template=[{"name": "default", "template": text}])
    (folders[2] / "chat_template.jinja").write_bytes(text.encode())
    (folders[3] / "chat_template.json").write_text(json.dumps({"chat_template": text}))
    assert len({tokenizer_sha256(folder) for folder in folders}) == 1


def test_two_files_that_disagree_are_another_tokenizer_than_either(model: Path) -> None:
    configure(model, chat_template="one")
    one = tokenizer_sha256(model)
    (model / "chat_template.jinja").write_text("two")
    assert chat_templates(model) == {"default": {"one", "two"}}
    both = tokenizer_sha256(model)
    configure(model, chat_template="two")
    assert len({one, both, tokenizer_sha256(model)}) == 3


def test_a_template_renders_as_transformers_renders_it() -> None:
    for add in (False, True):
        theirs: Any = render_jinja_template(
            [list(map(dict, probe)) for probe in PROBES],
            chat_template=TEMPLATE,
            add_generation_prompt=add,
            eos_token="#",
        )
        assert render(TEMPLATE, {"eos_token": {"content": "#"}})[add::2] == theirs[0]


def test_a_conversation_that_a_template_refuses_is_part_of_the_digest(model: Path) -> None:
    refusing = "{% if messages[0].role == 'system' %}{{ raise_exception('no') }}{% endif %}a"
    assert render(refusing, {}) == ["a", "a", "refused: TemplateError", "refused: TemplateError"]


def test_a_template_that_reads_the_clock_has_one_rendering() -> None:
    assert set(render("{{ strftime_now('%d %b %Y') }}", {})) == {"2026-01-05"}


def test_a_template_cannot_leave_its_sandbox() -> None:
    assert set(render("{{ messages.__class__.__mro__[1].__subclasses__() }}", {})) == {"refused: SecurityError"}


@pytest.mark.parametrize("field", [3, {"default": 3}, [{"name": "x"}], ["x"]])
def test_a_template_of_another_form_is_refused(model: Path, field: object) -> None:
    configure(model, chat_template=field)
    with pytest.raises(InputError, match="neither a text nor a list"):
        tokenizer_sha256(model)


def test_what_is_no_template_is_refused(model: Path) -> None:
    (model / "chat_template.jinja").write_text("{% for %}")
    with pytest.raises(InputError, match="is no Jinja template"):
        tokenizer_sha256(model)
    (model / "chat_template.jinja").write_bytes(b"\xff")
    with pytest.raises(InputError, match=r"chat_template\.jinja cannot be read"):
        tokenizer_sha256(model)
