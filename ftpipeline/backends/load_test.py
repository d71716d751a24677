"""Load an export in a process of its own, from its folder, as a server does."""

import os
import subprocess
import sys
import tempfile
from types import ModuleType

from ftpipeline.backends.threads import THREADS_VARIABLE, serving_threads
from ftpipeline.errors import ExportCheckError


def load_test(module: ModuleType, *arguments: object) -> None:
    """Run `module` with `arguments`, the export's folder among them, and wait for it.

    Raises:
        ExportCheckError: it ended with anything but 0.
    """
    command = [sys.executable, "-P", "-m", module.__name__, *map(str, arguments)]
    done = subprocess.run(command, env=_environment(), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        last = done.stderr.strip().rpartition("\n")[2]
        raise ExportCheckError(f"export cannot be served from its own folder ({last:.300}); check the base model")


def _environment() -> dict[str, str]:
    """Give the process the code that runs here and a place for scratch files, and nothing else that is set here."""
    return {
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        "TMPDIR": tempfile.gettempdir(),
        "HF_HUB_OFFLINE": "1",
        THREADS_VARIABLE: str(serving_threads()),
    }
