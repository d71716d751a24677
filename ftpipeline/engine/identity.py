"""What a bound step is, as far as its key is concerned: its code and its environment, fingerprinted.

Of a *source* step only the declared version counts: what it froze must not be fetched anew because a line of code moved.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ftpipeline import digest
from ftpipeline.digest import Digest
from ftpipeline.engine.bind import BoundStep
from ftpipeline.engine.fingerprint import (
    CodeFingerprint,
    code_fingerprint,
    environment_fingerprint,
    require_importable,
    require_loaded_equals_source,
)
from ftpipeline.records import StepKind


@dataclass(frozen=True)
class Identity:
    """A step's code and surroundings.

    Attributes:
        code: digest of the declared versions and, where it counts, of everything the code reaches.
        environment: digest of distributions, interpreter, accelerator and settings.
        libraries: distribution name to version.
        escalations: what was widened to a whole module or the project, and why.
        modules: files of the project's modules that the code reaches.
    """

    code: Digest
    environment: Digest
    libraries: Mapping[str, str] = field(default_factory=dict)
    escalations: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()


def identify(bound: BoundStep, cache: Path) -> Identity:
    """Fingerprint a step with the ports and workers bound to it.

    Args:
        bound: the step.
        cache: folder in which facts of source files are kept between processes.

    Raises:
        StepDefinitionError: the step cannot be imported by name, or the loaded code is older than the disk.
        MissingDependencyError: a distribution that the code needs is not installed.
    """
    step = bound.step
    declared = [step.name, step.code_version, str(step.kind)]
    if step.kind is StepKind.SOURCE:
        return Identity(digest.of_json(declared), digest.of_json(["source"]))
    require_importable(step.function)
    ports = {name: port.target for name, port in bound.ports.items() if port.keyed}
    modules = [target.partition(":")[0] for target in ports.values()]
    code = code_fingerprint([step.function, *modules, *bound.workers], cache=cache)
    require_loaded_equals_source([step.function, *code.module_names])
    environment = environment_fingerprint({*code.distributions, *step.distributions})
    return Identity(
        code=digest.of_json([*declared, ports, list(bound.workers), code.digest]),
        environment=environment.digest,
        libraries=environment.distributions,
        escalations=code.escalations,
        modules=_files(code),
    )


def _files(code: CodeFingerprint) -> tuple[str, ...]:
    return tuple(sorted({*code.modules, *code.data_files}))
