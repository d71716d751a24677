"""Export a merged classifier as one ONNX file that ONNX Runtime serves, optionally quantized to int8."""

import json
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from numpy.typing import NDArray
from onnx import ModelProto
from onnxruntime.quantization import QuantType, quantize_dynamic
from onnxruntime.quantization.quant_utils import add_pre_process_metadata

from ftpipeline.backends.merge import MergedModel, logit_difference, merge
from ftpipeline.backends.onnx_graph import quantization_errors, strip_metadata, write
from ftpipeline.backends.onnx_scorer import open_session
from ftpipeline.backends.quiet import exporting_quietly, quantizing_quietly
from ftpipeline.errors import ExportCheckError, PipelineFileError
from ftpipeline.records import Facts
from ftpipeline.steps.artifact import CONFIG_FILE, LABELS_FILE, MODEL_FILE
from ftpipeline.steps.ports import Exporter
from ftpipeline.steps.tokenizer import tokenizer_files


class OnnxExporter(Exporter):
    """Merges in fp32, exports with `torch.onnx.export(dynamo=True)`, quantizes weights to int8 per channel.

    Law: the bytes written depend on the model and the parameters alone, not on folders, process or time.
    """

    code_version = "1"

    def _export(self, base_model: Path, adapter: Path, params: Mapping[str, Any], out: Path) -> Facts:
        """Write `model.onnx`, `config.json`, `labels.json` and the base's tokenizer files.

        `params` holds `labels`, `max_length` and `export`; with `unquantized_out` the same files are also written there
        with the model as it was before it was quantized.
        """
        _check_params(params)
        with tempfile.TemporaryDirectory(prefix="ftpipeline-export-") as scratch:
            original = Path(scratch) / "fp32.onnx"
            facts = _export_fp32(base_model, adapter, params["labels"], original)
            served = original
            if params["export"]["quantize"] == "int8":
                served = Path(scratch) / "int8.onnx"
                facts |= _quantize(original, served)
            _load_test(served, params["max_length"], len(params["labels"]))
            if "unquantized_out" in params:
                _write_folder(base_model, original, params["labels"], Path(params["unquantized_out"]))
            _write_folder(base_model, served, params["labels"], out)
        return facts


def _check_params(params: Mapping[str, Any]) -> None:
    export = params["export"]
    if export["merge_adapter"] is not True:
        raise PipelineFileError("export.merge_adapter is not true; an ONNX file holds one merged model, set it to true")
    if export["quantize"] not in ("int8", "none"):
        raise PipelineFileError(f"export.quantize is {export['quantize']!r}; set it to int8 or none")


def _export_fp32(base_model: Path, adapter: Path, labels: Sequence[str], target: Path) -> Facts:
    """Write the merged model to `target`; torch's copies of it are freed on return."""
    merged = merge(base_model, adapter, labels)
    model = _to_onnx(merged)
    strip_metadata(model)
    write(model, target)
    del model
    logits = torch.from_numpy(_run(target, {name: tensor.numpy() for name, tensor in merged.probe.items()}))
    return {
        "max_logit_difference": merged.max_logit_difference,
        "max_logit_difference_onnx": logit_difference("exporting to ONNX", merged.logits, logits),
        "merge_delta_norm": merged.delta_norm,
    }


def _to_onnx(merged: MergedModel) -> ModelProto:
    names = list(merged.probe)
    with exporting_quietly():
        program = torch.onnx.export(
            merged.model,
            kwargs=dict(merged.probe),
            dynamo=True,
            verbose=False,
            input_names=names,
            output_names=["logits"],
            dynamic_shapes={name: {0: "batch", 1: "sequence"} for name in names},
        )
        if program is None:
            raise ExportCheckError("torch.onnx.export gave no program; check that the base model is a classifier")
        return program.model_proto


def _quantize(original: Path, target: Path) -> Facts:
    """Write `original` with its weights in int8 to `target`."""
    tagged = target.with_suffix(".tagged")
    _tag_as_prepared(original, tagged)
    with quantizing_quietly():
        quantize_dynamic(tagged, target, per_channel=True, weight_type=QuantType.QInt8)
    quantized = onnx.load(target)
    strip_metadata(quantized)
    write(quantized, target)
    return {"quantization_errors": quantization_errors(onnx.load(original), quantized)}


def _tag_as_prepared(original: Path, target: Path) -> None:
    """Tell the quantizer that shapes are inferred and constants folded, as the exporter did; it would ask for both."""
    model = onnx.load(original)
    add_pre_process_metadata(model)
    write(model, target)


def _run(path: Path, probe: Mapping[str, NDArray[Any]]) -> NDArray[Any]:
    session = open_session(path)
    accepted = {node.name for node in session.get_inputs()}
    logits: NDArray[Any] = session.run(["logits"], {name: ids for name, ids in probe.items() if name in accepted})[0]
    return logits


def _load_test(path: Path, max_length: int, labels: int) -> None:
    """Run the served file on one text of the greatest length, which is not the shape it was exported with."""
    ids = np.ones((1, max_length), dtype=np.int64)
    logits = _run(path, {"input_ids": ids, "attention_mask": ids, "token_type_ids": np.zeros_like(ids)})
    if logits.shape != (1, labels) or not np.isfinite(logits).all():
        raise ExportCheckError(
            f"the exported file answers shape {logits.shape} or a number that is not finite, {labels} finite logits "
            "are needed; check the adapter against its base model"
        )


def _write_folder(base_model: Path, model: Path, labels: Sequence[str], out: Path) -> None:
    """Write an export folder; tokenizer files are copied as they are, because saving a tokenizer rewrites them."""
    out.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(model, out / MODEL_FILE)
    for file in tokenizer_files(base_model):
        (out / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(base_model / file, out / file)
    base_config = json.loads((base_model / CONFIG_FILE).read_text(encoding="utf-8"))
    _write_json(out / CONFIG_FILE, _classifier_config(base_config, labels))
    _write_json(out / LABELS_FILE, list(labels))


def _classifier_config(base: Mapping[str, Any], labels: Sequence[str]) -> dict[str, Any]:
    """Return the base's configuration as that of the exported classifier; `_name_or_path` may hold a local path."""
    dropped = ("_name_or_path", "architectures", "transformers_version")
    kept = {key: value for key, value in base.items() if key not in dropped}
    return kept | {
        "id2label": {str(index): label for index, label in enumerate(labels)},
        "label2id": {label: index for index, label in enumerate(labels)},
        "problem_type": "single_label_classification",
    }


def _write_json(path: Path, value: object) -> None:
    path.write_text(json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False) + "\n", encoding="utf-8")
