"""Dagster's own programs on a tiny pipeline: started, talked to, and ended with everything that they started."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pytest

from ftpipeline.orchestration.run import prepare_dagster_home
from ftpipeline.pipeline import PIPELINES_VARIABLE
from ftpipeline.store.home import Home

ROOT = Path(__file__).parents[2]
PROGRAMS = Path(sys.executable).parent
LOCATION, REPOSITORY = "ftpipeline", "__repository__"
_HOST = "127.0.0.1"
_END_SECONDS, _POLL_SECONDS = 60.0, 0.5

Found = TypeVar("Found")

needs_proc = pytest.mark.skipif(sys.platform != "linux", reason="looks for left processes in /proc, which is Linux's")


@dataclass(frozen=True)
class Session:
    """A program and everything that it started: one session of the operating system."""

    leader: subprocess.Popen[bytes]

    def processes(self) -> dict[int, str]:
        """Return pid and command line of every process that lives."""
        folders = (folder for folder in Path("/proc").iterdir() if folder.name.isdigit())
        living = [folder for folder in folders if self._lives_here(_read(folder / "stat"))]
        return {int(folder.name): _read(folder / "cmdline").replace(b"\0", b" ").decode() for folder in living}

    def _lives_here(self, stat: bytes) -> bool:
        """Tell by the content of /proc/PID/stat; a zombie has ended and waits for its parent to hear of it."""
        state, _parent, _group, session = (stat.rpartition(b")")[2].split() or [b"Z"] * 4)[:4]
        return state != b"Z" and int(session) == self.leader.pid

    def end(self) -> list[str]:
        """Ask the program to end, wait for the others, and kill and return those that stay."""
        self.leader.send_signal(signal.SIGTERM)
        try:
            self.leader.wait(_END_SECONDS)
            wait_for(lambda: not self.processes() or None, _END_SECONDS, "end of all processes")
        except (subprocess.TimeoutExpired, TimeoutError):
            left = self.processes()
            for pid in left:
                with suppress(ProcessLookupError):  # it has ended since
                    os.kill(pid, signal.SIGKILL)
            self.leader.wait()
            return list(left.values())
        return []


@dataclass(frozen=True)
class Deployment:
    """A Dagster deployment of pipeline files: its folders and the environment that its programs run in."""

    home: Home
    pipeline_files: tuple[Path, ...]

    @property
    def environment(self) -> dict[str, str]:
        return os.environ | {
            "FTPIPELINE_HOME": str(self.home.root),
            "DAGSTER_HOME": str(self.home.dagster_home),
            PIPELINES_VARIABLE: os.pathsep.join(map(str, self.pipeline_files)),
        }

    def call(self, program: str, *arguments: str) -> None:
        """Run a program to its end; it must succeed."""
        command = [str(PROGRAMS / program), *arguments]
        done = subprocess.run(command, cwd=ROOT, env=self.environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr

    @contextmanager
    def running(self, program: str, *arguments: str) -> Iterator[Session]:
        """Keep a program running; at the end it and everything that it started must be gone."""
        log = self.home.dagster_home / f"{program}.log"
        with log.open("wb") as output:
            leader = subprocess.Popen(
                [PROGRAMS / program, *arguments],
                cwd=ROOT,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        session = Session(leader)
        try:
            yield session
        finally:
            left = session.end()
        assert not left, f"{program} left processes behind: {left}"


@dataclass(frozen=True)
class WebServer:
    """A running web server, and the session that it runs in."""

    url: str
    session: Session

    def graphql(self, query: str, **variables: Any) -> Mapping[str, Any]:
        """Return the one field that a query asks for."""
        body = json.dumps({"query": query, "variables": variables}).encode()
        request = urllib.request.Request(f"{self.url}/graphql", body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as response:
            answer = json.load(response)
        assert "errors" not in answer, answer
        (field,) = answer["data"].values()
        return dict(field)

    def launch(self, job: str, partition: str, *assets: Sequence[str]) -> str:
        """Launch a run of a job for a partition, as the UI does, and return its id; of all its assets unless named."""
        selected = {"assetSelection": [{"path": list(path)} for path in assets]} if assets else {}
        launched = self.graphql(
            "mutation($params: ExecutionParams!) { launchRun(executionParams: $params) { __typename"
            " ... on LaunchRunSuccess { run { runId } } ... on PythonError { message } } }",
            params={
                "selector": {
                    "repositoryLocationName": LOCATION,
                    "repositoryName": REPOSITORY,
                    "jobName": job,
                    **selected,
                },
                "executionMetadata": {"tags": [{"key": "dagster/partition", "value": partition}]},
            },
        )
        assert launched["__typename"] == "LaunchRunSuccess", launched
        return str(launched["run"]["runId"])

    def terminate(self, run_id: str) -> None:
        """Ask a run to end itself, as the UI's Terminate does."""
        answer = self.graphql(
            "mutation($run: String!) { terminateRun(runId: $run, terminatePolicy: SAFE_TERMINATE) { __typename } }",
            run=run_id,
        )
        assert answer["__typename"] == "TerminateRunSuccess", answer

    def status(self, run_id: str) -> str:
        found = self.graphql(
            "query($run: ID!) { runOrError(runId: $run) { __typename ... on Run { status } } }", run=run_id
        )
        return str(found["status"])


@contextmanager
def dagster_dev(deployment: Deployment) -> Iterator[WebServer]:
    """Keep web server and daemon running, and wait until the UI is served."""
    port = free_port()
    address = ("-h", _HOST, "-p", str(port), "-w", "workspace.yaml")
    with deployment.running("dagster", "dev", *address) as session:
        url = f"http://{_HOST}:{port}"
        wait_for(lambda: _is_up(url, session.leader), 120, f"answer from {url}")
        yield WebServer(url, session)


def deployment(folder: Path, *pipeline_files: Path) -> Deployment:
    """Make the folders of a deployment."""
    home = Home(folder / "home")
    prepare_dagster_home(home)
    return Deployment(home, pipeline_files)


def wait_for(look: Callable[[], Found | None], seconds: float, what: str, every: float = _POLL_SECONDS) -> Found:
    """Return what `look` finds as soon as it finds something, looking every so many seconds.

    Raises:
        TimeoutError: it found nothing in this time.
    """
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if (found := look()) is not None:
            return found
        time.sleep(every)
    raise TimeoutError(f"{what} was waited for in vain, for {seconds:.0f} s")


def free_port() -> int:
    """Return a port that nobody listens on now."""
    with socket.create_server((_HOST, 0)) as listener:
        return int(listener.getsockname()[1])


def _is_up(url: str, process: subprocess.Popen[bytes]) -> bool | None:
    assert process.poll() is None, "the web server ended; its log is beside its instance"
    try:
        with urllib.request.urlopen(f"{url}/server_info", timeout=5):
            return True
    except OSError:
        return None


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:  # the process has ended, or is somebody else's
        return b""
