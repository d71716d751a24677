"""Running another program behind the same wall: what the caller says, and how to start it."""

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from ftpipeline.engine.child.levels import Level

_MODULE = "ftpipeline.engine.child.exec_wrapper"


@dataclass(frozen=True)
class ExecSpec:
    """How a program is confined.

    Attributes:
        level: at `observed`, only its environment is scrubbed and its life tied to its parent's.
        reads: files and folders that it may read besides the interpreter and installed distributions.
        writes: folders that it may read and write.
        env: names of the variables that it keeps besides PATH, HOME, TZ, LC_ALL, the settings of thread pools, and
            those of a Dagster Pipes session.
        tcp_ports: ports that it may connect to, where the kernel can tell.
        module: module that the program runs, empty if it runs none.
        code: fingerprint of that module's code as its caller knows it; other code here is refused.
        parent: id of the process that starts it, filled in by `command`; the program gets SIGTERM when the thread that
            started it ends.
    """

    level: Level
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    tcp_ports: tuple[int, ...] = ()
    module: str = ""
    code: str = ""
    parent: int = 0

    def command(self, file: Path, program: Sequence[str]) -> list[str]:
        """Write the specification to `file` and return the command that runs `program` confined by it."""
        file.write_text(json.dumps(asdict(self) | {"parent": os.getpid()}), encoding="utf-8")
        return [sys.executable, "-m", _MODULE, str(file), "--", *program]

    @classmethod
    def read(cls, file: Path) -> Self:
        """Return the specification in `file`."""
        document: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        for name in ("reads", "writes", "env", "tcp_ports"):
            document[name] = tuple(document[name])
        return cls(**document | {"level": Level(document["level"])})
