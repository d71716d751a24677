"""What a closure has reached."""

from dataclasses import dataclass, field

StatementKey = tuple[str, int]
"""Module and index of a statement among its items."""


@dataclass
class Reached:
    """Everything that a set of roots can run, and what importing it does.

    Attributes:
        links: statement to what its references stand for.
        members: `module:name` of the definitions.
        imported: first-party modules that are imported on the way.
        whole: modules of which every statement counts.
        values: `module:name` to the digest of a live value.
        distributions: installed distributions that are imported on the way.
        escalations: what was widened to a module or to the project, and why.
        reads_docs: docstrings count.
        reads_source: source text counts.
        reads_environment: an environment variable is read while importing.
        environment_literals: text literals of the statements that may name it.
    """

    links: dict[StatementKey, list[str]] = field(default_factory=dict)
    members: set[str] = field(default_factory=set)
    imported: set[str] = field(default_factory=set)
    whole: set[str] = field(default_factory=set)
    values: dict[str, str] = field(default_factory=dict)
    distributions: set[str] = field(default_factory=set)
    escalations: set[str] = field(default_factory=set)
    reads_docs: bool = False
    reads_source: bool = False
    reads_environment: bool = False
    environment_literals: set[str] = field(default_factory=set)
