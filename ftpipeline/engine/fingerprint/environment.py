"""The environment fingerprint: installed distributions, Python, accelerator, processor and thread settings."""

import os
import platform
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from ftpipeline import digest
from ftpipeline.digest import Digest
from ftpipeline.engine.fingerprint.distributions import Installed, reachable

_FORMAT = "ftpipeline.environment/1"
_SETTINGS = (
    "ATEN_CPU_CAPABILITY", "BLIS_NUM_THREADS", "CUBLAS_WORKSPACE_CONFIG", "DNNL_MAX_CPU_ISA", "MKL_CBWR",
    "MKL_DYNAMIC", "MKL_ENABLE_INSTRUCTIONS", "MKL_NUM_THREADS", "NPY_DISABLE_CPU_FEATURES", "NUMEXPR_NUM_THREADS",
    "NVIDIA_TF32_OVERRIDE", "OMP_DYNAMIC", "OMP_NUM_THREADS", "ONEDNN_MAX_CPU_ISA", "OPENBLAS_CORETYPE",
    "OPENBLAS_NUM_THREADS", "POLARS_MAX_THREADS", "VECLIB_MAXIMUM_THREADS",
)  # fmt: skip
_CPU_FLAGS = frozenset({
    "amx_bf16", "amx_int8", "amx_tile", "asimd", "asimddp", "asimdhp", "avx", "avx2", "avx512_bf16", "avx512_fp16",
    "avx512_vnni", "avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512vl", "avx_vnni", "bf16", "bmi2", "f16c", "fma",
    "i8mm", "sse4_1", "sse4_2", "sve", "sve2",
})  # fmt: skip


@dataclass(frozen=True)
class EnvironmentFingerprint:
    """What a step's result owes to its surroundings.

    Attributes:
        digest: changes when any of it changes.
        distributions: name to version of every distribution that is reachable; `absent` for an optional one.
        details: what else is in the digest: Python, machine, accelerator, processor, thread settings, file lists.
    """

    digest: Digest
    distributions: Mapping[str, str]
    details: Mapping[str, Any]


def environment_fingerprint(
    distributions: Iterable[str], *, accelerator: str = "cpu", python: str | None = None, cache: Path | None = None
) -> EnvironmentFingerprint:
    """Return the fingerprint of the distributions named, all that they require, and the machine.

    Args:
        distributions: names, with extras where they are needed (`package[extra]`). Editable installations are left
            out: their code is first-party.
        accelerator: kind of device that the step computes on.
        python: implementation and minor version; by default this interpreter's.
        cache: folder in which what was found of distributions is kept between processes.

    Raises:
        MissingDependencyError: a named distribution is not installed.
        StoreError: the cache folder cannot be written.
    """
    details = {
        "python": python or f"{platform.python_implementation()} {sys.version_info.major}.{sys.version_info.minor}",
        "optimize": sys.flags.optimize,
        "machine": f"{sys.platform} {platform.machine()}",
        "accelerator": accelerator,
        "cpu_flags": cpu_flags(),
        "settings": tuple(thread_settings().items()),
    }
    return _fingerprint(tuple(reachable(distributions, cache).items()), tuple(details.items()))


@lru_cache(maxsize=64)
def _fingerprint(
    found: tuple[tuple[str, Installed], ...], surroundings: tuple[tuple[str, Any], ...]
) -> EnvironmentFingerprint:
    """Return the fingerprint of exactly these facts; most steps of a run share them, and hashing them takes a while."""
    stated = dict(surroundings)
    details = {
        **stated,
        "cpu_flags": list(stated["cpu_flags"]),
        "settings": dict(stated["settings"]),
        "files": {name: each.files for name, each in found},
    }
    versions = {name: each.version for name, each in found}
    document = {"format": _FORMAT, "distributions": versions, "details": details}
    return EnvironmentFingerprint(digest.of_json(document), versions, details)


@cache
def cpu_flags() -> tuple[str, ...]:
    """Return the processor's capabilities by which numeric libraries choose their kernels; empty if unknown."""
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        return ()
    found = next((line for line in lines if line.lower().startswith(("flags", "features"))), "")
    return tuple(sorted(_CPU_FLAGS & set(found.partition(":")[2].split())))


def thread_settings() -> dict[str, str]:
    """Return the settings that are made, and the number of processors where it decides the number of threads."""
    settings = {name: os.environ[name] for name in _SETTINGS if name in os.environ}
    if "OMP_NUM_THREADS" not in settings:
        settings["processors"] = str(len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count())
    return settings
