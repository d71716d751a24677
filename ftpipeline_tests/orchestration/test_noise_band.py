"""The noise band in Dagster: one run a seed, the band of them all, and what gate and guard take from it."""

from collections.abc import Iterator

import dagster as dg
import pytest

from ftpipeline.cycle.detector_states import DetectorStates
from ftpipeline.cycle.floors import family_of, find_band
from ftpipeline.digest import parse_json
from ftpipeline.manifest import parse as parse_manifest
from ftpipeline.orchestration.assets import dimensions
from ftpipeline.orchestration.noise_band import SEEDS, TRAINING_POOL, seed_key, seeds
from ftpipeline.steps.manifest import FILE
from ftpipeline_tests.orchestration.location import DATA_STAGES, LEARNING, Location, tiny_location
from ftpipeline_tests.tiny_pipeline import WEEK

SHORT = {**LEARNING, "max_steps": 12, "evaluation_steps": 4, "warmup_steps": 1}


@pytest.fixture(scope="module")
def location(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Location]:
    """A pipeline whose data is made, and whose three seeds were each trained in a run of its own."""
    with tiny_location(tmp_path_factory.mktemp("band"), train=SHORT) as location:
        assert location.run(*DATA_STAGES).success
        yield location


def run(location: Location, job: str, partition: str) -> dg.ExecuteInProcessResult:
    definition = location.definitions.resolve_job_def(f"tiny_{job}_job")
    return definition.execute_in_process(instance=location.instance, partition_key=partition, raise_on_error=False)


@pytest.fixture(scope="module")
def band(location: Location) -> dg.ExecuteInProcessResult:
    """The run of the band, after a run of each seed."""
    for key in keys_of(location):
        assert run(location, "seeds", key).success
    return run(location, "noise_band", WEEK)


def keys_of(location: Location) -> list[str]:
    """Return the partitions of the week's seeds, as a backfill of them has."""
    graph = location.definitions.resolve_asset_graph()
    partitions = graph.get(seed_key(location.pipeline)).partitions_def
    assert partitions is not None
    keys = partitions.get_partition_keys(dynamic_partitions_store=location.instance)
    return [key for key in keys if dimensions(key)["week"] == WEEK]


def test_a_week_has_a_partition_a_seed_in_the_pool_of_trainings(location: Location) -> None:
    assert seeds(location.pipeline) == (1, 2, 3)
    assert sorted(dimensions(key)["seed"] for key in keys_of(location)) == ["1", "2", "3"]
    graph = location.definitions.resolve_asset_graph()
    assert graph.get(seed_key(location.pipeline)).pools == {TRAINING_POOL}


@pytest.mark.slow
def test_the_runs_of_seeds_leave_nothing_for_the_band_but_to_read_them(
    band: dg.ExecuteInProcessResult, location: Location
) -> None:
    results = location.store.results
    trained = results.of_step("train")
    assert len({record.output for record in trained}) == len({record.run_id for record in trained}) == SEEDS
    for step in ("train", "export", "evaluate"):
        assert band.run_id not in {record.run_id for record in results.of_step(step)}
    assert [record.run_id for record in results.of_step("noise_band")] == [band.run_id]


@pytest.mark.slow
def test_the_band_is_shown_with_scores_and_curves(band: dg.ExecuteInProcessResult, location: Location) -> None:
    (event,) = band.get_asset_materialization_events()
    shown = event.materialization.metadata
    assert shown["seeds"].value == "1, 2, 3"
    assert str(shown["loss"].value).startswith("![")
    scores = shown["scores"]
    assert isinstance(scores, dg.TableMetadataValue)
    assert [record.data["role"] for record in scores.records] == ["task", "regression", "safety"]


@pytest.mark.slow
def test_the_whole_family_is_gated_and_guarded_by_the_band(band: dg.ExecuteInProcessResult, location: Location) -> None:
    (record,) = location.store.results.of_step("noise_band")
    manifest = location.store.pointers.latest("tiny/manifest", WEEK)
    assert manifest is not None
    document = parse_json(location.store.trees.read(manifest.digest, FILE))
    family = family_of(parse_manifest(document, "the week's manifest"))
    measured = find_band(location.store, family)
    assert measured is not None
    assert measured.tree == record.output
    assert {len(scores) for scores in measured.seed_scores.values()} == {SEEDS}
    assert find_band(location.store, record.output) is None
    envelope = DetectorStates(location.store.database).envelope(family)
    curves = measured.document["kl"]
    assert curves["steps"] == [4, 8, 12]
    assert envelope is not None
    assert list(envelope.steps) == curves["steps"]
    assert envelope.upper[0] == 1.5 * max(curve[0] for curve in curves["seeds"])
