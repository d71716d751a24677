"""The shape of the package: arrows, sizes, documentation, and what an import costs."""

import ast
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import grimp
import pytest

import ftpipeline

ROOT = Path(__file__).parent.parent
PACKAGE = Path(ftpipeline.__file__).parent
OPTIONAL = {"llama_cpp": "llama-cpp-python"}
"""Modules that may be absent, and whose distribution has another name."""
SOURCES = sorted(PACKAGE.rglob("*.py"))
MODULE_LINES = 400
FUNCTION_LINES = 60
UPPER_FLOORS = {"__main__", "cli", "components", "definitions", "orchestration", "serving"}

Function = ast.FunctionDef | ast.AsyncFunctionDef


def _name(source: Path) -> str:
    return ".".join(source.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")


def _loaded_after(statement: str, home: Path) -> set[str]:
    """Return the top-level packages that a fresh interpreter holds after `statement`."""
    script = f"{statement}\nimport sys\nprint(*sorted({{name.partition('.')[0] for name in sys.modules}}))"
    environment = os.environ | {"FTPIPELINE_HOME": str(home), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, cwd=home, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.splitlines()[-1].split())


def _definitions(tree: ast.Module) -> Iterator[tuple[str, ast.ClassDef | Function]]:
    """Yield the public functions and classes of a module, and the public methods of those classes."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef | Function) and not node.name.startswith("_"):
            yield node.name, node
            if isinstance(node, ast.ClassDef):
                methods = (item for item in node.body if isinstance(item, Function))
                yield from ((f"{node.name}.{item.name}", item) for item in methods if not item.name.startswith("_"))


def _is_documented(node: ast.ClassDef | Function) -> bool:
    """Tell whether a definition has a docstring, or says by its decorator that another one documents it."""
    marks = {mark.id for mark in node.decorator_list if isinstance(mark, ast.Name)}
    return bool(ast.get_docstring(node)) or bool(marks & {"overload", "override"})


def _requirement_names() -> set[str]:
    """Return the normalised names of every distribution that pyproject.toml declares for running the package."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    declared = [*project["dependencies"], *(line for name in extras if name != "dev" for line in extras[name])]
    return {_normalised(re.split(r"[\[<>=!~; ]", line, maxsplit=1)[0]) for line in declared}


def _normalised(distribution: str) -> str:
    return re.sub(r"[-_.]+", "-", distribution).lower()


def test_there_are_modules_to_look_at() -> None:
    assert len(SOURCES) > 10


def test_every_arrow_points_down() -> None:
    lint = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache", "--no-logo"]
    done = subprocess.run(lint, capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_folder_of_modules_is_a_package() -> None:
    """The import contracts and the built wheel see packages only."""
    unseen = {source.parent for source in SOURCES if not (source.parent / "__init__.py").exists()}
    assert not unseen


@pytest.mark.parametrize("source", SOURCES, ids=_name)
def test_a_module_and_its_functions_are_short(source: Path) -> None:
    text = source.read_text()
    assert len(text.splitlines()) <= MODULE_LINES
    functions = (node for node in ast.walk(ast.parse(text)) if isinstance(node, Function))
    lengths = {node.name: (node.end_lineno or node.lineno) - node.lineno + 1 for node in functions}
    assert not {name: length for name, length in lengths.items() if length > FUNCTION_LINES}


@pytest.mark.parametrize("source", SOURCES, ids=_name)
def test_every_public_name_is_documented(source: Path) -> None:
    tree = ast.parse(source.read_text())
    if tree.body:
        assert ast.get_docstring(tree), "the module has no docstring"
    assert not [name for name, node in _definitions(tree) if not _is_documented(node)]


def test_every_imported_distribution_is_declared() -> None:
    graph = grimp.build_graph("ftpipeline", include_external_packages=True, cache_dir=None)
    imported = {name for name in graph.modules if graph.is_module_squashed(name)} - sys.stdlib_module_names
    providers = packages_distributions()
    needed = (provider for name in imported for provider in providers.get(name, [OPTIONAL.get(name, name)]))
    distributions = {_normalised(provider) for provider in needed}
    assert distributions
    assert not distributions - _requirement_names()


def test_importing_the_package_loads_nothing_heavy(tmp_path: Path) -> None:
    loaded = _loaded_after("import ftpipeline", tmp_path)
    assert not loaded & {"dagster", "torch", "pandas", "numpy", "duckdb", "pyarrow", "sqlalchemy"}


def test_loading_the_code_location_loads_no_data_or_training_library(tmp_path: Path) -> None:
    loaded = _loaded_after("import ftpipeline.definitions", tmp_path)
    assert "dagster" in loaded
    assert not loaded & {"torch", "transformers", "peft", "onnxruntime", "pandas", "duckdb", "pyarrow"}


def test_no_module_below_orchestration_loads_dagster(tmp_path: Path) -> None:
    """Seen from outside too: no library that these modules load may bring Dagster in behind their back."""
    modules = (source for source in SOURCES if source.relative_to(PACKAGE).with_suffix("").parts[0] not in UPPER_FLOORS)
    below = [_name(source) for source in modules if "migrations" not in source.parts]  # alembic alone can load those
    loaded = _loaded_after("\n".join(f"import {name}" for name in below), tmp_path)
    assert "ftpipeline" in loaded
    assert not loaded & {"dagster", "dagster_shared"}
