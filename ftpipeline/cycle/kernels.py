"""Machine code of the leakage check, compiled once in the open for confined steps that can only read it.

It is named after the kernels' source, and numba tells processors and its own versions apart, so it can only be right or
unused. It is no part of any result.
"""

import os
import subprocess
import sys
from pathlib import Path

from ftpipeline.engine.folders import private_folder
from ftpipeline.errors import StoreError, WorkerError
from ftpipeline.steps.leakage.jit import KERNELS, folder_name


def compile_kernels(cache: Path) -> None:
    """See that the kernels are compiled, in the folder that steps are given as their cache.

    Args:
        cache: folder of facts that can be found out again.

    Raises:
        WorkerError: they cannot be compiled.
        StoreError: the folder cannot be written.
    """
    wanted = cache / KERNELS / folder_name()
    if wanted.is_dir():
        return
    with private_folder(cache, ".kernels-") as folder:
        _compile_into(folder)
        wanted.parent.mkdir(parents=True, exist_ok=True)
        try:
            (folder / wanted.name).rename(wanted)
        except OSError as error:
            if not wanted.is_dir():  # else another process was faster, and compiled the same
                raise StoreError(f"{wanted}: cannot be written ({error.strerror}); free space or permit it") from error


def _compile_into(folder: Path) -> None:
    command = [sys.executable, "-m", "ftpipeline.steps.leakage.warm"]
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(folder)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        problem = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        raise WorkerError(f"kernels of the leakage check cannot be compiled ({problem}); check numba's installation")
