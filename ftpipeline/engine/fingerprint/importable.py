"""A step must be importable by name: its fingerprint, its child process and its worker find it that way."""

import functools
import sys
from collections.abc import Callable
from types import FunctionType
from typing import Any

from ftpipeline.engine.fingerprint.roots import underlying
from ftpipeline.errors import StepDefinitionError

_CURE = "move it to the top level of a module"


def require_importable(function: Callable[..., Any]) -> None:
    """Refuse a step function that cannot be imported by its name.

    Args:
        function: a function, or a declared step that holds one.

    Raises:
        StepDefinitionError: it is a lambda, nested, a method, a partial, defined in `__main__`, or its name stands for
            something else in its module.
    """
    target = underlying(function)
    if isinstance(target, functools.partial):
        raise StepDefinitionError(
            f"step function is a functools.partial of {_name(target.func)}; {_CURE} as a function of its own and pass "
            "the bound arguments as params"
        )
    if not isinstance(target, FunctionType):
        raise StepDefinitionError(f"step function is a {type(target).__name__}; {_CURE} as a plain function")
    name = _name(target)
    if target.__name__ == "<lambda>":
        raise StepDefinitionError(f"step function {name} is a lambda; {_CURE} as a named function")
    if target.__module__ == "__main__":
        raise StepDefinitionError(f"step function {name} is defined in the script that is run; {_CURE} and import it")
    if "<locals>" in target.__qualname__:
        raise StepDefinitionError(f"step function {name} is nested in another function; {_CURE}")
    if "." in target.__qualname__:
        raise StepDefinitionError(f"step function {name} is a method; {_CURE}")
    _require_bound(target, name)


def _require_bound(target: FunctionType, name: str) -> None:
    module = sys.modules.get(target.__module__)
    bound = underlying(getattr(module, target.__name__, None))
    if bound is not target:
        raise StepDefinitionError(
            f"step function {name} is not what {target.__name__!r} stands for in module {target.__module__!r}; "
            "give the function and the name it is bound to one name"
        )


def _name(target: object) -> str:
    return f"{getattr(target, '__module__', '?')}.{getattr(target, '__qualname__', type(target).__name__)}"
