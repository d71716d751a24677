"""JSON documents over a stream socket, each behind its length."""

import json
import socket
import struct
from typing import Any

_LENGTH = struct.Struct("!Q")


def send(channel: socket.socket, document: bytes | dict[str, Any]) -> None:
    """Send one document."""
    body = document if isinstance(document, bytes) else json.dumps(document).encode()
    channel.sendall(_LENGTH.pack(len(body)) + body)


def receive(channel: socket.socket) -> bytes | None:
    """Return the next document as it was sent; None if the other side has gone."""
    header = _exactly(channel, _LENGTH.size)
    return None if header is None else _exactly(channel, _LENGTH.unpack(header)[0])


def _exactly(channel: socket.socket, size: int) -> bytes | None:
    data = bytearray()
    while len(data) < size:
        try:
            chunk = channel.recv(min(size - len(data), 1 << 20))
        except ConnectionResetError:
            return None
        if not chunk:
            return None
        data += chunk
    return bytes(data)
