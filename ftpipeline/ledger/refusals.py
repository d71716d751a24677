"""What the database's refusals mean; the texts are those of the triggers in migration 0003."""

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.exc import DBAPIError, IntegrityError

from ftpipeline.errors import ChainError, DatabaseError, LeaseLostError, LedgerError
from ftpipeline.ledger.chain import FORKED, UNVERIFIABLE

_LEASE, _HEAD = "ledger lease:", "ledger head:"
_NO_TEXT = "Could not decode to UTF-8"  # of SQLite; PostgreSQL stores no such text


@contextmanager
def appending(job_id: str) -> Iterator[None]:
    """Turn a refused append into an error of the tree; nothing of it was written.

    Raises:
        LeaseLostError: the job's lease is another one's.
        ChainError: somebody else has written the next event.
        LedgerError: the database cannot be written.
    """
    try:
        yield
    except DBAPIError as error:
        problem = str(error.orig)
        if _LEASE in problem:
            raise LeaseLostError(f"lease of job {job_id} was lost; nothing was written; run again") from error
        if _HEAD in problem or isinstance(error, IntegrityError):
            raise ChainError(job_id, FORKED, None, "was continued by another writer") from error
        raise _unusable(job_id, "appended to", error) from error
    except DatabaseError as error:
        raise _unusable(job_id, "appended to", error) from error


@contextmanager
def reading(job_id: str) -> Iterator[None]:
    """Turn what cannot be read of a job into an error of the tree.

    Raises:
        ChainError: the database holds text that is none.
        LedgerError: the database cannot be read.
    """
    try:
        yield
    except UnicodeDecodeError as error:
        raise ChainError(job_id, UNVERIFIABLE, None, "holds bytes that are no text") from error
    except DBAPIError as error:
        if _NO_TEXT in str(error.orig):
            raise ChainError(job_id, UNVERIFIABLE, None, "holds bytes that are no text") from error
        raise _unusable(job_id, "read", error) from error
    except DatabaseError as error:
        raise _unusable(job_id, "read", error) from error


def _unusable(job_id: str, what: str, error: Exception) -> LedgerError:
    problem = " ".join(str(error.orig if isinstance(error, DBAPIError) else error).split())
    return LedgerError(f"ledger of job {job_id} cannot be {what}: {problem}; see that its database is there and whole")
