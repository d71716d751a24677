"""A pure step in a process of its own, confined to what it declares.

Four processes: the caller, a zygote that it starts once, a warden for each step, and the step. The zygote is small and
forks; the warden supervises from outside the confinement; the step loads its code afresh, confines itself, and runs.

This keeps steps honest, it does not hold hostile code. Not seen: time, randomness, whether an undeclared file exists,
and at level `observed` whatever is not opened by Python itself. Devices such as GPUs are not granted.
"""

from ftpipeline.engine.child.client import Hear, StepHost
from ftpipeline.engine.child.levels import Level, best_level
from ftpipeline.engine.child.locked import locked_duckdb
from ftpipeline.engine.child.request import PortSpec, StepOutcome, StepRequest

__all__ = ["Hear", "Level", "PortSpec", "StepHost", "StepOutcome", "StepRequest", "best_level", "locked_duckdb"]
