"""Near duplicates: rows per CPU-second and memory on generated tickets, a process a size, and the cost of ten times.

A third of the rows are of 400 templates with a number of their own, one in ten is a copy of an earlier row.
"""

import json
import random
import resource
import subprocess
import sys
import time

from _measure import Figure, arguments, at_most, report

from ftpipeline.steps.duplicates import near_duplicates

SIZES = (100_000, 1_000_000)
THRESHOLD = 0.8
_WORDS = [f"word{n}" for n in range(20_000)]


def tickets(count: int) -> list[str]:
    """Return texts of 10 to 50 words."""
    draw = random.Random(11)
    templates = [" ".join(draw.choices(_WORDS, k=40)) for _ in range(400)]
    texts: list[str] = []
    for number in range(count):
        kind = draw.random()
        if kind < 0.1 and texts:
            texts.append(draw.choice(texts))
        elif kind < 0.4:
            texts.append(f"{draw.choice(templates)} order {number}")
        else:
            texts.append(" ".join(draw.choices(_WORDS, k=draw.randrange(10, 50))))
    return texts


def measure(count: int) -> dict[str, float]:
    """Measure one size in this process; the memory is what the search adds to the texts."""
    texts = tickets(count)
    held = _peak()
    started = time.process_time()
    clusters = near_duplicates(texts, THRESHOLD)
    seconds = time.process_time() - started
    return {"rows": count, "seconds": seconds, "clusters": len(clusters), "peak": _peak(), "added": _peak() - held}


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    """Measure every size in a process of its own and report."""
    parser = arguments(__doc__ or "")
    parser.add_argument("--rows", type=int, help="measure this size alone and print it as JSON")
    parser.add_argument(
        "--sizes", type=int, nargs=2, default=SIZES, help="the two sizes, the second ten times the first"
    )
    options = parser.parse_args()
    if options.rows is not None:
        print(json.dumps(measure(options.rows)))
        return
    figures, seconds = [], []
    for size in options.sizes:
        done = subprocess.run([sys.executable, __file__, "--rows", str(size)], check=True, capture_output=True)
        found = json.loads(done.stdout)
        seconds.append(found["seconds"])
        figures.append(Figure(f"{size} rows", size / found["seconds"], "rows/s"))
        figures.append(Figure(f"{size} rows: clusters", found["clusters"]))
        figures.append(Figure(f"{size} rows: peak memory, texts included", found["peak"], "MiB"))
        figures.append(Figure(f"{size} rows: memory that the search adds", found["added"], "MiB"))
    figures.append(at_most("cost of ten times the rows", seconds[1] / seconds[0], 12, "times"))
    report(figures, options.json)


if __name__ == "__main__":
    main()
