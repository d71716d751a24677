"""A stripped graph says nothing of where it was made; quantization errors are per channel."""

import numpy as np
import pytest
from numpy.typing import NDArray
from onnx import ModelProto, TensorProto, helper, numpy_helper

from ftpipeline.backends.onnx_graph import quantization_errors, strip_metadata

SECRET = "secret-place"


def model_with_notes() -> ModelProto:
    """A model with a subgraph, a function and a note in every place that can hold one."""
    value = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1], doc_string=SECRET)
    result = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1])
    flag = helper.make_tensor_value_info("c", TensorProto.BOOL, [])
    inner = helper.make_node("Identity", ["x"], ["y"], doc_string=SECRET)
    branch = helper.make_graph([inner], "branch", [], [result], doc_string=SECRET)
    choose = helper.make_node("If", ["c"], ["y"], doc_string=SECRET, then_branch=branch, else_branch=branch)
    weight = numpy_helper.from_array(np.ones(1, np.float32), "w")
    weight.doc_string = SECRET
    opsets = [helper.make_opsetid("", 20)]
    model = helper.make_model(
        helper.make_graph([choose], "main", [flag, value], [result], [weight], doc_string=SECRET),
        functions=[helper.make_function("own", "f", ["x"], ["y"], [inner], opsets)],
        producer_name=SECRET,
        producer_version=SECRET,
        doc_string=SECRET,
    )
    for owner in (model, model.graph, model.graph.node[0], model.graph.initializer[0], model.functions[0]):
        owner.metadata_props.add(key="source", value=SECRET)
    return model


def test_nothing_of_the_place_is_left_in_a_stripped_model() -> None:
    model = model_with_notes()
    assert SECRET in str(model)
    strip_metadata(model)
    assert SECRET not in str(model)


def test_a_stripped_model_computes_what_it_did() -> None:
    model = model_with_notes()
    strip_metadata(model)
    assert [node.op_type for node in model.graph.node] == ["If"]
    assert numpy_helper.to_array(model.graph.initializer[0]) == 1.0


def weights(**tensors: NDArray[np.generic]) -> ModelProto:
    stored = [numpy_helper.from_array(np.asarray(value), name) for name, value in tensors.items()]
    return helper.make_model(helper.make_graph([], "weights", [], [], initializer=stored))


def outlier_weight() -> NDArray[np.float32]:
    """Sixteen rows of deviation 0.02, of which the first is 10,000 times as large."""
    weight = np.random.default_rng(0).normal(0.0, 0.02, (16, 16)).astype(np.float32)
    weight[0] *= 1e4
    return weight


def quantized(weight: NDArray[np.float32], scale: NDArray[np.float32]) -> ModelProto:
    codes = np.round(weight / scale).astype(np.int8)
    return weights(w_quantized=codes, w_scale=scale, w_zero_point=np.zeros(scale.shape, np.int8))


def test_a_row_that_one_scale_rounds_to_zero_shows_as_an_error_of_one() -> None:
    weight = outlier_weight()
    scale = np.abs(weight).max() / 127
    assert quantization_errors(weights(w=weight), quantized(weight, scale)) == {"w": pytest.approx(1.0)}


def test_a_scale_for_each_channel_keeps_the_error_small() -> None:
    weight = outlier_weight().T
    scale = (np.abs(weight).max(axis=0) / 127).astype(np.float32)
    (error,) = quantization_errors(weights(w=weight), quantized(weight, scale)).values()
    assert 0.0 < error < 0.02


def test_weights_that_were_not_quantized_have_no_error() -> None:
    assert quantization_errors(weights(w=outlier_weight()), weights(w=outlier_weight())) == {}
