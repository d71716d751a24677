"""Reading a document of which exactly one encoding is accepted."""

from typing import TypeVar

from pydantic import ValidationError

from ftpipeline.digest import canonical_json, parse_json
from ftpipeline.errors import CanonicalFormError, VerificationError
from ftpipeline.schema import Section

SectionT = TypeVar("SectionT", bound=Section)


def read_canonical(data: bytes, kind: type[SectionT], where: str) -> SectionT:
    """Return canonical JSON (RFC 8785) as a `kind`.

    Args:
        data: the document.
        kind: says which fields it has; none is converted.
        where: what the document is called in errors.

    Raises:
        VerificationError: it is not strict JSON, not in canonical form, or no `kind`.
    """
    try:
        is_canonical = canonical_json(parse_json(data)) == data
    except (CanonicalFormError, ValueError, RecursionError) as error:
        raise VerificationError(where, f"is not a JSON document that can be read ({error})") from error
    if not is_canonical:
        raise VerificationError(where, "is written in other than its one canonical form")
    try:
        return kind.model_validate_json(data)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        field = ".".join(str(part) for part in first["loc"]) or "document"
        raise VerificationError(where, f"is not of a form that is known here ({field}: {first['msg']})") from error
