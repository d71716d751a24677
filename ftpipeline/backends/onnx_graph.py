"""What is done to an ONNX graph so that its bytes depend on the model alone, and what quantizing did to its weights."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import AttributeProto, FunctionProto, GraphProto, ModelProto, numpy_helper

_CARRIES_METADATA = ("input", "output", "value_info", "initializer", "quantization_annotation")


def strip_metadata(model: ModelProto) -> None:
    """Remove from `model` whatever speaks of who wrote it and where: doc strings, metadata, names of tools.

    The exporter writes the absolute path and line of the modelling code into every node.
    """
    for field in ("producer_name", "producer_version", "domain", "model_version"):
        model.ClearField(field)
    _strip(model)
    _strip_graph(model.graph)
    for function in model.functions:
        _strip(function)
        _strip_nodes(function)


def write(model: ModelProto, path: Path) -> None:
    """Write `model` as one file, equal models as equal bytes."""
    path.write_bytes(model.SerializeToString(deterministic=True))


def quantization_errors(original: ModelProto, quantized: ModelProto) -> dict[str, float]:
    """Return, for each weight that was quantized to int8, the largest relative error of one of its channels.

    A channel is what shares a scale: a column of a weight quantized per channel. In a weight with a single scale it is
    a row, so that rows that one large row has rounded to zero show up as an error of 1.

    Returns:
        Weight name to Frobenius norm of the error over that of the channel; 0.0 is exact.
    """
    before, after = _arrays(original), _arrays(quantized)
    errors = {}
    for name, codes in after.items():
        weight_name = name.removesuffix("_quantized")
        if weight_name != name:
            scale, zero = after[f"{weight_name}_scale"], after[f"{weight_name}_zero_point"]
            restored = (codes.astype(np.float32) - zero.astype(np.float32)) * scale
            across = 0 if scale.size > 1 else 1
            errors[weight_name] = _channel_error(_original(before, weight_name), restored, across)
    return errors


def _original(before: Mapping[str, NDArray[Any]], name: str) -> NDArray[np.float32]:
    """Return the weight that was quantized; a Gemm's weight is transposed on the way."""
    transposed = name.removesuffix("_Transposed")
    weight = before[name] if name in before else before[transposed].T
    return weight.astype(np.float32)


def _channel_error(weight: NDArray[np.float32], restored: NDArray[np.float32], axis: int) -> float:
    norms = np.linalg.norm(weight, axis=axis)
    errors = np.linalg.norm(weight - restored, axis=axis)
    return float(np.max(errors[norms > 0] / norms[norms > 0], initial=0.0))


def _arrays(model: ModelProto) -> dict[str, NDArray[Any]]:
    return {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}


def _strip_graph(graph: GraphProto) -> None:
    _strip(graph)
    for field in _CARRIES_METADATA:
        for item in getattr(graph, field):
            _strip(item)
    _strip_nodes(graph)


def _strip_nodes(owner: GraphProto | FunctionProto) -> None:
    for node in owner.node:
        _strip(node)
        for attribute in node.attribute:
            _strip(attribute)
            for subgraph in _subgraphs(attribute):
                _strip_graph(subgraph)


def _subgraphs(attribute: AttributeProto) -> Iterator[GraphProto]:
    if attribute.type == AttributeProto.GRAPH:
        yield attribute.g
    yield from attribute.graphs


def _strip(message: Any) -> None:
    """Clear the fields of `message` that are for people only."""
    known = message.DESCRIPTOR.fields_by_name
    for field in ("doc_string", "metadata_props"):
        if field in known:
            message.ClearField(field)
