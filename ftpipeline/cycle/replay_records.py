"""What replays have shown, and what is signed of it (`docs/formats/isolation.md` describes the receipt).

Law: the same replays give the same receipt, whenever and however often they are made.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ftpipeline.cycle.counterfactual import Case
from ftpipeline.cycle.replay_judge import Judgement
from ftpipeline.digest import Digest
from ftpipeline.guard.attribute import Arm, Attribution, Outcome, attribute
from ftpipeline.guard.trace import Exposure
from ftpipeline.receipts import Statement, Subject

ATTRIBUTION = "ftpipeline:attribution/v1"


@dataclass(frozen=True)
class Replay:
    """One replay.

    Attributes:
        job_id: its name in the ledger.
        seed: what the order of the data and the dropout were drawn from.
        key: the step key.
        output: what was measured.
        judgement: what is said of that.
    """

    job_id: str
    seed: int
    key: Digest
    output: Digest
    judgement: Judgement

    def to_json(self) -> dict[str, Any]:
        """Return strict JSON."""
        return {
            "job_id": self.job_id,
            "seed": self.seed,
            "key": self.key,
            "output": self.output,
            "diverged": self.judgement.diverged,
            "stage": str(self.judgement.detection.stage),
            "onset": self.judgement.detection.onset_step,
            "ended": self.judgement.ended,
        }


@dataclass(frozen=True)
class Replayed:
    """The replays of a job.

    Attributes:
        case: what was replayed.
        replays: by arm, in the order of the seeds.
    """

    case: Case
    replays: Mapping[Arm, Sequence[Replay]]

    @property
    def attribution(self) -> Attribution:
        """What they amount to."""
        return attribute(Exposure.EXPOSED_UNTESTED, {arm: _outcome(made) for arm, made in self.replays.items()})

    @property
    def outcomes(self) -> dict[str, Any]:
        """K of n by arm, as strict JSON."""
        found = self.attribution.outcomes
        return {str(arm): {"diverged": each.diverged, "runs": each.runs} for arm, each in found.items()}

    def to_json(self) -> dict[str, Any]:
        """Return strict JSON."""
        case = self.case
        return {
            "incident": case.incident.name,
            "job_id": case.job.job_id,
            "cause": str(self.attribution.cause),
            "outcomes": self.outcomes,
            "start": None if case.start is None else case.start.to_json(),
            "suspects": [suspect.to_json() for suspect in case.suspects],
            "replays": {str(arm): [each.to_json() for each in made] for arm, made in self.replays.items()},
        }

    def statement(self) -> Statement:
        """Return the attribution receipt: about the divergence, and what was measured of every replay."""
        measured = {each.job_id: each.output for made in self.replays.values() for each in made}
        subjects = [Subject("divergence", self.case.incident.divergence)]
        subjects += [Subject(job_id, output) for job_id, output in sorted(measured.items())]
        return Statement(tuple(subjects), ATTRIBUTION, self.to_json())


def _outcome(replays: Sequence[Replay]) -> Outcome:
    """Count the replays of an arm that came to an answer."""
    answers = [each.judgement.diverged for each in replays if each.judgement.diverged is not None]
    return Outcome(sum(answers), len(answers))
