"""One LoRA training with the transformers Trainer, from a request to a complete output folder."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from transformers import Trainer, TrainerCallback, set_seed

from ftpipeline.backends import adapter, checkpoint, precision
from ftpipeline.backends.channel import Channel
from ftpipeline.backends.checkpoint import Mark
from ftpipeline.backends.checkpointing import Checkpoints, Exchange
from ftpipeline.backends.consuming import Desk, Sources, holding
from ftpipeline.backends.dataset import EncodedRows, labelled_rows
from ftpipeline.backends.distillation import DistillingTrainer
from ftpipeline.backends.evaluations import Evaluations, Probe
from ftpipeline.backends.fail_fast import TrainingChecks
from ftpipeline.backends.history import Check, History
from ftpipeline.backends.lifetime import StopRequest
from ftpipeline.backends.lora import LoraModel
from ftpipeline.backends.probe import DriftProbe
from ftpipeline.backends.recipes import recipe_of
from ftpipeline.backends.step_watch import StepWatch
from ftpipeline.backends.tasks import TaskRecipe
from ftpipeline.backends.trainer import make_trainer, set_threads
from ftpipeline.digest import Digest, canonical_json
from ftpipeline.errors import InputError
from ftpipeline.records import Facts
from ftpipeline.schema import Train, validate
from ftpipeline.steps.ports import REPLAYED, WorkerRequest
from ftpipeline.steps.train_output import ADAPTER, SUMMARY

REGRESSION = "eval_regression"
"""The input that is measured beside the validation rows, where it is given."""


def train(request: WorkerRequest, channel: Channel, stop: StopRequest) -> None:
    """Train as `request` says and write the measurements, `adapter/` and, last, `train.json` under its output folder.

    Law: a training that goes on from a checkpoint writes the bytes of one that was never interrupted.

    Raises:
        CheckpointError: the checkpoint to go on from is torn, or belongs to another training.
        TrainingFailedError: a check ended the training, or a layer that is to be trained does not exist.
        InputError: the base model, the rows or the parameters cannot be used.
        WorkerInterruptedError: a signal has come.
    """
    set_threads()
    settings = validate(Train, request.params["train"], "train", InputError)
    precision.resolve(settings.precision)  # refused before anything is loaded
    params = checkpoint.params_digest(request.params)
    resumed = None if request.resume is None else _mark_of(request, request.resume, params)
    if resumed is not None:
        stop.kept = f"the checkpoint of step {resumed.step} is kept"
    stop.check("before the model was loaded")
    recipe = recipe_of(request.params["task"])(request.inputs["base_model"], request.params["labels"], settings, stop)
    rows = _encode(request, recipe)
    set_seed(settings.seed)  # the adapter, and a new head, start from random weights
    built = recipe.build_model()
    history = History(request.out, channel, _checks(settings))
    with TemporaryDirectory(prefix="ftpipeline-trainer-") as scratch:
        trainer = make_trainer(built, rows["train"], recipe, scratch)
        probe = DriftProbe(built.model, rows["validation"], recipe.collator())
        sources = Sources(settings.consumes, Desk(request.exchange, channel, stop), built.model)
        _take_up(sources, trainer, probe, resumed)
        evaluations = _evaluations(trainer, recipe, rows, partial(probe.measure, built.model), history)
        checkpoints = Checkpoints(_exchange(request, params), trainer.accelerator.scaler, history, channel, stop)
        for callback in (*sources.merges(), *_callbacks(history, channel, evaluations, checkpoints)):
            trainer.add_callback(callback)
        steps, epochs = _fit(trainer, built, history, evaluations, request.resume, resumed)
        measured = recipe.measure(trainer, rows["validation"])
        probe.require_moved(built.model)
    stop.check("before the adapter was saved")
    adapter.save(built.model, request.out / ADAPTER)
    made = {"steps": steps, "epochs": epochs, "validation": measured, "drift": probe.measure(built.model)}
    facts = made | _facts(trainer, built, {part: len(encoded) for part, encoded in rows.items()})
    (request.out / SUMMARY).write_bytes(canonical_json(facts))


def _mark_of(request: WorkerRequest, folder: Path, params: Digest) -> Mark:
    """Return what the checkpoint to go on from says of itself, once it is sound and belongs to what is trained.

    Raises:
        CheckpointError: it is torn, or belongs to another training.
    """
    if REPLAYED not in request.params:
        return checkpoint.verify(folder, params)
    mark = checkpoint.verify(folder)
    (folder / checkpoint.GENERATORS).unlink()  # without them, the Trainer goes on with those that the seed has set
    return mark


def _encode(request: WorkerRequest, recipe: TaskRecipe) -> dict[str, EncodedRows]:
    """Return the rows of the split by part, and those of the regression set where it is measured on the way."""
    rows = {part: recipe.encode(request.inputs["split"] / f"{part}.parquet") for part in ("train", "validation")}
    if REGRESSION in request.inputs:
        with TemporaryDirectory(prefix="ftpipeline-regression-") as scratch:
            rows["regression"] = recipe.encode(labelled_rows(request.inputs[REGRESSION], Path(scratch)))
    return rows


def _take_up(sources: Sources, trainer: DistillingTrainer, probe: DriftProbe, resumed: Mark | None) -> None:
    """Read the other jobs' checkpoints that are used from the first step, or the first one after a checkpoint, on."""
    step = 0 if resumed is None else resumed.step
    reference = sources.reference(step)
    if reference is not None:
        with holding(sources.model, reference):
            probe.refer_to(sources.model)
    trainer.teachers = sources.teachers(step)
    if resumed is None:
        sources.warm_start()


def _exchange(request: WorkerRequest, params: Digest) -> Exchange | None:
    return None if request.exchange is None else Exchange(request.exchange, request.checkpoint_steps, params)


def _checks(settings: Train) -> list[Check]:
    """Return what may end the training; each hears every measurement, also those before a checkpoint."""
    return [TrainingChecks(settings.checks)]


def _callbacks(
    history: History, channel: Channel, evaluations: Evaluations, checkpoints: Checkpoints
) -> list[TrainerCallback]:
    """Return what happens at every step, in its order: measured, evaluated, and only then saved."""
    return [StepWatch(history, channel), evaluations, checkpoints]


def _evaluations(
    trainer: Trainer, recipe: TaskRecipe, rows: Mapping[str, EncodedRows], probe: Probe, history: History
) -> Evaluations:
    def measure() -> Mapping[str, float]:
        measured = recipe.measure(trainer, rows["validation"])
        if "regression" in rows:
            scores = recipe.measure(trainer, rows["regression"])
            measured |= {f"regression_{name}": value for name, value in scores.items()}
        return measured

    return Evaluations(recipe.settings.evaluation_steps, measure, [probe], history, recipe.stop)


def _fit(
    trainer: Trainer,
    built: LoraModel,
    history: History,
    evaluations: Evaluations,
    folder: Path | None,
    resumed: Mark | None,
) -> tuple[int, float]:
    """Make all optimizer steps, or those after a checkpoint; return their number and the epochs."""
    if folder is None or resumed is None:
        trainer.train()
        return trainer.state.global_step, trainer.state.epoch or 0.0
    history.restore(folder)
    if not resumed.is_last:
        trainer.train(resume_from_checkpoint=str(folder))
        return trainer.state.global_step, trainer.state.epoch or 0.0
    # Asked to go on from its last step, the Trainer would make one more.
    built.model.load_adapter(str(folder), built.model.active_adapter, is_trainable=True)
    evaluations.make_up(resumed.step, resumed.epoch)
    return resumed.step, resumed.epoch


def _facts(trainer: Trainer, built: LoraModel, rows: dict[str, int]) -> Facts:
    trainable, total = built.model.get_nb_trainable_parameters()
    return {
        "rows": rows,
        "trainable_parameters": trainable,
        "total_parameters": total,
        "lora_matches": dict(built.matches),
        "lora_partial_matches": dict(built.partial),
        "device": trainer.args.device.type,
        "precision": "bf16" if trainer.args.bf16 else "fp16" if trainer.args.fp16 else "fp32",
    }
