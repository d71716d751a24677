"""Export a merged causal model: GGUF in Q8_0, or safetensors as they are."""

import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ftpipeline.backends import causal_load
from ftpipeline.backends.causal_merge import merge_causal
from ftpipeline.backends.causal_prompt import load_chat_tokenizer
from ftpipeline.backends.gguf_file import gguf_shapes, write_gguf
from ftpipeline.backends.load_test import load_test
from ftpipeline.backends.served_files import copy_tokenizer, write_labels
from ftpipeline.errors import ExportCheckError, PipelineFileError
from ftpipeline.records import Facts
from ftpipeline.steps.artifact import CONFIG_FILE
from ftpipeline.steps.model_files import GGUF_FILE, ModelParts, disagreements
from ftpipeline.steps.ports import Exporter
from ftpipeline.steps.weight_files import model_tensors, read_object


class CausalExporter(Exporter):
    """Merges in fp32 and, for int8, writes the matrices in Q8_0.

    Law: the bytes written depend on the model and the parameters alone, not on folders, process or time.
    """

    code_version = "1"

    def _export(self, base_model: Path, adapter: Path, params: Mapping[str, Any], out: Path) -> Facts:
        """Write the model, `config.json`, `labels.json` and the base's tokenizer files.

        `params` holds `labels`, `max_length` and `export`; with `unquantized_out` the merged model is also left there.
        """
        export = params["export"]
        if export["merge_adapter"] is not True:
            raise PipelineFileError("export.merge_adapter is not true; this exporter merges, set it to true")
        out.mkdir(parents=True, exist_ok=True)
        if export["quantize"] == "none":
            facts = merge_causal(base_model, adapter, out)
        elif export["quantize"] == "int8":
            with tempfile.TemporaryDirectory(prefix="ftpipeline-merged-") as scratch:
                facts = _quantized(base_model, adapter, Path(params.get("unquantized_out", scratch)), out)
            write_labels(params["labels"], Path(params.get("unquantized_out", out)))
        else:
            raise PipelineFileError(f"export.quantize is {export['quantize']!r}; set it to int8 or none")
        write_labels(params["labels"], out)
        check_parts(out)
        load_test(causal_load, out, params["max_length"])
        return facts


def _quantized(base_model: Path, adapter: Path, merged: Path, out: Path) -> Facts:
    facts = merge_causal(base_model, adapter, merged)
    errors = write_gguf(merged, out / GGUF_FILE)
    shutil.copyfile(merged / CONFIG_FILE, out / CONFIG_FILE)
    copy_tokenizer(merged, out)
    return {**facts, "quantization_errors": errors}


def check_parts(out: Path) -> None:
    """Compare configuration, tokenizer and weights of a merged export.

    Raises:
        ExportCheckError: they say different things of the model.
    """
    tokenizer = load_chat_tokenizer(out)
    file = out / GGUF_FILE
    shapes = gguf_shapes(file) if file.is_file() else {name: it.shape for name, it in model_tensors(out).items()}
    parts = ModelParts(
        config=read_object(out, CONFIG_FILE),
        shapes=shapes,
        tokens=len(tokenizer),
        end_token=tokenizer.eos_token_id,
        head_is_embedding=None,
    )
    found = disagreements(parts)
    if found:
        raise ExportCheckError(f"export disagrees with itself: {'; '.join(found)}; export from a sound base model")
