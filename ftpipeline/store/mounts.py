"""Which file systems SQLite's locks can be trusted on (contract C3)."""

import re
from pathlib import Path

_MOUNTS = Path("/proc/self/mountinfo")  # Linux only; elsewhere nothing can be told and nothing is refused
_NETWORK = {
    *("9p", "afs", "beegfs", "ceph", "cifs", "davfs", "glusterfs", "gpfs", "lustre", "ncpfs", "nfs", "nfs4"),
    *("smb2", "smb3", "smbfs"),
    *("fuse.ceph", "fuse.gcsfuse", "fuse.glusterfs", "fuse.rclone", "fuse.s3fs", "fuse.sshfs"),
}


def network_file_system(path: Path) -> str | None:
    """Return the type of the network file system that `path` is, or would be, on; None when it is a local one."""
    if not _MOUNTS.exists():
        return None
    kind = file_system_type(path.resolve(), _MOUNTS.read_text(encoding="utf-8", errors="surrogateescape"))
    return kind if kind in _NETWORK else None


def file_system_type(path: Path, mountinfo: str) -> str:
    """Return the type of the file system that holds the absolute `path`.

    Args:
        path: absolute and without links; need not exist.
        mountinfo: text in the format of /proc/self/mountinfo (proc(5)).

    Returns:
        The type of the innermost mount above `path`, the latest one where mounts are stacked; empty when there is none.
    """
    kind, depth = "", 0
    for line in mountinfo.splitlines():
        before, _, after = line.partition(" - ")
        mount_point = Path(_unescaped(before.split(" ")[4]))
        if path.is_relative_to(mount_point) and len(mount_point.parts) >= depth:
            kind, depth = after.split(" ")[0], len(mount_point.parts)
    return kind


def _unescaped(text: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), text)
