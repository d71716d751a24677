"""Compiles kernels with numba and decides where their machine code is kept.

numba looks at one file to tell whether kept code is stale, and a kernel is made of several. So the folder is named
after the content of all kernel modules: a change of any of them compiles anew, and two versions never share machine
code. It stands in `$NUMBA_CACHE_DIR`, or else in `~/.cache/ftpipeline`: never inside the package, which may be
read-only or shared, and never under a name that another user could have made first. Where it cannot be written, the
code lives in a private temporary folder as long as the process.

A confined step can write nothing that outlives it. It starts with a copy of what `$FTPIPELINE_CACHE_KERNELS` holds,
which `ftpipeline.steps.leakage.warm` has compiled outside; what is not there, or is of another processor or version,
numba compiles as ever.
"""

import atexit
import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

from ftpipeline.errors import MissingDependencyError

KERNELS = "kernels"
"""Name of the folder of machine code that steps declare as a cache."""

Function = TypeVar("Function", bound=Callable[..., Any])

KERNEL_MODULES = ("bits.py", "candidates.py", "equality.py", "index.py", "jit.py", "layout.py", "scan.py", "tokens.py")
"""Files of this package whose code is compiled."""


def kernel(function: Function) -> Function:
    """Return `function`, compiled for its argument types at the first call and kept on disk."""
    numba = _numba()
    kept = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = str(cache_folder())
    try:
        compiled = numba.njit(cache=True, nogil=True, error_model="numpy")(function)
    finally:
        numba.config.CACHE_DIR = kept
    return cast(Function, compiled)


def intrinsic(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a typing function as an operation that kernels may call; it gives the signature and the generator."""
    _numba()
    from numba.extending import intrinsic as numba_intrinsic

    return cast(Callable[..., Any], numba_intrinsic(function))


@cache
def cache_folder() -> Path:
    """Return the folder of the machine code; it exists and can be written."""
    base = _numba().config.CACHE_DIR or os.path.join(os.path.expanduser("~"), ".cache", "ftpipeline")
    wanted, kept = Path(base) / folder_name(), os.environ.get("FTPIPELINE_CACHE_KERNELS")
    try:
        if kept is not None and os.path.isdir(os.path.join(kept, wanted.name)):
            shutil.copytree(os.path.join(kept, wanted.name), wanted, dirs_exist_ok=True)
        wanted.mkdir(parents=True, exist_ok=True)
        writable = os.access(wanted, os.W_OK | os.X_OK)
    except OSError:
        writable = False
    return wanted if writable else _private_folder()


def folder_name() -> str:
    """Return the name of the folder of these kernels' machine code."""
    return f"kernels-{_content()[:16]}"


def _private_folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="ftpipeline-kernels-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _content() -> str:
    hasher = hashlib.sha256()
    for name in KERNEL_MODULES:
        hasher.update(Path(__file__).with_name(name).read_bytes())
    return hasher.hexdigest()


def _numba() -> Any:
    try:
        import numba
    except ImportError as error:
        raise MissingDependencyError(
            f"the leakage check is compiled by numba, which cannot be imported ({error}); pip install numba"
        ) from error
    return numba
