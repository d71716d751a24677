"""A step's identity is a matter of what stands on disk, never of what a process happened to import before."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

_PROGRAM = """
import importlib, json, pkgutil, sys
from pathlib import Path
import ftpipeline
from ftpipeline.cycle import bindings
from ftpipeline.engine.identity import identify

if sys.argv[2] == "everything":
    for module in pkgutil.walk_packages(ftpipeline.__path__, "ftpipeline."):
        if not module.name.endswith(("__main__", ".env", ".zygote", ".exec_wrapper")):
            importlib.import_module(module.name)
steps = [bindings.CURATE, bindings.SPLIT, bindings.MANIFEST, bindings.EXPORT, bindings.EVALUATE, bindings.REPORT]
steps += [bindings.GATE, bindings.bound_train(bindings.SUBPROCESS_LAUNCHER)]
found = {bound.step.name: identify(bound, Path(sys.argv[1])) for bound in steps}
print(json.dumps({name: [identity.code, identity.environment] for name, identity in found.items()}))
"""


def _identities(cache: Path, imported: str) -> dict[str, list[str]]:
    # What a library may have set for itself must not be there from the start, or nothing could differ.
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("ORT_", "HF_", "KMP_"))}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", _PROGRAM, str(cache), imported],
        capture_output=True,
        text=True,
        env=environment,
        check=True,
    )
    found: dict[str, list[str]] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.slow
def test_keys_do_not_depend_on_what_the_process_has_imported(tmp_path: Path) -> None:
    little = _identities(tmp_path / "one", "little")
    assert len(little) == 8
    assert _identities(tmp_path / "two", "everything") == little
    assert _identities(tmp_path / "one", "everything") == little
