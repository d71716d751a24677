"""What a step is asked to do and what comes of it, and how a request crosses to another process.

Law: `decode(encode(work)) == work`, with every parameter of the type and every mapping in the order that it had.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ftpipeline.engine.child.levels import Level
from ftpipeline.engine.key import typed
from ftpipeline.records import Facts

PortArgument = str | int | float | bool | None | Path


@dataclass(frozen=True)
class PortSpec:
    """A port's implementation, constructed in the step's process.

    Attributes:
        target: `module:Class`.
        arguments: constructor arguments.
    """

    target: str
    arguments: Mapping[str, PortArgument] = field(default_factory=dict)


@dataclass(frozen=True)
class StepRequest:
    """One call of a step.

    Attributes:
        step: `module:name` of the step.
        inputs: input name to folder.
        params: parameters: JSON values and tuples, mappings with keys of any of these.
        out: empty folder whose content becomes the step's output.
        ports: port name to implementation.
        reads: files and folders that the step declares to read besides its inputs.
        env: variables that the step declares to read, with their values.
        caches: folders that the step declares to be faster with, by name; it may read them.
        modules: first-party module files that may be read; None for the whole project.
        shows_progress: whether the step takes `progress`.
        memory_bytes: limit of the memory that the step may allocate; beyond it, MemoryError.
    """

    step: str
    inputs: Mapping[str, Path]
    params: Mapping[str, Any]
    out: Path
    ports: Mapping[str, PortSpec] = field(default_factory=dict)
    reads: tuple[Path, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    modules: tuple[Path, ...] | None = None
    shows_progress: bool = False
    memory_bytes: int | None = None
    caches: Mapping[str, Path] = field(default_factory=dict)


@dataclass(frozen=True)
class StepOutcome:
    """What a step said, and what it cost.

    Attributes:
        facts: what the step returned.
        max_rss_bytes: largest resident memory of one of its processes.
        cpu_seconds: CPU time of all its processes.
        wall_seconds: from the start of its process to its end.
        opens: real paths of the inputs, declared files and project files that it opened, sorted; at level `observed`,
            those that Python opened.
        level: how well it was confined.
        cpu_flags: the processor's capabilities as the step's process saw them.
        settings: thread settings as the step's process saw them.
    """

    facts: Facts
    max_rss_bytes: int
    cpu_seconds: float
    wall_seconds: float
    opens: tuple[str, ...]
    level: Level
    cpu_flags: tuple[str, ...]
    settings: Mapping[str, str]


@dataclass(frozen=True)
class Work:
    """A request with the surroundings that it is run in.

    Attributes:
        request: what is asked.
        level: how well to confine it.
        scratch: private folder for temporary files.
        folder: working folder.
        sys_path: where modules are looked for.
        environment: all environment variables of the step.
        hidden: names of the caller's variables that the step does not get.
        token: marks every process of this call.
    """

    request: StepRequest
    level: Level
    scratch: Path
    folder: Path
    sys_path: tuple[str, ...]
    environment: Mapping[str, str]
    hidden: frozenset[str]
    token: int


def encode(work: Work) -> bytes:
    """Return the work as JSON.

    Raises:
        CanonicalFormError: a parameter has no typed form.
    """
    request = work.request
    ports = {name: [port.target, _typed_arguments(port)] for name, port in request.ports.items()}
    document = {
        "step": request.step,
        "inputs": {name: str(path) for name, path in request.inputs.items()},
        "params": _typed_in_order(request.params, "params"),
        "out": str(request.out),
        "ports": ports,
        "reads": [str(path) for path in request.reads],
        "env": dict(request.env),
        "modules": None if request.modules is None else [str(path) for path in request.modules],
        "shows_progress": request.shows_progress,
        "memory_bytes": request.memory_bytes,
        "caches": {name: str(path) for name, path in request.caches.items()},
        "level": work.level,
        "scratch": str(work.scratch),
        "folder": str(work.folder),
        "sys_path": work.sys_path,
        "environment": dict(work.environment),
        "hidden": sorted(work.hidden),
        "token": work.token,
    }
    return json.dumps(document).encode()


def decode(data: bytes) -> Work:
    """Return the work that was encoded."""
    document = json.loads(data)
    modules = document["modules"]
    request = StepRequest(
        step=document["step"],
        inputs={name: Path(path) for name, path in document["inputs"].items()},
        params=_untyped(document["params"]),
        out=Path(document["out"]),
        ports={name: PortSpec(target, _arguments(typed)) for name, (target, typed) in document["ports"].items()},
        reads=tuple(map(Path, document["reads"])),
        env=document["env"],
        modules=None if modules is None else tuple(map(Path, modules)),
        shows_progress=document["shows_progress"],
        memory_bytes=document["memory_bytes"],
        caches={name: Path(path) for name, path in document["caches"].items()},
    )
    return Work(
        request=request,
        level=Level(document["level"]),
        scratch=Path(document["scratch"]),
        folder=Path(document["folder"]),
        sys_path=tuple(document["sys_path"]),
        environment=document["environment"],
        hidden=frozenset(document["hidden"]),
        token=document["token"],
    )


def _typed_arguments(port: PortSpec) -> dict[str, Any]:
    return {
        name: ["path", str(value)] if isinstance(value, Path) else typed(value, f"{port.target}.{name}")
        for name, value in port.arguments.items()
    }


def _arguments(typed_arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _untyped(value) for name, value in typed_arguments.items()}


def _typed_in_order(value: object, where: str) -> list[Any]:
    """Return the typed form, but with mappings in their own order: a step may write them down as they come."""
    if isinstance(value, Mapping):
        return ["map", [[typed(key, where), _typed_in_order(item, f"{where}.{key}")] for key, item in value.items()]]
    if isinstance(value, list | tuple):
        kind = "tuple" if isinstance(value, tuple) else "list"
        return [kind, [_typed_in_order(item, f"{where}[{i}]") for i, item in enumerate(value)]]
    return typed(value, where)


def _untyped(form: list[Any]) -> Any:
    """Return the value whose typed form this is."""
    kind, *content = form
    match kind:
        case "none":
            return None
        case "bool" | "str":
            return content[0]
        case "int":
            return int(content[0])
        case "float":
            return float.fromhex(content[0])
        case "list":
            return [_untyped(item) for item in content[0]]
        case "tuple":
            return tuple(_untyped(item) for item in content[0])
        case "map":
            return {_untyped(key): _untyped(item) for key, item in content[0]}
        case "path":
            return Path(content[0])
        case _:
            raise ValueError(f"{kind!r} is not a typed form")
