"""Markup is removed where there is any, and nothing else is touched."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ftpipeline.steps.markup import to_text
from ftpipeline.steps.text import clean
from ftpipeline_tests.shared import shared

_MARKUP = (
    "<div> </div> <br> <b > &lt; &amp; b&gt; text <style> </style> <!-- --> <blockquote> </blockquote> class=x"
    " a@b.example &nbsp; <p>"
)
pieces = st.sampled_from([*_MARKUP.split(" "), " ", "\n", "> ", "On Monday somebody wrote:"])
texts = st.lists(pieces, max_size=16).map("".join)


@pytest.mark.parametrize(
    ("markup", "text"),
    [
        ("<p>Door 4 is <i>stuck</i>&nbsp;again</p>", "Door 4 is stuck again"),
        ("one<br>two<br/>three", "one\ntwo\nthree"),
        ("<script>track(1)</script><p>Hello</p><!-- <b>never</b> shown -->", "Hello"),
        ("<table><tr><td>seat</td><td>12</td></tr></table>", "seat 12"),
        ("<p>less &lt; more &amp;amp; done</p>", "less < more &amp; done"),
        ("<p>an open <style> eats nothing", "an open eats nothing"),
    ],
)
def test_what_a_reader_sees_is_kept(markup: str, text: str) -> None:
    cleaned = clean(markup)
    assert (cleaned.text, cleaned.was_markup) == (text, True)


@pytest.mark.parametrize(
    "text", ["if (a<b && c>d) stop", "x < y > z", "&lt;b&gt; stays", "<3 you", "<unknown>", "a<br"]
)
def test_a_text_without_tags_is_untouched(text: str) -> None:
    seen = to_text(text)
    assert (seen.text, seen.was_markup) == (text, False)


def test_a_quote_is_cut_and_a_message_inside_a_quote_is_not() -> None:
    assert (
        clean("<div>New problem today</div><blockquote>what was said before</blockquote>").text == "New problem today"
    )
    wrapped = '<div class="gmail_quote"><div>All there is stands in here.</div></div>'
    assert clean(wrapped).text == "All there is stands in here."


@given(texts)
def test_no_tag_is_left_and_a_second_run_changes_nothing(text: str) -> None:
    once = to_text(text)
    assert to_text(once.text).text == once.text
    cleaned = clean(text)
    again = clean(cleaned.text)
    assert (again.text, again.was_markup, again.stripped) == (cleaned.text, False, False)


@pytest.mark.parametrize("run", ["<div>", "<!--", "<b x='", '<a b="', "<style>", "<p", "&lt;b&gt;", "<a b b b "])
@pytest.mark.timeout(20)
def test_a_long_run_does_not_blow_up(run: str) -> None:
    assert isinstance(clean("<p>" + run * (100_000 // len(run))).text, str)


@pytest.mark.parametrize("name", ["html_tickets", "signatures"])
def test_the_shared_tickets_come_out_as_expected(name: str) -> None:
    lines = shared("cases", "b", f"{name}.jsonl").read_bytes().splitlines()
    cases: list[dict[str, Any]] = [json.loads(line) for line in lines]
    assert [clean(case["text"]).text for case in cases] == [case["expected"] for case in cases]
    assert cases
