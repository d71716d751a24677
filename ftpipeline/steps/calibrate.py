"""The confidence under which a classifier abstains, calibrated on validation."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from ftpipeline.errors import EmptyResultError, ExportCheckError, PipelineFileError


@dataclass(frozen=True)
class Calibration:
    """An abstention threshold and the validation rows it rests on.

    Attributes:
        threshold: an answer abstains when its confidence is below it; in [0, 1].
        n: number of validation rows.
        abstained: how many of them abstain.
        max_abstain: largest share of them that may abstain.
    """

    threshold: float
    n: int
    abstained: int
    max_abstain: float


def calibrate(confidence: Sequence[float], max_abstain: float) -> Calibration:
    """Return the largest threshold under which at most `floor(max_abstain * n)` of the n confidences lie.

    Law: `abstained <= floor(max_abstain * n)`, and every larger threshold up to 1 breaks that bound, or there is none.

    Args:
        confidence: probability of the predicted class per validation row, shape (n,).
        max_abstain: share in [0, 1]; read as the decimal number it is written as, so that 0.29 of 100 rows are 29.

    Raises:
        EmptyResultError: there is no validation row.
        ExportCheckError: a confidence is not a probability.
        PipelineFileError: `max_abstain` is not a share.
    """
    if not 0 <= max_abstain <= 1:
        raise PipelineFileError(f"abstention.max_abstain is {max_abstain}; give a share from 0.0 to 1.0")
    if not confidence:
        raise EmptyResultError("validation has no row to calibrate abstention on; give split a validation share")
    ascending = sorted(map(_checked, confidence))
    allowed = math.floor(Decimal(str(max_abstain)) * len(ascending))
    threshold = ascending[allowed] if allowed < len(ascending) else 1.0
    abstained = sum(value < threshold for value in ascending)
    return Calibration(threshold, len(ascending), abstained, float(max_abstain))


def _checked(value: float) -> float:
    if not 0 <= value <= 1:  # false for NaN
        raise ExportCheckError(f"confidence {value} of a validation row is no probability; export the model again")
    return value
