"""The picture of an incident."""

from typing import Any
from xml.etree import ElementTree

from ftpipeline.orchestration.taint_graph import taint_graph

SVG = "{http://www.w3.org/2000/svg}"


def edge(producer: str, consumer: str, consumed_at: Any = (1, 60)) -> dict[str, Any]:
    at = None if consumed_at is None else list(consumed_at)
    return {
        "producer": producer,
        "produced_at": [1, 145],
        "consumer": consumer,
        "consumed_at": at,
        "kind": "weights",
    }


def job(name: str, state: str, *witness: dict[str, Any]) -> dict[str, Any]:
    since = None if state in ("clean", "unknown") else [1, 60]
    return {"job_id": name, "state": state, "tainted_from": since, "witness": list(witness)}


def texts(svg: str) -> list[str]:
    return [str(element.text) for element in ElementTree.fromstring(svg).iter(f"{SVG}text")]


def test_every_job_that_is_not_clean_is_drawn_once_and_each_consumption_is_an_arrow() -> None:
    to_b = edge("A", "B")
    jobs = [job("A", "source"), job("B", "tainted", to_b), job("C", "tainted", to_b, edge("B", "C")), job("D", "clean")]
    svg = taint_graph(jobs, "C")
    drawn = ElementTree.fromstring(svg)
    assert [title.text for title in drawn.iter(f"{SVG}title")] == ["A", "B", "C"]
    assert len([path for path in drawn.iter(f"{SVG}path") if path.get("marker-end")]) == 2
    assert "tainted from 1/60" in texts(svg)


def test_the_witness_path_of_the_chosen_job_is_bold() -> None:
    jobs = [job("A", "source"), job("B", "tainted", edge("A", "B")), job("F", "tainted", edge("A", "F"))]
    paths = [
        path for path in ElementTree.fromstring(taint_graph(jobs, "F")).iter(f"{SVG}path") if path.get("marker-end")
    ]
    assert sorted(str(path.get("stroke-width")) for path in paths) == ["1.5", "3"]


def test_names_are_escaped_and_shortened() -> None:
    name = "<b>" + "x" * 80
    svg = taint_graph([job(name, "source")], name)
    [title] = ElementTree.fromstring(svg).iter(f"{SVG}title")
    assert title.text == name
    assert all(len(text) < 40 for text in texts(svg))


def test_a_fleet_of_which_nothing_is_known_is_still_a_picture() -> None:
    assert "at an unknown step" in " ".join(texts(taint_graph([job("A", "unknown", edge("A", "A", None))], "A")))
    ElementTree.fromstring(taint_graph([], "A"))
