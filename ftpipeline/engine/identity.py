"""What a bound step is, as far as its key is concerned: its code and its environment, fingerprinted.

Of a *source* step only the declared version counts: what it froze must not be fetched anew because a line of code
moved.
"""

import inspect
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ftpipeline import digest
from ftpipeline.digest import Digest
from ftpipeline.engine.bind import BoundStep
from ftpipeline.engine.fingerprint import (
    code_fingerprint,
    environment_fingerprint,
    require_importable,
    require_loaded_equals_source,
)
from ftpipeline.errors import StepDefinitionError
from ftpipeline.records import Step, StepKind


@dataclass(frozen=True)
class Identity:
    """A step's code and surroundings.

    Attributes:
        code: digest of the declared versions and, where it counts, of everything the code reaches.
        environment: digest of distributions, interpreter, accelerator and settings.
        libraries: distribution name to version.
        escalations: what was widened to a whole module or the project, and why.
        modules: files of the project's modules that the code reaches, and data files that it names.
        reads: declared files, absolute.
        variables: declared environment variables that are set, with their values.
    """

    code: Digest
    environment: Digest
    libraries: Mapping[str, str] = field(default_factory=dict)
    escalations: tuple[str, ...] = ()
    modules: tuple[Path, ...] = ()
    reads: tuple[Path, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)


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
    code = code_fingerprint([step.function, *map(_module, ports.values()), *bound.workers], cache=cache)
    require_loaded_equals_source([step.function, *code.module_names], cache=cache)
    environment = environment_fingerprint({*code.distributions, *step.distributions}, cache=cache)
    reads = declared_files(step)
    variables = {name: os.environ[name] for name in step.env if name in os.environ}
    contents = {name: digest.of_file(path) for name, path in reads.items()}
    return Identity(
        code=digest.of_json([*declared, ports, list(bound.workers), code.digest, contents, variables]),
        environment=environment.digest,
        libraries=environment.distributions,
        escalations=code.escalations,
        modules=tuple(sorted(map(Path, {*code.modules, *code.data_files}))),
        reads=tuple(reads.values()),
        variables=variables,
    )


def declared_files(step: Step) -> dict[str, Path]:
    """Return the files that a step declares to read, by the name it declares them under.

    Raises:
        StepDefinitionError: one does not exist.
    """
    folder = Path(inspect.getfile(step.function)).parent
    files = {name: folder / name for name in step.reads}
    for name, path in files.items():
        if not path.is_file():
            raise StepDefinitionError(f"step {step.name!r} declares reads={name!r}: {path} does not exist")
    return files


def _module(target: str) -> str:
    return target.partition(":")[0]
