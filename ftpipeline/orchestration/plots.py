"""Small plots as SVG, inlined in markdown: the UI renders them where a person looks at an asset."""

import base64
from collections.abc import Iterable, Mapping, Sequence
from html import escape

_WIDTH, _HEIGHT, _MARGIN = 640, 260, 44
_COLOURS = ("#4f46e5", "#d97706", "#059669")
_RIGHT, _WRONG = _COLOURS[2], _COLOURS[1]
_NAME_LENGTH, _LETTER_WIDTH = 28, 6.2
_BAR, _BAR_WIDTH = 18, 380
_CELL_MIN, _CELL_MAX, _CELL_WITH_COUNT, _MATRIX_WIDTH = 8, 40, 24, 900

Point = tuple[float, float]


def inline(picture: str, alt: str) -> str:
    """Return an SVG as a markdown image that needs no other file."""
    return f"![{alt}](data:image/svg+xml;base64,{base64.b64encode(picture.encode()).decode()})"


def curves(series: Mapping[str, Sequence[Point]], x_label: str) -> str:
    """Draw lines of (x, y) points, all finite; a single point is drawn as a dot.

    Args:
        series: name to points; an empty series is left out.
        x_label: unit of x.
    """
    drawn = {name: points for name, points in series.items() if points}
    if not drawn:
        return svg([text(_WIDTH / 2, _HEIGHT / 2, "nothing was measured", "middle")], _WIDTH, _HEIGHT)
    left, right = _range([x for points in drawn.values() for x, _ in points])
    low, high = _range([y for points in drawn.values() for _, y in points])

    def place(point: Point) -> Point:
        across = _MARGIN + (point[0] - left) / (right - left) * (_WIDTH - 2 * _MARGIN)
        return across, _HEIGHT - _MARGIN - (point[1] - low) / (high - low) * (_HEIGHT - 2 * _MARGIN)

    parts = [_axes(left, right, low, high, x_label)]
    for index, (name, points) in enumerate(drawn.items()):
        colour = _COLOURS[index % len(_COLOURS)]
        parts.append(_line([place(point) for point in points], colour))
        parts.append(text(_MARGIN + 8 + 120 * index, 18, name, "start", colour))
    return svg(parts, _WIDTH, _HEIGHT)


def bars(counts: Mapping[str, int]) -> str:
    """Draw a horizontal bar for each name, the largest count first."""
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    start, scale = _room_for(counts), _BAR_WIDTH / max([1, *counts.values()])
    parts = []
    for index, (name, count) in enumerate(ordered):
        top = index * _BAR
        parts.append(text(start - 6, top + 13, name[:_NAME_LENGTH], "end"))
        parts.append(_rectangle(start, top + 2, count * scale, _BAR - 4, _COLOURS[0]))
        parts.append(text(start + count * scale + 4, top + 13, str(count), "start"))
    return svg(parts, start + _BAR_WIDTH + 60, _BAR * len(ordered) + 4)


def heatmap(counts: Mapping[tuple[str, str], int]) -> str:
    """Draw a confusion matrix: a row an expected answer, a column an answer given, darker with the row's share.

    Args:
        counts: (expected, answer) to count; pairs that never occurred may be missing.
    """
    rows = sorted({expected for expected, _ in counts})
    columns = [*rows, *sorted({answer for _, answer in counts} - set(rows))]
    cell = max(_CELL_MIN, min(_CELL_MAX, _MATRIX_WIDTH // max(len(columns), 1)))
    size, left, top = min(11, cell), _room_for(rows), _room_for(columns)
    parts = []
    for index, answer in enumerate(columns):
        x = left + index * cell + cell / 2 + size / 3
        parts.append(text(x, top - 6, answer[:_NAME_LENGTH], "start", size=size, turned=True))
    for index, expected in enumerate(rows):
        y = top + index * cell
        parts.append(text(left - 6, y + (cell + size) / 2 - 1, expected[:_NAME_LENGTH], "end", size=size))
        parts += _cells(expected, [counts.get((expected, answer), 0) for answer in columns], columns, cell, (left, y))
    bottom = top + cell * len(rows)
    parts.append(text(4, bottom + 16, "rows: expected, columns: answered", "start"))
    return svg(parts, max(left + cell * len(columns) + 10, 220), bottom + 24)


def _cells(expected: str, counts: Sequence[int], columns: Sequence[str], cell: int, corner: Point) -> list[str]:
    """One row of a confusion matrix, with its counts where there is room for them."""
    parts = []
    for index, (answer, count) in enumerate(zip(columns, counts, strict=True)):
        if not count:
            continue
        x, y = corner[0] + index * cell, corner[1]
        title = f"{expected} answered {answer}: {count} of {sum(counts)}"
        colour, share = _RIGHT if expected == answer else _WRONG, count / sum(counts)
        parts.append(_rectangle(x, y, cell - 1, cell - 1, colour, 0.15 + 0.85 * share, title))
        if cell >= _CELL_WITH_COUNT:
            parts.append(text(x + cell / 2, y + cell / 2 + 4, str(count), "middle", "#0f172a"))
    return parts


def _room_for(names: Iterable[str]) -> float:
    """Return the width that names take, in pixels."""
    return 16 + _LETTER_WIDTH * min(_NAME_LENGTH, max(map(len, names), default=0))


def _range(values: Sequence[float]) -> tuple[float, float]:
    low, high = min(values), max(values)
    return (low, high) if high > low else (low - 0.5, high + 0.5)


def _line(points: Sequence[Point], colour: str) -> str:
    if len(points) == 1:
        return f'<circle cx="{points[0][0]:.1f}" cy="{points[0][1]:.1f}" r="5" fill="{colour}"/>'
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return f'<polyline fill="none" stroke="{colour}" stroke-width="2" points="{line}"/>'


def _axes(left: float, right: float, low: float, high: float, x_label: str) -> str:
    bottom, end = _HEIGHT - _MARGIN, _WIDTH - _MARGIN
    lines = f'<path d="M{_MARGIN} {_MARGIN} V{bottom} H{end}" fill="none" stroke="#94a3b8"/>'
    texts = (
        text(_MARGIN, bottom + 16, f"{left:g}", "start"),
        text(end, bottom + 16, f"{right:g}", "end"),
        text(_WIDTH / 2, bottom + 30, x_label, "middle"),
        text(_MARGIN - 4, bottom, f"{low:.3g}", "end"),
        text(_MARGIN - 4, _MARGIN + 4, f"{high:.3g}", "end"),
    )
    return lines + "".join(texts)


def _rectangle(
    x: float, y: float, width: float, height: float, colour: str, opacity: float = 1.0, title: str = ""
) -> str:
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{colour}" '
        f'fill-opacity="{opacity:.2f}"><title>{escape(title)}</title></rect>'
    )


def text(
    x: float, y: float, said: str, anchor: str, colour: str = "#475569", size: int = 11, *, turned: bool = False
) -> str:
    """Return a line of text; `anchor` is the end of it that stands at (x, y)."""
    turn = f'transform="rotate(-90 {x:.1f} {y:.1f})" ' if turned else ""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" {turn}text-anchor="{anchor}" font-size="{size}" font-family="sans-serif" '
        f'fill="{colour}">{escape(said)}</text>'
    )


def svg(parts: Sequence[str], width: float, height: float) -> str:
    """Return parts as one picture on white, in pixels."""
    body = "".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}"><rect width="100%" height="100%" fill="white"/>{body}</svg>'
    )
