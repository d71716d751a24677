"""The environment fingerprint: installed distributions, Python, accelerator, processor and thread settings."""

import hashlib
import json
import os
import platform
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ftpipeline import digest
from ftpipeline.digest import Digest
from ftpipeline.engine.fingerprint.cache import Stamp, is_unchanged, settled_stamp
from ftpipeline.engine.fingerprint.installed import normalised
from ftpipeline.errors import MissingDependencyError

if TYPE_CHECKING:
    from packaging.requirements import Requirement

_FORMAT = "ftpipeline.environment/1"
_ABSENT = "absent"
_OWN_NOTES = ("/INSTALLER,", "/REQUESTED,", "/RECORD,", "/direct_url.json,", "/uv_cache.json,")
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
    distributions: Iterable[str], *, accelerator: str = "cpu", python: str | None = None
) -> EnvironmentFingerprint:
    """Return the fingerprint of the distributions named, all that they require, and the machine.

    Args:
        distributions: names, with extras where they are needed (`package[extra]`). Editable installations are left
            out: their code is first-party.
        accelerator: kind of device that the step computes on.
        python: implementation and minor version; by default this interpreter's.

    Raises:
        MissingDependencyError: a named distribution is not installed.
    """
    files = _remembered_reachable(tuple(sorted(distributions)))
    details = {
        "python": python or f"{platform.python_implementation()} {sys.version_info.major}.{sys.version_info.minor}",
        "optimize": sys.flags.optimize,
        "machine": f"{sys.platform} {platform.machine()}",
        "accelerator": accelerator,
        "cpu_flags": list(cpu_flags()),
        "settings": thread_settings(),
        "files": {name: content for name, (_, content) in files.items()},
    }
    versions = {name: version for name, (version, _) in files.items()}
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


_record_digests: dict[str, tuple[Stamp, str]] = {}
_reached: dict[tuple[str, ...], tuple[dict[str, Stamp], dict[str, tuple[str, str]]]] = {}


def _remembered_reachable(named: tuple[str, ...]) -> dict[str, tuple[str, str]]:
    """Return `_reachable(named)`, from memory while no installation folder and no file list has changed."""
    known = _reached.get(named)
    if known is None or not all(is_unchanged(path, stamp) for path, stamp in known[0].items()):
        metadata.MetadataPathFinder().invalidate_caches()
        stamps = {path: settled_stamp(path) for path in sys.path}
        found = _reachable(named)
        stamps |= {path: stamp for path, (stamp, _) in _record_digests.items()}
        known = _reached[named] = (stamps, found)
    return known[1]


def _reachable(named: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Return name to (version, digest of the file list), following requirements."""
    found: dict[str, tuple[str, str]] = {}
    seen: set[tuple[str, str]] = set()
    pending = [(name, True) for name in named]
    while pending:
        text, required = pending.pop()
        requirement = _requirement(text)
        name = normalised(requirement.name)
        distribution = _distribution(name)
        if distribution is None:
            _note_absent(name, required, found)
            continue
        if _is_editable(distribution):
            continue
        content = found[name] = (distribution.version, _record_digest(distribution))
        for extra in sorted({"", *requirement.extras}):
            if (name, extra) not in seen:
                seen.add((name, extra))
                pending += ((needed, False) for needed in _requirements(name, content, extra))
    return dict(sorted(found.items()))


def _note_absent(name: str, required: bool, found: dict[str, tuple[str, str]]) -> None:
    if required:
        raise MissingDependencyError(f"distribution {name!r} is not installed; install it, or take it off the step")
    found[name] = (_ABSENT, _ABSENT)  # installing it later may change the result


def _requirement(text: str) -> "Requirement":
    from packaging.requirements import Requirement

    return Requirement(text)


def _distribution(name: str) -> metadata.Distribution | None:
    try:
        return metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return None


@cache
def _requirements(name: str, content: tuple[str, str], extra: str) -> tuple[str, ...]:
    """Return what the distribution, installed with `content`, requires here for one extra; the empty one is none."""
    parsed = map(_requirement, metadata.requires(name) or ())
    held = [it for it in parsed if it.marker is None or it.marker.evaluate({"extra": extra})]
    return tuple(f"{it.name}[{','.join(sorted(it.extras))}]" for it in held)


def _is_editable(distribution: metadata.Distribution) -> bool:
    text = distribution.read_text("direct_url.json")
    return bool(text and json.loads(text).get("dir_info", {}).get("editable"))


def _record_digest(distribution: metadata.Distribution) -> str:
    place = _record_path(distribution)
    known = _record_digests.get(str(place))
    if known is None or not is_unchanged(str(place), known[0]):
        known = _record_digests[str(place)] = (settled_stamp(str(place)), _digest_of_record(distribution, place))
    return known[1]


def _record_path(distribution: metadata.Distribution) -> Path:
    folder = Path(str(getattr(distribution, "_path", ""))).name
    return Path(str(distribution.locate_file(""))) / folder / "RECORD"


def _digest_of_record(distribution: metadata.Distribution, place: Path) -> str:
    """Return a digest of the files' hashes, without what differs between installations of the same wheel.

    Scripts (outside the package folder) hold the path of the interpreter; the installer's own notes say how, not what.
    """
    if not place.is_file():
        text = distribution.read_text("METADATA") or distribution.read_text("PKG-INFO") or ""
        return f"without RECORD {digest.of_bytes(text.encode())}"
    lines = place.read_text("utf-8").splitlines()
    kept = [line for line in lines if "sha256=" in line and not line.startswith(("..", "/"))]
    kept = sorted(line for line in kept if not any(note in line for note in _OWN_NOTES))
    return hashlib.sha256("\n".join(kept).encode()).hexdigest()
