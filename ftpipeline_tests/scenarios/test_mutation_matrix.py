"""The mutation matrix through the engine: what can change a result executes again (0 stale), nothing else (0 needless).

Both calls of a row have processes of their own and share one home, so the second finds every cache of the first warm.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ftpipeline_tests.scenarios.mutation_engine import Engine
from ftpipeline_tests.scenarios.mutation_rows import CODE_EXECUTES, CODE_REUSES, EXECUTES, REUSES, Row


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    with Engine.start(tmp_path_factory.mktemp("empty")) as engine:
        yield engine


def _rows(rows: tuple[Row, ...], code: tuple[Row, ...]) -> list[Any]:
    slow = [pytest.param(row, marks=pytest.mark.slow, id=f"code: {row.name}") for row in code]
    return [*(pytest.param(row, id=row.name) for row in rows), *slow]


@pytest.mark.parametrize("row", _rows(EXECUTES, CODE_EXECUTES))
def test_what_can_change_the_result_executes_again(row: Row, engine: Engine, tmp_path: Path) -> None:
    before, after = engine.run(row, tmp_path)
    assert before["key"] != after["key"]
    assert (before["action"], after["action"]) == ("executed", "executed")


@pytest.mark.parametrize("row", _rows(REUSES, CODE_REUSES))
def test_what_cannot_change_the_result_is_reused(row: Row, engine: Engine, tmp_path: Path) -> None:
    before, after = engine.run(row, tmp_path)
    assert (before["action"], after["action"]) == ("executed", "reused")
    assert before["output"] == after["output"]
