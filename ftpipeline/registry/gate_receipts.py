"""Gate receipts: what a gate said of which artifact against which production, signed by the home whose steps found it.

A receipt is an in-toto Statement in a DSSE envelope. Its subjects are the artifact and the gate record, its predicate
is the record itself (production and its generation, eval sets, scorer, manifest, thresholds, verdict) with the report
that was judged. Law: after `issue(gate, report, run_id, key)`, `check(gate, report, key.public)` returns the same
digest; nothing else speaks for a gate record.
"""

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ftpipeline.digest import Digest, parse, parse_json
from ftpipeline.errors import GateRecordError
from ftpipeline.receipts import PublicKey, SigningKey, Statement, Subject, sign, verify
from ftpipeline.store.database import Database
from ftpipeline.store.pointers import Pointers
from ftpipeline.store.trees import Trees

PREDICATE_TYPE = "ftpipeline:gate/v1"
RECEIPT_FILE = "receipt.json"
"""The envelope, alone in a tree of its own."""

Signer = Callable[[], PublicKey]
"""Tells whose signature a gate receipt must carry; asked only where one is checked."""

_ASSET = "gate_receipt"  # partitioned by the digest of the gate record


def nobody() -> PublicKey:
    """Refuse to check a receipt: nobody's signature is known.

    Raises:
        GateRecordError: always.
    """
    raise GateRecordError("the registry was opened without a signer's key; open it with the key of its home")


class GateReceipts:
    """The receipts of a registry: one for each gate record, the newest of which counts."""

    def __init__(self, database: Database, trees: Trees) -> None:
        """Keep receipts beside the entries that rely on them."""
        self._pointers = Pointers(database)
        self._trees = trees

    def issue(self, gate: Digest, report: Digest, run_id: str, key: SigningKey) -> Digest:
        """Sign a gate record and the report it judges, once; return the digest of the receipt's tree.

        Raises:
            GateRecordError: the record names no artifact.
            CorruptArtifactError: the record's bytes do not verify.
        """
        envelope = sign(self._statement(gate, report), key)
        with TemporaryDirectory(prefix="ftpipeline-receipt-") as name:
            (Path(name) / RECEIPT_FILE).write_bytes(envelope)
            receipt = self._trees.put(Path(name))
        standing = self._pointers.latest(_ASSET, gate)
        if standing is None or standing.digest != receipt:
            self._pointers.put(_ASSET, gate, run_id, 0, receipt)
        return receipt

    def check(self, gate: Digest, report: Digest, key: PublicKey) -> Digest:
        """Return the digest of the receipt that vouches for a gate record and the report it judges.

        Raises:
            GateRecordError: there is none, or it speaks of another report or another state of the record.
            VerificationError: it is not signed by the holder of `key`, or was altered.
            CorruptArtifactError: its bytes do not verify.
        """
        standing = self._pointers.latest(_ASSET, gate)
        if standing is None:
            raise GateRecordError(f"gate record {gate} carries no receipt; run the week's register stage again")
        where = f"receipt {standing.digest} of gate record {gate}"
        if verify(self._trees.read(standing.digest, RECEIPT_FILE), key, where) != self._statement(gate, report):
            raise GateRecordError(f"{where} does not speak of report {report}; run the week again to gate it anew")
        return standing.digest

    def _statement(self, gate: Digest, report: Digest) -> Statement:
        record = _document(self._trees, gate)
        subjects = (Subject("artifact", parse(record["candidate"])), Subject("gate_record", gate))
        return Statement(subjects, PREDICATE_TYPE, {"report": report, **record})


def _document(trees: Trees, gate: Digest) -> dict[str, Any]:
    record = parse_json(trees.read(gate, "gate.json"))
    if not isinstance(record, dict) or "candidate" not in record:
        raise GateRecordError(f"gate.json in {gate} names no candidate; run the week's gate again")
    return record
