"""A model's weights by their headers alone."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import save_file

from ftpipeline.errors import ModelFilesError
from ftpipeline.steps.weight_files import TensorInfo, model_tensors, read_header, weight_files
from ftpipeline_tests.tiny_model import build_tiny_bert, shard


@given(st.dictionaries(st.from_regex(r"[a-z]{1,8}", fullmatch=True), st.lists(st.integers(1, 4), max_size=3)))
def test_the_header_tells_every_tensor_with_its_shape(
    tmp_path_factory: pytest.TempPathFactory, shapes: dict[str, list[int]]
) -> None:
    path = tmp_path_factory.mktemp("weights") / "model.safetensors"
    save_file({name: np.zeros(shape, np.float32) for name, shape in shapes.items()}, path)
    assert read_header(path) == {name: TensorInfo("F32", tuple(shape)) for name, shape in shapes.items()}


@pytest.mark.parametrize("cut", [1, 4, 1000])
def test_a_file_that_ends_before_its_last_tensor_is_refused(tmp_path: Path, cut: int) -> None:
    path = build_tiny_bert(tmp_path) / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-cut])
    with pytest.raises(ModelFilesError, match=r"model\.safetensors .*header asks for"):
        model_tensors(tmp_path)


@pytest.mark.parametrize("data", [b"", b"12345678", b"\xff" * 64, b"\x02\0\0\0\0\0\0\0[]", b"\x02\0\0\0\0\0\0\0{]"])
def test_what_is_no_safetensors_file_is_refused(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "model.safetensors").write_bytes(data)
    with pytest.raises(ModelFilesError, match=r"model\.safetensors of the base model"):
        model_tensors(tmp_path)


def test_a_model_without_weights_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelFilesError, match=r"has no model\.safetensors; give a model with all"):
        weight_files(tmp_path)
    save_file({}, tmp_path / "model.safetensors")
    with pytest.raises(ModelFilesError, match="without a weight"):
        model_tensors(tmp_path)


def test_a_sharded_model_has_the_tensors_of_the_whole_one(tmp_path: Path) -> None:
    whole = model_tensors(build_tiny_bert(tmp_path / "whole"))
    assert model_tensors(shard(build_tiny_bert(tmp_path / "sharded"))) == whole


def test_a_missing_shard_is_named(tmp_path: Path) -> None:
    sharded = shard(build_tiny_bert(tmp_path))
    (sharded / "model-00002-of-00002.safetensors").unlink()
    with pytest.raises(ModelFilesError, match=r"has no model-00002-of-00002\.safetensors"):
        weight_files(sharded)


def test_a_tensor_that_its_shard_does_not_hold_is_named(tmp_path: Path) -> None:
    sharded = shard(build_tiny_bert(tmp_path))
    index = json.loads((sharded / "model.safetensors.index.json").read_text())
    index["weight_map"]["lm_head.weight"] = "model-00001-of-00002.safetensors"
    (sharded / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(ModelFilesError, match=r"model-00001.* lacks lm_head\.weight"):
        model_tensors(sharded)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"weight_map": {}}', '{"weight_map": 3}'])
def test_an_index_without_weights_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "model.safetensors.index.json").write_text(text)
    with pytest.raises(ModelFilesError, match=r"index\.json"):
        weight_files(tmp_path)
