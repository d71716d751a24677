"""Every eval set that ever decided: what a gate was measured on is never trained on, however old the version."""

from collections.abc import Collection

from ftpipeline.cycle.cycle import Cycle
from ftpipeline.digest import Digest, parse
from ftpipeline.registry.evidence import pinned_eval_sets


def earlier_eval_sets(cycle: Cycle, current: Collection[Digest]) -> dict[str, Digest]:
    """Return the eval sets of a pipeline beside its current ones, by `eval_<name>_<version>`.

    They are every version of the sets that the pipeline file names, and whatever a registered artifact of the pipeline
    was gated on; a set that was renamed or dropped from the file is among the latter.

    Args:
        cycle: the pipeline in its store.
        current: contents that are not repeated.

    Raises:
        ManifestError: the manifest of a registered artifact does not pin its eval sets.
        CorruptArtifactError: such a manifest is missing or altered.
    """
    found: dict[Digest, str] = {}
    for declared in cycle.pipeline.file.eval_sets.by_role().values():
        for version, content in cycle.store.eval_sets.versions(declared.name).items():
            found.setdefault(content, f"eval_{declared.name}_{version}")
    for manifest in dict.fromkeys(entry.manifest for entry in cycle.registry.entries(cycle.pipeline.name)):
        for pinned in pinned_eval_sets(cycle.store.trees, manifest).values():
            found.setdefault(parse(pinned["digest"]), "eval_{name}_{version}".format(**pinned))
    return {name: content for content, name in sorted(found.items()) if content not in current}
