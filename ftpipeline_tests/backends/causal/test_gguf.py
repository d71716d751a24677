"""A GGUF file holds the model that was written to it, as transformers reads it; equal models give equal bytes."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from gguf import GGUFReader, GGUFWriter
from hypothesis import given
from hypothesis import strategies as st

from ftpipeline.backends.causal_model import load_causal
from ftpipeline.backends.gguf_file import write_gguf
from ftpipeline.backends.gguf_layout import gguf_name, permuted, torch_name, unpermuted
from ftpipeline.backends.gguf_model import GgufConverter
from ftpipeline.backends.shards import read_weights
from ftpipeline.digest import of_file
from ftpipeline.errors import ExportCheckError, InputError
from ftpipeline_tests.tiny_llama import build_tiny_llama

TOKENIZER = ("tokenizer.json", "chat_template.jinja")


@pytest.fixture(scope="module")
def written(llama: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("gguf") / "model.gguf"
    write_gguf(llama, path)
    return path


@pytest.fixture
def base(llama: Path, tmp_path: Path) -> Path:
    """A copy of the base model that a test may damage."""
    return Path(shutil.copytree(llama, tmp_path / "base"))


def edit_json(path: Path, edit: Callable[[dict[str, object]], object]) -> None:
    document = json.loads(path.read_text("utf-8"))
    edit(document)
    path.write_text(json.dumps(document), "utf-8")


@given(st.integers(1, 4), st.integers(1, 4), st.integers(1, 3))
def test_reordering_for_rotary_pairs_is_undone(heads: int, half: int, width: int) -> None:
    weight = np.arange(heads * 2 * half * width, dtype=np.float32).reshape(-1, width)
    assert (unpermuted(permuted(weight, heads), heads) == weight).all()


def test_names_are_undone(llama: Path) -> None:
    names = [name for name, _ in read_weights(llama)]
    assert [torch_name(str(gguf_name(name))) for name in names] == names


def test_equal_models_give_equal_bytes(llama: Path, written: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(llama, tmp_path / "elsewhere")
    write_gguf(copy, tmp_path / "again.gguf")
    assert of_file(tmp_path / "again.gguf") == of_file(written)


def test_the_file_says_nothing_of_where_it_was_made(llama: Path, written: Path) -> None:
    assert str(llama).encode() not in written.read_bytes()
    assert not [name for name in GGUFReader(written).fields if "date" in name or "author" in name]


@pytest.mark.parametrize("tied", [True, False])
def test_transformers_reads_what_was_written(tmp_path: Path, tied: bool) -> None:
    base = build_tiny_llama(tmp_path / "base", tied=tied)
    errors = write_gguf(base, tmp_path / "model.gguf")
    restored = load_causal(tmp_path, gguf="model.gguf").state_dict()
    assert ("lm_head.weight" in errors) is not tied
    for name, weight in read_weights(base):
        difference = np.linalg.norm(restored[name].numpy() - weight, axis=-1) / np.linalg.norm(weight, axis=-1)
        assert difference.max() <= errors.get(name, 0.0) + 1e-6


def test_matrices_are_quantized_and_every_error_is_small(llama: Path, tmp_path: Path) -> None:
    errors = write_gguf(llama, tmp_path / "model.gguf")
    assert errors.keys() == {name for name, weight in read_weights(llama) if weight.ndim == 2}
    assert all(0.0 < error < 0.02 for error in errors.values())


def test_a_converted_file_is_the_model_it_was_written_from(llama: Path, written: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    GgufConverter().convert(written, tmp_path / "out")
    assert all((tmp_path / "out" / name).read_bytes() == (llama / name).read_bytes() for name in TOKENIZER)
    before, after = dict(read_weights(llama)), dict(read_weights(tmp_path / "out"))
    assert before.keys() == after.keys()
    assert all(np.allclose(before[name], after[name], atol=0.005) for name in before)
    config, original = (json.loads((folder / "config.json").read_text("utf-8")) for folder in (tmp_path / "out", llama))
    assert config == original | {"rms_norm_eps": pytest.approx(1e-5)}


def test_conversion_gives_equal_bytes_and_what_transformers_reads(written: Path, tmp_path: Path) -> None:
    outs = [tmp_path / "first", tmp_path / "second"]
    for out in outs:
        out.mkdir()
        GgufConverter().convert(written, out)
    files = sorted(path.name for path in outs[0].iterdir())
    assert [of_file(outs[0] / name) for name in files] == [of_file(outs[1] / name) for name in files]
    theirs, ours = load_causal(written.parent, gguf=written.name).state_dict(), load_causal(outs[0]).state_dict()
    assert all(bool((theirs[name] == ours[name]).all()) for name in theirs)


@pytest.mark.parametrize("content", [b"", b"GGUF", b"not a model" * 100])
def test_a_damaged_file_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "model.gguf").write_bytes(content)
    with pytest.raises(InputError, match=r"model\.gguf"):
        GgufConverter().convert(tmp_path / "model.gguf", tmp_path)


def test_a_model_of_another_type_is_refused(tmp_path: Path) -> None:
    writer = GGUFWriter(tmp_path / "model.gguf", "mamba")
    writer.add_tensor("token_embd.weight", np.zeros((4, 4), np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    with pytest.raises(InputError, match="of type 'mamba'"):
        GgufConverter().convert(tmp_path / "model.gguf", tmp_path)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("model_type", "mistral"),
        ("attention_bias", True),
        ("hidden_act", "gelu"),
        ("rope_parameters", {"rope_type": "llama3", "rope_theta": 1e4}),
    ],
)
def test_a_model_that_gguf_would_hold_otherwise_is_refused(base: Path, field: str, value: object) -> None:
    edit_json(base / "config.json", lambda config: config.update({field: value}))
    with pytest.raises(ExportCheckError, match=r"set export\.quantize to none"):
        write_gguf(base, base / "model.gguf")


def test_a_tokenizer_that_gguf_has_no_name_for_is_refused(base: Path) -> None:
    split = {"type": "Whitespace"}
    edit_json(base / "tokenizer.json", lambda document: document.update({"pre_tokenizer": split}))
    with pytest.raises(ExportCheckError, match="has no name for"):
        write_gguf(base, base / "model.gguf")


def test_a_tokenizer_larger_than_the_embedding_is_refused(base: Path) -> None:
    added = {"id": 10**4, "content": "<new>", "special": True}
    edit_json(base / "tokenizer.json", lambda document: document["added_tokens"].append(added))  # type: ignore[attr-defined]
    with pytest.raises(ExportCheckError, match="10000"):
        write_gguf(base, base / "model.gguf")
