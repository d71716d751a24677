"""Confines itself as a specification says and becomes another program.

Usage: `python -m ftpipeline.engine.child.exec_wrapper SPEC.json -- COMMAND...`
"""

import os
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NoReturn

from ftpipeline.engine.child import kernel, landlock, levels
from ftpipeline.engine.child.access import LOOK, WORK, Access
from ftpipeline.engine.child.exec_spec import ExecSpec
from ftpipeline.engine.child.levels import Level
from ftpipeline.engine.child.policy import interpreter_grants
from ftpipeline.engine.fingerprint import code_fingerprint
from ftpipeline.engine.fingerprint.environment import thread_settings
from ftpipeline.errors import FtpipelineError, WorkerError

_KEPT = ("PATH", "HOME", "TZ", "LC_ALL")
_PIPES = "DAGSTER_PIPES_"


def main(arguments: Sequence[str]) -> NoReturn:
    """Become the program; return to the shell only if that fails."""
    try:
        _become(arguments)
    except FtpipelineError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(error.exit_code)


def _become(arguments: Sequence[str]) -> NoReturn:
    if len(arguments) < 3 or arguments[1] != "--":
        raise WorkerError("usage: python -m ftpipeline.engine.child.exec_wrapper SPEC.json -- COMMAND...")
    spec, command = ExecSpec.read(Path(arguments[0])), list(arguments[2:])
    levels.require(spec.level)
    kernel.end_with_parent(spec.parent, signal.SIGTERM)
    _require_keyed_code(spec)
    if spec.level is Level.ENFORCED:
        landlock.confine(_grants(spec), spec.tcp_ports)
    try:
        os.execvpe(command[0], command, _kept(os.environ, spec))
    except OSError as error:
        raise WorkerError(f"{command[0]} cannot be run ({error.strerror}); install it or grant it") from error


def _require_keyed_code(spec: ExecSpec) -> None:
    """Refuse to run other code than the step was keyed by, here where the environment is still the caller's."""
    if spec.module and code_fingerprint([spec.module]).digest != spec.code:
        raise WorkerError(
            f"{spec.module} has other code here than its step is keyed by; install one version everywhere"
        )


def _grants(spec: ExecSpec) -> dict[str, Access]:
    grants = interpreter_grants()
    for paths, access in ((spec.reads, LOOK), (spec.writes, WORK)):
        for path in map(os.path.realpath, paths):
            grants[path] = grants.get(path, Access(0)) | access
    return grants


def _kept(environment: Mapping[str, str], spec: ExecSpec) -> dict[str, str]:
    kept = {*_KEPT, *thread_settings(), *spec.env}
    return {name: value for name, value in environment.items() if name in kept or name.startswith(_PIPES)}


if __name__ == "__main__":
    main(sys.argv[1:])
