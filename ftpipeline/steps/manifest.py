"""Step `manifest`: write the frozen manifest that the training starts from."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from ftpipeline.digest import canonical_json
from ftpipeline.records import Facts, step

FILE = "manifest.json"


@step("manifest", code_version="1")
def manifest(inputs: Mapping[str, Path], params: Mapping[str, Any], out: Path) -> Facts:
    """Write `params["manifest"]`, already validated, as canonical JSON and as YAML for people."""
    document = params["manifest"]
    (out / FILE).write_bytes(canonical_json(document))
    (out / "manifest.yaml").write_text(yaml.safe_dump(document, sort_keys=False, allow_unicode=True), "utf-8")
    return {"run_id": document["run_id"], "manifest": json.loads(canonical_json(document))}
