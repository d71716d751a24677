"""The closure by name: follows names from the roots through the project's code until nothing new is reached."""

from collections import deque
from collections.abc import Callable, Iterable
from functools import partial

from ftpipeline.engine.fingerprint import known
from ftpipeline.engine.fingerprint.effects import Effect, Effects
from ftpipeline.engine.fingerprint.facts import Item
from ftpipeline.engine.fingerprint.installed import Installation
from ftpipeline.engine.fingerprint.live import LiveModules, is_defined
from ftpipeline.engine.fingerprint.modules import OWN_PACKAGE
from ftpipeline.engine.fingerprint.reached import Reached, StatementKey
from ftpipeline.engine.fingerprint.resolve import Project, Target
from ftpipeline.engine.fingerprint.values import CodeReference


class Closure:
    """Add roots with the `add_` methods, then `run`.

    Attributes:
        reached: what has been found.
        effects: the judge of what statements do while they are imported.
    """

    def __init__(self, project: Project, live: LiveModules, installation: Installation) -> None:
        """Start with nothing reached."""
        self.reached = Reached()
        self.effects = Effects(project)
        self._project = project
        self._live = live
        self._installation = installation
        self._queue: deque[Callable[[], None]] = deque()
        self._runs_at_import: set[StatementKey] = set()
        self._harmless: set[str] = set()
        self._project_is_whole = False

    def add_definition(self, module: str, name: str, *, at_import: bool = False) -> None:
        """Reach what `module` binds to `name`; `at_import` if it may be called while modules are imported."""
        for index in self.effects.definition(module, name):
            self._push(module, index, at_import)
        member = f"{module}:{name}"
        if member not in self.reached.members:
            self.reached.members.add(member)
            self.add_import(module)
            self._add_value(module, name)

    def add_module(self, module: str, why: str | None = None) -> None:
        """Reach all of `module`; `why` says what widened the closure to it."""
        if module in self.reached.whole:
            return
        self.reached.whole.add(module)
        if why:
            self.reached.escalations.add(f"{module}: {why}")
        self.add_import(module)
        self._queue.append(partial(self._add_contents, module))

    def add_import(self, module: str) -> None:
        """Reach what importing `module` and the packages around it does."""
        parts = module.split(".")
        for end in range(1, len(parts) + 1):
            name = ".".join(parts[:end])
            if not self._project.owns(name):
                self._add_external(name)
                return
            if name not in self.reached.imported:
                self.reached.imported.add(name)
                self._queue.append(partial(self._add_effects, name))
                if self._project_is_whole and name == parts[0] != OWN_PACKAGE:
                    self._add_package(name)

    def add_code(self, reference: CodeReference) -> None:
        """Reach a function, class or module that was found inside a value."""
        module, qualname, line = reference
        top = qualname.partition(".")[0]
        if not self._project.owns(module):
            self._add_external(module)
        elif not top:
            self.add_module(module, "the module is used as a value")
        elif top in self._project.facts(module).bound:
            self.add_definition(module, top)
        elif not self._add_line(module, line):
            self.add_module(module, f"{qualname} was made while the program ran")

    def run(self) -> None:
        """Follow references until nothing new is reached."""
        while self._queue:
            self._queue.popleft()()

    def listing_modules(self) -> set[str]:
        """Return the reached modules that list files and know where they stand."""
        listing, placed = set(), set()
        for (module, index), links in self.reached.links.items():
            if not known.FILE_LISTERS.isdisjoint(self._project.facts(module).items[index].attributes):
                listing.add(module)
            if any(place in link for link in links for place in known.OWN_PLACES):
                placed.add(module)
        return listing & placed

    # --- statements ------------------------------------------------------------------------------------------------

    def _push(self, module: str, index: int, at_import: bool = False) -> None:
        key = (module, index)
        if key in self.reached.links and (not at_import or key in self._runs_at_import):
            return
        self.reached.links.setdefault(key, [])
        if at_import:
            self._runs_at_import.add(key)
        self._queue.append(partial(self._read, module, index, at_import))

    def _read(self, module: str, index: int, at_import: bool) -> None:
        item = self._project.facts(module).items[index]
        called = set(item.refs if at_import else self._called_at_import(module, item))
        links = {f"docstring = {item.doc}"} if item.doc and self.effects.hands_out(module, item) else set()
        for reference in item.refs:
            for target in self._project.resolve(module, reference):
                links.add(f"{reference} = {target}")
                self._follow(module, item, target, at_import=reference in called)
        for reference in item.import_refs:
            for target in self._project.resolve_import(module, reference):
                links.add(f"{reference} = {target}")
                self._follow(module, item, target, at_import=at_import)
        for imported in item.imports:
            level, name, attribute = imported.split("|")
            self._execute_import(module, int(level), name, attribute)
        self._note_attributes(module, item)
        self._note_environment(module, item, at_import)
        self.reached.links[module, index] = sorted(links)

    def _called_at_import(self, module: str, item: Item) -> Iterable[str]:
        if item.kind == "main":  # runs after the import
            return ()
        quiet = self.effects.worst_call(module, item) is not Effect.ANY and not item.decorators
        return () if quiet else item.eager

    def _follow(self, module: str, item: Item, target: Target, *, at_import: bool) -> None:
        if target.kind == "definition":
            self.add_definition(target.module, target.name, at_import=at_import)
        elif target.kind == "module":
            self.add_module(target.module, f"the module is used as a value in {_title(module, item)}")
        elif target.kind == "external" and target.name not in self._harmless:
            self._follow_external(module, item, target.name)
        elif target.kind == "unknown" and self._live.has(target.module, target.name):
            self._take_value(target.module, target.name)  # bound by code of another module

    def _add_contents(self, module: str) -> None:
        facts = self._project.facts(module)
        for name in facts.bound:
            self.add_definition(module, name)
        for index in range(len(facts.items)):
            self._push(module, index)
        for entry in facts.imports:
            exported = self._project.resolve(module, entry.name) if entry.attribute not in {"", "*"} else ()
            for target in exported:
                if target.kind == "definition":
                    self.add_definition(target.module, target.name)

    def _add_line(self, module: str, line: int) -> bool:
        items = self._project.facts(module).items
        found = [index for index, item in enumerate(items) if item.lines[0] <= line <= item.lines[1]]
        for index in found:
            self._push(module, index)
        return bool(found)

    # --- what widens the closure -----------------------------------------------------------------------------------

    def _follow_external(self, module: str, item: Item, name: str) -> None:
        self._add_external(name)
        telling = [dotted for dotted in _prefixes(name) if dotted in known.TELLING]
        if not telling:
            self._harmless.add(name)
        for dotted in telling:
            self._widen(module, item, dotted)

    def _widen(self, module: str, item: Item, dotted: str) -> None:
        if dotted in known.MODULE_ESCALATIONS:
            self.add_module(module, f"{_title(module, item)} {known.MODULE_ESCALATIONS[dotted]}")
        if dotted in known.PROJECT_ESCALATIONS:
            self._add_project(f"{_title(module, item)} {known.PROJECT_ESCALATIONS[dotted]}")
        if dotted in known.ENTRY_POINTS:
            self.reached.distributions.update(self._installation.declaring_entry_points())
        self.reached.reads_docs |= dotted in known.DOC_READERS
        self.reached.reads_source |= dotted in known.SOURCE_READERS

    def _note_attributes(self, module: str, item: Item) -> None:
        self.reached.reads_docs |= known.DOCUMENTATION in item.attributes
        if known.SUBCLASSES in item.attributes:
            self._add_project(f"{_title(module, item)} asks for __subclasses__")

    def _note_environment(self, module: str, item: Item, at_import: bool) -> None:
        if item.kind == "main":
            return
        reads = self.effects.reads_environment(module, item.refs if at_import else item.eager)
        computes = item.kind not in {"def", "class"} and not self.effects.is_determined(module, item)
        self.reached.reads_environment |= reads
        if reads or computes or at_import:
            self.reached.environment_literals.update(item.strings)

    def _add_project(self, why: str) -> None:
        self.reached.escalations.add(f"project: {why}")
        if self._project_is_whole:
            return
        self._project_is_whole = True
        reached = {name.partition(".")[0] for name in self.reached.imported} - {OWN_PACKAGE}
        for package in sorted(self._project.finder.project_packages() | reached):
            self._add_package(package)

    def _add_package(self, package: str) -> None:
        for located in self._project.finder.modules_below(package):
            self.add_module(located.name)

    # --- imports ---------------------------------------------------------------------------------------------------

    def _add_effects(self, module: str) -> None:
        for index in self.effects.of_module(module).effects:
            self._push(module, index)
        for entry in self._project.facts(module).imports:
            if entry.kind != "typing":
                self._execute_import(module, entry.level, entry.module, entry.attribute)

    def _execute_import(self, module: str, level: int, name: str, attribute: str) -> None:
        base = self._project.absolute(module, level, name)
        self.add_import(base)
        if attribute and self._project.owns(base) and self._project.owns(f"{base}.{attribute}"):
            self.add_import(f"{base}.{attribute}")

    def _add_external(self, name: str) -> None:
        self.reached.distributions.update(self._installation.providers_of(name))

    # --- live values -----------------------------------------------------------------------------------------------

    def _add_value(self, module: str, name: str) -> None:
        facts = self._project.facts(module)
        items = [facts.items[index] for index in self.effects.definition(module, name)]
        computed = not is_defined(items) and not all(self.effects.is_determined(module, item) for item in items)
        if not self._live.has(module):
            if computed:
                self.add_module(module, f"the value of {name} is computed while importing")
        elif self._live.has(module, name) and (computed or self._live.is_rebound(module, name, items)):
            self._take_value(module, name)

    def _take_value(self, module: str, name: str) -> None:
        value = self._live.value(module, name)
        self.reached.values[f"{module}:{name}"] = value.digest
        for reference in value.code:
            self.add_code(reference)
        for kind in value.opaque:
            self.add_module(module, f"the value of {name} holds a {kind}, which has no canonical form")


def _title(module: str, item: Item) -> str:
    return f"{module}:{item.names[0] if item.names else f'line {item.lines[0]}'}"


def _prefixes(name: str) -> Iterable[str]:
    parts = name.split(".")
    return (".".join(parts[:end]) for end in range(2, len(parts) + 1))
