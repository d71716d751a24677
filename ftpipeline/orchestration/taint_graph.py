"""The picture of an incident: who consumed whom, from the source of the divergence on, as one SVG."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from ftpipeline.orchestration import plots

_COLOURS: Mapping[str, str] = {"source": "#b91c1c", "tainted": "#d97706", "unknown": "#64748b", "clean": "#059669"}
_WIDTH, _HEIGHT, _ACROSS, _DOWN, _MARGIN = 190, 44, 130, 26, 16
_NAME_LENGTH = 28
_CHOSEN, _PLAIN = "#1e1b4b", "#94a3b8"
_HEAD = (
    '<defs><marker id="head" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="9" markerHeight="9" '
    f'markerUnits="userSpaceOnUse" orient="auto"><path d="M0 0 L8 4 L0 8 z" fill="{_PLAIN}"/></marker></defs>'
)

Json = Mapping[str, Any]
Place = tuple[float, float]


def taint_graph(jobs: Sequence[Json], chosen: str) -> str:
    """Draw the jobs of an incident that are not clean.

    Args:
        jobs: findings of a trace as JSON; the consumptions are those of their witness paths.
        chosen: the job whose witness path is drawn in bold.
    """
    shown = {job["job_id"]: job for job in jobs if job["state"] != "clean"}
    columns = _columns(shown)
    places = {
        job_id: (_MARGIN + column * (_WIDTH + _ACROSS), _MARGIN + row * (_HEIGHT + _DOWN))
        for column, members in enumerate(columns)
        for row, job_id in enumerate(members)
    }
    bold = {_ends(edge) for edge in shown[chosen]["witness"]} if chosen in shown else set()
    edges = {_ends(edge): edge for job in shown.values() for edge in job["witness"]}
    parts = [_arrow(places, edge, ends in bold) for ends, edge in sorted(edges.items()) if set(ends) <= places.keys()]
    parts += [_box(place, shown[job_id], job_id == chosen) for job_id, place in places.items()]
    width = 2 * _MARGIN + len(columns) * (_WIDTH + _ACROSS) - _ACROSS
    height = 2 * _MARGIN + max(map(len, columns), default=1) * (_HEIGHT + _DOWN) - _DOWN
    return plots.svg([_HEAD, *parts], max(width, _WIDTH), max(height, _HEIGHT))


def _columns(shown: Mapping[str, Json]) -> list[list[str]]:
    """Return the jobs by how many consumptions they are away from a source."""
    by_distance: dict[int, list[str]] = {}
    for job_id, job in sorted(shown.items()):
        by_distance.setdefault(len(job["witness"]), []).append(job_id)
    return [by_distance[distance] for distance in sorted(by_distance)]


def _ends(edge: Json) -> tuple[str, str]:
    return edge["producer"], edge["consumer"]


def _box(place: Place, job: Json, is_chosen: bool) -> str:
    x, y = place
    state, since = job["state"], job["tainted_from"]
    when = state if since is None else f"{state} from {_clock(since)}"
    border = f'stroke="{_CHOSEN}" stroke-width="3"' if is_chosen else ""
    return (
        f'<rect x="{x}" y="{y}" width="{_WIDTH}" height="{_HEIGHT}" rx="6" fill="{_COLOURS[state]}" {border}>'
        f"<title>{escape(job['job_id'])}</title></rect>"
        + plots.text(x + _WIDTH / 2, y + 18, _short(job["job_id"]), "middle", "#ffffff", 12)
        + plots.text(x + _WIDTH / 2, y + 34, when, "middle", "#ffffff", 10)
    )


def _arrow(places: Mapping[str, Place], edge: Json, is_bold: bool) -> str:
    (x0, y0), (x1, y1) = places[edge["producer"]], places[edge["consumer"]]
    start, end = (x0 + _WIDTH, y0 + _HEIGHT / 2), (x1, y1 + _HEIGHT / 2)
    colour, width = (_CHOSEN, 3) if is_bold else (_PLAIN, 1.5)
    line = f'<path d="M{start[0]} {start[1]} L{end[0]} {end[1]}" stroke="{colour}" stroke-width="{width}" fill="none"'
    label = f"{edge['kind']} at {_clock(edge['consumed_at'])}"
    middle = (start[0] + end[0]) / 2, (start[1] + end[1]) / 2 - 4
    return f'{line} marker-end="url(#head)"/>' + plots.text(*middle, label, "middle", size=9)


def _clock(position: Sequence[int] | None) -> str:
    return "an unknown step" if position is None else f"{position[0]}/{position[1]}"


def _short(name: str) -> str:
    return name if len(name) <= _NAME_LENGTH else f"{name[: _NAME_LENGTH - 1]}…"
