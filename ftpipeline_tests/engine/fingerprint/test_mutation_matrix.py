"""Changes that alter what a step computes alter its fingerprint; changes that do not, do not (0 stale, 0 needless)."""

from pathlib import Path

import pytest

from ftpipeline_tests.engine.fingerprint.mutations import NEUTRAL, SEMANTIC, Mutation
from ftpipeline_tests.engine.fingerprint.projects import Project


def _before_and_after(mutation: Mutation, root: Path) -> tuple[dict[str, object], dict[str, object]]:
    project = Project(root)
    project.write(mutation.before)
    before = project.fingerprint()
    project.write(mutation.after)
    return before, project.fingerprint(env=mutation.env)


@pytest.mark.parametrize("mutation", SEMANTIC, ids=lambda mutation: mutation.name)
def test_what_changes_the_result_changes_the_fingerprint(mutation: Mutation, tmp_path: Path) -> None:
    before, after = _before_and_after(mutation, tmp_path)
    assert before["result"] != after["result"], "the row must change what the step computes"
    assert before["digest"] != after["digest"]


@pytest.mark.parametrize("mutation", NEUTRAL, ids=lambda mutation: mutation.name)
def test_what_leaves_the_result_leaves_the_fingerprint(mutation: Mutation, tmp_path: Path) -> None:
    before, after = _before_and_after(mutation, tmp_path)
    assert before["result"] == after["result"], "the row must leave what the step computes"
    assert before["digest"] == after["digest"]
