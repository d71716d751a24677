"""A step function must be importable by its name."""

import functools
from collections.abc import Callable
from typing import Any

import pytest

from ftpipeline.engine.fingerprint import require_importable
from ftpipeline.errors import StepDefinitionError
from ftpipeline.records import step


def plain(inputs: Any, params: Any, out: Any) -> dict[str, Any]:
    return {}


@step("declared", code_version="1")
def declared(inputs: Any, params: Any, out: Any) -> dict[str, Any]:
    return {}


def _original() -> None: ...


rebound = _original
del _original


class Holder:
    def method(self) -> None: ...


def _nested() -> Callable[..., Any]:
    def inner() -> None: ...

    return inner


def _of_the_script() -> Callable[..., Any]:
    namespace: dict[str, Any] = {"__name__": "__main__"}
    exec("def run(): pass", namespace)
    found: Callable[..., Any] = namespace["run"]
    return found


@pytest.mark.parametrize("function", [plain, declared], ids=["function", "declared step"])
def test_a_function_at_the_top_level_of_a_module_is_accepted(function: Callable[..., Any]) -> None:
    require_importable(function)


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda: None, "is a lambda"),
        (_nested(), "is nested in another function"),
        (_of_the_script(), "is defined in the script that is run"),
        (functools.partial(plain, None), "is a functools.partial of .*plain"),
        (rebound, "is not what '_original' stands for"),
        (Holder.method, "is a method"),
        (Holder(), "is a Holder"),
    ],
    ids=["lambda", "nested", "main", "partial", "rebound", "method", "object"],
)
def test_what_has_no_name_of_its_own_is_refused(function: Callable[..., Any], words: str) -> None:
    with pytest.raises(StepDefinitionError, match=words):
        require_importable(function)
