"""Small plots as SVG, inlined in markdown: the UI renders them where a person looks at an asset."""

import base64
from collections.abc import Mapping, Sequence
from html import escape

_WIDTH, _HEIGHT, _MARGIN = 640, 260, 44
_COLOURS = ("#4f46e5", "#d97706", "#059669")


def inline(svg: str, alt: str) -> str:
    """Return an SVG as a markdown image that needs no other file."""
    return f"![{alt}](data:image/svg+xml;base64,{base64.b64encode(svg.encode()).decode()})"


def curves(series: Mapping[str, Sequence[tuple[float, float]]], x_label: str) -> str:
    """Draw lines of (x, y) points, all finite.

    Args:
        series: name to points; an empty series is left out.
        x_label: unit of x.
    """
    drawn = {name: points for name, points in series.items() if points}
    if not drawn:
        return _svg([_text(_WIDTH / 2, _HEIGHT / 2, "nothing was measured", "middle")], _WIDTH, _HEIGHT)
    xs = [x for points in drawn.values() for x, _ in points]
    ys = [y for points in drawn.values() for _, y in points]
    (left, right), (low, high) = _range(xs), _range(ys)

    def place(x: float, y: float) -> str:
        across = _MARGIN + (x - left) / (right - left) * (_WIDTH - 2 * _MARGIN)
        down = _HEIGHT - _MARGIN - (y - low) / (high - low) * (_HEIGHT - 2 * _MARGIN)
        return f"{across:.1f},{down:.1f}"

    parts = [_axes(left, right, low, high, x_label)]
    for index, (name, points) in enumerate(drawn.items()):
        colour = _COLOURS[index % len(_COLOURS)]
        line = " ".join(place(x, y) for x, y in points)
        parts.append(f'<polyline fill="none" stroke="{colour}" stroke-width="2" points="{line}"/>')
        parts.append(_text(_MARGIN + 8 + 120 * index, 18, name, "start", colour))
    return _svg(parts, _WIDTH, _HEIGHT)


def heatmap(labels: Sequence[str], counts: Mapping[tuple[str, str], int], columns: Sequence[str]) -> str:
    """Draw a confusion matrix: a row an expected label, a column an answer, darker with the row's share.

    Args:
        labels: rows, in order.
        counts: (expected, answer) to count.
        columns: answers, in order.
    """
    cell = max(6, min(22, 900 // max(len(columns), 1)))
    margin = 190
    parts = []
    for row, expected in enumerate(labels):
        total = sum(counts.get((expected, answer), 0) for answer in columns)
        parts.append(_text(margin - 6, row * cell + cell - 3, expected[:28], "end", size=min(11, cell)))
        for column, answer in enumerate(columns):
            if count := counts.get((expected, answer), 0):
                title = escape(f"{expected} answered {answer}: {count} of {total}")
                colour = _COLOURS[2] if expected == answer else _COLOURS[1]
                parts.append(
                    f'<rect x="{margin + column * cell}" y="{row * cell}" width="{cell - 1}" height="{cell - 1}" '
                    f'fill="{colour}" fill-opacity="{0.15 + 0.85 * count / total:.2f}"><title>{title}</title></rect>'
                )
    return _svg(parts, margin + cell * len(columns) + 10, cell * len(labels) + 10)


def _range(values: Sequence[float]) -> tuple[float, float]:
    low, high = min(values), max(values)
    return (low, high) if high > low else (low - 0.5, high + 0.5)


def _axes(left: float, right: float, low: float, high: float, x_label: str) -> str:
    bottom, end = _HEIGHT - _MARGIN, _WIDTH - _MARGIN
    lines = f'<path d="M{_MARGIN} {_MARGIN} V{bottom} H{end}" fill="none" stroke="#94a3b8"/>'
    texts = (
        _text(_MARGIN, bottom + 16, f"{left:g}", "start"),
        _text(end, bottom + 16, f"{right:g}", "end"),
        _text(_WIDTH / 2, bottom + 30, x_label, "middle"),
        _text(_MARGIN - 4, bottom, f"{low:.3g}", "end"),
        _text(_MARGIN - 4, _MARGIN + 4, f"{high:.3g}", "end"),
    )
    return lines + "".join(texts)


def _text(x: float, y: float, text: str, anchor: str, colour: str = "#475569", size: int = 11) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" font-family="sans-serif" '
        f'fill="{colour}">{escape(text)}</text>'
    )


def _svg(parts: Sequence[str], width: float, height: float) -> str:
    body = "".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}"><rect width="100%" height="100%" fill="white"/>{body}</svg>'
    )
