"""Fixtures that scenarios share."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from ftpipeline.digest import Digest
from ftpipeline_tests.scenarios.release_site import ReleaseSite, build_release_site, copied

Built = tuple[Path, Mapping[str, Mapping[str, Digest]]]


@pytest.fixture(scope="session")
def built_release(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """A site that is never touched again, and what was made there."""
    folder = tmp_path_factory.mktemp("release")
    return folder, build_release_site(folder)


@pytest.fixture
def site(built_release: Built, tmp_path: Path) -> Iterator[ReleaseSite]:
    """A copy of it for one attempt."""
    with copied(built_release[0], tmp_path / "site", built_release[1]) as site:
        yield site
