import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from ftpipeline.engine.child import Level
from ftpipeline.errors import StepDefinitionError
from ftpipeline_tests.engine.child import sample_steps
from ftpipeline_tests.engine.child.conftest import Runs, enforced

_HERE = sample_steps.__file__


@pytest.mark.parametrize("step", ["reads_by_python", "reads_and_swallows", "reads_in_a_thread", "lists_folder"])
def test_an_undeclared_read_by_python_fails_the_step(run: Runs, level: Level, secret: Path, step: str) -> None:
    path = secret.parent if step == "lists_folder" else secret
    with pytest.raises(StepDefinitionError, match=r"reads .* undeclared; declare it in reads=") as caught:
        run(step, {"path": str(path)}, level)
    assert f"reads {path} at {_HERE}:" in str(caught.value)


@enforced
@pytest.mark.parametrize("library", ["pyarrow", "duckdb", "safetensors"])
def test_an_undeclared_read_by_a_native_library_fails_the_step(run: Runs, secret: Path, library: str) -> None:
    path = secret.rename(secret.with_suffix(".csv"))
    with pytest.raises(StepDefinitionError) as caught:
        run(f"reads_by_{library}", {"path": str(path)})
    assert f"reads {path}" in str(caught.value)
    assert _HERE in str(caught.value)


@enforced
def test_an_undeclared_read_by_another_program_names_the_program(run: Runs, secret: Path) -> None:
    with pytest.raises(StepDefinitionError, match=r"at the program cat"):
        run("reads_by_program", {"path": str(secret)})


@enforced
def test_a_long_relative_path_is_read_whole(run: Runs, secret: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/")
    with pytest.raises(StepDefinitionError) as caught:
        run("reads_relative_path_across_pages", {"path": str(secret)})
    assert f"reads {secret} at" in str(caught.value)


@pytest.mark.parametrize("as_folder", [True, False])
def test_a_declared_read_is_granted_and_noted(run: Runs, level: Level, secret: Path, as_folder: bool) -> None:
    outcome = run("reads_by_python", {"path": str(secret)}, level, reads=(secret.parent if as_folder else secret,))
    assert outcome.facts == {"text": "undeclared"}
    assert str(secret) in outcome.opens


@enforced
def test_another_program_may_read_what_is_declared(run: Runs, secret: Path) -> None:
    assert run("reads_by_program", {"path": str(secret)}, reads=(secret,)).facts == {"text": "undeclared"}


def test_a_file_that_is_absent_is_no_undeclared_read(run: Runs, level: Level, tmp_path: Path) -> None:
    assert run("reads_and_swallows", {"path": str(tmp_path / "absent")}, level).facts == {}


def test_a_link_in_an_input_does_not_lead_out_of_it(run: Runs, level: Level, secret: Path, tmp_path: Path) -> None:
    folder = tmp_path / "input"
    folder.mkdir()
    (folder / "link").symlink_to(secret)
    with pytest.raises(StepDefinitionError, match="secret"):
        run("reads_by_python", {"path": str(folder / "link")}, level, inputs={"table": folder})


def test_an_undeclared_variable_fails_the_step(run: Runs, level: Level, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_SETTING", "7")
    with pytest.raises(StepDefinitionError, match=r"SECRET_SETTING at .*sample_steps.py:\d+ in reads_variable.*env="):
        run("reads_variable", {"name": "SECRET_SETTING"}, level)


def test_a_declared_variable_is_given(run: Runs, level: Level) -> None:
    outcome = run("reads_variable", {"name": "SETTING"}, level, env={"SETTING": "7"})
    assert outcome.facts == {"value": "7"}


def test_a_variable_that_the_caller_lacks_is_just_absent(run: Runs, level: Level) -> None:
    assert run("reads_variable", {"name": "SURELY_NOT_SET"}, level).facts == {"value": "absent"}


def test_what_a_user_keeps_at_home_is_not_found(run: Runs, secret: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(secret.parent))
    assert run("reads_variable", {"name": "HOME"}).facts != {"value": str(secret.parent)}


def test_the_zone_of_the_machine_does_not_reach_a_step(run: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    assert run("reads_variable", {"name": "TZ"}).facts == {"value": "UTC"}


def test_writing_to_an_input_is_denied(run: Runs, level: Level, tmp_path: Path) -> None:
    table = tmp_path / "t.parquet"
    table.write_bytes(b"as it was")
    with pytest.raises(PermissionError) as caught:
        run("writes_to_input", level=level, inputs={"table": tmp_path})
    assert "only under its `out`" in "".join(caught.value.__notes__)
    assert table.read_bytes() == b"as it was"


@pytest.fixture
def server() -> Iterator[int]:
    """The port of a server that says hello once."""

    def greet() -> None:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        with connection:
            connection.sendall(b"hello")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=greet)
        thread.start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()


def test_a_connection_fails_the_step(run: Runs, level: Level, server: int) -> None:
    with pytest.raises(StepDefinitionError, match=rf"connects to 127.0.0.1:{server} at {_HERE}.*kind source"):
        run("connects", {"port": server}, level)


@enforced
def test_what_was_left_in_shared_memory_is_undeclared(run: Runs) -> None:
    left = Path(f"/dev/shm/ftpipeline-test-{os.getpid()}")
    left.write_text("left behind")
    os.utime(left, (1, 1))
    try:
        with pytest.raises(StepDefinitionError, match=str(left)):
            run("reads_and_swallows", {"path": str(left)})
    finally:
        left.unlink()


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project of three modules, of which a step imports one at the top and one while it runs."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "lazy_steps.py").write_text(
        "import helper_module\n"
        "def lazy(inputs, params, out):\n"
        "    import outside_module\n"
        "    return {'value': outside_module.VALUE + helper_module.VALUE}\n"
    )
    (folder / "helper_module.py").write_text("VALUE = 1\n")
    (folder / "outside_module.py").write_text("VALUE = 2\n")
    monkeypatch.syspath_prepend(folder)
    return folder


def test_a_module_outside_the_fingerprint_fails_the_step(run: Runs, level: Level, project: Path) -> None:
    modules = (project / "lazy_steps.py", project / "helper_module.py")
    with pytest.raises(StepDefinitionError) as caught:
        run("lazy_steps:lazy", level=level, modules=modules)
    assert f"imports {project / 'outside_module.py'}, which its code fingerprint does not cover" in str(caught.value)
    assert f"at {project / 'lazy_steps.py'}:3 in lazy" in str(caught.value)


def test_the_modules_of_the_fingerprint_suffice(run: Runs, level: Level, project: Path) -> None:
    outcome = run("lazy_steps:lazy", level=level, modules=tuple(project.glob("*.py")))
    assert outcome.facts == {"value": 3}
    assert set(outcome.opens) == {str(path) for path in project.glob("*.py")}


def test_a_step_may_print_a_traceback(
    run: Runs, level: Level, project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (project / "printing_steps.py").write_text(
        "import logging, traceback\n"
        "def printing(inputs, params, out):\n"
        "    try:\n"
        "        return 1 / 0\n"
        "    except ZeroDivisionError:\n"
        "        traceback.print_stack()\n"
        "        logging.exception('caught')\n"
        "    return {}\n"
    )
    run("printing_steps:printing", level=level, modules=(project / "printing_steps.py",))
    assert "stepside.py" in capfd.readouterr().err
    assert "ZeroDivisionError" in run.heard[0]["log"][1]


def test_modules_of_another_root_are_found(
    run: Runs, level: Level, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = (project / "outside_module.py").rename(tmp_path / "outside_module.py")
    monkeypatch.syspath_prepend(tmp_path)
    outcome = run("lazy_steps:lazy", level=level, modules=(*project.glob("*.py"), other))
    assert outcome.facts == {"value": 3}


def test_without_named_modules_the_whole_project_is_granted(run: Runs, level: Level, project: Path) -> None:
    assert run("lazy_steps:lazy", level=level).facts == {"value": 3}
    assert not (project / "__pycache__").exists()
