"""Laws of fingerprints that are kept between processes: a hit computes nothing, and nothing that counts is missed."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ftpipeline.engine.fingerprint.shelf import Shelf
from ftpipeline.errors import StoreError
from ftpipeline_tests.engine.fingerprint.projects import Project

_FILES = {
    "pkg/step.py": "import os\nfrom pkg.lib import f\nN = os.getenv('LIMIT')\ndef run(): return f(), N\n",
    "pkg/lib.py": "TABLE = dict(a=1)\ndef f(): return 1\n",
}


@pytest.fixture
def project(tmp_path: Path) -> Project:
    made = Project(tmp_path / "first")
    made.write(_FILES)
    return made


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def _entries(cache: Path, kind: str = "*") -> dict[str, int]:
    """The files of the cache; one that is written again is another inode."""
    return {path.name: path.stat().st_ino for path in cache.glob(f"*/{kind}/*")}


def _digest(project: Project, cache: Path | None = None, env: Mapping[str, str] | None = None) -> str:
    return str(project.fingerprint(cache=cache, env=env)["digest"])


def test_a_hit_computes_nothing_and_gives_every_field(project: Project, cache: Path) -> None:
    cold = project.fingerprint(cache=cache)
    written = _entries(cache)
    warm = project.fingerprint(cache=cache)
    assert _entries(cache) == written
    assert warm == cold
    assert cold["digest"] == _digest(project)


def test_compiled_files_and_times_do_not_prevent_a_hit(project: Project, cache: Path) -> None:
    project.fingerprint(cache=cache)
    written = _entries(cache)
    compiled = project.root / "pkg" / "__pycache__" / "lib.pyc"
    compiled.parent.mkdir()
    compiled.touch()
    for path in project.root.rglob("*.py"):
        os.utime(path, (0, 0))
    project.fingerprint(cache=cache)
    assert _entries(cache) == written


def test_bytes_count_whatever_size_and_times_say(project: Project, cache: Path, tmp_path: Path) -> None:
    file, other = project.root / "pkg" / "lib.py", tmp_path / "other.py"
    other.write_text(file.read_text().replace("return 1", "return 2"))
    os.utime(file, ns=(10**18, 10**18))
    os.utime(other, ns=(10**18, 10**18))
    before = _digest(project, cache)
    shutil.copy2(other, file)
    assert file.stat().st_mtime_ns == 10**18
    assert _digest(project, cache) != before


def test_a_change_and_its_reversal_give_the_first_fingerprint(project: Project, cache: Path) -> None:
    first = _digest(project, cache)
    project.write({"pkg/lib.py": _FILES["pkg/lib.py"].replace("return 1", "return 2")})
    assert _digest(project, cache) != first
    project.write(_FILES)
    assert _digest(project, cache) == first


def test_a_variable_that_is_set_later_is_noticed(project: Project, cache: Path) -> None:
    before = _digest(project, cache)
    assert _digest(project, cache, env={"LIMIT": "2"}) not in {before, _digest(project, cache, env={"LIMIT": "3"})}


def test_values_that_another_process_changes_are_noticed(project: Project, cache: Path) -> None:
    project.write({"pkg/step.py": "from pkg.lib import f, make\nV = make()\ndef run(): return f(), V\n"})
    project.write({"pkg/lib.py": "import os\ndef f(): return 1\ndef make(): return os.environ.get('Z' * 3)\n"})
    before = _digest(project, cache, env={"ZZZ": "1"})
    assert _digest(project, cache, env={"ZZZ": "2"}) != before


def test_code_that_another_process_replaces_is_noticed(project: Project, cache: Path) -> None:
    before = _digest(project, cache)
    project.write({"sitecustomize.py": "import pkg.lib\npkg.lib.f = len\n"})
    assert project.fingerprint(cache=cache, call=False)["digest"] != before


def test_a_moved_checkout_finds_its_facts_and_the_same_fingerprint(
    project: Project, cache: Path, tmp_path: Path
) -> None:
    before = _digest(project, cache)
    facts = _entries(cache, "facts")
    moved = Project(Path(shutil.copytree(project.root, tmp_path / "other" / "place")))
    assert _digest(moved, cache) == before
    assert _entries(cache, "facts") == facts


def test_a_package_that_is_found_elsewhere_is_noticed(project: Project, cache: Path, tmp_path: Path) -> None:
    nearer = Project(tmp_path / "nearer")
    nearer.root.mkdir()
    before = str(nearer.fingerprint(cache=cache, also=[project.root])["digest"])
    nearer.write({**_FILES, "pkg/lib.py": "def f(): return 2\n"})
    assert nearer.fingerprint(cache=cache, also=[project.root])["digest"] != before


_SPOILED: dict[str, Callable[[bytes], bytes]] = {
    "truncated": lambda content: content[:-5],
    "empty": lambda content: b"",
    "altered": lambda content: content.replace(b"sha256:", b"sha256:0", 1),
}


@pytest.mark.parametrize("damage", _SPOILED)
def test_an_entry_that_is_not_whole_is_made_again(project: Project, cache: Path, damage: str) -> None:
    cold = _digest(project, cache)
    kept = {path: path.read_bytes() for path in cache.glob("*/*/*.json")}
    for path, content in kept.items():
        path.write_bytes(_SPOILED[damage](content))
    assert _digest(project, cache) == cold
    assert {path: path.read_bytes() for path in kept} == kept


def test_processes_that_write_at_once_leave_whole_entries(project: Project, cache: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        digests = set(pool.map(lambda _: _digest(project, cache), range(4)))
    assert digests == {_digest(project)}
    written = _entries(cache)
    assert all(name.endswith(".json") for name in written)
    assert _digest(project, cache) in digests
    assert _entries(cache) == written


def test_an_entry_answers_only_the_question_it_is_kept_under(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path, "kind")
    shelf.save("one", [1])
    (entry,) = tmp_path.glob("*/kind/one.json")
    entry.rename(entry.with_name("two.json"))
    assert shelf.load("two") is None


def test_the_cache_is_bounded_and_loses_its_oldest_entries(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path, "kind")
    for number in range(300):
        shelf.save(str(number), number)
        (entry,) = tmp_path.glob(f"*/kind/{number}.json")
        os.utime(entry, (number, number))
    shelf.prune()
    left = {path.stem for path in tmp_path.glob("*/kind/*.json")}
    assert left == {str(number) for number in range(108, 300)}


def test_a_cache_that_cannot_be_written_is_said_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match=r"^cache folder .* cannot be written .*; free space or permit it$"):
        Shelf(tmp_path / "file", "kind").save("one", 1)


def test_nothing_is_imported_for_a_worker_that_is_only_named(project: Project, cache: Path) -> None:
    project.write({"pkg/worker.py": "import absent_library\nfrom pkg.lib import f\n"})
    project.fingerprint(["pkg.worker"], call=False, cache=cache)
    warm = project.fingerprint(["pkg.worker"], call=False, cache=cache)
    assert "pkg.worker" not in warm["loaded"]


def test_loaded_code_is_compared_with_its_source_without_compiling_it_twice(project: Project, cache: Path) -> None:
    program = (
        "import builtins, sys, pkg.step\n"
        "from pathlib import Path\n"
        "from ftpipeline.engine.fingerprint import require_loaded_equals_source\n"
        "compiled = []\n"
        "sys.addaudithook(lambda event, args: compiled.append(args[1]) if event == 'compile' else None)\n"
        f"require_loaded_equals_source(['pkg.step', 'pkg.lib'], cache=Path({str(cache)!r}))\n"
        "print(len([name for name in compiled if 'pkg' in str(name)]))\n"
    )
    path = os.pathsep.join([str(project.root), *filter(None, sys.path)])
    command, env = [sys.executable, "-c", program], {**os.environ, "PYTHONPATH": path}
    counts = [subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout for _ in range(2)]
    assert counts == ["2\n", "0\n"]
