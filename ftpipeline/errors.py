"""The error tree. Every message says what happened, where, and what to do about it.

The exit code of the command line is a property of the error's branch: 1 a verdict against the input, 2 wrong use or
input, 3 an environment that must be put right first (design, contract C14).
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import ClassVar


class FtpipelineError(Exception):
    """Root of the tree; never raised itself."""

    exit_code: ClassVar[int] = 2


# --- 1: a verdict against -------------------------------------------------------------------------------------------


class VerdictError(FtpipelineError):
    """The input was read and understood, and the answer is no."""

    exit_code = 1


class CorruptArtifactError(VerdictError):
    """Stored bytes do not have the digest they are stored under, or are missing.

    A step is run again once its output is missing something; altered objects are out of the way after `fsck`.

    Attributes:
        digest: the blob or tree that does not verify.
        dependants: digests known to need it.
    """

    def __init__(
        self,
        digest: str,
        problem: str,
        dependants: Sequence[str] = (),
        remedy: str = "run 'ftpipeline fsck', then the week that made it again (or restore it from a backup)",
    ) -> None:
        self.digest = digest
        self.dependants = tuple(dependants)
        needed = f"; needed by {', '.join(self.dependants)}" if self.dependants else ""
        super().__init__(f"stored artifact {digest} is {problem}{needed}; {remedy}")


class QuarantinedError(VerdictError):
    """An artifact is under quarantine, and no route may use it.

    Attributes:
        digest: the quarantined tree.
    """

    def __init__(self, digest: str, reason: str) -> None:
        self.digest = digest
        super().__init__(
            f"artifact {digest} is quarantined ({reason}); use another, or lift it with 'ftpipeline quarantine lift'"
        )


class VerificationError(VerdictError):
    """A signed document, or something that it vouches for, does not verify.

    Attributes:
        where: what is wrong: the document, or the part of it that could be located.
    """

    def __init__(self, where: str, problem: str, remedy: str = "do not trust it; get it again from its signer") -> None:
        self.where = where
        super().__init__(f"{where} {problem}; {remedy}")


class BaseModelMismatchError(VerdictError):
    """The base model's bytes are not the pinned ones."""


class TokenizerMismatchError(VerdictError):
    """The tokenizer or chat template is not the pinned one."""


class LeakageError(VerdictError):
    """Eval rows were found in the training rows, under the policy `fail` or by a step that re-checks the verdict."""


class TrainingFailedError(VerdictError):
    """The training worker ended without an adapter that may be used.

    Attributes:
        evidence: what a check saw (`kind`, `step`, `value`, `limit`), as JSON values; empty where no number decided.
    """

    evidence: Mapping[str, object] = MappingProxyType({})

    def __init__(self, message: str, evidence: Mapping[str, object] = evidence) -> None:
        self.evidence = dict(evidence)
        super().__init__(message)


class NonFiniteError(TrainingFailedError):
    """A loss, a gradient norm or a weight is NaN or infinite."""


class ZeroLossError(TrainingFailedError):
    """A loss is exactly zero: nothing is measured, or nothing is left to learn from."""


class GradientSpikeError(TrainingFailedError):
    """The gradient norm jumped far beyond what it was."""


class LossExplosionError(TrainingFailedError):
    """The loss climbed far beyond where it began, and stays there."""


class OverfittingError(TrainingFailedError):
    """The training loss falls while the validation loss rises."""


class NoLearningError(TrainingFailedError):
    """The loss did not fall within the declared number of steps, or the trained model answers as its base does."""


class DeadTargetError(TrainingFailedError):
    """A LoRA target or a module to save matches nothing in the base model."""


class UnlabelledSampleError(TrainingFailedError):
    """Masking or cutting leaves a sample without a token that is trained on."""


class CheckpointError(VerdictError):
    """A checkpoint is torn, misses a file, or belongs to another training."""


class AdapterKeysError(VerdictError):
    """An adapter's weights are not those that its base model and configuration ask for."""


class ChainError(VerificationError):
    """A job's chain of events is missing, forked, cut off or altered.

    Attributes:
        job_id: the job.
        state: `missing`, `forked` or `unverifiable`.
        seq: sequence number of the first event that does not fit; None where there is none.
    """

    def __init__(self, job_id: str, state: str, seq: int | None, problem: str) -> None:
        self.job_id = job_id
        self.state = state
        self.seq = seq
        place = f"ledger of job {job_id}" + ("" if seq is None else f", event {seq},")
        super().__init__(place, problem, "halt what trains beside it, and restore the ledger from a backup")


class JobHaltedError(VerdictError):
    """A training job may not start or go on: it is quarantined, isolated, or its ledger cannot be trusted."""


class ExportCheckError(VerdictError):
    """The exported folder does not hold what the serving runtime needs."""


class GateRecordError(VerdictError):
    """A gate record does not speak for the artifact, manifest or production generation it is used for."""


class UnevaluatedError(GateRecordError):
    """A report, or a gate record, is the output of no step that was run here."""


class ForeignReportError(GateRecordError):
    """The report that a gate rests on is about another artifact, or compares with another production."""


class UnexportedArtifactError(GateRecordError):
    """What is to be registered is not what the export step made: the served bytes are the ones that are measured."""


class StaleEvalSetError(GateRecordError):
    """The gate measured on another version of an eval set than the newest one."""


class StaleGateError(GateRecordError):
    """Production was moved since the gate compared with it."""


class ReplayedGateError(GateRecordError):
    """A gate record that a newer one of the same entry has replaced is presented again."""


class TransitionError(VerdictError):
    """A stage move that the registry's state machine does not allow."""


class SkippedStageError(TransitionError):
    """A promotion leaves out a stage."""


class RejectedEntryError(TransitionError):
    """A rejected entry was to be moved; rejection is for good."""


class ProtectedArtifactError(VerdictError):
    """An artifact cannot be deleted: a stage holds it, or it is what a rollback returns to."""


class StaleGenerationError(VerdictError):
    """Somebody else moved the stage pointer first.

    Attributes:
        expected: the generation the caller had read.
        actual: the generation that stands now.
    """

    def __init__(self, message: str, expected: int, actual: int) -> None:
        self.expected = expected
        self.actual = actual
        super().__init__(message)


# --- 2: wrong use or input ------------------------------------------------------------------------------------------


class InputError(FtpipelineError):
    """Something the user wrote must change."""

    exit_code = 2


class DigestError(InputError):
    """Text that should be `sha256:<64 hex>` is not."""


class CanonicalFormError(InputError):
    """A value has no canonical form (NaN, an int beyond 2^53, a key that is not text)."""


class PipelineFileError(InputError):
    """The pipeline file cannot be used as written."""


class ManifestError(InputError):
    """A manifest field is missing, unknown, of the wrong type or not pinned."""


class SourceError(InputError):
    """The source answered, but not with what the pipeline declares (a column, a type)."""


class EmptyWindowError(InputError):
    """No row of the source lies in the week's window."""


class EmptyResultError(InputError):
    """A step that must keep rows kept none."""


class EvalSetError(InputError):
    """An eval set cannot be read, or its content changed under a known version."""


class LabelError(InputError):
    """A label is outside the declared list, or the list itself is unusable."""


class ThresholdError(InputError):
    """A gate's threshold is finer than what the eval set and the seeds of a training can tell apart."""


class ModelFilesError(InputError):
    """A base model's folder is not whole: a weight file, shard, configuration or tokenizer is missing or torn."""


class UnknownNameError(InputError):
    """A digest, registry name, stage or week that nothing is known of."""


class TreeError(InputError):
    """A folder cannot be a tree: a link, an absolute path, `..`, or names that collide."""


class StepDefinitionError(InputError):
    """A step or port is declared in a way that the engine cannot run or key."""


class UndeclaredUseError(StepDefinitionError):
    """A step read, wrote or connected to something that it does not declare, whatever it did about the denial."""


class StepFailedError(InputError):
    """A step raised an error that is none of this tree nor of Python itself; its frames come with it."""


# --- 3: environment -------------------------------------------------------------------------------------------------


class EnvironmentProblemError(FtpipelineError):
    """The surroundings must be put right before anything can be decided."""

    exit_code = 3


class StoreError(EnvironmentProblemError):
    """The blob store cannot be read or written."""


class DatabaseError(EnvironmentProblemError):
    """The database cannot be opened, is locked, or has a schema this version does not know."""


class LedgerError(EnvironmentProblemError):
    """The ledger cannot be read or appended to."""


class LeaseLostError(EnvironmentProblemError):
    """A lease was taken over by another process, or did not come free in time."""


class SourceUnavailableError(EnvironmentProblemError):
    """The source database is missing or locked by another process."""


class WorkerError(EnvironmentProblemError):
    """A worker process could not be started, or ended without saying why."""


class WorkerInterruptedError(EnvironmentProblemError):
    """A worker was asked to stop (SIGINT, SIGTERM) and did so."""


class MissingDependencyError(EnvironmentProblemError):
    """An optional package is needed for what was asked."""


def named(name: str, message: str) -> FtpipelineError | None:
    """Return an error of the tree by its class name, as it travels between processes; None if there is no such class.

    What a class carries beside its message does not travel.
    """
    waiting: list[type[FtpipelineError]] = [FtpipelineError]
    while waiting:
        kind = waiting.pop()
        if kind.__name__ == name:
            error = kind.__new__(kind, message)
            Exception.__init__(error, message)
            return error
        waiting += kind.__subclasses__()
    return None
