"""Binding ports to steps, by name: a hit needs no port, so nothing is imported until a step is missed."""

import importlib
import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ftpipeline.errors import StepDefinitionError
from ftpipeline.records import Step


@dataclass(frozen=True)
class BoundPort:
    """A port's implementation, named and not yet loaded.

    Attributes:
        target: `module:Class`; the module's code is part of the step's key.
        arguments: constructor arguments; places and handles, so they are in no key.
        keyed: False for what starts the work elsewhere and makes no byte of the result itself.
    """

    target: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    keyed: bool = True

    def load(self) -> Any:
        """Import the implementation and construct it.

        Raises:
            StepDefinitionError: there is no such class.
        """
        module, _, name = self.target.partition(":")
        try:
            implementation = getattr(importlib.import_module(module), name)
        except AttributeError as error:
            raise StepDefinitionError(f"port {self.target} does not exist; name it as 'module:Class'") from error
        return implementation(**self.arguments)


@dataclass(frozen=True)
class BoundStep:
    """A step with the implementations of its ports.

    Attributes:
        step: the declared step.
        ports: port name to implementation.
        workers: modules that worker processes of this step run; their code is part of the key.
    """

    step: Step
    ports: Mapping[str, BoundPort] = field(default_factory=dict)
    workers: tuple[str, ...] = ()

    def load_ports(self) -> dict[str, Any]:
        """Construct every port."""
        return {name: port.load() for name, port in self.ports.items()}

    @property
    def shows_progress(self) -> bool:
        """Tell whether the step function takes `progress`."""
        return "progress" in inspect.signature(self.step.function).parameters
