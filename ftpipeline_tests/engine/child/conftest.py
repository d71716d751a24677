"""A host and a request's folders."""

from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ftpipeline.engine.child import Level, StepHost, StepOutcome, StepRequest, best_level

SAMPLES = "ftpipeline_tests.engine.child.sample_steps"

enforced = pytest.mark.skipif(
    best_level() is not Level.ENFORCED, reason="this kernel has no Landlock or seccomp notification; use Linux 5.13"
)


@pytest.fixture(scope="module")
def host() -> Iterator[StepHost]:
    """A host for the tests of one module."""
    with closing(StepHost()) as host:
        yield host


@pytest.fixture(params=[pytest.param(Level.ENFORCED, marks=enforced), Level.OBSERVED])
def level(request: pytest.FixtureRequest) -> Level:
    """Each level in turn."""
    chosen: Level = request.param
    return chosen


class Runs:
    """Runs sample steps in a folder of the test's own."""

    def __init__(self, host: StepHost, folder: Path) -> None:
        self.host = host
        self.out = folder / "work" / "out"
        self.out.mkdir(parents=True)
        self.heard: list[Mapping[str, Any]] = []

    def request(self, name: str, params: Mapping[str, Any] | None = None, **fields: Any) -> StepRequest:
        """Return a request for a sample step, or for `module:name`."""
        target = name if ":" in name else f"{SAMPLES}:{name}"
        return replace(StepRequest(target, {}, params or {}, self.out), **fields)

    def __call__(
        self, name: str, params: Mapping[str, Any] | None = None, level: Level = Level.ENFORCED, **fields: Any
    ) -> StepOutcome:
        """Run a step."""
        return self.host.run(self.request(name, params, **fields), level=level, hear=self.heard.append)


@pytest.fixture
def run(host: StepHost, tmp_path: Path) -> Runs:
    """Runs sample steps."""
    return Runs(host, tmp_path)


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """A file that no step declares."""
    path = tmp_path / "secret.txt"
    path.write_text("undeclared")
    return path
