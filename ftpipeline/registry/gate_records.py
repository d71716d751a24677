"""Reading gate records, and what one may be used for."""

import json
from dataclasses import dataclass
from typing import Any

from ftpipeline.digest import Digest, parse
from ftpipeline.errors import DigestError, GateRecordError, StaleGateError
from ftpipeline.records import Verdict
from ftpipeline.registry.records import Pointer
from ftpipeline.store.trees import Trees

_TYPE = "ftpipeline/gate/v1"


@dataclass(frozen=True)
class GateRecord:
    """What a gate said, and about what.

    Attributes:
        digest: tree that holds the record.
        candidate: artifact that was gated.
        manifest: manifest it was made by.
        production: artifact it was compared with; None when there was no production.
        generation: of the production pointer at that time.
        verdict: what it decided.
        reasons: `{"code", "message"}` each.
    """

    digest: Digest
    candidate: Digest
    manifest: Digest
    production: Digest | None
    generation: int
    verdict: Verdict
    reasons: tuple[dict[str, str], ...]

    def check_about(self, artifact: Digest, manifest: Digest) -> None:
        """Refuse a record of another artifact or manifest.

        Raises:
            GateRecordError: it is about something else.
        """
        for what, mine, asked in (("artifact", self.candidate, artifact), ("manifest", self.manifest, manifest)):
            if mine != asked:
                raise GateRecordError(f"gate record {self.digest} is about {what} {mine}, not {asked}; gate that one")

    def check_allows(self, production: Pointer) -> None:
        """Refuse a record that does not speak for a promotion past what stands in production now.

        Raises:
            GateRecordError: the verdict is not for it.
            StaleGateError: production is another one than it was compared with.
        """
        if not self.verdict.is_for:
            raise GateRecordError(f"gate record {self.digest} says {self.verdict}; only a passing gate can be promoted")
        if (self.production, self.generation) != (production.digest, production.generation):
            raise StaleGateError(
                f"gate record {self.digest} was made against production generation {self.generation}, now it is"
                f" {production.generation} ({production.digest or 'empty'}); run the week again to gate it anew"
            )


def read_gate_record(trees: Trees, digest: Digest) -> GateRecord:
    """Read the gate record in the tree `digest`.

    Raises:
        GateRecordError: it is not a gate record of a known type, or contradicts itself.
        CorruptArtifactError: its bytes are missing or altered.
        UnknownNameError: the tree holds no `gate.json`.
    """
    try:
        return _decode(digest, json.loads(trees.read(digest, "gate.json")))
    except (ValueError, TypeError, KeyError, DigestError) as error:
        raise GateRecordError(
            f"gate.json in {digest} is not a gate record ({type(error).__name__}: {error}); run the week's gate again"
        ) from error


def _decode(digest: Digest, record: dict[str, Any]) -> GateRecord:
    production, verdict = record["production"], Verdict(record["verdict"])
    if record["type"] != _TYPE:
        raise ValueError(f"type {record['type']!r} is not {_TYPE!r}")
    if type(production["generation"]) is not int:
        raise ValueError(f"production generation {production['generation']!r} is not a whole number")
    compared = None if production["digest"] is None else parse(production["digest"])
    if verdict.is_for and (compared is None) is not (verdict is Verdict.FIRST_RELEASE):
        raise ValueError(f"verdict {verdict} does not fit production {compared}")
    return GateRecord(
        digest=digest,
        candidate=parse(record["candidate"]),
        manifest=parse(record["manifest"]),
        production=compared,
        generation=production["generation"],
        verdict=verdict,
        reasons=tuple({"code": reason["code"], "message": reason["message"]} for reason in record["reasons"]),
    )
