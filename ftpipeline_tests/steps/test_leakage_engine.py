"""The compiled engine: equal to the plain one, linear under boilerplate, safe against collisions and bad bytes."""

import re
import subprocess
import sys
import unicodedata
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ftpipeline.errors import SourceError
from ftpipeline.steps.leakage import SHINGLE, check, forms
from ftpipeline.steps.leakage import texts as texts_module
from ftpipeline.steps.leakage.check import find_best, find_every
from ftpipeline.steps.leakage.cutter import Cutter
from ftpipeline.steps.leakage.hits import needed_for
from ftpipeline.steps.leakage.layout import SPACELESS, Units
from ftpipeline.steps.leakage.shingle_search import HashCollision, ShingleSearch
from ftpipeline.steps.leakage.texts import batches, from_arrow, from_strings, text_at
from ftpipeline.steps.text import words
from ftpipeline_tests.steps.leakage_texts import sides, texts

# Eight tokens each, made so that the polynomials of their hashes are equal under seed 0.
COLLIDING = (
    "that two rows may share by sheer chance",
    "hidden behind another text of course t3859282 2iv4lngx",
)


def tokens(units: Units, row: int) -> list[str]:
    edges = units.edges.reshape(-1, 2)[units.bounds[row] : units.bounds[row + 1]]
    return [units.text[start:end].tobytes().decode() for start, end in edges]


@settings(max_examples=300)
@given(sides, sides, st.sampled_from([0.01, 0.3, 0.5, 0.7, 1.0]))
def test_both_engines_find_the_same_pairs(train: list[str], evals: list[str], threshold: float) -> None:
    plain = find_every(train, evals, threshold)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(check, "FEW_ROWS", -1)
        assert find_every(train, evals, threshold) == plain


@given(st.lists(texts | st.text(), min_size=1, max_size=8))
def test_tokens_are_those_of_the_regular_expression(strings: list[str]) -> None:
    units = Cutter(0).tokens(from_strings(strings), 0, len(strings))
    assert [tokens(units, row) for row in range(len(strings))] == [re.findall(r"\w+", s.lower()) for s in strings]


@given(st.lists(st.text("aZ_ 0\u00c4\u00df\u2019\u4e2d\U0001f44d\u0130", max_size=90), min_size=1, max_size=6))
def test_rows_longer_than_a_block_are_cut_alike_wherever_other_characters_stand(strings: list[str]) -> None:
    units = Cutter(0).tokens(from_strings(strings), 0, len(strings))
    assert [tokens(units, row) for row in range(len(strings))] == [re.findall(r"\w+", s.lower()) for s in strings]


@given(st.lists(texts | st.text(), min_size=1, max_size=8))
def test_folded_units_are_words(strings: list[str]) -> None:
    found: dict[int, list[str]] = {}
    for rows, units in Cutter(0).folded(from_strings(strings), np.arange(len(strings))):
        found.update((int(row), tokens(units, place)) for place, row in enumerate(rows))
    expected = [[word for word in words(text) if re.search(r"\w", word)] for text in strings]
    assert [found[row] for row in range(len(strings))] == expected


def test_every_code_point_is_cut_as_python_cuts_it() -> None:
    strings = [f"a{chr(point)}b {chr(point)}" for point in range(0x110000) if point != 0x3A3]
    source = from_strings(strings)
    cutter = Cutter(0)
    for first, last in texts_module.chunks(source):
        units = cutter.tokens(source, first, last)
        counts = np.diff(units.bounds[: last - first + 1])
        expected = [re.findall(r"\w+", text.lower()) for text in strings[first:last]]
        assert counts.tolist() == list(map(len, expected))
        assert [tokens(units, row) for row in range(0, last - first, 97)] == expected[::97]


def test_code_points_beyond_the_tables_are_separators_without_another_form() -> None:
    beyond = "".join(map(chr, range(forms.LIMIT, 0x110000)))
    assert not re.search(r"\w", beyond)
    assert beyond.lower() == unicodedata.normalize("NFKC", beyond).casefold() == beyond


@given(st.lists(texts, min_size=1, max_size=30), st.integers(1, 7))
def test_pieces_and_chunks_change_nothing(train: list[str], size: int) -> None:
    evals = train[::2]
    whole = find_best([from_strings(train)], evals, 0.5)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(texts_module, "CHUNK_ROWS", size)
        patched.setattr(texts_module, "CHUNK_BYTES", 50)
        pieces = (from_strings(train[i : i + size]) for i in range(0, len(train), size))
        assert find_best(pieces, evals, 0.5).hits == whole.hits


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())]
)
def test_arrow_columns_of_every_kind_and_slice_give_their_texts(kind: pa.DataType) -> None:
    strings = ["", "one", "zwei \u00e4", "", "drei"]
    column = pa.array(strings).cast(kind) if not pa.types.is_dictionary(kind) else pa.array(strings).dictionary_encode()
    for start in range(5):
        piece = from_arrow(column[start : start + 3])
        assert [text_at(piece, row) for row in range(len(strings[start : start + 3]))] == strings[start : start + 3]


def test_a_column_of_numbers_or_with_a_null_is_refused() -> None:
    with pytest.raises(SourceError, match="int64"):
        from_arrow(pa.array([1]))
    with pytest.raises(SourceError, match="row 11 has no text"):
        from_arrow(pa.array(["a", None]), first=10)


@pytest.mark.parametrize(
    "raw",
    [b"\xff", b"a\xc3", b"\xc3(", b"\xe2\x82", b"\xc0\xaf", b"\xe0\x80\xaf", b"\xf4\x90\x80\x80", b"\x80", b"\xf5aaa"],
)
def test_bytes_that_are_no_utf_8_are_refused_with_their_row(raw: bytes) -> None:
    for behind in (b"", b" and much more text, so that a whole block of sixty-four bytes is read at once"):
        column = pa.array([b"fine", raw + behind, behind]).view(pa.string())
        with pytest.raises(SourceError, match="row 1 is not UTF-8"):
            find_best([from_arrow(column)], ["x"], 0.5)


def test_a_hash_collision_never_accuses() -> None:
    one, other = COLLIDING
    with pytest.raises(HashCollision):  # they do collide
        ShingleSearch(Cutter(0).all_tokens(from_strings(COLLIDING)), SHINGLE, needed_for(0.5), False)
    for method in ("exact", "reference", "minhash"):
        assert find_best(batches([other]), [one], 0.5, method).hits == ()
        assert [hit.eval_row for hit in find_best(batches([other]), [one, other], 0.5, method).hits] == [1]


def test_work_per_training_row_stays_small_under_boilerplate(tmp_path: Path) -> None:
    train, evals = generated("b", 60_000, 4_000, tmp_path)
    findings = find_best(batches(train), evals, 0.5, "reference")
    assert len(findings.hits) > 1_000
    assert findings.touches <= findings.train_rows
    assert findings.verifications <= 0.1 * findings.train_rows


@pytest.mark.parametrize("kind", ["b", "canned", "family", "typographic"])
def test_minhash_misses_less_than_one_in_a_hundred(kind: str, tmp_path: Path) -> None:
    train, evals = generated(kind, 20_000, 1_000, tmp_path)
    exact = {hit.eval_row: hit.score for hit in find_best(batches(train), evals, 0.5).hits}
    found = {hit.eval_row: hit.score for hit in find_best(batches(train), evals, 0.5, "minhash").hits}
    assert found.keys() <= exact.keys()
    assert len(found) >= 0.99 * len(exact)


def generated(kind: str, train_rows: int, eval_rows: int, folder: Path) -> tuple[list[str], list[str]]:
    """Return tickets of the benchmark's generator."""
    benchmarks = Path(__file__).resolve().parents[2] / "benchmarks"
    script = (
        "import sys; from pathlib import Path; from _tickets import write_tickets; write_tickets(Path(sys.argv[1]), "
    )
    script += f"{kind!r}, {train_rows}, {eval_rows})"
    subprocess.run([sys.executable, "-c", script, str(folder)], check=True, cwd=benchmarks)
    train, evals = (pa.parquet.read_table(folder / f"{side}.parquet")["text"].to_pylist() for side in ("train", "eval"))
    return train, evals


def test_a_flag_tells_scripts_without_blanks() -> None:
    units = Cutter(0).tokens(from_strings(["plain", "天", "ü"]), 0, 3)
    assert [bool(flag & SPACELESS) for flag in units.flags[:3]] == [False, True, False]
