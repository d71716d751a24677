"""One LoRA training with the transformers Trainer, from a request to a complete output folder."""

import os
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch
from transformers import (
    AutoTokenizer,
    DataCollatorWithPadding,
    PreTrainedTokenizerBase,
    PrinterCallback,
    Trainer,
    TrainingArguments,
    set_seed,
)

from ftpipeline.backends import adapter, lora, validation
from ftpipeline.backends.channel import Channel, ChannelMetricSink, JsonlMetricSink
from ftpipeline.backends.dataset import EncodedRows, Encoder
from ftpipeline.backends.lifetime import StopRequest
from ftpipeline.backends.lora import LoraModel
from ftpipeline.backends.step_watch import StepWatch
from ftpipeline.digest import canonical_json
from ftpipeline.errors import InputError
from ftpipeline.records import Facts
from ftpipeline.schema import Train, validate
from ftpipeline.steps.ports import WorkerRequest
from ftpipeline.steps.train_output import ADAPTER, METRICS, SUMMARY

_THREADS_VARIABLE = "FTPIPELINE_TORCH_THREADS"
_EVAL_BATCH = 64
_SCHEDULES = {"cosine": "cosine", "linear": "linear", "constant": "constant_with_warmup"}
"""The Trainer's `constant` would ignore the warm-up."""


def train(request: WorkerRequest, channel: Channel, stop: StopRequest) -> None:
    """Train as `request` says and write `metrics.jsonl`, `adapter/` and, last, `train.json` under its output folder.

    Raises:
        TrainingFailedError: a number is not finite, or a layer that is to be trained does not exist.
        InputError: the base model, the rows or the parameters cannot be used.
        WorkerInterruptedError: a signal has come.
    """
    _set_threads()
    stop.check("before the model was loaded")
    settings = validate(Train, request.params["train"], "train", InputError)
    labels = request.params["labels"]
    tokenizer = _tokenizer(request.inputs["base_model"])
    encoder = Encoder(tokenizer, labels, settings.max_length, stop)
    rows = {part: encoder.encode(request.inputs["split"] / f"{part}.parquet") for part in ("train", "validation")}
    set_seed(settings.seed)  # the classifier and the adapter start from random weights
    built = lora.build(request.inputs["base_model"], labels, settings)
    _check_vocabulary(built, tokenizer)
    sinks = (JsonlMetricSink(request.out / METRICS), ChannelMetricSink(channel))
    with TemporaryDirectory(prefix="ftpipeline-trainer-") as scratch:
        trainer = _trainer(built, tokenizer, rows["train"], settings, scratch)
        trainer.remove_callback(PrinterCallback)
        trainer.add_callback(StepWatch(sinks, channel, stop))
        trainer.train()
        measured = _validate(trainer, rows["validation"], labels)
    stop.check("before the adapter was saved")
    adapter.save(built.model, request.out / ADAPTER)
    facts = _facts(trainer, built, measured, {part: len(encoded) for part, encoded in rows.items()})
    (request.out / SUMMARY).write_bytes(canonical_json(facts))


def _set_threads() -> None:
    """Use one thread unless told otherwise: the sums of a training depend on how they are cut up."""
    text = os.environ.get(_THREADS_VARIABLE, "1")
    if not text.isdecimal() or int(text) < 1:
        raise InputError(f"{_THREADS_VARIABLE} is {text!r}; give a number of threads from 1")
    torch.set_num_threads(int(text))


def _tokenizer(base_model: Path) -> PreTrainedTokenizerBase:
    try:
        tokenizer: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(
            base_model, local_files_only=True, trust_remote_code=False
        )
    except (OSError, ValueError) as error:
        summary = " ".join(str(error).split())
        raise InputError(f"tokenizer of the base model cannot be loaded ({summary:.300}); check its files") from error
    if tokenizer.pad_token_id is None:
        raise InputError("tokenizer of the base model has no padding token; declare pad_token in tokenizer_config.json")
    return tokenizer


def _check_vocabulary(built: LoraModel, tokenizer: PreTrainedTokenizerBase) -> None:
    """Refuse token ids that the model has no embedding for; a model without a padding id takes the tokenizer's."""
    embeddings, ids = built.model.get_input_embeddings().num_embeddings, len(tokenizer)
    if ids > embeddings:
        raise InputError(
            f"tokenizer has {ids} tokens, the base model embeds {embeddings}; use the model's own tokenizer"
        )
    if built.model.config.pad_token_id is None:
        built.model.config.pad_token_id = tokenizer.pad_token_id


def _trainer(
    built: LoraModel, tokenizer: PreTrainedTokenizerBase, rows: EncodedRows, settings: Train, scratch: str
) -> Trainer:
    return Trainer(
        model=built.model,
        args=_arguments(settings, scratch),
        train_dataset=rows,
        data_collator=DataCollatorWithPadding(tokenizer),
    )


def _arguments(settings: Train, scratch: str) -> TrainingArguments:
    on_gpu = torch.cuda.is_available()
    return TrainingArguments(
        output_dir=scratch,
        seed=settings.seed,
        learning_rate=settings.lr,
        num_train_epochs=settings.epochs or 1,
        max_steps=settings.max_steps or -1,  # given, it wins over the epochs
        per_device_train_batch_size=settings.batch_size,
        per_device_eval_batch_size=_EVAL_BATCH,
        lr_scheduler_type=_SCHEDULES[settings.scheduler],
        warmup_steps=settings.warmup_steps,
        weight_decay=settings.weight_decay,
        max_grad_norm=settings.max_grad_norm,
        optim="adamw_torch",
        use_cpu=not on_gpu,
        bf16=on_gpu and torch.cuda.is_bf16_supported(),
        logging_strategy="steps",
        logging_steps=1,
        logging_nan_inf_filter=False,  # the default logs 0.0 for a loss that is NaN
        label_names=["labels"],
        dataloader_num_workers=0,
        eval_strategy="no",
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
    )


def _validate(trainer: Trainer, rows: EncodedRows, labels: Sequence[str]) -> dict[str, float]:
    """Measure validation from the logits themselves: the Trainer's own mean leaves out batches that are NaN."""
    answers = trainer.predict(rows)
    logits, truth = np.asarray(answers.predictions, np.float64), np.asarray(answers.label_ids, np.int64)
    return validation.measure(logits, truth, labels)


def _facts(trainer: Trainer, built: LoraModel, measured: dict[str, float], rows: dict[str, int]) -> Facts:
    trainable, total = built.model.get_nb_trainable_parameters()
    return {
        "steps": trainer.state.global_step,
        "epochs": trainer.state.epoch,
        "rows": rows,
        "validation": measured,
        "trainable_parameters": trainable,
        "total_parameters": total,
        "lora_matches": dict(built.matches),
        "device": trainer.args.device.type,
        "precision": "bf16" if trainer.args.bf16 else "fp32",
    }
