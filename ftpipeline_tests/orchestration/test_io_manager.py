"""What passes between assets: which run holds which artifact (contract C6)."""

from pathlib import Path

from ftpipeline.records import StepResult
from ftpipeline_tests.orchestration.location import DATA_STAGES, Location, Result, failure
from ftpipeline_tests.tiny_pipeline import NEXT_WEEK, WEEK


def test_what_another_run_writes_in_between_does_not_change_what_a_run_consumes(location: Location) -> None:
    """Run B materialises the base model anew after run A's base model and before run A's manifest."""
    others: list[Result] = []

    def interrupt(stage: str, result: StepResult) -> None:
        if stage == "split" and not others:
            location.change_base_model()
            others.append(location.run("base_model"))

    location.workbench.on_stage = interrupt
    run = location.run(*DATA_STAGES)
    (other,) = others
    assert run.success
    assert other.success
    assert location.digest(run, "base_model") != location.digest(other, "base_model")
    assert location.base_of_manifest(run) == location.digest(run, "base_model")


def test_a_reexecution_consumes_what_its_parent_wrote(location: Location) -> None:
    parent = location.run(*DATA_STAGES)
    location.change_base_model()
    newer = location.run("base_model")
    again = location.rerun(parent, "manifest")
    assert again.success
    assert (
        location.base_of_manifest(again)
        == location.digest(parent, "base_model")
        != location.digest(newer, "base_model")
    )


def test_a_reexecution_of_a_reexecution_goes_back_to_the_first_parent(location: Location) -> None:
    first = location.run(*DATA_STAGES)
    location.change_base_model()
    location.run("base_model")
    again = location.rerun(location.rerun(first, "split"), "manifest")
    assert location.base_of_manifest(again) == location.digest(first, "base_model")


def test_a_run_of_a_downstream_asset_alone_takes_the_latest_committed_and_says_so(location: Location) -> None:
    location.run(*DATA_STAGES)
    location.change_base_model()
    newer = location.run("base_model")
    alone = location.run("manifest")
    latest = location.digest(newer, "base_model")
    assert location.base_of_manifest(alone) == latest
    line = f"base_model/tiny-bert: taking the latest committed {latest}, written by run {newer.run_id}"
    assert any(line in record for record in location.log(alone))


def test_an_input_that_was_never_materialised_is_one_line_that_says_what_to_do(location: Location) -> None:
    result = location.run("curate")
    data = failure(result).step_failure_data
    assert not result.success
    assert data.user_failure_data is not None
    assert data.user_failure_data.description == (
        f"asset tiny/snapshot was never materialised for {WEEK}; materialise it first"
    )


def test_a_week_never_takes_the_artifact_of_another_week(location: Location) -> None:
    assert location.run("snapshot", week=WEEK).success
    assert not location.run("curate", week=NEXT_WEEK).success


def test_a_partition_key_is_no_file_name(location: Location, tmp_path: Path) -> None:
    assert location.run(*DATA_STAGES).success
    names = [path.name for path in tmp_path.rglob("*")]
    assert len(names) > 20
    assert not [name for name in names if WEEK in name]
