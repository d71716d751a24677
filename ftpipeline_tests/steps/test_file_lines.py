"""A line's place is the byte that it begins at, in any encoding and whatever ends the lines."""

import csv
import io
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ftpipeline.errors import SourceError
from ftpipeline.steps.file_lines import Lines
from ftpipeline.steps.row_files import FileRows, RowFile
from ftpipeline.steps.row_formats import Dialect

ENCODINGS = ("utf-8", "utf-8-sig", "latin-1", "utf-16-le", "utf-16-be", "utf-16", "utf-32", "shift_jis", "gb18030")
LETTERS = "abc,;\"' \u0a0d\u0d0a\u0a0a\u3042\u00fc"  # some hold the byte of a line's end in UTF-16
ENDS = st.sampled_from(["\n", "\r\n", "\r"])


def _encoded(texts: list[str], encoding: str) -> list[bytes]:
    """Encode texts that stand one behind the other; the first holds the byte order mark."""
    known = [text.encode(encoding, "ignore").decode(encoding) for text in texts]
    totals = ["".join(known[: n + 1]).encode(encoding) for n in range(len(known))]
    return [total[len(before) :] for before, total in zip([b"", *totals], totals, strict=False)]


lines_of_text = st.lists(st.tuples(st.text(LETTERS, max_size=6), ENDS), max_size=8)


@given(rows=lines_of_text, encoding=st.sampled_from(ENCODINGS), any_end=st.booleans())
def test_lines_and_their_bytes_are_the_whole_file(rows: list[tuple[str, str]], encoding: str, any_end: bool) -> None:
    data = b"".join(_encoded([text + end for text, end in rows], encoding))
    lines = Lines(data, encoding, carriage_return_ends=any_end)
    places = _placed(lines)
    expected = io.TextIOWrapper(io.BytesIO(data), encoding, newline="" if any_end else "\n")
    assert [line for _, line in places] == list(expected)
    assert [place for place, _ in places] == _scanned([line for _, line in places], encoding)


def _placed(lines: Lines) -> list[tuple[int, str]]:
    """Return each line with the place that was told before it came."""
    placed = []
    begin = lines.position
    for line in lines:
        placed.append((begin, line))
        begin = lines.position
    return placed


def _scanned(lines: list[str], encoding: str) -> list[int]:
    sizes = [len(part) for part in _encoded(lines, encoding)]
    return [sum(sizes[:n]) for n in range(len(sizes))]


broken = st.binary(max_size=12).map(lambda data: data.translate(None, b"\n"))


@given(rows=st.lists(broken, max_size=8), mark=st.booleans())
def test_every_line_of_jsonl_is_found_by_a_scan_for_its_end(
    rows: list[bytes], mark: bool, tmp_path_factory: Any
) -> None:
    data = b"\xef\xbb\xbf" * mark + b"\n".join(rows)
    bad = _read(tmp_path_factory.mktemp("jsonl") / "t.jsonl", data, Dialect("jsonl"))
    begins = [0, *(place + 1 for place, byte in enumerate(data) if byte == ord("\n"))]
    for record in bad.malformed:
        assert record.place.byte_offset == begins[(record.place.line or 0) - 1]
    assert {record.place.line for record in bad.malformed} == {
        n for n, line in enumerate(data.removeprefix(b"\xef\xbb\xbf").split(b"\n"), 1) if _is_filled(line)
    }


def _is_filled(line: bytes) -> bool:
    return bool(line.decode("utf-8", "surrogateescape").strip())


cells = st.text('ab,"\n\r\u00fc\u2019', max_size=5)


@given(rows=st.lists(st.tuples(cells, cells, ENDS), min_size=1, max_size=6), spoilt=st.sets(st.integers(0, 5)))
def test_every_record_of_csv_begins_where_it_was_written(
    rows: list[tuple[str, str, str]], spoilt: set[int], tmp_path_factory: Any
) -> None:
    data, begins = b"a,b\n", []
    for n, (one, other, end) in enumerate(rows):
        begins.append(len(data))
        fields = [one, other, "too many"] if n in spoilt else [one, other]
        data += ",".join('"' + field.replace('"', '""') + '"' for field in fields).encode() + end.encode()
    read = _read(tmp_path_factory.mktemp("csv") / "t.csv", data, Dialect("csv"))
    assert [record.place.byte_offset for record in read.malformed] == [
        begins[n] for n in sorted(spoilt & set(range(len(rows))))
    ]
    assert [place.byte_offset for place in read.places] == [begins[n] for n in range(len(rows)) if n not in spoilt]
    for place in read.places:
        first = next(csv.reader(io.StringIO(data[place.byte_offset :].decode(), newline="")))
        assert first == list(rows[(place.row or 0) - 1][:2])


def _read(path: Path, data: bytes, dialect: Dialect) -> FileRows:
    path.write_bytes(data)
    return RowFile(path, dialect).read(["a", "b"] if dialect.format == "csv" else None)


@pytest.mark.parametrize(
    ("data", "encoding", "place"),
    [
        ("a,b\nx,y\n".encode("utf-16-le") + b"\x00\xdc" + "z\n".encode("utf-16-le"), "utf-16-le", 16),
        (("a,b\n" * 3000).encode("utf-16-le") + b"\x00\xdc", "utf-16-le", 24000),
        ("a,b\n".encode("utf-16-le"), "utf-16", 0),
    ],
)
def test_bytes_that_a_codec_cannot_pass_by_are_refused_with_their_place(
    tmp_path: Path, data: bytes, encoding: str, place: int
) -> None:
    with pytest.raises(SourceError, match=f"byte {place} is not in its encoding"):
        _read(tmp_path / "t.csv", data, Dialect("csv", encoding))
