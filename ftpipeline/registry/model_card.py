"""The model card of an entry, in the format of the Hugging Face hub: YAML front matter, then Markdown.

The front matter holds the scores as a `model-index`, which the hub and `huggingface_hub.ModelCard` read. Everything
comes from records that are signed or content-addressed; what a person claims of the model is not in it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from ftpipeline.registry.records import Entry, HistoryRow
from ftpipeline.schema import ROLES

_TASKS = {"sequence_classification": "text-classification", "causal_lm": "text-generation"}
_HUB = "hub://"
_SCORES = {"task": "f1", "regression": "f1", "safety": "accuracy"}
"""What the hub calls the score that each eval set is gated by."""


@dataclass(frozen=True)
class CardFacts:
    """What a card is written from.

    Attributes:
        entry: the registered entry.
        history: moves of the entry's name, oldest first.
        manifest: its manifest's document.
        eval_sets: name, version and digest of the eval set of each role, as the manifest pins them.
        report: the candidate's evaluation report: `metrics` and `counts` by role, `scorer`.
    """

    entry: Entry
    history: Sequence[HistoryRow]
    manifest: Mapping[str, Any]
    eval_sets: Mapping[str, Mapping[str, str]]
    report: Mapping[str, Any]


def model_card(facts: CardFacts) -> str:
    """Return the card's text; equal facts give the equal text."""
    front = yaml.safe_dump(_front_matter(facts), sort_keys=False, allow_unicode=True)
    return f"---\n{front}---\n\n" + "\n".join(_body(facts)) + "\n"


def _front_matter(facts: CardFacts) -> dict[str, Any]:
    repo, task = str(facts.manifest["base_model"]["repo"]), _TASKS[facts.manifest["task"]]
    base = {"base_model": repo.removeprefix(_HUB)} if repo.startswith(_HUB) else {}  # a local folder is no model id
    results = [
        {
            "task": {"type": task},
            "dataset": {
                "name": f"{facts.eval_sets[role]['name']} {facts.eval_sets[role]['version']}",
                "type": facts.eval_sets[role]["name"],
                "revision": facts.eval_sets[role]["digest"],
            },
            "metrics": [{"type": _SCORES[role], "value": facts.report["metrics"][role], "name": f"{role} score"}],
        }
        for role in ROLES
    ]
    return {
        **base,
        "library_name": "ftpipeline",
        "pipeline_tag": task,
        "tags": ["lora", "ftpipeline"],
        "model-index": [{"name": facts.entry.name, "results": results}],
    }


def _body(facts: CardFacts) -> Iterator[str]:
    entry, base = facts.entry, facts.manifest["base_model"]
    yield f"# {entry.name}, week of {entry.week}\n"
    yield f"Artifact `{entry.artifact}`, in stage **{entry.stage}** when this card was written.\n"
    yield "## Made from\n"
    yield f"- base model `{base['repo']}` at `{base['revision']}`, tree `{entry.base_model}`"
    yield f"- training rows `{facts.manifest['data']['train']}`, validation rows `{facts.manifest['data']['val']}`"
    yield f"- manifest `{entry.manifest}`, run `{entry.run_id}`, registered {entry.registered}"
    yield f"- labels: {', '.join(facts.manifest['labels'])}\n"
    yield "The source query, and every step in between, are in the lineage bundle; `ftpipeline verify` proves it.\n"
    yield "## Evaluation\n"
    yield f"Scored as exported, by `{facts.report['scorer']}`.\n"
    yield "| eval set | version | rows | score | abstained |"
    yield "|---|---|---:|---:|---:|"
    for role in ROLES:
        counts, used = facts.report["counts"][role], facts.eval_sets[role]
        score = facts.report["metrics"][role]
        yield f"| {role}: {used['name']} | {used['version']} | {counts['n']} | {score} | {counts['abstained']} |"
    yield f"\nGate verdict **{entry.verdict}**, record `{entry.gate}`.\n"
    yield "## History\n"
    yield "Actors are recorded as stated, not authenticated.\n"
    yield "| time | move | generation | actor | reason |"
    yield "|---|---|---:|---|---|"
    for row in facts.history:
        if row.digest == entry.artifact:
            move = f"{row.from_stage or 'registered'} -> {row.to_stage}"
            yield f"| {row.time} | {move} | {row.generation} | {_cell(row.actor)} | {_cell(row.reason)} |"


def _cell(text: str) -> str:
    """Return a person's words as the cell of a table."""
    return " ".join(text.split()).replace("|", "\\|")
