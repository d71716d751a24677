"""A registry over real stores, with artifacts and gate records to register."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypedDict

from ftpipeline.digest import Digest, canonical_json, of_bytes
from ftpipeline.registry.records import Entry, Resolution
from ftpipeline.registry.registry import Registry
from ftpipeline.registry.stages import Stage
from ftpipeline.store.blobs import LocalBlobs
from ftpipeline.store.database import Database
from ftpipeline.store.trees import Trees

NAME = "tickets-router"
BASE, REPORT = of_bytes(b"base"), of_bytes(b"report")


class Who(TypedDict):
    reason: str
    actor: str


WHO = Who(reason="a test asks for it", actor="tester")


class World:
    """One registry name and the stores behind it."""

    def __init__(self, database: Database, store: Path, name: str = NAME) -> None:
        self.name = name
        self.store = store
        self.blobs = LocalBlobs(store)
        self.trees = Trees(self.blobs)
        self.registry = Registry(database, self.trees)
        self._artifacts: dict[str, Digest] = {}

    def tree(self, file: str, content: bytes) -> Digest:
        with TemporaryDirectory(dir=self.store.parent) as folder:
            (Path(folder) / file).write_bytes(content)
            return self.trees.put(Path(folder))

    def artifact(self, label: str) -> Digest:
        """Return the digest of the artifact called `label`, stored when it is first asked for and never again."""
        if label not in self._artifacts:
            self._artifacts[label] = self.tree("model.onnx", f"weights of {label}".encode())
        return self._artifacts[label]

    def gate(self, label: str, verdict: str | None = None, **changes: Any) -> Digest:
        """Store a gate record made against what stands in production now; `verdict` defaults to one for it."""
        production = self.registry.production(self.name)
        record = {
            "type": "ftpipeline/gate/v1",
            "candidate": self.artifact(label),
            "manifest": manifest(label),
            "production": {"digest": production.digest, "generation": production.generation},
            "verdict": verdict or ("first_release" if production.digest is None else "pass"),
            "reasons": [],
            **changes,
        }
        if record["verdict"] == "fail":
            record["reasons"] = [{"code": "task_gain_below_threshold", "message": "task: gain 0 is below 0.005"}]
        return self.tree("gate.json", canonical_json(record))

    def register(
        self, label: str, verdict: str | None = None, *, week: str = "2026-09-28", **changes: Any
    ) -> tuple[Entry, bool]:
        gate = self.gate(label, verdict, **changes)
        return self.registry.register(
            self.name, self.artifact(label), manifest(label), BASE, REPORT, gate, f"run-{label}", week, "tester"
        )

    def generation(self, stage: str) -> int:
        return self.registry.pointers(self.name)[Stage(stage)].generation

    def promote(self, label: str, to: str, expect: int | None = None) -> Resolution:
        expected = self.generation(to) if expect is None else expect
        return self.registry.promote(self.name, self.artifact(label), to, expect=expected, **WHO)

    def release(self, label: str) -> None:
        """Register an artifact and bring it to production by the way that is open."""
        self.register(label)
        is_first = self.registry.production(self.name).generation == 0
        for stage in ("production",) if is_first else ("shadow", "canary", "production"):
            self.promote(label, stage)

    def holds(self, stage: str) -> Digest | None:
        return self.registry.pointers(self.name)[Stage(stage)].digest

    def stage(self, label: str) -> Stage:
        return self.registry.entry(self.name, self.artifact(label)).stage

    def damage(self, label: str) -> None:
        """Remove the artifact's only file from the store."""
        self.blobs.path(self.trees.entries(self.artifact(label))[0].sha256).unlink()


def manifest(label: str) -> Digest:
    return of_bytes(f"manifest of {label}".encode())
