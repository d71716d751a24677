"""Which code a manifest names: the git commit the pipeline file stands in, else the installed package (contract C7)."""

import subprocess
from importlib import metadata
from pathlib import Path

from ftpipeline import digest
from ftpipeline.errors import ManifestError
from ftpipeline.manifest import Code


def code_identity(folder: Path) -> Code:
    """Return the commit of the work tree that `folder` lies in, or the installed package's identity.

    Raises:
        ManifestError: neither is there.
    """
    commit = _git(folder, "rev-parse", "HEAD")
    if commit is not None:
        return Code(git_commit=commit, dirty=bool(_git(folder, "status", "--porcelain", "--", ".")))
    return Code(git_commit=_package_record())


def _git(folder: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None  # no git, no work tree or no commit: the package is asked instead
    return done.stdout.strip()


def _package_record() -> str:
    """Return the digest of the installed package's RECORD, which lists every file with its hash."""
    try:
        record = metadata.distribution("ftpipeline").read_text("RECORD")
    except metadata.PackageNotFoundError:
        record = None
    if not record:
        raise ManifestError(
            "code.git_commit: no git commit and no installed package; commit the pipeline's folder to git"
        )
    return digest.of_bytes(record.encode())
