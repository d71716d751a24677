"""Receipts: signed statements that can be checked with nothing but the signer's public key (contract C8).

A receipt is an in-toto Statement of version 1 in a DSSE envelope, signed with Ed25519. Its digest is
`digest.of_bytes(envelope)`. Law: `verify(sign(statement, key), key.public) == statement`, and an envelope that differs
from what `sign` returned by a single bit does not verify.
"""

from ftpipeline.errors import VerificationError
from ftpipeline.receipts.canonical import read_canonical
from ftpipeline.receipts.envelopes import sign, verify
from ftpipeline.receipts.public_key import PublicKey
from ftpipeline.receipts.signing_key import SigningKey
from ftpipeline.receipts.statements import Statement, Subject

__all__ = ["PublicKey", "SigningKey", "Statement", "Subject", "VerificationError", "read_canonical", "sign", "verify"]
