"""The reader's copies are the packaged example, and what documents show exists."""

import re
from pathlib import Path

import pytest
import yaml

from ftpipeline import pipeline
from ftpipeline.example.queues import load_queues

_REPOSITORY = Path(__file__).resolve().parents[1]
_PACKAGED = _REPOSITORY / "ftpipeline" / "example" / "pipeline.yaml"
_DOCUMENTS = sorted(
    [_REPOSITORY / "README.md", *_REPOSITORY.glob("docs/**/*.md"), *_REPOSITORY.glob("examples/**/*.md")]
)


def test_the_readers_copy_is_the_packaged_example() -> None:
    assert (_REPOSITORY / "examples" / "ticket_router" / "pipeline.yaml").read_bytes() == _PACKAGED.read_bytes()


def test_the_packaged_pipeline_declares_exactly_the_generators_queues() -> None:
    assert sorted(pipeline.load(_PACKAGED).labels) == sorted(queue.name for queue in load_queues())


def test_there_are_documents_to_check() -> None:
    assert len(_DOCUMENTS) > 5


@pytest.mark.parametrize("document", _DOCUMENTS, ids=lambda path: str(path.relative_to(_REPOSITORY)))
def test_links_of_documents_lead_somewhere(document: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", document.read_text("utf-8")):
        if "://" not in target:
            assert (document.parent / target).exists(), target


def test_the_team_example_is_yaml() -> None:
    assert "storage" in yaml.safe_load((_REPOSITORY / "examples" / "team" / "dagster.yaml").read_text("utf-8"))
