"""What a step's end means: its outcome, or the error that its caller is to see."""

import signal
from typing import Any

from ftpipeline.engine.child.errors_across import rebuild
from ftpipeline.engine.child.findings import Kind, Violation, violations_of
from ftpipeline.engine.child.request import StepOutcome, Work
from ftpipeline.errors import UndeclaredUseError, WorkerError

_CURES = {
    Kind.READ: ("reads {}", "declare it in reads= of the step, or make it an input"),
    Kind.MODULE: (
        "imports {}, which its code fingerprint does not cover",
        "import it by a plain import statement, or declare the file in reads= of the step",
    ),
    Kind.ENVIRONMENT: ("reads the environment variable {}", "declare it in env= of the step"),
    Kind.NETWORK: ("connects to {}", "make it a step of kind source, or take the data as an input"),
}
_KILLED_HINT = {
    signal.SIGKILL: "if nobody did that, memory ran out: free some, or give the step less to do",
    signal.SIGSEGV: "a native library crashed: see the stack on standard error",
}
_MOST_NAMED = 3


def conclude(work: Work, report: dict[str, Any], last: dict[str, Any] | None) -> StepOutcome:
    """Return the outcome of a step that has ended.

    Args:
        work: what was asked.
        report: the warden's report.
        last: the last word of the step's process; None if it had none.

    Raises:
        Exception: the step failed, or used something that it does not declare, as `StepHost.run` says.
    """
    step = work.request.step
    findings = [report["findings"], *([last["findings"]] if last else [])]
    error = rebuild(last["error"]) if last and "error" in last else None
    violations = violations_of(findings)
    if violations:
        raise _undeclared(step, violations) from error
    if error is not None:
        if isinstance(error, PermissionError):  # of a write, for there was no undeclared read
            error.add_note("a step writes only under its `out` and in temporary folders (the default of `tempfile`)")
        raise error
    if last is None:
        raise _without_a_word(step, report)
    return StepOutcome(
        facts=last["facts"],
        max_rss_bytes=report["max_rss_bytes"],
        cpu_seconds=report["cpu_seconds"],
        wall_seconds=report["wall_seconds"],
        opens=tuple(sorted({path for it in findings for path in it["opens"]})),
        level=work.level,
        cpu_flags=tuple(last["cpu_flags"]),
        settings=last["settings"],
    )


def _undeclared(step: str, violations: list[Violation]) -> UndeclaredUseError:
    first, *others = violations
    does, cure = _CURES[first.kind]
    where = f" at {first.where}" if first.where else ""
    more = f" (and {_subjects(others)})" if others else ""
    return UndeclaredUseError(f"step {step} {does.format(first.subject)}{where}{more}, undeclared; {cure}")


def _subjects(violations: list[Violation]) -> str:
    named = ", ".join(violation.subject for violation in violations[:_MOST_NAMED])
    left = len(violations) - _MOST_NAMED
    return f"{named} and {left} more" if left > 0 else named


def _without_a_word(step: str, report: dict[str, Any]) -> WorkerError:
    if report["signal"] is None:
        return WorkerError(f"step {step} ended its process with exit code {report['exit']}; return facts instead")
    number = signal.Signals(report["signal"])
    hint = _KILLED_HINT.get(number, "run again")
    return WorkerError(f"step {step} was killed by {number.name}; {hint}")
