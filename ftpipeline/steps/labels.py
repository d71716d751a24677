"""The closed list of labels: which spelling of the source means which label."""

import unicodedata
from collections.abc import Callable, Mapping, Sequence

from ftpipeline.errors import LabelError, PipelineFileError
from ftpipeline.steps.metrics import check_labels


def _strip(label: str) -> str:
    return label.strip()


def _fold(label: str) -> str:
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", label).casefold()).strip()


NORMAL_FORMS: Mapping[str, Callable[[str], str]] = {"strip": _strip, "nfkc_casefold": _fold}
"""How spellings are compared: but for blanks at the ends, or but for case and Unicode form too."""


class LabelList:
    """A closed list of labels."""

    def __init__(self, labels: Sequence[str], normalise: str = "strip") -> None:
        """Check the list.

        Args:
            labels: the labels as they are to be used.
            normalise: name of a normal form.

        Raises:
            LabelError: the list is not one a classifier can answer from, or holds two spellings of one label.
            PipelineFileError: there is no such normal form.
        """
        if normalise not in NORMAL_FORMS:
            raise PipelineFileError(f"normalise_labels is {normalise!r}; use one of {', '.join(NORMAL_FORMS)}")
        check_labels(labels)
        self._form = NORMAL_FORMS[normalise]
        self._by_form: dict[str, str] = {}
        for label in labels:
            self._add(label)

    def _add(self, label: str) -> None:
        form = self._form(label)
        if not form:
            raise LabelError(f"label {label!r} is blank; remove it from the label list")
        if form in self._by_form:
            raise LabelError(f"labels {self._by_form[form]!r} and {label!r} are one label; keep one of them")
        self._by_form[form] = label

    def match(self, spelling: str) -> str | None:
        """Return the label that a spelling means, or None."""
        return self._by_form.get(self._form(spelling))


def shown(spelling: str) -> str:
    """Return a spelling for people: one with characters that cannot be seen is escaped."""
    return spelling if spelling.isprintable() else ascii(spelling)
