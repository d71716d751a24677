"""Personal data: rows per CPU-second and memory of the scrubber, and how it fares on the labelled texts beside others.

The others are measured where they are installed; none is needed.
"""

import json
import random
import resource
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from _measure import Figure, arguments, at_most, report

from ftpipeline.steps.pii import scrub

FIXTURE = Path(__file__).parents[1] / "ftpipeline_tests" / "steps" / "pii_fixture.jsonl"
SIZES = (10_000, 100_000)
_PEER_ROWS = 500

Scrub = Callable[[str], str]


def tickets(count: int, cases: Sequence[dict[str, Any]]) -> list[str]:
    """Return texts of about 60 words; a third holds one of the labelled pieces."""
    draw = random.Random(7)
    words = [f"word{n}" for n in range(3000)] + [str(n) for n in range(1000)]
    texts = (" ".join(draw.choices(words, k=draw.randrange(40, 80))) for _ in range(count))
    return [f"{text} {draw.choice(cases)['text']}" if draw.random() < 1 / 3 else text for text in texts]


def rate(scrubber: Scrub, texts: Sequence[str]) -> float:
    """Return rows per CPU-second."""
    started = time.process_time()
    for text in texts:
        scrubber(text)
    return len(texts) / (time.process_time() - started)


def quality(scrubber: Scrub, cases: Sequence[dict[str, Any]]) -> tuple[float, float]:
    """Return recall over what must go, and precision against what must stay."""
    scrubbed = [(case, scrubber(case["text"])) for case in cases]
    wanted = sum(len(case["redact"]) for case in cases)
    found = sum(part not in text for case, text in scrubbed for part in case["redact"])
    damaged = sum(part not in text for case, text in scrubbed for part in case["keep"])
    return found / wanted, found / (found + damaged) if found else 0.0


def peers() -> Iterator[tuple[str, Scrub]]:
    """Yield the other scrubbers that are installed."""
    for make in (_scrubadub, _datafog, _presidio):
        try:
            yield make.__name__.strip("_"), make()
        except ImportError:
            continue


def _scrubadub() -> Scrub:
    import scrubadub

    scrubber = scrubadub.Scrubber()
    return lambda text: str(scrubber.clean(text))


def _datafog() -> Scrub:
    from datafog import sanitize

    return lambda text: str(sanitize(text, engine="regex"))


def _presidio() -> Scrub:
    import spacy
    from presidio_analyzer import AnalyzerEngine
    from presidio_analyzer.nlp_engine import SpacyNlpEngine

    engine = SpacyNlpEngine(models=[{"lang_code": "en", "model_name": "blank"}])
    engine.nlp = {"en": spacy.blank("en")}
    analyzer = AnalyzerEngine(nlp_engine=engine, supported_languages=["en"])
    kinds = ["EMAIL_ADDRESS", "PHONE_NUMBER", "CREDIT_CARD", "IBAN_CODE"]

    def scrubber(text: str) -> str:
        for hit in sorted(analyzer.analyze(text, language="en", entities=kinds), key=lambda hit: -hit.start):
            text = f"{text[: hit.start]}<X>{text[hit.end :]}"
        return text

    return scrubber


def main() -> None:
    """Measure and report."""
    options = arguments(__doc__ or "").parse_args()
    cases = [json.loads(line) for line in FIXTURE.read_text("utf-8").splitlines()]
    rates = [rate(lambda text: scrub(text)[0], tickets(size, cases)) for size in SIZES]
    figures = [Figure(f"{size} rows", value, "rows/s") for size, value in zip(SIZES, rates, strict=True)]
    figures.append(at_most("cost of ten times the rows", 10 * rates[0] / rates[1], 12, "times"))
    figures.append(Figure("peak memory", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, "MiB"))
    sample = tickets(_PEER_ROWS, cases)
    for name, scrubber in [("ftpipeline", lambda text: scrub(text)[0]), *peers()]:
        recall, precision = quality(scrubber, cases)
        figures += [Figure(f"{name}: recall", recall), Figure(f"{name}: precision", precision)]
        figures.append(Figure(f"{name}: speed", rate(scrubber, sample), "rows/s"))
    report(figures, options.json)


if __name__ == "__main__":
    main()
