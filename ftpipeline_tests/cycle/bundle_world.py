"""A small lineage made by the runner, and ways to tamper with its bundle."""

from collections.abc import Callable, Mapping
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from ftpipeline.cycle.bundle import export_bundle
from ftpipeline.cycle.bundle_format import LINEAGE, STATEMENT, decode, encode
from ftpipeline.cycle.bundle_verify import statement_of
from ftpipeline.digest import Digest, canonical_json, parse_json
from ftpipeline.engine.bind import BoundStep
from ftpipeline.engine.runner import Call, Runner
from ftpipeline.receipts import SigningKey, sign
from ftpipeline.records import RunContext, StepResult
from ftpipeline.store.opened import Store
from ftpipeline_tests.cycle.bundle_steps import evaluate, manifest, snapshot, train

RUN = RunContext("run-1", "tests")
QUERY = "SELECT ticket_id, body FROM tickets"

Json = dict[str, Any]


class Silent:
    """An observer that hears nothing."""

    def started(self, step: str) -> None:
        return

    def progress(self, step: str, done: int, total: int, note: str = "") -> None:
        return

    def said(self, step: str, level: str, text: str) -> None:
        return

    def finished(self, result: StepResult) -> None:
        return


def new_key() -> SigningKey:
    return SigningKey(Ed25519PrivateKey.generate())


def make_snapshot(store: Store) -> Digest:
    return Runner(store, Silent()).run(Call(BoundStep(snapshot), {}, {"query": QUERY}), RUN).output


def make_report(store: Store) -> Digest:
    """Run snapshot, manifest, train and evaluate; the parameters of train are of every type that a key tells apart."""
    runner = Runner(store, Silent())
    data = make_snapshot(store)
    frozen = runner.run(Call(BoundStep(manifest), {}, {"manifest": {"seed": 7}}), RUN).output
    params = {
        "lr": 2e-3,
        "seed": 7,
        "modules": ("query", "key"),
        "resume": None,
        "merge": True,
        "tags": {"a": [0, -0.0]},
    }
    model = runner.run(Call(BoundStep(train), {"snapshot": data}, params, frozen), RUN).output
    inputs = {"candidate": model, "data": data}
    return runner.run(Call(BoundStep(evaluate), inputs, {"role": "task"}, frozen), RUN).output


def bundle_of(store: Store, root: Digest, key: SigningKey) -> bytes:
    return export_bundle(store, root, store.home.root / "bundle.tar", key).path.read_bytes()


def signed(members: Mapping[str, bytes], root: Digest, key: SigningKey) -> bytes:
    """Return the bundle that `key` signs of these members: what is wrong with them stays wrong."""
    others = {name: content for name, content in members.items() if name != STATEMENT}
    return encode({**others, STATEMENT: sign(statement_of(root, others), key)})


def with_lineage(bundle: bytes, key: SigningKey, edit: Callable[[Json], None]) -> bytes:
    """Return the bundle with an edited lineage, signed anew."""
    members = decode(bundle)
    lineage = parse_json(members[LINEAGE])
    edit(lineage)
    return signed({**members, LINEAGE: canonical_json(lineage)}, lineage["root"], key)


def node_of(lineage: Json, step_name: str) -> Json:
    """Return the one node of a step."""
    [node] = [node for node in lineage["nodes"] if node["step"] == step_name]
    found: Json = node
    return found
