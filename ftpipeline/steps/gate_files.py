"""The files that a gate is decided from: two reports, and the paired answers beside them."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ftpipeline.digest import Digest, parse_json
from ftpipeline.errors import CanonicalFormError, GateRecordError
from ftpipeline.steps.gate_reports import Report
from ftpipeline.steps.paired import Pairs

PAIRS_FILE = "pairs.json"
"""Answers of candidate and production by role; only where both were evaluated."""


def read_report(path: Path, artifact: Digest) -> Report:
    """Read the report about an artifact.

    Raises:
        GateRecordError: it cannot be read, or is about another artifact.
    """
    try:
        report = json.loads(path.read_bytes())  # a NaN is read: the gate refuses it by name
    except (OSError, ValueError) as error:
        raise GateRecordError(f"report {path.name} cannot be read ({error}); evaluate {artifact} again") from error
    about = report.get("artifact") if isinstance(report, dict) else None
    if about != artifact:
        raise GateRecordError(f"report {path.name} is about {about}, not about {artifact}; evaluate that artifact")
    return dict(report)


def read_answers(folder: Path) -> dict[str, Pairs]:
    """Read the paired answers by role; a role that is missing is the gate's affair.

    Raises:
        GateRecordError: they are missing or not what the report step wrote.
    """
    path = folder / PAIRS_FILE
    try:
        document = parse_json(path.read_bytes())
    except (OSError, CanonicalFormError) as error:
        raise GateRecordError(f"{path.name} cannot be read ({error}); evaluate both artifacts again") from error
    return answers_by_role(document)


def answers_by_role(document: Any) -> dict[str, Pairs]:
    """Return the content of a `pairs.json`.

    Raises:
        GateRecordError: it is something else.
    """
    if not isinstance(document, Mapping):
        raise GateRecordError("the paired answers are not given by role; evaluate both artifacts again")
    return {role: Pairs.from_json(rows) for role, rows in document.items()}
