"""Two runs of one partition, forced into every overlap: what is recorded as an input is what was consumed."""

import itertools
import random
import threading
from contextlib import closing
from pathlib import Path

import dagster as dg
import pytest

from ftpipeline.digest import Digest, of_bytes
from ftpipeline.orchestration.io_manager import ArtifactIOManager, asset_name
from ftpipeline.orchestration.workbench import Workbench
from ftpipeline.records import ArtifactRef
from ftpipeline.store.home import Home

UP, DOWN = dg.AssetKey(["races", "up"]), dg.AssetKey(["races", "down"])


def _orders() -> list[tuple[str, ...]]:
    """Every order of two runs' writes and reads in which each run writes before it reads."""
    orders = itertools.permutations(("Aw", "Ar", "Bw", "Br"))
    return [
        order for order in orders if order.index("Aw") < order.index("Ar") and order.index("Bw") < order.index("Br")
    ]


def test_a_thousand_interleaved_runs_each_read_what_they_wrote(home: Home) -> None:
    manager = ArtifactIOManager(Workbench(home))
    orders, choose = _orders(), random.Random(20261129)
    assert len(orders) == 6
    misses = []
    for race in range(500):  # two runs each
        wrote: dict[str, Digest] = {}
        for event in choose.choice(orders):
            run = f"{event[0]}{race}"
            if event[1] == "w":
                wrote[run] = of_bytes(run.encode())
                manager.point("races/up", "2026-10-05", run, 0, ArtifactRef(wrote[run]))
            elif manager.find("races/up", "2026-10-05", [run]).digest != wrote[run]:
                misses.append(run)
    assert misses == []


def test_runs_that_race_in_threads_read_what_they_wrote(home: Home) -> None:
    manager = ArtifactIOManager(Workbench(home))
    barrier, misses = threading.Barrier(4), []

    def race(name: str) -> None:
        for turn in range(25):
            run, ref = f"{name}-{turn}", ArtifactRef(of_bytes(f"{name}-{turn}".encode()))
            manager.point("races/up", None, run, 0, ref)
            barrier.wait()  # every run has written before any run reads
            if manager.find("races/up", None, [run]).digest != ref.digest:
                misses.append(run)

    threads = [threading.Thread(target=race, args=(name,)) for name in "ABCD"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert misses == []


def _definitions(manager: ArtifactIOManager, barrier: threading.Barrier, consumed: dict[str, Digest]) -> dg.Definitions:
    @dg.asset(key=UP, io_manager_key="artifacts")
    def up(context: dg.AssetExecutionContext):  # type: ignore[no-untyped-def]
        return dg.MaterializeResult(value=ArtifactRef(of_bytes(context.run.run_id.encode())))

    @dg.asset(key=DOWN, ins={"up": dg.AssetIn(key=UP)}, deps=["wait"], io_manager_key="artifacts")
    def down(context: dg.AssetExecutionContext, up: ArtifactRef):  # type: ignore[no-untyped-def]
        consumed[context.run.run_id] = up.digest
        return dg.MaterializeResult(value=up)

    @dg.asset(key="wait", deps=[UP])
    def wait() -> None:
        barrier.wait()

    job = dg.define_asset_job("race", selection=dg.AssetSelection.assets(UP, "wait", DOWN))
    return dg.Definitions(
        assets=[up, wait, down], jobs=[job], resources={"artifacts": manager}, executor=dg.in_process_executor
    )


@pytest.mark.slow
def test_fifty_interleaved_runs_through_dagster_consume_and_record_their_own_bytes(home: Home, tmp_path: Path) -> None:
    """Both runs of a pair write `up` before either of them reads it."""
    workbench = Workbench(home)
    consumed: dict[str, Digest] = {}
    (tmp_path / "dagster").mkdir()
    with closing(workbench.store), dg.DagsterInstance.local_temp(str(tmp_path / "dagster")) as instance:
        manager = ArtifactIOManager(workbench)
        for _ in range(25):
            barrier = threading.Barrier(2, timeout=60)
            job = _definitions(manager, barrier, consumed).resolve_job_def("race")
            threads = [threading.Thread(target=job.execute_in_process, kwargs={"instance": instance}) for _ in range(2)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        assert len(consumed) == 50
        for run, digest in consumed.items():
            assert digest == of_bytes(run.encode())
            assert manager.find(asset_name(DOWN), None, [run]).digest == digest
