"""Export an adapter alone, to be served beside others on one base model that it names by hash."""

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ftpipeline.backends import adapter_load
from ftpipeline.backends.adapter import CONFIG_FILE, WEIGHTS_FILE
from ftpipeline.backends.load_test import load_test
from ftpipeline.backends.served_files import copy_tokenizer, write_labels
from ftpipeline.errors import PipelineFileError
from ftpipeline.records import Facts
from ftpipeline.steps.base_pin import check_base
from ftpipeline.steps.ports import Exporter


class AdapterExporter(Exporter):
    """Copies the adapter and the base's tokenizer files as they are."""

    code_version = "1"

    def _export(self, base_model: Path, adapter: Path, params: Mapping[str, Any], out: Path) -> Facts:
        """Write adapter, `labels.json` and the base's tokenizer files; `params` holds `labels`, `task` and `export`."""
        if params["export"]["merge_adapter"] is not False:
            raise PipelineFileError(
                "export.merge_adapter is true; this exporter leaves the adapter alone, set it to false"
            )
        base = check_base(base_model, adapter)
        out.mkdir(parents=True, exist_ok=True)
        for name in (WEIGHTS_FILE, CONFIG_FILE):
            shutil.copyfile(adapter / name, out / name)
        copy_tokenizer(base_model, out)
        write_labels(params["labels"], out)
        load_test(adapter_load, out, base_model, params["task"])
        return {"base_model": base}
