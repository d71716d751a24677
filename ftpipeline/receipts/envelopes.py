"""DSSE envelopes: a statement with one signature over its bytes and their type.

An envelope is canonical JSON, its base64 is the one that encoding gives, and it carries exactly one signature, so that
equal statements signed with one key are equal bytes and have one digest.
"""

import binascii
from typing import TYPE_CHECKING, Literal

from ftpipeline.digest import canonical_json, parse_json
from ftpipeline.errors import VerificationError
from ftpipeline.receipts.canonical import read_canonical
from ftpipeline.receipts.public_key import PublicKey
from ftpipeline.receipts.signing_key import SigningKey
from ftpipeline.receipts.statements import Statement
from ftpipeline.schema import Hex64, Section

if TYPE_CHECKING:
    from securesystemslib.dsse import Envelope

_PAYLOAD_TYPE = "application/vnd.in-toto+json"


def sign(statement: Statement, key: SigningKey) -> bytes:
    """Return the statement in an envelope signed with `key`; Ed25519 makes the same bytes every time.

    Raises:
        CanonicalFormError: the predicate holds what JSON lacks.
    """
    from securesystemslib.dsse import Envelope

    envelope = Envelope(statement.encode(), _PAYLOAD_TYPE, {})
    envelope.sign(key.signer())
    return canonical_json(envelope.to_dict())


def verify(envelope: bytes, key: PublicKey, where: str = "receipt") -> Statement:
    """Return what an envelope says, if the holder of `key` said so.

    Args:
        envelope: what `sign` returned.
        key: of the expected signer.
        where: what the envelope is called in errors.

    Raises:
        VerificationError: it is malformed, not in canonical form, signed by another key or by several, or altered.
    """
    from securesystemslib.exceptions import UnverifiedSignatureError

    opened = _open(envelope, key, where)
    try:
        opened.verify([key.verifier()], threshold=1)
    except UnverifiedSignatureError as error:
        raise VerificationError(where, f"was altered, or was not signed by key {key.keyid}") from error
    return Statement.decode(opened.payload, where)


def _open(envelope: bytes, key: PublicKey, where: str) -> "Envelope":
    """Return an envelope that is well formed and names `key` as the one that signed it."""
    from securesystemslib.dsse import Envelope

    document = read_canonical(envelope, _Document, where)
    if len(document.signatures) != 1:
        raise VerificationError(where, f"carries {len(document.signatures)} signatures where one is expected")
    signer = document.signatures[0].keyid
    if signer != key.keyid:
        raise VerificationError(
            where, f"is signed by key {signer}, not by {key.keyid}", "give the public key of its signer"
        )
    try:
        opened = Envelope.from_dict(parse_json(envelope))
    except (binascii.Error, ValueError) as error:
        raise VerificationError(where, f"holds text that is not base64 ({error})") from error
    if canonical_json(opened.to_dict()) != envelope:  # decoding drops what is no base64, and spare bits at the end
        raise VerificationError(where, "holds base64 in other than its one form")
    return opened


class _Signature(Section):
    keyid: Hex64
    sig: str


class _Document(Section):
    """The fields of an envelope on the wire."""

    payload: str
    payloadType: Literal["application/vnd.in-toto+json"]
    signatures: tuple[_Signature, ...]
