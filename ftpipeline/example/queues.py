"""The queues of the example's support desk."""

from dataclasses import dataclass

from ftpipeline.example.grammar import read_data


@dataclass(frozen=True)
class Queue:
    """A queue and how customers write to it.

    Attributes:
        name: the label.
        family: queues of one family share vocabulary and are mistaken for each other.
        weight: relative share of the tickets.
        late: the queue opens only shortly before the end of the history.
        templates: wording of this queue alone.
        vague: wording that fits every queue of the family.
    """

    name: str
    family: str
    weight: float
    late: bool
    templates: tuple[str, ...]
    vague: tuple[str, ...]


def load_queues() -> tuple[Queue, ...]:
    """Return all queues, sorted by name."""
    queues = [
        Queue(
            name=queue["name"],
            family=family["name"],
            weight=queue["weight"],
            late=queue.get("late", False),
            templates=tuple(queue["templates"]),
            vague=tuple(family["vague"]),
        )
        for family in read_data("queues.toml")["family"]
        for queue in family["queue"]
    ]
    return tuple(sorted(queues, key=lambda queue: queue.name))
