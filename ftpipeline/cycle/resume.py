"""Which checkpoints of a job a training may go on from."""

from collections.abc import Iterator

from ftpipeline.backends import checkpoint
from ftpipeline.cycle.jobs import TrainingJob
from ftpipeline.digest import Digest
from ftpipeline.errors import CheckpointError, CorruptArtifactError, TreeError
from ftpipeline.ledger.events import Event
from ftpipeline.ledger.reader import LedgerReader
from ftpipeline.store.trees import Trees


def resumable(ledger: LedgerReader, trees: Trees, job: TrainingJob) -> Iterator[Event]:
    """Yield the job's complete checkpoints whose bytes are whole, newest first.

    Nothing of them is handed out, and quarantine is not looked at: the ledger judges it when an attempt opens.
    """
    return (saved for saved in reversed(ledger.checkpoints(job.job_id)) if _is_whole(saved, trees, job.params))


def _is_whole(saved: Event, trees: Trees, params: Digest) -> bool:
    tree = Digest(saved.payload["tree"])
    try:
        trees.verify(tree)
        files = {entry.path: entry.sha256 for entry in trees.entries(tree)}
        marker = trees.read(tree, checkpoint.MARKER) if files.pop(checkpoint.MARKER, None) else None
        checkpoint.check(checkpoint.name_of(saved.step), marker, files, params)
    except (CorruptArtifactError, TreeError, CheckpointError):
        return False  # an older one may do; what is corrupt is reported by fsck
    return True
