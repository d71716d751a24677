"""The gate alone, through the command line: verdicts, exit codes, JSON fields, and one line for bad input."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from ftpipeline.steps.gate_arithmetic import ROLES
from ftpipeline_tests.cli.command import Outcome, ftpipeline, ftpipeline_program
from ftpipeline_tests.shared import shared
from ftpipeline_tests.steps.gate_examples import (
    CANDIDATE,
    GATES,
    PRODUCTION,
    answers_of,
    expected_of,
    measured,
    paired,
    report,
)


class Desk:
    """A folder with the files of one comparison."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.write("gates.yaml", yaml.safe_dump(GATES))

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        return path

    def gate(self, candidate: Any, production: Any, *options: object) -> Outcome:
        reports = [self.write(name, json.dumps(r)) for name, r in (("c.json", candidate), ("p.json", production))]
        return ftpipeline("gate", *reports, "--gates", self.folder / "gates.yaml", "--json", *options)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


@pytest.mark.parametrize(
    ("candidate", "production", "verdict", "code"),
    [
        (report(CANDIDATE, task=0.805), report(PRODUCTION), "pass", 0),
        (report(CANDIDATE, task=0.8049), report(PRODUCTION), "fail", 1),
        (report(CANDIDATE), None, "first_release", 0),
        (report(PRODUCTION), report(PRODUCTION), "already_production", 0),
        ({**report(CANDIDATE), "scorer": "other/2"}, report(PRODUCTION), "refused", 2),
    ],
)
def test_every_verdict_has_its_exit_code(desk: Desk, candidate: Any, production: Any, verdict: str, code: int) -> None:
    done = desk.gate(candidate, production)
    assert (done.document["verdict"], done.code) == (verdict, code)
    assert bool(done.document["reasons"]) == (verdict in ("fail", "refused"))
    assert set(done.document) == {"verdict", "reasons", "warnings", "differences", "intervals", "band"}
    assert (done.document["band"], done.document["intervals"]) == ("unmeasured", {})


def test_answers_and_a_band_bring_interval_and_noise_into_it(desk: Desk) -> None:
    expected, right, wrong = expected_of(300), answers_of(300, 240), answers_of(300, 230)
    reports = measured(CANDIDATE, expected, right), measured(PRODUCTION, expected, wrong)
    pairs = {role: each.to_json() for role, each in paired(expected, right, wrong).items()}
    with_pairs = desk.gate(*reports, "--pairs", desk.write("pairs.json", json.dumps(pairs)))
    assert with_pairs.document["verdict"] == "pass"
    assert set(with_pairs.document["intervals"]) == set(ROLES)
    band = {"roles": {role: {"scores": [0.7, 0.75, 0.8]} for role in ROLES}}
    done = desk.gate(*reports, "--band", desk.write("band.json", json.dumps(band)))
    assert (done.document["verdict"], done.code) == ("inconclusive", 1)
    assert done.document["band"]["task"] == {"spread": "0.1", "width": "0.206476"}
    assert done.document["reasons"][0]["code"] == "gain_within_noise_band"


def test_the_gates_may_stand_in_a_pipeline_file(desk: Desk) -> None:
    desk.write("gates.yaml", yaml.safe_dump({"name": "router", "gates": GATES}))
    assert desk.gate(report(CANDIDATE, task=0.9), report(PRODUCTION)).code == 0


def test_each_unmeasured_metric_of_the_cases_is_refused(desk: Desk) -> None:
    case = json.loads(shared("cases", "e", "gate_nan_metric.json").read_text())
    desk.write("gates.yaml", yaml.safe_dump(case["gates"]))
    production = report(PRODUCTION, **case["prod"])
    for candidate in case["candidates"]:
        name = candidate.pop("name")
        done = desk.gate({**report(CANDIDATE), "metrics": candidate}, production)
        assert (done.document["verdict"], done.code) == ("refused", 2), name
        assert done.document["reasons"], name


def test_each_boundary_of_the_cases_gets_its_verdict(desk: Desk) -> None:
    for case in json.loads(shared("cases", "e", "gate_float_boundary.json").read_text())["cases"]:
        role, key = (
            ("task", "task_min_gain_vs_prod") if case["kind"] == "gain" else ("regression", "regression_max_drop")
        )
        gates = {**GATES, "task_min_gain_vs_prod": 0.0, key: float(case["threshold"])}
        desk.write("gates.yaml", yaml.safe_dump(gates))
        candidate, production = {role: float(case["cand"])}, {role: float(case["prod"])}
        sides = report(CANDIDATE, **candidate), report(PRODUCTION, **production)
        assert desk.gate(*sides).document["verdict"] == case["expected"], case


def test_other_versions_of_set_and_scorer_are_refused(desk: Desk) -> None:
    case = json.loads(shared("cases", "e", "gate_version_mismatch.json").read_text())
    sides = [
        {**report(case[side]["artifact"]), "eval_sets": case[side]["eval_sets"], "scorer": case[side]["scorer_version"]}
        for side in ("cand", "prod")
    ]
    assert desk.gate(*sides).document["verdict"] == "refused"


def test_a_person_sees_the_verdict_with_its_numbers(desk: Desk) -> None:
    desk.gate(report(CANDIDATE, task=0.7), report(PRODUCTION))
    files = [desk.folder / name for name in ("c.json", "p.json", "gates.yaml")]
    done = ftpipeline_program("gate", *files[:2], "--gates", files[2])
    assert done.code == 1
    assert "gate: fail, band: unmeasured" in done.stdout
    assert "task_gain_below_threshold: task: gain -0.1 is below 0.005" in done.stdout


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("c.json", ""),
        ("c.json", "[1]"),
        ("c.json", "null"),
        ("c.json", '{"artifact": "a", "artifact": "b"}'),
        ("p.json", "[" * 100_000),
        ("p.json", '"pass"'),
        ("gates.yaml", "task_min_gain_vs_prod: 0.1"),
        ("gates.yaml", "task_min_gain_vs_prod: .nan\nregression_max_drop: 0.1\nsafety_max_drop: 0.1"),
        ("gates.yaml", "1: 2\na: 3"),
        ("gates.yaml", "gates: 3"),
        ("pairs.json", "[]"),
        ("pairs.json", '{"task": [1]}'),
        ("band.json", "{}"),
        ("band.json", '{"roles": {"task": {"scores": [0.7]}}}'),
        ("band.json", '{"roles": {"task": {"scores": [70, 71]}}}'),
        ("band.json", '{"roles": {"task": {"scores": "0.7"}}}'),
        ("band.json", '{"roles": {"task": {"scores": 3}}}'),
        ("band.json", '{"roles": 3}'),
    ],
)
def test_bad_input_is_one_line(desk: Desk, name: str, text: str) -> None:
    files = {"c.json": json.dumps(report(CANDIDATE, task=0.9)), "p.json": json.dumps(report(PRODUCTION))}
    for each, content in (files | {name: text}).items():
        desk.write(each, content)
    extra = {"pairs.json": "--pairs", "band.json": "--band"}
    options = [extra[name], desk.folder / name] if name in extra else []
    paths = [desk.folder / each for each in ("c.json", "p.json", "gates.yaml")]
    done = ftpipeline("gate", *paths[:2], "--gates", paths[2], "--json", *options)
    assert done.code in (1, 2)
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1


def test_a_missing_file_is_named(desk: Desk) -> None:
    done = ftpipeline("gate", desk.folder / "none.json", desk.folder / "p.json", "--gates", desk.folder / "gates.yaml")
    assert done.code == 2
    assert "none.json: cannot be read" in done.stderr
