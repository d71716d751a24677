"""The cycle as a table: every stage, what it follows, and the function that runs it.

An orchestrator needs nothing else of the cycle: it makes one asset of each row and hands over the digests of what the
row follows. The functions are named, not imported: loading a code location runs none of them.
"""

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ftpipeline.digest import Digest
from ftpipeline.records import RunContext, StepResult
from ftpipeline.schema import ROLES

if TYPE_CHECKING:
    from ftpipeline.cycle.cycle import Cycle

EVAL_SETS = tuple(f"eval_{role}" for role in ROLES)


@dataclass(frozen=True)
class Stage:
    """One stage of the cycle.

    Attributes:
        name: what it makes.
        after: stages whose outputs it takes.
        function: what runs it, `module:function` of this package: `function(cycle, run, inputs) -> StepResult`.
        weekly: whether it belongs to a week; the others are shared by pipelines.
        about: one sentence for people.
    """

    name: str
    after: tuple[str, ...]
    function: str
    about: str
    weekly: bool = True


STAGES: tuple[Stage, ...] = (
    Stage("base_model", (), "data:base_model", "The pinned base model, frozen as a tree.", weekly=False),
    *(Stage(f"eval_{role}", (), f"data:eval_{role}", f"The {role} eval set, frozen.", weekly=False) for role in ROLES),
    Stage("snapshot", (), "data:snapshot", "The rolling window of source rows, frozen at the week's end."),
    Stage("curate", ("snapshot",), "data:curate", "Deduplicated, scrubbed rows with human-verified labels."),
    Stage("split", ("curate", *EVAL_SETS), "data:split", "Train and validation by groups, checked for leakage."),
    Stage(
        "manifest",
        ("split", "base_model", *EVAL_SETS),
        "model:write_manifest",
        "Everything the week's model is made from, pinned before training.",
    ),
    Stage(
        "train",
        ("manifest", "split", "base_model", "eval_regression"),
        "model:train",
        "The LoRA adapter, trained in its own process.",
    ),
    Stage(
        "export",
        ("manifest", "train", "base_model", "split"),
        "model:export",
        "The served artifact: merged, quantised, with its abstention threshold.",
    ),
    Stage(
        "evaluate",
        ("manifest", "export", *EVAL_SETS),
        "release:evaluate",
        "Candidate and production, scored as exported on the same eval sets.",
    ),
    Stage("gate", ("manifest", "export", "evaluate"), "release:gate", "The comparison with production, as a record."),
    Stage(
        "register",
        ("manifest", "export", "evaluate", "gate", "base_model"),
        "release:register",
        "The registry entry: a candidate, or a rejection with its reasons.",
    ),
)

BY_NAME: Mapping[str, Stage] = {stage.name: stage for stage in STAGES}


def run_stage(cycle: "Cycle", stage: Stage, run: RunContext, inputs: Mapping[str, Digest]) -> StepResult:
    """Run one stage; whichever stage of a run comes first pins the production it is gated against."""
    cycle.pin(run)
    module, _, name = stage.function.partition(":")
    function = getattr(importlib.import_module(f"ftpipeline.cycle.{module}"), name)
    result: StepResult = function(cycle, run, inputs)
    return result
