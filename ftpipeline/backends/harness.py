"""Eval sets as tasks of lm-evaluation-harness, and what its tasks measure as this package's reports do.

The harness is optional (`pip install ftpipeline[harness]`). A task is two files: `<name>.yaml`, a multiple-choice task
over the declared labels, and `<name>.jsonl`, its rows, read from the local disk. The harness gives each label the sum
of its tokens' log-likelihoods; macro-F1 is taken here, from the answers, by the convention of every other report.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet
import yaml

from ftpipeline.errors import EvalSetError, MissingDependencyError
from ftpipeline.pipeline import ABSTAIN
from ftpipeline.schema import PROMPT_LABELS, PROMPT_TEXT
from ftpipeline.steps.metrics import classification_report
from ftpipeline.steps.tables import ROWS

_SPLIT = "test"


def write_task(eval_set: Path, name: str, labels: Sequence[str], prompt: str, out: Path) -> Path:
    """Write an eval set as a task of the harness.

    Args:
        eval_set: folder with the rows that a frozen eval set has.
        name: the task's name.
        labels: the declared labels, the choices of every row.
        prompt: what is asked; `{text}` stands for the text, `{labels}` for the labels.
        out: folder of tasks, made if it is missing.

    Returns:
        The task's YAML file.

    Raises:
        EvalSetError: a row expects an abstention, which is no choice.
    """
    out.mkdir(parents=True, exist_ok=True)
    rows = pyarrow.parquet.read_table(eval_set / ROWS, columns=["id", "text", "expected"]).to_pylist()
    abstaining = [row["id"] for row in rows if row["expected"] == ABSTAIN]
    if abstaining:
        raise EvalSetError(f"row {abstaining[0]!r} expects {ABSTAIN!r}, which is no choice; leave such rows out")
    asked = prompt.replace(PROMPT_LABELS, ", ".join(labels))
    lines = [
        {"id": row["id"], "asked": asked.replace(PROMPT_TEXT, row["text"]), "gold": labels.index(row["expected"])}
        for row in rows
    ]
    data, task = out / f"{name}.jsonl", out / f"{name}.yaml"
    data.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines), encoding="utf-8")
    document = {
        "task": name,
        "dataset_path": "json",
        "dataset_kwargs": {"data_files": {_SPLIT: str(data.absolute())}},
        "test_split": _SPLIT,
        "output_type": "multiple_choice",
        "doc_to_text": "{{asked}}",
        "doc_to_choice": list(labels),
        "doc_to_target": "gold",
        "target_delimiter": "",
        "metric_list": [{"metric": "acc", "aggregation": "mean", "higher_is_better": True}],
        "metadata": {"version": 1},
    }
    task.write_text(yaml.safe_dump(document, sort_keys=False, allow_unicode=True), encoding="utf-8")
    return task


def run_task(task: Path, model: Path, labels: Sequence[str], *, chat: bool = True) -> dict[str, Any]:
    """Let the harness ask a model every row of a task on the CPU, offline.

    Args:
        task: YAML file of a multiple-choice task over `labels`.
        model: folder of a merged causal model in the transformers format.
        labels: the choices, in the task's order.
        chat: whether the model's chat template is applied.

    Returns:
        `n`, `macro_f1`, `accuracy`, and `harness`, the harness's version.

    Raises:
        MissingDependencyError: the harness is not installed.
    """
    try:
        import lm_eval  # optional
        from lm_eval.tasks import TaskManager
    except ImportError as error:
        raise MissingDependencyError(
            "lm-evaluation-harness is not installed; pip install ftpipeline[harness]"
        ) from error
    done: Mapping[str, Any] = lm_eval.simple_evaluate(
        model="hf",
        model_args={"pretrained": str(model), "dtype": "float32", "trust_remote_code": False},
        tasks=[task.stem],
        task_manager=TaskManager(include_path=str(task.parent), include_defaults=False),
        device="cpu",
        batch_size=1,
        apply_chat_template=chat,
        log_samples=True,
        bootstrap_iters=0,
    )
    samples = done["samples"][task.stem]
    measured = classification_report(
        [labels[int(sample["doc"]["gold"])] for sample in samples],
        [labels[_likeliest(sample["filtered_resps"])] for sample in samples],
        labels,
    )
    return {
        "n": measured.n,
        "macro_f1": measured.macro_f1,
        "accuracy": measured.accuracy,
        "harness": str(lm_eval.__version__),
    }


def _likeliest(answers: Sequence[Sequence[Any]]) -> int:
    """Return the choice of the highest log-likelihood, of equal ones the first."""
    likelihoods = [float(answer[0]) for answer in answers]
    return likelihoods.index(max(likelihoods))
