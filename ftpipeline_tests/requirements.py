"""Programs that some tests need and a machine may lack."""

import os
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import NoReturn

import pytest


def require(*names: str, how: str, folders: Iterable[Path] = ()) -> Path:
    """Return the first program of these names that is on PATH or, failing that, in `folders`.

    Without one the test is skipped; under CI=true it fails, so that CI never passes by not looking.

    Args:
        names: names of the program, the preferred one first.
        how: the way to get it, for the reason.
        folders: where else it may stand, the preferred folder first.
    """
    places = [None, *(str(folder) for folder in folders)]
    found = (shutil.which(name, path=place) for place in places for name in names)
    if program := next(filter(None, found), None):
        return Path(program)
    missing(f"{' or '.join(names)} not found; {how}")


def missing(reason: str) -> NoReturn:
    """Skip the test for `reason`; under CI=true fail it."""
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)
