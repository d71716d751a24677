"""The zygote: a small single-threaded process, run with `python -m`, that forks a warden for every request.

It imports no code of the project, so that each step loads its own afresh; it ends when its caller hangs up. What a
warden that was killed has left running falls to it.

Arguments: the descriptor of the caller's socket, then modules of installed distributions to import beforehand.
"""

import gc
import importlib
import os
import select
import signal
import socket
import sys
from collections.abc import Sequence

from ftpipeline.engine.child import frames, kernel, processes, warden

DESCRIPTORS = 4
"""A request: one byte and the caller's socket, standard output, standard error and the message pipe."""

_IGNORED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_SWEEP_SECONDS = 0.02


def main(arguments: Sequence[str]) -> None:
    """Serve requests until the caller hangs up and every warden has ended."""
    control = socket.socket(fileno=int(arguments[0]))
    control.set_inheritable(False)
    for number in _IGNORED:
        signal.signal(number, signal.SIG_IGN)
    kernel.adopt_orphans()
    for module in arguments[1:]:
        importlib.import_module(module)
    threads = processes.thread_count()
    frames.send(control, {"threads": threads})
    if threads == 1:
        gc.freeze()  # what is loaded now stays shared between this process and all that it forks
        _Zygote(control).serve()


class _Zygote:
    """Forks wardens and knows them from orphans."""

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._children = processes.ChildSignal()
        self._wardens: set[int] = set()

    def serve(self) -> None:
        """Return when the caller has hung up and no warden is left."""
        poller = select.poll()
        poller.register(self._control, select.POLLIN)
        poller.register(self._children, select.POLLIN)
        is_open = True
        while is_open or self._wardens:
            ready = {descriptor for descriptor, _ in poller.poll()}
            if self._children.fileno() in ready:
                self._tidy()
            if is_open and self._control.fileno() in ready:
                is_open = self._accept()
                if not is_open:
                    poller.unregister(self._control)

    def _accept(self) -> bool:
        """Fork a warden for one request; return False if the caller has hung up."""
        byte, descriptors, _, _ = socket.recv_fds(self._control, 1, DESCRIPTORS)
        if not byte:
            return False
        if len(descriptors) == DESCRIPTORS:
            process = os.fork()
            if not process:
                self._control.close()
                warden.main(socket.socket(fileno=descriptors[0]), *descriptors[1:])
            self._wardens.add(process)
        for descriptor in descriptors:
            os.close(descriptor)
        return True

    def _tidy(self) -> None:
        """Collect wardens that have ended, and kill what they left: whoever else is a child here is an orphan."""
        self._children.clear()
        self._collect()
        while processes.has_children(self._wardens):
            processes.kill_children(self._wardens)
            select.select([self._children], [], [], _SWEEP_SECONDS)
            self._collect()

    def _collect(self) -> None:
        for process, _, _ in processes.ended_children():
            self._wardens.discard(process)


if __name__ == "__main__":
    main(sys.argv[1:])
