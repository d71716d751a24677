"""A registry over real stores, with artifacts and gate records to register."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypedDict

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from ftpipeline.digest import Digest, canonical_json, of_bytes
from ftpipeline.receipts import SigningKey
from ftpipeline.registry.gate_receipts import GateReceipts
from ftpipeline.registry.records import Entry, Resolution
from ftpipeline.registry.registry import Clock, Registry, utc_now
from ftpipeline.registry.stages import Stage
from ftpipeline.schema import ROLES
from ftpipeline.store.blobs import LocalBlobs
from ftpipeline.store.database import Database
from ftpipeline.store.eval_sets import EvalSetVersions
from ftpipeline.store.trees import Trees
from ftpipeline.tree_format import TreeEntry, encode

NAME = "tickets-router"
KEY = SigningKey(Ed25519PrivateKey.from_private_bytes(bytes(32)))
"""Signs the gate records of a world that has no home."""
BASE = of_bytes(b"base")


class Who(TypedDict):
    reason: str
    actor: str


WHO = Who(reason="a test asks for it", actor="tester")


class World:
    """One registry name and the stores behind it."""

    def __init__(self, database: Database, store: Path, name: str = NAME, key: SigningKey = KEY) -> None:
        self.name = name
        self.key = key
        self.store = store
        self.blobs = LocalBlobs(store)
        self.trees = Trees(self.blobs)
        self.database = database
        self.registry = self.opened()
        self.receipts = GateReceipts(database, self.trees)
        self._artifacts: dict[str, Digest] = {}
        for role in ROLES:
            self.new_eval_set(role, "v1")

    def opened(self, clock: Clock = utc_now) -> Registry:
        """Open the registry anew, with a clock of its own."""
        return Registry(self.database, self.trees, clock, signer=lambda: self.key.public)

    def new_eval_set(self, role: str, version: str) -> None:
        """Freeze a version of the eval set of a role."""
        EvalSetVersions(self.database).claim(role, version, self.tree("rows.txt", _rows(role, version)))

    def tree(self, file: str, content: bytes) -> Digest:
        with TemporaryDirectory(dir=self.store.parent) as folder:
            (Path(folder) / file).write_bytes(content)
            return self.trees.put(Path(folder))

    def artifact(self, label: str) -> Digest:
        """Return the digest of the artifact called `label`, stored when it is first asked for and never again."""
        if label not in self._artifacts:
            self._artifacts[label] = self.tree("model.onnx", f"weights of {label}".encode())
        return self._artifacts[label]

    def adopt(self, label: str, artifact: Digest) -> None:
        """Let `label` be an artifact that is stored already."""
        self._artifacts[label] = artifact

    def manifest(self, label: str, **changes: Any) -> Digest:
        """Store what the registry reads of the manifest that the artifact was made by."""
        return self.tree("manifest.json", _manifest(label, **changes))

    def report(self, label: str) -> Digest:
        """Store what the registry reads of the artifact's evaluation report."""
        return self.tree("candidate.json", canonical_json({"artifact": self.artifact(label)}))

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
        gate = self.tree("gate.json", canonical_json(record))
        self.sign(gate, self.report(label))
        return gate

    def sign(self, gate: Digest, report: Digest) -> None:
        """Vouch for a gate record as the home of the registry does."""
        self.receipts.issue(gate, report, "run", self.key)

    def register(
        self, label: str, verdict: str | None = None, *, week: str = "2026-09-28", **changes: Any
    ) -> tuple[Entry, bool]:
        arguments = self.arguments(label, self.gate(label, verdict, **changes), week=week)
        return self.registry.register(**arguments)

    def arguments(self, label: str, gate: Digest, **changes: Any) -> dict[str, Any]:
        """Return what an artifact is registered with."""
        arguments = {
            "name": self.name,
            "artifact": self.artifact(label),
            "manifest": self.manifest(label),
            "base_model": BASE,
            "report": self.report(label),
            "gate": gate,
            "run_id": f"run-{label}",
            "week": "2026-09-28",
            "actor": "tester",
        }
        return arguments | changes

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
    """Return the digest of the tree that `World.manifest` stores."""
    return _tree("manifest.json", _manifest(label))


def _manifest(label: str, **changes: Any) -> bytes:
    document = {
        "run_id": label,
        "base_model": {"tree_sha256": BASE},
        "eval_sets": {role: f"evalset://{role}/v1@{_tree('rows.txt', _rows(role, 'v1'))}" for role in ROLES},
    }
    return canonical_json(document | changes)


def _rows(role: str, version: str) -> bytes:
    return f"rows of {role} {version}".encode()


def _tree(file: str, content: bytes) -> Digest:
    return of_bytes(encode([TreeEntry(file, len(content), of_bytes(content))]))
