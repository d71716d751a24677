"""The code location as Dagster's own command lines see it, from the repository's root."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from ftpipeline.orchestration.run import prepare_dagster_home
from ftpipeline.pipeline import PIPELINES_VARIABLE
from ftpipeline.store.home import Home
from ftpipeline_tests.orchestration.location import ALL_STAGES, SHARED_STAGES
from ftpipeline_tests.orchestration.servers import PROGRAMS, ROOT
from ftpipeline_tests.tiny_pipeline import write_pipeline

pytestmark = pytest.mark.slow

COMPONENT = "ftpipeline.components.FineTunePipeline"
WEEKLY_STAGES = [stage for stage in ALL_STAGES if stage not in SHARED_STAGES]
BESIDE_THE_STAGES = ("noise_band", "promotion", "rejection", "rescored", "rollback", "seed_result")
"""Assets of every pipeline that are no stage of its week."""


def call(folder: Path, program: str, *arguments: str, pipelines: str = "") -> subprocess.CompletedProcess[str]:
    """Run one of Dagster's programs with a home in `folder`; without `pipelines` the packaged one counts."""
    home = Home(folder / "home")
    places = {"FTPIPELINE_HOME": str(home.root), "DAGSTER_HOME": str(prepare_dagster_home(home))}
    environment = os.environ | places | {PIPELINES_VARIABLE: pipelines}
    return subprocess.run(
        [PROGRAMS / program, *arguments], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )


def listed_assets(folder: Path, pipelines: str = "") -> dict[str, str]:
    """Return the assets that `dg list defs` finds, each with the place of its YAML, empty where there is none."""
    done = call(folder, "dg", "list", "defs", "--json", pipelines=pipelines)
    assert done.returncode == 0, done.stderr
    return {asset["asset_key"]: asset.get("source", "") for asset in json.loads(done.stdout)["assets"]}


def test_the_packaged_definitions_pass_the_check(tmp_path: Path) -> None:
    done = call(tmp_path, "dg", "check", "defs")
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_component_can_be_found_by_its_name(tmp_path: Path) -> None:
    done = call(tmp_path, "dg", "list", "components", "--json")
    assert done.returncode == 0, done.stderr
    assert COMPONENT in [component["key"] for component in json.loads(done.stdout)["items"]]


def test_the_assets_of_the_packaged_component_are_really_there(tmp_path: Path) -> None:
    assets = listed_assets(tmp_path)
    assert {f"ticket_router/{stage}" for stage in WEEKLY_STAGES} <= assets.keys()
    assert {f"ticket_router/{name}" for name in BESIDE_THE_STAGES} <= assets.keys()
    assert len(assets) == len(ALL_STAGES) + len(BESIDE_THE_STAGES) + 1
    assert "quarantine" in assets
    assert {source.partition(":")[0] for source in assets.values()} == {"ftpipeline/defs/ticket_router/defs.yaml"}


def test_pipelines_named_in_the_environment_replace_the_packaged_one(tmp_path: Path) -> None:
    files = [write_pipeline(tmp_path / f"{name}.yaml", name=name) for name in ("one", "two")]
    assets = listed_assets(tmp_path, os.pathsep.join(map(str, files)))
    assert {asset.partition("/")[0] for asset in assets} == {"one", "two", "base_model", "eval_set", "quarantine"}
    assert len(assets) == 2 * (len(ALL_STAGES) + len(BESIDE_THE_STAGES)) + 1


@pytest.mark.parametrize("target", [("-w", "workspace.yaml"), ("-m", "ftpipeline.definitions")], ids=" ".join)
def test_dagster_can_load_the_code_location(tmp_path: Path, target: tuple[str, str]) -> None:
    done = call(tmp_path, "dagster", "definitions", "validate", *target)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_pipeline_file_that_cannot_be_used_is_named_with_its_fault(tmp_path: Path) -> None:
    broken = write_pipeline(tmp_path / "broken.yaml", labels=[])
    done = call(tmp_path, "dagster", "definitions", "validate", "-w", "workspace.yaml", pipelines=str(broken))
    assert done.returncode != 0
    assert str(broken) in done.stdout + done.stderr
    assert "labels" in done.stdout + done.stderr
