"""Everything outside a computation that its result was made from, in a form that another process can compare.

Law: where a trace holds, computing again would read the same and so give the same fingerprint. Files count by their
bytes and folders by their entries, never by times: those can be set, copied and too coarse to tell.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ftpipeline.engine.fingerprint.disk import Disk
from ftpipeline.engine.fingerprint.installed import Installation
from ftpipeline.engine.fingerprint.live import LiveModules
from ftpipeline.engine.fingerprint.modules import Finder, place_of
from ftpipeline.engine.fingerprint.question import Question
from ftpipeline.engine.fingerprint.values import read_value, usual_places


@dataclass(frozen=True)
class Trace:
    """What one code fingerprint was made from.

    Attributes:
        files: path to digest of the bytes.
        folders: path to digest of the entries.
        places: top-level module to where Python finds it.
        installed: metadata folders of the installed distributions.
        environment: variable to digest of its value; None if it is not set.
        roots: digests of the roots' own values.
        modules: module whose values may be read to its file.
        loaded: those of them that were loaded.
        values: module to name to what was found there.
    """

    files: Mapping[str, str]
    folders: Mapping[str, str]
    places: Mapping[str, Sequence[str | None]]
    installed: Sequence[str]
    environment: Mapping[str, str | None]
    roots: Sequence[str]
    modules: Mapping[str, str | None]
    loaded: Sequence[str]
    values: Mapping[str, Mapping[str, str]]

    def to_row(self) -> dict[str, Any]:
        """Return the trace as JSON; `Trace(**row)` reads it back."""
        return asdict(self)

    def holds(self, question: Question) -> bool:
        """Whether a computation that starts now would read what is traced."""
        return self._disk_holds(question) and self._process_holds(question)

    def _disk_holds(self, question: Question) -> bool:
        disk = Disk()
        for folder in self.folders:
            disk.entries(folder)
        return (
            disk.folders == self.folders
            and all(disk.digest(path) == content for path, content in self.files.items())
            and all(place_of(top) == place for top, place in self.places.items())
            and list(Installation(question.search_path).metadata) == list(self.installed)
        )

    def _process_holds(self, question: Question) -> bool:
        finder = Finder(Disk(), question.modules, question.project_roots)
        places = usual_places(finder.bases)
        live = LiveModules(self.modules, places, lambda module: finder.locate(module) is not None)
        return (
            environment_digests(self.environment, places) == self.environment
            and [root.read(finder).digest for root in question.roots] == list(self.roots)
            and live.loaded == list(self.loaded)
            and live.shows(self.values)
        )


def environment_digests(names: Iterable[str], places: Sequence[tuple[str, str]]) -> dict[str, str | None]:
    """Return each environment variable with the digest of its value; None for one that is not set."""
    values = {name: os.environ.get(name) for name in names}
    return {name: None if value is None else read_value(value, places).digest for name, value in values.items()}
