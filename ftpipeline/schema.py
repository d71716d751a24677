"""Strict YAML and the sections that the pipeline file and the manifest share (contract C7).

YAML 1.1 turns `2e-4` into text, `007` into 7, `12:30:45` into 45045, `no` into false and `2026-01-05` into a date
without a word. Nothing here converts: a value of another type than declared is refused with the way to write it.
"""

from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from ftpipeline.errors import InputError


class Section(BaseModel):
    """Base of every section: strict types, finite numbers, no unknown key, frozen."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, allow_inf_nan=False, protected_namespaces=())


ModelT = TypeVar("ModelT", bound=Section)

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$", max_length=100)]
Identifier = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$", max_length=60)]
Hex64 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
DigestText = Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{64}$")]
Revision = Annotated[str, Field(pattern=r"^(?:[0-9a-f]{40}|sha256:[0-9a-f]{64})$")]
"""A git commit or a content hash; nothing that can move."""
Texts = Annotated[tuple[str, ...], Field(strict=False)]
Share = Annotated[float, Field(ge=0.0, le=1.0)]
Positive = Annotated[int, Field(ge=1)]
Threshold = Annotated[float, Field(ge=0.0, le=1.0)]

Task = Literal["sequence_classification", "causal_lm"]
"""What a model is trained for: a class per text, or text that is scored label by label."""

PROMPT_TEXT, PROMPT_LABELS = "{text}", "{labels}"
"""What stands in a prompt for the text that is asked about, and for the declared labels."""

MAX_NEW_TOKENS = 256
"""Most tokens that a causal model's answer in its own words may be asked to have."""

ROLES = ("task", "regression", "safety")
"""The three eval sets of every gate."""


class Lora(Section):
    """LoRA adapter shape, named as in peft."""

    r: Positive
    lora_alpha: Positive
    lora_dropout: Annotated[float, Field(ge=0.0, lt=1.0)] = 0.0
    target_modules: Annotated[tuple[str, ...], Field(strict=False, min_length=1)]


class Consumption(Section):
    """A checkpoint of another job that this training uses; what is read is written to the ledger first.

    Attributes:
        use: `warm_start` before the first step; `reference` measures the drift from it; `teacher` is distilled from;
            `merge` averages its adapter into this one.
        job: id of the job that made the checkpoint, or in a pipeline file the pipeline whose job of the week is meant.
        step: optimizer step of the checkpoint; it is waited for while that job trains.
        at_step: step of this training before which a merge happens; only for `merge`.
        weight: share of the other adapter in a merge, or of the teacher in the loss.
    """

    use: Literal["warm_start", "reference", "teacher", "merge"]
    job: Annotated[str, Field(min_length=1)]
    step: Positive
    at_step: Positive | None = None
    weight: Annotated[float, Field(gt=0.0, le=1.0)] = 0.5


class Checks(Section):
    """When a training is ended because it cannot become good; the checks for non-finite numbers are always on.

    Attributes:
        grad_norm_factor: a gradient norm beyond so many times the median of the last 100 is a spike.
        no_learning_steps: by this step the loss must have fallen; None for no such check.
        overfitting_evaluations: evaluations in a row after the first epoch with a rising validation loss and a falling
            training loss that end it, where evaluations are declared; None for no such check.
    """

    grad_norm_factor: Annotated[float, Field(gt=1.0)] = 1000.0
    no_learning_steps: Positive | None = None
    overfitting_evaluations: Positive | None = 3


class Train(Section):
    """Everything that shapes the training; `max_steps` wins over `epochs` where both are given.

    Attributes:
        precision: what is computed in; `auto` is bf16 on a GPU that can, else fp32. Weights are kept in fp32.
        evaluation_steps: optimizer steps between two evaluations (validation, drift from the base, regression score).
        prompt: the user's turn that a causal model answers; `{text}` stands for the text, `{labels}` for the labels.
    """

    seed: Annotated[int, Field(ge=0, lt=2**32)]
    lr: Annotated[float, Field(gt=0.0)]
    epochs: Positive | None = None
    max_steps: Positive | None = None
    batch_size: Positive = 16
    max_length: Positive = 128
    scheduler: Literal["cosine", "linear", "constant"] = "linear"
    warmup_steps: Annotated[int, Field(ge=0)] = 0
    weight_decay: Annotated[float, Field(ge=0.0)] = 0.0
    max_grad_norm: Annotated[float, Field(gt=0.0)] = 1.0
    modules_to_save: Texts = ()
    precision: Literal["auto", "fp32", "bf16", "fp16"] = "auto"
    gradient_accumulation: Positive = 1
    evaluation_steps: Positive | None = None
    checks: Checks = Checks()
    consumes: Annotated[tuple[Consumption, ...], Field(strict=False)] = ()
    prompt: str = PROMPT_TEXT
    lora: Lora

    @field_validator("prompt")
    @classmethod
    def _prompt_shows_the_text_once(cls, prompt: str) -> str:
        if prompt.count(PROMPT_TEXT) != 1:
            raise ValueError(f"{prompt!r:.60} must hold {PROMPT_TEXT} once; write it where the text goes")
        return prompt

    @model_validator(mode="after")
    def _has_an_end(self) -> Self:
        if self.epochs is None and self.max_steps is None:
            raise ValueError("give epochs or max_steps")
        return self

    @model_validator(mode="after")
    def _no_learning_is_checked_before_the_end(self) -> Self:
        by = self.checks.no_learning_steps
        if by is not None and self.max_steps is not None and by > self.max_steps:
            raise ValueError(f"checks.no_learning_steps {by} is beyond max_steps {self.max_steps}; lower it")
        return self


def require_prompt_is_asked(task: Task, train: Train) -> None:
    """Refuse a prompt that no model is asked: it would train a classifier anew and change nothing.

    Raises:
        ValueError: pydantic makes it a field's problem.
    """
    if task != "causal_lm" and train.prompt != PROMPT_TEXT:
        raise ValueError("train.prompt is asked of a causal model only; remove it, or set task to causal_lm")


class Checkpoints(Section):
    """How often a training is saved, and how many of its checkpoints are kept; no result depends on it.

    Attributes:
        steps: optimizer steps between two checkpoints.
        keep: newest checkpoints that are kept, beside those that another job consumed.
    """

    steps: Positive = 50
    keep: Positive = 3


class Export(Section):
    """How the served files are made.

    Attributes:
        merge_adapter: False for the adapter alone, to be served beside others on one base model.
        quantize: `int8` is ONNX Runtime's dynamic one, per channel, for a classifier, and GGUF Q8_0 for a causal model.
    """

    merge_adapter: bool = True
    quantize: Literal["int8", "none"] = "int8"

    @model_validator(mode="after")
    def _an_adapter_is_not_quantized(self) -> Self:
        if not self.merge_adapter and self.quantize != "none":
            raise ValueError("quantize: an adapter alone is not quantized; set it to none, or merge_adapter to true")
        return self


class Abstention(Section):
    """A classifier answers `abstain` under a confidence that at most this share of validation falls under."""

    max_abstain: Share = 0.05


class Evaluation(Section):
    """How the exported artifact is scored.

    Attributes:
        max_new_tokens: tokens after which an answer in a causal model's own words is cut.
    """

    batch_size: Positive = 64
    max_new_tokens: Annotated[int, Field(ge=1, le=MAX_NEW_TOKENS)] = 24


class Gates(Section):
    """Thresholds against production, as fractions; all inclusive, 0.0 is a value."""

    task_min_gain_vs_prod: Threshold
    regression_max_drop: Threshold
    safety_max_drop: Threshold


class _StrictLoader(yaml.SafeLoader):
    """SafeLoader that refuses duplicate keys."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[Hashable] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, Hashable) or key in seen:
                line = key_node.start_mark.line + 1
                raise yaml.constructor.ConstructorError(None, None, f"key {key!r} stands twice (line {line})", None)
            seen.add(key)
        return super().construct_mapping(node, deep)


def load_yaml(path: Path, error: type[InputError]) -> dict[str, Any]:
    """Read a YAML mapping.

    Raises:
        InputError: of the class given; the file is missing, not UTF-8, not YAML, holds a key twice or is no mapping.
    """
    try:
        document = yaml.load(path.read_text("utf-8-sig"), Loader=_StrictLoader)  # a SafeLoader subclass
    except OSError as problem:
        raise error(f"{path}: cannot be read ({problem.strerror}); check the path") from problem
    except UnicodeDecodeError as problem:
        raise error(f"{path}: is not UTF-8 text (byte {problem.start}); save it as UTF-8") from problem
    except (yaml.YAMLError, ValueError) as problem:
        raise error(f"{path}: is not usable YAML: {_yaml_problem(problem)}") from problem
    if not isinstance(document, dict):
        raise error(f"{path}: holds no mapping; the top level must be 'key: value' lines")
    return document


def _yaml_problem(problem: Exception) -> str:
    mark = getattr(problem, "problem_mark", None)
    text = getattr(problem, "problem", None) or str(problem)
    return f"{text} (line {mark.line + 1})" if mark is not None else " ".join(str(text).split())


def validate(model: type[ModelT], document: Mapping[str, Any], where: str, error: type[InputError]) -> ModelT:
    """Return `document` as `model`.

    Raises:
        InputError: of the class given, naming every wrong field with its cure on one line.
    """
    try:
        return model.model_validate(dict(document))
    except ValidationError as problem:
        raise error(f"{where}: {'; '.join(_explain(item) for item in problem.errors())}") from None


def _explain(item: Any) -> str:
    """One field's problem and cure; the value itself is shown only where it cannot be a secret."""
    field = ".".join(str(part) for part in item["loc"]) or "(top level)"
    kind, value = item["type"], item.get("input")
    if kind == "missing":
        return f"{field} is missing; add it"
    if kind == "extra_forbidden":
        return f"{field} is not a known key; check its spelling or remove it"
    if kind == "value_error":
        return f"{field}: {item['ctx']['error']}"
    if kind == "string_type" and value is not None and not isinstance(value, list | dict):
        return f"{field}: YAML read {value!r} as {type(value).__name__}; quote it to keep it as text"
    if kind in ("float_type", "int_type", "bool_type") and isinstance(value, str):
        return f"{field}: {value!r} is text to YAML; {_number_cure(kind, value)}"
    if kind == "finite_number":
        return f"{field}: {value!r} is not finite; give a finite number"
    if kind == "string_pattern_mismatch":
        return f"{field}: {value!r} {_pattern_cure(str(item['ctx']['pattern']))}"
    return f"{field}: {item['msg'][:1].lower()}{item['msg'][1:]} (found {value!r:.60})"


def _number_cure(kind: str, text: str) -> str:
    try:
        number: float = int(text) if kind == "int_type" else float(text)
    except ValueError:
        return "write a plain value without quotes"
    mantissa, exponent, power = repr(number).partition("e")
    dotted = mantissa + ".0" if exponent and "." not in mantissa else mantissa  # YAML 1.1 reads 1e-05 as text
    return f"write {dotted}{exponent}{power}"


_PATTERN_CURES = (
    (
        "^(?:[0-9a-f]{40}|sha256:[0-9a-f]{64})$",
        "is not pinned; give the full 40 hexadecimal digits of the commit or 'sha256:' and 64 of the content, "
        "never a branch, tag or short revision",
    ),
    ("sha256:[0-9a-f]{64}$", "does not end in a content hash; give 'sha256:' and all 64 hexadecimal digits"),
    ("^[0-9a-f]{64}$", "is not a content hash; give all 64 hexadecimal digits"),
    ("(?:@sha256:[0-9a-f]{64})?$", "is not a versioned eval set; write evalset://<name>/v<number>"),
)


def _pattern_cure(pattern: str) -> str:
    for ending, cure in _PATTERN_CURES:
        if pattern.endswith(ending):
            return cure
    return f"does not have the form {pattern}"
