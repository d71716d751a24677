"""Lifting a quarantine: a person's decision, signed, and kept for ever beside the marks."""

from ftpipeline.cycle.isolation_records import LIFT, lift_statement
from ftpipeline.cycle.watch import signer_of
from ftpipeline.digest import Digest
from ftpipeline.errors import InputError, UnknownNameError, VerificationError
from ftpipeline.receipts import verify
from ftpipeline.store.opened import Store


def lift(store: Store, artifact: Digest, reason: str, actor: str, receipt: Digest | None = None) -> Digest:
    """Lift every mark of an artifact or job attempt; the marks stay on record.

    Args:
        store: the open store.
        artifact: what is marked.
        reason: in a person's words.
        actor: stated, not authenticated.
        receipt: a receipt of the store that lifts it; None to sign one with the home's key.

    Returns:
        The receipt that lifted it.

    Raises:
        UnknownNameError: it is not under quarantine.
        InputError: the reason is blank.
        VerificationError: the receipt is not signed by the home's key, or lifts something else.
        CorruptArtifactError: the receipt is missing or altered.
    """
    if not reason.strip():
        raise InputError("a quarantine is lifted for a reason; say which")
    marks = [mark.receipt for mark in store.quarantine.marks(artifact) if mark.lifted is None]
    if not marks:
        raise UnknownNameError(f"{artifact} is not under quarantine; see 'ftpipeline quarantine list'")
    signer = signer_of(store)
    if receipt is None:
        receipt = signer.put(lift_statement(artifact, reason, actor, marks))
    else:
        said = verify(store.blobs.read_bytes(receipt), signer.key.public, f"receipt {receipt}")
        if said.predicate_type != LIFT or said.predicate.get("artifact") != artifact:
            raise VerificationError(f"receipt {receipt}", f"does not lift {artifact}", "give one that does, or none")
    store.quarantine.lift(artifact, receipt, reason)
    return receipt
