"""What a model's own words mean: one label of the closed list, or nothing.

The answer and the labels are compared but for case, Unicode form, and blanks, hyphens and underscores between words.
Markers of the tokenizer (`<|im_end|>`, `</s>`) are no words. A label counts where it stands as whole words, and of
labels that overlap the longest one counts: in `billing_refund` there is no `billing`. The answer means a label when
exactly one is in it and nothing denies it. Whatever else there may be (two labels, a part of one, none, a word such as
`not` outside the label) is unparsable: wrong, and counted.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence

from ftpipeline.errors import LabelError
from ftpipeline.steps.metrics import check_labels

_MARKER = re.compile(r"<\|[^<>|]*\|>|</?s>")
_BETWEEN_WORDS = re.compile(r"[\s_\-]+")
_DENIAL = re.compile(r"\b(?:no|not|nor|neither|never|none|without|cannot)\b|n['\u2019]t\b")


class LabelParser:
    """Reads answers against a closed list of labels.

    Law: `parse(label) == label` for every label of the list.
    """

    def __init__(self, labels: Sequence[str]) -> None:
        """Check the list.

        Raises:
            LabelError: the list is not one a classifier can answer from, a label has no letter or digit, or two labels
                are one in an answer.
        """
        check_labels(labels)
        self._labels: dict[str, str] = {}
        for label in labels:
            self._add(label)
        longest_first = sorted(self._labels, key=len, reverse=True)
        self._pattern = re.compile("|".join(rf"(?<!\w){re.escape(form)}(?!\w)" for form in longest_first))

    def _add(self, label: str) -> None:
        form = _normal(label)
        if not any(map(str.isalnum, form)):
            raise LabelError(f"label {label!r} has no letter or digit; no answer can be read as it, rename it")
        if form in self._labels:
            raise LabelError(f"labels {self._labels[form]!r} and {label!r} are one in an answer; rename one of them")
        self._labels[form] = label

    def parse(self, answer: str) -> str | None:
        """Return the label that `answer` means; None when it is unparsable."""
        text = _normal(_MARKER.sub(" ", answer))
        found = set(self._found(text))
        if len(found) != 1 or _DENIAL.search(self._pattern.sub(" ", text)):
            return None
        return found.pop()

    def _found(self, text: str) -> Iterator[str]:
        for match in self._pattern.finditer(text):
            yield self._labels[match.group()]


def _normal(text: str) -> str:
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return _BETWEEN_WORDS.sub(" ", folded).strip()
