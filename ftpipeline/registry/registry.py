"""The registry: entries behind gate records, and moves of the stage pointers."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Self

from ftpipeline.digest import Digest
from ftpipeline.errors import TransitionError
from ftpipeline.receipts import SigningKey
from ftpipeline.records import Verdict
from ftpipeline.registry import entries, evidence, history, moves, pins, registration
from ftpipeline.registry.deletion import check_deletable, traffic_cycle
from ftpipeline.registry.gate_receipts import GateReceipts, Signer, nobody
from ftpipeline.registry.gate_records import read_gate_record
from ftpipeline.registry.history import Note
from ftpipeline.registry.pointers import Pointers, check_generation, lock_pointers, read_pointers
from ftpipeline.registry.provenance import refuse_tainted
from ftpipeline.registry.reader import RegistryReader, check_known
from ftpipeline.registry.records import Entry, Pin, Pointer, Resolution
from ftpipeline.registry.stages import Stage, check_move, stage_named
from ftpipeline.store.database import Database
from ftpipeline.store.opened import Store
from ftpipeline.store.trees import Trees

Clock = Callable[[], datetime]
"""Tells the time, with its zone."""


def utc_now() -> datetime:
    """Return the time of the wall clock."""
    return datetime.now(UTC)


class Registry(RegistryReader):
    """Entries, stage pointers and history in one database.

    Every move is one transaction with a compare-and-swap on the pointer it takes, so that of two people who read the
    same generation one wins and the other is told. A name that has had a production always has exactly one. Actors are
    stated by the caller and not authenticated: the history says who somebody claimed to be.
    """

    def __init__(
        self,
        database: Database,
        trees: Trees,
        clock: Clock = utc_now,
        cycle: timedelta | None = None,
        signer: Signer = nobody,
    ) -> None:
        """Keep a registry.

        Args:
            database: holds entries, pointers and history.
            trees: hold the artifacts and what speaks for them.
            clock: tells the time.
            cycle: how long a new production must have served before the one before it may be deleted; None for what
                the environment says.
            signer: whose receipts are trusted; nobody's unless given, and then nothing is registered or promoted.
        """
        super().__init__(database, trees)
        self._clock = clock
        self._cycle = cycle
        self._signer = signer
        self._receipts = GateReceipts(database, trees)

    @classmethod
    def of_store(cls, store: Store) -> Self:
        """Return the registry of a store; what it trusts is what its home signed."""
        return cls(store.database, store.trees, signer=lambda: SigningKey.of_home(store.home.root).public)

    def pin(self, run_id: str, name: str) -> Pin:
        """Return the production that the run is gated against: what stood when it first asked, for ever after."""
        with self._database.read() as connection:
            written = pins.find(connection, run_id, name)
        if written is not None:
            return written
        with self._database.write() as connection:
            return pins.pin(connection, run_id, name)

    def register(
        self,
        name: str,
        artifact: Digest,
        manifest: Digest,
        base_model: Digest,
        report: Digest,
        gate: Digest,
        run_id: str,
        week: str,
        actor: str,
    ) -> tuple[Entry, bool]:
        """Register an artifact behind its gate record; a repeated registration returns the entry there is.

        Args:
            name: name to serve under.
            artifact: the exported artifact.
            manifest: manifest it was made by.
            base_model: tree of its base model.
            report: tree of its evaluation reports.
            gate: tree with `gate.json`. A pass or first release makes the new candidate, `already_production` makes
                nothing, every other verdict makes a rejected entry.
            run_id: the run that registers.
            week: first day of the week it was trained for, ISO 8601; an older one never becomes the candidate.
            actor: stated, not authenticated.

        Returns:
            The entry, and whether it is new.

        Raises:
            GateRecordError: the record is unusable, about another artifact, manifest or production, or an old one.
            ForeignReportError: the report is about another artifact.
            BaseModelMismatchError: the manifest pins another base model.
            ManifestError: the manifest pins no base model.
            QuarantinedError: the artifact, or something it was made from, is under quarantine.
            VerificationError: the record's receipt is not signed by this home, or was altered.
            CorruptArtifactError: the record, report or manifest does not verify.
        """
        record = read_gate_record(self._trees, gate)
        record.check_about(artifact, manifest)
        evidence.check_report(self._trees, report, artifact)
        self._receipts.check(gate, report, self._signer())
        evidence.check_base_model(self._trees, manifest, base_model)
        note = self._note(actor, f"gate verdict {record.verdict}")
        columns = {"name": name, "artifact": artifact, "manifest": manifest}
        columns |= {"base_model": base_model, "report": report, "run_id": run_id, "week": week}
        with self._database.write() as connection:
            pointers = lock_pointers(connection, name)
            refuse_tainted(connection, artifact)
            if record.verdict is Verdict.ALREADY_PRODUCTION:
                return registration.in_production(connection, pointers, record), False
            known = entries.find(connection, name, artifact, manifest)
            if known is not None:
                return registration.renew(connection, pointers, known, report, record, note), False
            return registration.add(connection, pointers, columns, record, note), True

    def promote(self, name: str, digest: str, to: str, *, expect: int, reason: str, actor: str) -> Resolution:
        """Move an entry one stage on, or a first release straight to production.

        Args:
            name: registry name.
            digest: the artifact, or 12 or more hexadecimal digits of it.
            to: shadow, canary or production.
            expect: generation of that stage's pointer as the caller read it; 0 when it was never set.
            reason: why, in a person's words.
            actor: stated, not authenticated.

        Raises:
            StaleGenerationError: the pointer was moved since.
            RejectedEntryError: the entry was rejected.
            SkippedStageError: a stage lies between.
            TransitionError: the state machine has no such move, or shadow or canary is occupied.
            GateRecordError: the entry's gate record does not allow it against what stands in production now.
            StaleEvalSetError: the gate measured on another version of an eval set than the newest.
            QuarantinedError: the artifact, or something it was made from, is under quarantine.
            VerificationError: the record's receipt is not signed by this home, or was altered.
            UnknownNameError: no such name, artifact or stage.
            CorruptArtifactError: the artifact or the record does not verify; nothing was moved.
            InputError: the reason or actor is blank.
        """
        target, note = _promotion_target(to), self._note(actor, reason)
        wanted = self.entry(name, digest)
        self._verified.verify(wanted.artifact)
        self._receipts.check(wanted.gate, wanted.report, self._signer())
        pinned = evidence.pinned_eval_sets(self._trees, wanted.manifest)
        with self._database.write() as connection:
            pointers = lock_pointers(connection, name)
            entry = entries.by_id(connection, wanted.id)
            check_generation(pointers[target], expect)
            self._check_promotion(pointers, entry, target)
            evidence.check_eval_sets(connection, pinned)
            return moves.place(connection, pointers, entry, target, note, receipt=entry.gate)

    def reject(self, name: str, digest: str, reason: str, actor: str) -> Entry:
        """Reject a candidate, shadow or canary for good.

        Raises:
            TransitionError: the entry is in production, retired or rejected already.
            UnknownNameError: no such name or artifact.
            InputError: the reason or actor is blank.
        """
        note = self._note(actor, reason)
        with self._database.write() as connection:
            pointers = lock_pointers(connection, name)
            entry = entries.latest(connection, name, digest)
            check_move(entry.stage, Stage.REJECTED)
            reasons = [*entry.reasons, {"code": "rejected_by_person", "message": reason}]
            moves.reject(connection, pointers, entry, note, reasons)
            return entries.by_id(connection, entry.id)

    def rollback(self, name: str, *, reason: str, actor: str, expect: int | None = None) -> Resolution:
        """Return to the production before this one; what is left is retired and no further rollback returns to it.

        Args:
            name: registry name.
            reason: why, in a person's words.
            actor: stated, not authenticated.
            expect: generation of production as the caller read it; None for what stands when the call begins.

        Raises:
            CorruptArtifactError: the earlier artifact does not verify; nothing was moved.
            StaleGenerationError: production was moved since.
            TransitionError: there is no earlier production.
            UnknownNameError: nothing was ever registered under the name.
            QuarantinedError: the earlier artifact, or something it was made from, is under quarantine.
            InputError: the reason or actor is blank.
        """
        note = self._note(actor, reason)
        standing, earlier = self._rollback_target(name)
        if expect is not None:
            check_generation(standing, expect)
        self._verified.verify(earlier.artifact)
        with self._database.write() as connection:
            pointers = lock_pointers(connection, name)
            check_generation(pointers[Stage.PRODUCTION], standing.generation)
            entry = entries.by_id(connection, earlier.id)
            check_move(entry.stage, Stage.PRODUCTION, rollback=True)
            return moves.place(connection, pointers, entry, Stage.PRODUCTION, note)

    def delete(self, name: str, digest: str, *, reason: str, actor: str) -> Entry:
        """Let go of the bytes of a retired or rejected entry; its row, receipts and history stay.

        Raises:
            ProtectedArtifactError: a stage holds the artifact, it is undecided, or a rollback would return to it.
            UnknownNameError: no such name or artifact.
            InputError: the reason or actor is blank, or the configured traffic cycle is unusable.
        """
        note, cycle = self._note(actor, reason), self._cycle if self._cycle is not None else traffic_cycle()
        with self._database.write() as connection:
            lock_pointers(connection, name)
            entry = entries.latest(connection, name, digest)
            check_deletable(connection, entry, cycle, self._clock())
            moves.delete(connection, entry, note)
            return entries.by_id(connection, entry.id)

    def _note(self, actor: str, reason: str) -> Note:
        return Note(actor, reason, self._clock().astimezone(UTC).isoformat())

    def _check_promotion(self, pointers: Pointers, entry: Entry, target: Stage) -> None:
        record, production = read_gate_record(self._trees, entry.gate), pointers[Stage.PRODUCTION]
        first_release = record.verdict is Verdict.FIRST_RELEASE and production.generation == 0
        check_move(entry.stage, target, first_release=first_release)
        moves.check_free(pointers, target)
        record.check_about(entry.artifact, entry.manifest)
        record.check_allows(production)

    def _rollback_target(self, name: str) -> tuple[Pointer, Entry]:
        with self._database.read() as connection:
            check_known(connection, name)
            previous = history.previous_production(connection, name)
            if previous is None:
                raise TransitionError(f"{name!r} has no earlier production to return to; promote another entry")
            return read_pointers(connection, name)[Stage.PRODUCTION], entries.by_id(connection, previous)


def _promotion_target(to: str) -> Stage:
    target = stage_named(to)
    if target not in (Stage.SHADOW, Stage.CANARY, Stage.PRODUCTION):
        raise TransitionError(
            f"nothing is promoted to {target}; candidates are registered, rejections use reject, and an entry is"
            " retired by its successor"
        )
    return target
