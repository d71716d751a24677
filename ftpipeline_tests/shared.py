"""The material beside the repository: read in place, and skipped with a reason where it is absent."""

from pathlib import Path

import pytest

_SHARED = Path(__file__).resolve().parents[2] / "shared"


def shared(*parts: str) -> Path:
    """Return a path of the material, or skip the test."""
    path = _SHARED.joinpath(*parts)
    if not path.exists():
        pytest.skip(f"needs {'/'.join(('shared', *parts))} beside the repository")
    return path
