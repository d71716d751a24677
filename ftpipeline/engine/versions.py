"""What a key says of code and environment: declared versions of the step, its ports and workers, and distributions.

This is the seam for fingerprints of the code itself: both functions return a digest, and nothing else of the engine
knows what went into it.
"""

import platform
from importlib import metadata

from ftpipeline import digest
from ftpipeline.digest import Digest
from ftpipeline.engine.bind import BoundStep
from ftpipeline.errors import MissingDependencyError


def code_fingerprint(bound: BoundStep) -> Digest:
    """Return the digest of every declared code version a step's result depends on."""
    step = bound.step
    ports = {name: [port.target, port.code_version] for name, port in bound.ports.items()}
    return digest.of_json([step.name, step.code_version, str(step.kind), ports, dict(bound.workers)])


def libraries(bound: BoundStep) -> dict[str, str]:
    """Return the installed versions of the distributions a step declares.

    Raises:
        MissingDependencyError: one is not installed.
    """
    try:
        return {name: metadata.version(name) for name in bound.step.distributions}
    except metadata.PackageNotFoundError as error:
        raise MissingDependencyError(
            f"step {bound.step.name!r} needs the distribution {error.name!r}; install ftpipeline[train]"
        ) from error


def environment_fingerprint(bound: BoundStep) -> Digest:
    """Return the digest of the interpreter and the declared distributions."""
    python = ".".join(platform.python_version_tuple()[:2])
    return digest.of_json([platform.python_implementation(), python, platform.machine(), libraries(bound)])
