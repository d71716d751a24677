"""The Trainer of a request: every argument that shapes the result, and nothing of its own devices."""

import os

import torch
from transformers import PrinterCallback, TrainingArguments

from ftpipeline.backends import precision
from ftpipeline.backends.dataset import EncodedRows
from ftpipeline.backends.distillation import DistillingTrainer
from ftpipeline.backends.lora import LoraModel
from ftpipeline.backends.tasks import TaskRecipe
from ftpipeline.errors import InputError
from ftpipeline.schema import Train

_THREADS_VARIABLE = "FTPIPELINE_TORCH_THREADS"
_EVAL_BATCH = 64
_SCHEDULES = {"cosine": "cosine", "linear": "linear", "constant": "constant_with_warmup"}
"""The Trainer's `constant` would ignore the warm-up."""


def set_threads() -> None:
    """Use one thread unless told otherwise: the sums of a training depend on how they are cut up.

    Raises:
        InputError: the variable holds no number of threads.
    """
    text = os.environ.get(_THREADS_VARIABLE, "1")
    if not text.isdecimal() or int(text) < 1:
        raise InputError(f"{_THREADS_VARIABLE} is {text!r}; give a number of threads from 1")
    torch.set_num_threads(int(text))


def make_trainer(built: LoraModel, rows: EncodedRows, recipe: TaskRecipe, scratch: str) -> DistillingTrainer:
    """Return the Trainer of a request, without any callback of this package; `scratch` is an empty folder."""
    trainer = DistillingTrainer(
        model=built.model,
        args=_arguments(recipe.settings, scratch),
        train_dataset=rows,
        data_collator=recipe.collator(),
        compute_loss_func=recipe.loss(),
    )
    trainer.remove_callback(PrinterCallback)
    return trainer


def _arguments(settings: Train, scratch: str) -> TrainingArguments:
    computed_in = precision.resolve(settings.precision)
    return TrainingArguments(
        output_dir=scratch,
        seed=settings.seed,
        learning_rate=settings.lr,
        num_train_epochs=settings.epochs or 1,
        max_steps=settings.max_steps or -1,  # given, it wins over the epochs
        per_device_train_batch_size=settings.batch_size,
        per_device_eval_batch_size=_EVAL_BATCH,
        gradient_accumulation_steps=settings.gradient_accumulation,
        lr_scheduler_type=_SCHEDULES[settings.scheduler],
        warmup_steps=settings.warmup_steps,
        weight_decay=settings.weight_decay,
        max_grad_norm=settings.max_grad_norm,
        optim="adamw_torch",
        use_cpu=not torch.cuda.is_available(),
        bf16=computed_in == "bf16",
        fp16=computed_in == "fp16",
        logging_strategy="steps",
        logging_steps=1,
        logging_nan_inf_filter=False,  # the default logs 0.0 for a loss that is NaN
        include_num_input_tokens_seen="non_padding",
        label_names=["labels"],
        dataloader_num_workers=0,
        eval_strategy="no",
        save_strategy="no",  # checkpoints are saved by a callback, complete or not at all
        report_to="none",
        disable_tqdm=True,
    )
