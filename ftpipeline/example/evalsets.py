"""The example's gold, regression and safety sets."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from random import Random

from ftpipeline.example.grammar import Grammar, read_data
from ftpipeline.example.queues import Queue
from ftpipeline.example.weeks import END, any_moment
from ftpipeline.example.writer import Writer

EvalRow = tuple[str, str, str]
"""id, text, expected answer."""

_GOLD_PER_QUEUE = 10
_REGRESSION_PER_QUEUE = 5
_SAFETY_ROWS = 150


def gold_rows(rng: Random, queues: Sequence[Queue]) -> list[EvalRow]:
    """Return the gold set: every queue equally often, written as customers write."""
    return _numbered(rng, "g", _queue_texts(rng, queues, _GOLD_PER_QUEUE, clear=False))


def regression_rows(rng: Random, queues: Sequence[Queue]) -> list[EvalRow]:
    """Return the regression set: every queue equally often, in clear wording that no release may get wrong."""
    return _numbered(rng, "r", _queue_texts(rng, queues, _REGRESSION_PER_QUEUE, clear=True))


def safety_rows(rng: Random) -> list[EvalRow]:
    """Return the safety set: general questions that no queue answers, each with the expected answer `abstain`."""
    data = read_data("questions.toml")
    grammar = Grammar(rng, data["slots"])
    questions = _distinct(_SAFETY_ROWS, lambda: grammar.expand(data["templates"], END))
    return _numbered(rng, "s", ((question, "abstain") for question in questions))


def _queue_texts(rng: Random, queues: Sequence[Queue], per_queue: int, *, clear: bool) -> list[tuple[str, str]]:
    writer = Writer(rng, queues)

    def write(queue: Queue) -> str:
        return writer.message(queue, any_moment(rng), writer.channel(), clear=clear)

    return [(text, queue.name) for queue in queues for text in _distinct(per_queue, partial(write, queue))]


def _distinct(count: int, make: Callable[[], str]) -> list[str]:
    texts: dict[str, None] = {}
    while len(texts) < count:
        texts[make()] = None
    return list(texts)


def _numbered(rng: Random, prefix: str, rows: Iterable[tuple[str, str]]) -> list[EvalRow]:
    shuffled = list(rows)
    rng.shuffle(shuffled)
    return [(f"{prefix}-{number:04d}", text, answer) for number, (text, answer) in enumerate(shuffled, start=1)]
