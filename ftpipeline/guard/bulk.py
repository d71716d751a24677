"""The closure of taint over arrays, for fleets of millions of consumptions; the same answer as `closure.close`."""

from typing import TYPE_CHECKING, Any

from ftpipeline.errors import InputError

if TYPE_CHECKING:
    import numpy

    Ints = numpy.ndarray[Any, numpy.dtype[numpy.int64]]

CLEAN = 2**62
"""What stands for a job that is not tainted; later than every position."""

_STEP_BITS = 40


def encode(attempt: "Ints", step: "Ints") -> "Ints":
    """Return positions as integers that are ordered as they are; steps are below 2^40, attempts below 2^21."""
    return (attempt << _STEP_BITS) | step


class ConsumptionIndex:
    """Consumptions sorted by producer and by the time of production, to be traced from any seed.

    Law: `trace` gives, for every job, what `closure.close` gives.
    """

    def __init__(self, producer: "Ints", produced_at: "Ints", consumer: "Ints", consumed_at: "Ints", jobs: int) -> None:
        """Sort the consumptions.

        Args:
            producer: numbers of the producing jobs, shape (edges,), from 0 to `jobs` - 1.
            produced_at: their encoded positions, shape (edges,).
            consumer: numbers of the consuming jobs, shape (edges,).
            consumed_at: their encoded positions, shape (edges,).
            jobs: number of jobs.

        Raises:
            InputError: the arrays differ in length, or a number is out of its range.
        """
        import numpy

        _check(producer, produced_at, consumer, consumed_at, jobs)
        self._jobs = jobs
        self._times, ranks = numpy.unique(produced_at, return_inverse=True)
        key = producer * (len(self._times) + 1) + ranks
        order = numpy.argsort(key)
        self._key = key[order]
        self._consumer, self._consumed_at = consumer[order], consumed_at[order]
        bounds = numpy.arange(jobs + 1, dtype=numpy.int64) * (len(self._times) + 1)
        self._bounds = numpy.searchsorted(self._key, bounds)

    def trace(self, seeds: "Ints", since: "Ints") -> "Ints":
        """Return the earliest tainted position of every job, shape (jobs,); `CLEAN` where there is none.

        Args:
            seeds: numbers of jobs that are tainted by themselves, shape (seeds,).
            since: their encoded positions, shape (seeds,).
        """
        import numpy

        earliest = numpy.full(self._jobs, CLEAN, dtype=numpy.int64)
        numpy.minimum.at(earliest, seeds, since)
        fired_from = self._bounds[1:].copy()  # of each job's edges, those from here on have fired
        frontier = numpy.unique(seeds)
        while len(frontier):
            edges = self._fire(frontier, earliest, fired_from)
            before = earliest[self._consumer[edges]]
            numpy.minimum.at(earliest, self._consumer[edges], self._consumed_at[edges])
            frontier = numpy.unique(self._consumer[edges][self._consumed_at[edges] < before])
        return earliest

    def _fire(self, frontier: "Ints", earliest: "Ints", fired_from: "Ints") -> "Ints":
        """Return the edges of the frontier that fire now and never did before."""
        import numpy

        ranks = numpy.searchsorted(self._times, earliest[frontier])
        start = numpy.searchsorted(self._key, frontier * (len(self._times) + 1) + ranks)
        end = fired_from[frontier]
        counts = numpy.maximum(end - start, 0)
        fired_from[frontier] = numpy.minimum(start, end)
        within = numpy.arange(counts.sum()) - numpy.repeat(numpy.cumsum(counts) - counts, counts)
        edges: Ints = numpy.repeat(start, counts) + within
        return edges


def _check(producer: "Ints", produced_at: "Ints", consumer: "Ints", consumed_at: "Ints", jobs: int) -> None:
    lengths = {len(array) for array in (producer, produced_at, consumer, consumed_at)}
    if len(lengths) != 1:
        raise InputError(f"consumption arrays have {sorted(lengths)} rows; give one row an edge in each")
    for name, numbers in (("producer", producer), ("consumer", consumer)):
        if len(numbers) and not 0 <= int(numbers.min()) <= int(numbers.max()) < jobs:
            raise InputError(f"{name} numbers lie outside of 0 to {jobs - 1}; number the jobs from 0")
    for name, positions in (("produced_at", produced_at), ("consumed_at", consumed_at)):
        if len(positions) and not 0 <= int(positions.min()) <= int(positions.max()) < CLEAN:
            raise InputError(f"{name} lies outside of 0 to 2^62 - 1; use encode")
