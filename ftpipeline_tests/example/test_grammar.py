"""Laws of the template grammar and of the wording that is written in it."""

import re
from datetime import UTC, datetime
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ftpipeline.errors import UnknownNameError
from ftpipeline.example.grammar import Grammar, read_data
from ftpipeline.example.queues import Queue, load_queues
from ftpipeline.example.writer import CHANNELS, Writer

WHEN = datetime(2026, 10, 7, 9, tzinfo=UTC)
WORD = st.text("abc ", min_size=1, max_size=5)


@given(st.lists(WORD, min_size=1, max_size=4), st.integers())
def test_an_expansion_is_one_of_the_alternatives(words: list[str], seed: int) -> None:
    assert Grammar(Random(seed), {}).expand([f"[{'|'.join(words)}]"], WHEN) in words


@given(st.integers())
def test_a_second_slot_of_one_name_has_another_value(seed: int) -> None:
    first, second = Grammar(Random(seed), {"item": ["a", "b", "c"]}).expand(["{item}/{item2}"], WHEN).split("/")
    assert first != second


@given(st.integers())
def test_dates_in_a_text_lie_before_it_is_written(seed: int) -> None:
    text = Grammar(Random(seed), {}).expand(["{date}"], WHEN)
    if re.fullmatch(r"\d{4}-\d\d-\d\d", text):
        assert "2026-09-13" <= text <= "2026-10-06"
    else:
        assert re.search(r"September|October|day$", text)


def test_a_slot_that_nobody_fills_is_refused() -> None:
    with pytest.raises(UnknownNameError, match="colour"):
        Grammar(Random(1), {}).expand(["in {colour}"], WHEN)


def test_a_given_value_goes_before_the_lists() -> None:
    assert Grammar(Random(1), {"item": ["a"]}).expand(["{item}"], WHEN, item="mine") == "mine"


@given(st.sampled_from(load_queues()), st.sampled_from(sorted(CHANNELS)), st.integers())
def test_a_message_has_no_unfilled_template_in_it(queue: Queue, channel: str, seed: int) -> None:
    body = Writer(Random(seed), load_queues()).message(queue, WHEN, channel)
    assert body.strip()
    assert not re.search(r"[\[\]{}|]", body)


def test_every_queue_has_its_templates_and_names_are_unique() -> None:
    queues = load_queues()
    assert len({queue.name for queue in queues}) == len(queues) == 40
    assert all(8 <= len(queue.templates) <= 15 for queue in queues)
    templates = [template for queue in queues for template in queue.templates]
    assert len(set(templates)) == len(templates)
    assert [queue.name for queue in queues if queue.late] == ["gift_card_activation"]


def test_every_template_of_the_packaged_wording_expands() -> None:
    phrases = read_data("phrases.toml")
    grammar = Grammar(Random(1), phrases["slots"])
    templates = [template for name, lines in phrases.items() if name != "slots" for template in lines]
    templates += [template for queue in load_queues() for template in (*queue.templates, *queue.vague)]
    for template in templates:
        assert grammar.expand([template], WHEN, other="x", reason="y")
