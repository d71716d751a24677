"""Changes that alter what a step computes alter its fingerprint; changes that do not, do not (0 stale, 0 needless).

With a cache, the process before the change leaves behind a fingerprint that the process after it must not trust.
"""

from pathlib import Path

import pytest

from ftpipeline_tests.engine.fingerprint.mutations import NEUTRAL, SEMANTIC, Mutation
from ftpipeline_tests.engine.fingerprint.projects import Project

_CACHES = [pytest.param("cache", id="warm"), pytest.param(None, id="cold", marks=pytest.mark.slow)]


def _before_and_after(mutation: Mutation, root: Path, cache: str | None) -> tuple[dict[str, object], dict[str, object]]:
    project, folder = Project(root / "project"), root / cache if cache else None
    project.write(mutation.before)
    before = project.fingerprint(cache=folder)
    project.write(mutation.after)
    return before, project.fingerprint(cache=folder, env=mutation.env)


@pytest.mark.parametrize("cache", _CACHES)
@pytest.mark.parametrize("mutation", SEMANTIC, ids=lambda mutation: mutation.name)
def test_what_changes_the_result_changes_the_fingerprint(mutation: Mutation, cache: str | None, tmp_path: Path) -> None:
    before, after = _before_and_after(mutation, tmp_path, cache)
    assert before["result"] != after["result"], "the row must change what the step computes"
    assert before["digest"] != after["digest"]


@pytest.mark.parametrize("cache", _CACHES)
@pytest.mark.parametrize("mutation", NEUTRAL, ids=lambda mutation: mutation.name)
def test_what_leaves_the_result_leaves_the_fingerprint(mutation: Mutation, cache: str | None, tmp_path: Path) -> None:
    before, after = _before_and_after(mutation, tmp_path, cache)
    assert before["result"] == after["result"], "the row must leave what the step computes"
    assert before["digest"] == after["digest"]
