from pathlib import Path

import pytest

from ftpipeline.errors import DatabaseError
from ftpipeline.store import mounts
from ftpipeline.store.database import Database
from ftpipeline.store.mounts import file_system_type

MOUNTINFO = r"""22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
30 22 0:44 / /mnt/team rw shared:9 master:1 - nfs4 server:/team rw,vers=4.2
31 30 254:1 / /mnt/team/local rw - xfs /dev/vdb rw
32 22 0:45 / /mnt/with\040space rw - fuse.sshfs me@host: rw
33 22 0:46 / /stacked rw - ext4 /dev/vdc rw
34 33 0:47 / /stacked rw - cifs //host/share rw
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/home/db", "ext4"),
        ("/mnt/team/db", "nfs4"),
        ("/mnt/teamwork/db", "ext4"),
        ("/mnt/team/local/db", "xfs"),
        ("/mnt/with space/db", "fuse.sshfs"),
        ("/stacked/db", "cifs"),
    ],
)
def test_the_innermost_and_latest_mount_decides(path: str, kind: str) -> None:
    assert file_system_type(Path(path), MOUNTINFO) == kind


def test_this_machine_has_a_file_system_at_its_root() -> None:
    assert file_system_type(Path("/"), Path("/proc/self/mountinfo").read_text())


@pytest.mark.parametrize("kind", ["nfs", "nfs4", "cifs", "smb3", "fuse.sshfs", "9p", "ceph", "lustre"])
def test_sqlite_on_a_network_file_system_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    (tmp_path / "mountinfo").write_text(f"22 1 0:1 / {tmp_path} rw - {kind} server:/ rw\n")
    monkeypatch.setattr(mounts, "_MOUNTS", tmp_path / "mountinfo")
    with pytest.raises(DatabaseError, match=rf"network file system \({kind}\)"):
        Database.open(f"sqlite:///{tmp_path}/ftpipeline.db")
    assert not (tmp_path / "ftpipeline.db").exists()
