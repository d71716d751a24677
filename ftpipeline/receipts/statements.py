"""in-toto Statements of version 1: which bytes (subjects) something is said about, and what (predicate)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field

from ftpipeline.digest import Digest, canonical_json, hex_of
from ftpipeline.errors import InputError, VerificationError
from ftpipeline.receipts.canonical import read_canonical
from ftpipeline.schema import Hex64, Section

_TYPE = "https://in-toto.io/Statement/v1"


@dataclass(frozen=True)
class Subject:
    """Something that a statement is about.

    Attributes:
        name: tells it from the other subjects of the statement.
        digest: of its bytes, or of its tree.
    """

    name: str
    digest: Digest


@dataclass(frozen=True)
class Statement:
    """What a receipt says.

    Attributes:
        subjects: at least one, each with a name of its own.
        predicate_type: URI of what the predicate means, with its version.
        predicate: JSON values; lists, not tuples, where the statement is compared with one that was read.

    Raises:
        InputError: there is no subject, a name stands twice, or a name or the type is empty.
    """

    subjects: tuple[Subject, ...]
    predicate_type: str
    predicate: Mapping[str, Any]

    def __post_init__(self) -> None:
        names = [subject.name for subject in self.subjects]
        if not names or not all(names) or len(set(names)) != len(names):
            raise InputError(f"subjects of a statement are named {names}; give at least one, each a name of its own")
        if not self.predicate_type:
            raise InputError("a statement has an empty predicate type; name what its predicate means")

    def encode(self) -> bytes:
        """Return the statement as canonical JSON; `decode` reads it back.

        Raises:
            CanonicalFormError: the predicate holds what JSON lacks.
        """
        subjects = [{"name": subject.name, "digest": {"sha256": hex_of(subject.digest)}} for subject in self.subjects]
        document = {"subject": subjects, "predicateType": self.predicate_type, "predicate": dict(self.predicate)}
        return canonical_json({"_type": _TYPE, **document})

    @classmethod
    def decode(cls, payload: bytes, where: str) -> "Statement":
        """Return the statement that `encode` wrote.

        Args:
            payload: canonical JSON.
            where: what the statement is called in errors.

        Raises:
            VerificationError: it is no statement of version 1 in canonical form.
        """
        document = read_canonical(payload, _Document, where)
        subjects = tuple(Subject(item.name, Digest(f"sha256:{item.digest.sha256}")) for item in document.subject)
        try:
            return cls(subjects, document.predicate_type, document.predicate)
        except InputError as error:
            raise VerificationError(where, f"is not a statement that can be used ({error})") from error


class _DigestSet(Section):
    sha256: Hex64


class _Subject(Section):
    name: str
    digest: _DigestSet


class _Document(Section):
    """The fields of a statement on the wire."""

    type: Annotated[Literal["https://in-toto.io/Statement/v1"], Field(alias="_type")]
    subject: tuple[_Subject, ...]
    predicate_type: Annotated[str, Field(alias="predicateType")]
    predicate: dict[str, Any]
