"""What is installed, and what the machine adds, is part of the environment fingerprint."""

import base64
import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

import ftpipeline
from ftpipeline.engine.fingerprint import environment_fingerprint
from ftpipeline.errors import MissingDependencyError


class Installation:
    """Distributions installed in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def install(self, name: str, version: str = "1", *, code: str = "", requires: str = "", note: str = "") -> None:
        for old in self.folder.glob(f"{name}-*.dist-info"):
            for file in old.iterdir():
                file.unlink()
            old.rmdir()
        metadata = self.folder / f"{name}-{version}.dist-info"
        metadata.mkdir()
        needs = f"Requires-Dist: {requires}\n" if requires else ""
        description = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{needs}"
        (metadata / "METADATA").write_text(description)
        (metadata / "direct_url.json").write_text(note or "{}")
        files = {f"{name}.py": code, f"{metadata.name}/METADATA": description, f"../bin/{name}": note}
        files[f"{metadata.name}/direct_url.json"] = note
        (metadata / "RECORD").write_text("".join(f"{path},{_recorded(text)}\n" for path, text in files.items()))


def _recorded(text: str) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
    return f"sha256={digest},{len(text)}"


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Installation:
    monkeypatch.syspath_prepend(str(tmp_path))
    made = Installation(tmp_path)
    made.install("reached", requires="beneath>=1")
    made.install("beneath")
    made.install("apart")
    return made


def test_requirements_are_followed(installed: Installation) -> None:
    assert environment_fingerprint(["reached"]).distributions == {"beneath": "1", "reached": "1"}


@pytest.mark.parametrize("name", ["reached", "beneath"])
def test_an_upgrade_of_what_is_reached_counts(installed: Installation, name: str) -> None:
    before = environment_fingerprint(["reached"])
    installed.install(name, "2", requires="beneath>=1" if name == "reached" else "")
    assert environment_fingerprint(["reached"]).digest != before.digest


def test_a_rebuild_at_the_same_version_counts(installed: Installation) -> None:
    before = environment_fingerprint(["reached"])
    installed.install("beneath", code="changed")
    assert environment_fingerprint(["reached"]).digest != before.digest


def test_an_upgrade_of_what_is_not_reached_does_not_count(installed: Installation) -> None:
    before = environment_fingerprint(["reached"])
    installed.install("apart", "2")
    assert environment_fingerprint(["reached"]).digest == before.digest


def test_where_and_how_it_was_installed_does_not_count(installed: Installation) -> None:
    before = environment_fingerprint(["reached"])
    installed.install("beneath", note='{"url": "elsewhere"}')
    assert environment_fingerprint(["reached"]).digest == before.digest


def test_an_extra_counts_only_where_it_is_named(installed: Installation) -> None:
    installed.install("reached", requires='beneath; extra == "more"')
    assert environment_fingerprint(["reached"]).distributions == {"reached": "1"}
    assert environment_fingerprint(["reached[more]"]).distributions == {"beneath": "1", "reached": "1"}


def test_a_marker_that_does_not_hold_is_not_followed(installed: Installation) -> None:
    installed.install("reached", requires='beneath; python_version < "3"')
    assert environment_fingerprint(["reached"]).distributions == {"reached": "1"}


def test_an_editable_installation_is_left_to_the_code_fingerprint(installed: Installation) -> None:
    installed.install("reached", note='{"dir_info": {"editable": true}}')
    assert environment_fingerprint(["reached"]).distributions == {}


def test_a_named_distribution_that_is_missing_is_refused(installed: Installation) -> None:
    with pytest.raises(MissingDependencyError, match="'nowhere' is not installed"):
        environment_fingerprint(["nowhere"])


def test_a_requirement_that_is_missing_is_recorded_and_counts_once_it_is_there(installed: Installation) -> None:
    installed.install("reached", requires="later")
    before = environment_fingerprint(["reached"])
    assert before.distributions == {"later": "absent", "reached": "1"}
    installed.install("later")
    assert environment_fingerprint(["reached"]).digest != before.digest


def test_accelerator_python_and_threads_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    base = environment_fingerprint([]).digest
    assert environment_fingerprint([]).digest == base
    assert environment_fingerprint([], accelerator="cuda").digest != base
    assert environment_fingerprint([], python="CPython 3.99").digest != base
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    assert environment_fingerprint([]).digest != base


_PROGRAM = """
import sys
from pathlib import Path
from ftpipeline.engine.fingerprint import environment_fingerprint
print(environment_fingerprint(["reached"], cache=Path(sys.argv[1])).digest)
"""


def _in_a_process(installed: Installation, cache: Path) -> str:
    path = os.pathsep.join([str(installed.folder), str(Path(ftpipeline.__file__).parents[1])])
    command, env = [sys.executable, "-c", _PROGRAM, str(cache)], {**os.environ, "PYTHONPATH": path}
    return subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout


def test_what_is_kept_between_processes_is_used_until_an_installation_changes(
    installed: Installation, tmp_path_factory: pytest.TempPathFactory
) -> None:
    cache = tmp_path_factory.mktemp("cache")
    before = _in_a_process(installed, cache)
    (entry,) = cache.glob("*/distributions/*.json")
    written = entry.stat().st_ino
    assert (_in_a_process(installed, cache), entry.stat().st_ino) == (before, written)
    installed.install("beneath", code="rebuilt = True")
    assert _in_a_process(installed, cache) != before
