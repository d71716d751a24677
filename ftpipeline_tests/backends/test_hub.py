"""The hub client against a hub of one repository that answers the hub's two questions: which files, and their bytes."""

import hashlib
import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from ftpipeline.backends.hub import HuggingFaceHub
from ftpipeline.errors import WorkerError

COMMIT = "0123456789abcdef0123456789abcdef01234567"
FILES = {
    "config.json": b"{}",
    "model.safetensors": b"weights",
    "pytorch_model.bin": b"pickled",
    "chat_template.jinja": b"{{ messages }}",
}
TOKEN = "hf_secret_of_the_test"


class _Repository(BaseHTTPRequestHandler):
    """Answers for `org/model`; every Authorization header is remembered on the class."""

    tokens: list[str | None] = []  # noqa: RUF012  # http.server makes one instance a request

    def do_GET(self) -> None:
        self.tokens.append(self.headers["Authorization"])
        if self.path.startswith(f"/api/models/org/model/revision/{COMMIT}"):
            siblings = [{"rfilename": name} for name in FILES]
            self._answer(json.dumps({"id": "org/model", "sha": COMMIT, "siblings": siblings}).encode())
        elif self.path.startswith(f"/api/models/org/model/tree/{COMMIT}"):
            entries = [{"type": "file", "path": name, "size": len(data), "oid": "0"} for name, data in FILES.items()]
            self._answer(json.dumps(entries).encode())
        else:
            data = FILES.get(self.path.removeprefix(f"/org/model/resolve/{COMMIT}/"))
            self._answer(data, name=self.path)

    do_HEAD = do_GET

    def _answer(self, data: bytes | None, name: str = "") -> None:
        self.send_response(404 if data is None else 200)
        body = data or b""
        self.send_header("Content-Length", str(len(body)))
        self.send_header("X-Repo-Commit", COMMIT)
        self.send_header("ETag", f'"{hashlib.sha256(name.encode() + body).hexdigest()}"')
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing on stderr."""


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.delenv("HF_TOKEN", raising=False)
    _Repository.tokens.clear()
    with ThreadingHTTPServer(("127.0.0.1", 0), _Repository) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def fetched(folder: Path) -> dict[str, bytes]:
    assert not [path for path in folder.rglob("*") if path.is_symlink()]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_commit_is_fetched_as_plain_files_without_pickled_weights(endpoint: str, tmp_path: Path) -> None:
    HuggingFaceHub(endpoint).fetch("org/model", COMMIT, tmp_path)
    assert fetched(tmp_path) == {name: data for name, data in FILES.items() if name != "pytorch_model.bin"}
    assert set(_Repository.tokens) == {None}


def test_the_token_of_the_environment_is_sent_and_never_said(
    endpoint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    HuggingFaceHub(endpoint).fetch("org/model", COMMIT, tmp_path / "good")
    with pytest.raises(WorkerError) as caught:
        HuggingFaceHub(endpoint).fetch("org/other", COMMIT, tmp_path / "bad")
    assert f"Bearer {TOKEN}" in _Repository.tokens
    assert TOKEN not in str(caught.value) + "".join(capfd.readouterr())
