"""Laws of the code fingerprint that the mutation matrix does not state."""

import os
import shutil
from pathlib import Path

import pytest

from ftpipeline.engine.fingerprint import code_fingerprint
from ftpipeline.errors import StepDefinitionError
from ftpipeline_tests.engine.fingerprint.projects import Project, large_project

_STEP = """
from pathlib import Path
from pkg.lib import f
HERE = [str(Path(__file__).parent)]
HERE.append(str(Path(__file__)))
WHERE = Path.cwd().joinpath(*HERE)
def run(): return f(WHERE.name)
"""
_FILES = {"pkg/step.py": _STEP, "pkg/lib.py": "def f(x): return len(x)\n", "pkg/far.py": "def g(): return 1\n"}
_WORKER = """
import argparse
import absent_heavy_library
from pkg.lib import f
def main(): return f("x")
if __name__ == "__main__":
    main()
"""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    made = Project(tmp_path / "first")
    made.write(_FILES)
    return made


def test_a_moved_checkout_keeps_its_fingerprint(project: Project, tmp_path: Path) -> None:
    before = project.fingerprint()
    moved = Project(Path(shutil.copytree(project.root, tmp_path / "other" / "place")))
    after = moved.fingerprint()
    assert before["digest"] == after["digest"]
    assert before["modules"] != after["modules"]


def test_file_times_do_not_count(project: Project) -> None:
    before = project.fingerprint()
    for path in project.root.rglob("*.py"):
        path.touch()
    assert project.fingerprint()["digest"] == before["digest"]


def test_only_what_is_reached_is_listed(project: Project) -> None:
    found = project.fingerprint()
    assert found["module_names"] == ["pkg", "pkg.lib", "pkg.step"]
    assert {"pkg.step:run", "pkg.step:WHERE", "pkg.lib:f"} <= set(found["members"])
    assert found["escalations"] == []


def test_what_other_code_has_loaded_does_not_count(project: Project) -> None:
    project.write({"pkg/lazy.py": "def make(): return object()\nV = make()\n"})
    project.write({"pkg/step.py": "def run():\n    from pkg.lazy import V\n    return 1\n"})
    alone = project.fingerprint(["pkg.step:run", "pkg.lib:f"])
    project.write({"sitecustomize.py": "import pkg.lazy\n"})
    assert project.fingerprint(["pkg.step:run", "pkg.lib:f"])["digest"] == alone["digest"]


def test_the_order_of_roots_does_not_count(project: Project) -> None:
    forward = project.fingerprint(["pkg.step:run", "pkg.far:g"])
    backward = project.fingerprint(["pkg.far:g", "pkg.step:run"])
    assert forward["digest"] == backward["digest"]


def test_a_worker_module_is_read_without_being_imported(project: Project) -> None:
    project.write({"pkg/worker.py": _WORKER})
    before = project.fingerprint(["pkg.worker"], call=False)
    assert "pkg.worker" not in before["loaded"]
    assert "pkg.lib:f" in before["members"]
    project.write({"pkg/lib.py": "def f(x): return 2\n"})
    assert project.fingerprint(["pkg.worker"], call=False)["digest"] != before["digest"]


def test_every_method_of_a_class_counts(project: Project) -> None:
    source = "from pkg.lib import f\nclass Port:\n    def one(self): return f('x')\n    def two(self): return 2\n"
    project.write({"pkg/port.py": source})
    before = project.fingerprint(["pkg.port:Port"])
    assert "pkg.lib:f" in before["members"]
    project.write({"pkg/port.py": source.replace("return 2", "return 3")})
    assert project.fingerprint(["pkg.port:Port"])["digest"] != before["digest"]


def test_distributions_are_named_when_they_are_imported_lazily_too(project: Project) -> None:
    project.write({"pkg/step.py": "import yaml\ndef run():\n    import numpy.linalg\n"})
    found = project.fingerprint(call=False)
    assert found["distributions"] == ["numpy", "pyyaml"]
    assert "numpy" not in found["loaded"]


def test_an_escalation_is_said_in_words(project: Project) -> None:
    project.write({"pkg/step.py": "def run(): return eval('1')\n"})
    found = project.fingerprint()
    assert found["escalations"] == ["project: pkg.step:run evaluates text"]
    assert "pkg.far" in found["module_names"]


_EAGER = "from pkg.lib import f\ndef run(): return f()\n"
_LAZY = "def run():\n    from pkg.lib import f\n    return f()\n"


@pytest.mark.parametrize("step", [_EAGER, _LAZY], ids=["eager", "lazy"])
def test_dynamic_code_widens_to_every_package_that_is_reached(project: Project, step: str) -> None:
    project.write({"pkg/lib.py": "def f(): return eval('g()')\ndef g(): return 1\n", "work.py": step})
    before = project.fingerprint(["work:run"])
    assert "pkg.far" in before["module_names"]
    project.write({"pkg/lib.py": "def f(): return eval('g()')\ndef g(): return 2\n"})
    assert project.fingerprint(["work:run"])["digest"] != before["digest"]


def test_dynamic_code_of_a_project_does_not_widen_to_this_package(project: Project) -> None:
    project.write({"pkg/step.py": "from ftpipeline.records import step\ndef run(): return eval('1')\n"})
    assert "ftpipeline.pipeline" not in project.fingerprint()["module_names"]


def test_a_value_without_a_canonical_form_escalates_to_its_module(project: Project) -> None:
    source = "def make(): return (n for n in range(3))\nV = make()\ndef run(): return bool(V)\ndef other(): return 1\n"
    project.write({"pkg/step.py": source})
    before = project.fingerprint()
    assert any("generator" in words for words in before["escalations"])
    project.write({"pkg/step.py": source.replace("other(): return 1", "other(): return 2")})
    assert project.fingerprint()["digest"] != before["digest"]


def test_attributes_named_eval_do_not_escalate(project: Project) -> None:
    project.write({"pkg/step.py": "class Frame:\n    def eval(self): return 1\ndef run(): return Frame().eval()\n"})
    assert project.fingerprint()["escalations"] == []


def test_set_environment_variables_that_are_read_at_import_are_named(project: Project) -> None:
    read = "os.environ.get"
    project.write({"pkg/step.py": f"import os\nN = {read}('LIMIT')\ndef run(): return N, {read}('TOKEN')\n"})
    found = project.fingerprint(env={"LIMIT": "1", "TOKEN": "secret"})
    assert found["environment"] == ["LIMIT"]


def test_an_edit_is_noticed_within_a_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = Project(tmp_path)
    project.write({"edited/worker.py": "def f(): return 1\n"})
    monkeypatch.syspath_prepend(str(tmp_path))
    before = code_fingerprint(["edited.worker"])
    assert code_fingerprint(["edited.worker"]) == before
    project.write({"edited/worker.py": "def f(): return 2\n"})
    assert code_fingerprint(["edited.worker"]).digest != before.digest


def test_an_edit_with_its_old_time_is_noticed_within_a_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project, file = Project(tmp_path), tmp_path / "restored" / "worker.py"
    project.write({"restored/worker.py": "def f(): return 1\n"})
    monkeypatch.syspath_prepend(str(tmp_path))
    before, times = code_fingerprint(["restored.worker"]), file.stat()
    file.write_text("def f(): return 2\n")
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert code_fingerprint(["restored.worker"]).digest != before.digest


def test_project_roots_leave_out_what_is_installed_inside_them(project: Project) -> None:
    vendored = project.root / "env" / "site-packages"
    Project(vendored).write({"vendored.py": "def g(): return 1\n"})
    project.write({"pkg/step.py": "import vendored\ndef run(): return vendored.g()\n"})
    found = project.fingerprint(also=[vendored])
    assert "vendored" not in found["module_names"]


def test_a_root_without_source_is_refused() -> None:
    with pytest.raises(StepDefinitionError, match="no source file of module 'nowhere"):
        code_fingerprint(["nowhere.worker"])


def test_a_large_project_is_followed_to_its_end(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.write(large_project(60))
    found = project.fingerprint()
    assert len(found["module_names"]) == 60 + 7  # the step, its package, and five folders
    assert found["escalations"] == []
