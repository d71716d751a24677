"""Signed heads: what a job's chain was when somebody with the key wrote it (contract C8).

Who can rewrite a whole chain in the database cannot sign its heads: a chain that lacks a signed place was cut off, and
one that has another digest there was forked.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sqlalchemy import Connection, select

from ftpipeline.digest import Digest
from ftpipeline.errors import ChainError, VerificationError
from ftpipeline.ledger.chain import FORKED, MISSING, UNVERIFIABLE, Head
from ftpipeline.ledger.events import Event
from ftpipeline.receipts import PublicKey, SigningKey, Statement, Subject, sign, verify
from ftpipeline.store.tables import ledger_signed_heads

PREDICATE_TYPE = "ftpipeline:ledger-head/v1"

_EVENT = "event"  # name of the one subject


@dataclass(frozen=True)
class SignedHead:
    """A signed head as it is stored.

    Attributes:
        job_id: the job.
        seq: of the event.
        envelope: DSSE, as text.
    """

    job_id: str
    seq: int
    envelope: str

    @classmethod
    def of(cls, event: Event, key: SigningKey) -> "SignedHead":
        """Vouch for the chain up to the event."""
        head = Head(event.seq, event.digest)
        statement = statement_of(event.job_id, event.attempt, event.step, head)
        return cls(event.job_id, event.seq, sign(statement, key).decode())


def statement_of(job_id: str, attempt: int, step: int, head: Head) -> Statement:
    """Return what the signer of a head states."""
    predicate = {"job_id": job_id, "attempt": attempt, "seq": head.seq, "step": step}
    return Statement((Subject(_EVENT, head.digest),), PREDICATE_TYPE, predicate)


def insert(connection: Connection, envelopes: Iterable[SignedHead]) -> None:
    """Add signed heads."""
    if rows := [vars(head) for head in envelopes]:
        connection.execute(ledger_signed_heads.insert(), rows)


def of_job(connection: Connection, job_id: str, after: int = -1) -> list[SignedHead]:
    """Return a job's signed heads after a place, oldest first."""
    wanted = (ledger_signed_heads.c.job_id == job_id, ledger_signed_heads.c.seq > after)
    query = select(ledger_signed_heads).where(*wanted).order_by(ledger_signed_heads.c.seq)
    return [SignedHead(**row) for row in connection.execute(query).mappings()]


def check_signed(signed: SignedHead, digests: Mapping[int, Digest], key: PublicKey) -> None:
    """Refuse a chain that is not the one that was signed.

    Args:
        signed: the signed head.
        digests: of the job's events, by seq.
        key: of the expected signer.

    Raises:
        ChainError: the envelope does not verify, is about another place, or names another event than the chain has.
    """
    seq = check_envelope(signed.job_id, signed.envelope.encode(errors="replace"), digests, key, signed.seq)
    if seq != signed.seq:
        raise ChainError(signed.job_id, UNVERIFIABLE, signed.seq, f"has the signed head of event {seq}")


def check_envelope(
    job_id: str, envelope: bytes, digests: Mapping[int, Digest], key: PublicKey, place: int | None = None
) -> int:
    """Refuse a chain that is not the one that an envelope vouches for, and return the seq that it is about.

    Args:
        job_id: whose chain it is.
        envelope: the signed head.
        digests: of the job's events, by seq.
        key: of the expected signer.
        place: seq of the event that the envelope is kept for, if that is known.

    Raises:
        ChainError: the envelope does not verify, is about another job, or names another event than the chain has.
    """
    try:
        statement = verify(envelope, key, f"signed head of job {job_id}")
    except VerificationError as error:
        raise ChainError(job_id, UNVERIFIABLE, place, f"has a signed head that does not verify ({error})") from error
    seq = statement.predicate.get("seq")
    if statement.predicate_type != PREDICATE_TYPE or statement.predicate.get("job_id") != job_id:
        raise ChainError(job_id, UNVERIFIABLE, place, "has a signed head that is about another job")
    if not isinstance(seq, int) or seq not in digests:
        raise ChainError(job_id, MISSING, seq, "was signed, and is not there")
    if statement.subjects[0].digest != digests[seq]:
        raise ChainError(job_id, FORKED, seq, f"is {digests[seq]}, and {statement.subjects[0].digest} was signed")
    return seq
