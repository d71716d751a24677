"""Which jobs a training consumes checkpoints of: a pipeline's name in its file becomes the job of the same week."""

from collections.abc import Sequence

from ftpipeline.errors import UnknownNameError
from ftpipeline.ledger.reader import LedgerReader
from ftpipeline.ledger.rows import JobHead
from ftpipeline.schema import Consumption


def pinned(wanted: Sequence[Consumption], ledger: LedgerReader, week: str) -> tuple[Consumption, ...]:
    """Return consumptions that name jobs: the id holds the job's step key, so what is read is part of the reader's key.

    Args:
        wanted: consumptions that name a job, or the pipeline whose job of `week` is meant.
        ledger: knows the jobs.
        week: ISO week, as `2026-W40`.

    Raises:
        UnknownNameError: there is no such job, or a pipeline has several.
    """
    if not wanted:
        return ()
    jobs = [job for job in ledger.jobs() if not job.is_replay]
    return tuple(each.model_copy(update={"job": _job(each.job, jobs, week)}) for each in wanted)


def _job(name: str, jobs: Sequence[JobHead], week: str) -> str:
    if any(job.job_id == name for job in jobs):
        return name
    of_week = [job for job in jobs if (job.opened["pipeline"], job.opened["week"]) == (name, week)]
    meant = [job for job in of_week if job.is_open] or of_week
    if not meant:
        raise UnknownNameError(
            f"train.consumes names {name!r}: the ledger has no such job, and no job of such a pipeline in {week}; "
            "start it first (see 'ftpipeline ledger jobs')"
        )
    if len(meant) > 1:
        raise UnknownNameError(
            f"train.consumes names {name!r}, which has the jobs {', '.join(job.job_id for job in meant)} in {week}; "
            "name one of them"
        )
    return meant[0].job_id
