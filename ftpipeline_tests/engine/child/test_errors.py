import traceback

import pytest

from ftpipeline.engine.child import Level
from ftpipeline.errors import LeakageError, StaleGenerationError, StepDefinitionError, StepFailedError, WorkerError
from ftpipeline_tests.engine.child import sample_steps
from ftpipeline_tests.engine.child.conftest import Runs


def test_an_error_of_the_tree_comes_back_as_itself(run: Runs, level: Level) -> None:
    with pytest.raises(LeakageError) as caught:
        run("raises_leakage", level=level)
    assert str(caught.value) == "3 eval rows are in the training rows; drop them"


def test_an_error_keeps_its_data(run: Runs) -> None:
    with pytest.raises(StaleGenerationError, match="read it again") as caught:
        run("raises_with_data")
    assert (caught.value.expected, caught.value.actual) == (4, 5)


def test_an_error_of_python_shows_the_line_that_raised_it(run: Runs, level: Level) -> None:
    with pytest.raises(KeyError) as caught:
        run("raises_key_error", level=level)
    text = "".join(traceback.format_exception(caught.value))
    assert "KeyError: 'missing_label'" in text
    assert 'return {"n": counts["missing_label"]}' in text
    assert f'File "{sample_steps.__file__}"' in text
    assert "a note of the step" in text


def test_an_unknown_error_is_named_with_its_cause(run: Runs, level: Level) -> None:
    with pytest.raises(StepFailedError, match=r"raised OwnError: rows are odd") as caught:
        run("raises_own_error", level=level)
    assert isinstance(caught.value.__cause__, ValueError)
    assert str(caught.value.__cause__) == "the cause"


def test_a_step_beyond_its_memory_raises_memory_error(run: Runs, level: Level) -> None:
    with pytest.raises(MemoryError):
        run("exhausts_memory", level=level, memory_bytes=300 << 20)


def test_a_crash_names_the_signal(run: Runs, level: Level) -> None:
    with pytest.raises(WorkerError, match="killed by SIGSEGV"):
        run("crashes", level=level)


def test_a_step_that_exits_is_not_taken_for_done(run: Runs, level: Level) -> None:
    with pytest.raises(WorkerError, match="exit code 7"):
        run("exits", level=level)


def test_a_step_that_returns_no_facts_is_refused(run: Runs) -> None:
    with pytest.raises(StepDefinitionError, match="returned NoneType"):
        run("returns_nothing")


@pytest.mark.parametrize("target", ["__main__:f", "os:path.<locals>.f", "os:not_there"])
def test_a_step_that_cannot_be_imported_by_name_is_refused(run: Runs, target: str) -> None:
    with pytest.raises(StepDefinitionError, match=target.replace(".", r"\.")):
        run(target)


def test_a_module_that_does_not_exist_is_an_import_error(run: Runs) -> None:
    with pytest.raises((ImportError, StepDefinitionError), match="no_such_module"):
        run("no_such_module:f")
