"""What a registration must bring with it: a manifest that pins base model and eval sets, and a report of its own.

The fields are read one by one: a manifest of an earlier release has others beside them, and stays readable.
"""

import re
from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection

from ftpipeline.digest import Digest, parse_json
from ftpipeline.errors import (
    BaseModelMismatchError,
    CanonicalFormError,
    ForeignReportError,
    ManifestError,
    StaleEvalSetError,
)
from ftpipeline.schema import ROLES
from ftpipeline.store.eval_sets import newest_version
from ftpipeline.store.trees import Trees

MANIFEST_FILE, REPORT_FILE = "manifest.json", "candidate.json"

_EVAL_SET = re.compile(r"evalset://(?P<name>.+)/(?P<version>v[0-9]+)@(?P<digest>sha256:[0-9a-f]{64})")
_UNREADABLE = (KeyError, TypeError, ValueError, CanonicalFormError)


def check_base_model(trees: Trees, manifest: Digest, base_model: Digest) -> None:
    """Refuse a base model other than the one that the manifest pins: on another one an adapter answers nonsense.

    Raises:
        BaseModelMismatchError: the manifest pins another base model.
        ManifestError: it pins none by its content.
        CorruptArtifactError: the manifest is missing or altered.
    """
    try:
        pinned = _document(trees, manifest, MANIFEST_FILE)["base_model"]["tree_sha256"]
    except _UNREADABLE as error:
        raise ManifestError(f"manifest {manifest} pins no base_model.tree_sha256 ({error!r}); pin it first") from error
    if pinned != base_model:
        raise BaseModelMismatchError(
            f"manifest {manifest} pins base model {pinned}, not {base_model}; register what was made from that"
        )


def check_report(trees: Trees, report: Digest, artifact: Digest) -> None:
    """Refuse a report about another artifact.

    Raises:
        ForeignReportError: it is about something else, or about nothing that can be read.
        CorruptArtifactError: the report is missing or altered.
    """
    try:
        about = _document(trees, report, REPORT_FILE)["artifact"]
    except _UNREADABLE as error:
        raise ForeignReportError(f"report {report} names no artifact ({error!r}); evaluate {artifact} again") from error
    if about != artifact:
        raise ForeignReportError(f"report {report} is about {about}, not about {artifact}; evaluate that artifact")


def pinned_eval_sets(trees: Trees, manifest: Digest) -> dict[str, Mapping[str, str]]:
    """Return name, version and digest of the eval set of every role that a manifest pins.

    Raises:
        ManifestError: a role's eval set is not pinned by its content.
        CorruptArtifactError: the manifest is missing or altered.
    """
    try:
        references = _document(trees, manifest, MANIFEST_FILE)["eval_sets"]
        found = {role: _EVAL_SET.fullmatch(references[role]) for role in ROLES}
    except _UNREADABLE as error:
        raise ManifestError(f"manifest {manifest} pins no eval sets ({error!r}); pin them first") from error
    if loose := [role for role, match in found.items() if match is None]:
        raise ManifestError(f"manifest {manifest} does not pin the content of eval_sets.{loose[0]}; pin it first")
    return {role: match.groupdict() for role, match in found.items() if match is not None}


def check_eval_sets(connection: Connection, pinned: Mapping[str, Mapping[str, str]]) -> None:
    """Refuse a gate on eval sets that are not the newest of their names any more, or that were never frozen here.

    Raises:
        StaleEvalSetError: there is a newer version, or the version stands for other content here.
    """
    for role, eval_set in pinned.items():
        newest = newest_version(connection, eval_set["name"])
        if newest != (eval_set["version"], eval_set["digest"]):
            now = "none that was frozen here" if newest is None else f"{newest[0]} ({newest[1]})"
            raise StaleEvalSetError(
                f"the gate measured {role} on {eval_set['name']} {eval_set['version']} ({eval_set['digest']}), and the"
                f" newest version is {now}; run the week again to gate on it"
            )


def _document(trees: Trees, tree: Digest, file: str) -> Any:
    return parse_json(trees.read(tree, file))
