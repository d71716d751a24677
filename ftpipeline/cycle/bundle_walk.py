"""Checks that a lineage holds together: every input was made, nothing is superfluous, keys follow from their parts."""

from collections.abc import Mapping
from graphlib import CycleError, TopologicalSorter
from typing import Any

from ftpipeline.cycle.bundle_format import LINEAGE
from ftpipeline.cycle.bundle_lineage import BundledLineage, Node
from ftpipeline.digest import Digest
from ftpipeline.engine.key import step_key, typed, untyped
from ftpipeline.errors import CanonicalFormError
from ftpipeline.receipts import VerificationError


def check_walk(lineage: BundledLineage) -> None:
    """Refuse a lineage that is not exactly the walk from its root.

    Raises:
        VerificationError: an output stands twice, an input was made by no node, a node is not reached from the root, or
            the walk goes in a circle.
    """
    nodes: dict[Digest, Node] = {}
    for node in lineage.nodes:
        if nodes.setdefault(node.output, node) is not node:
            raise VerificationError(LINEAGE, f"holds two nodes that made {node.output}")
    reached = _reached(lineage.root, nodes)
    if idle := sorted(nodes.keys() - reached):
        raise VerificationError(LINEAGE, f"holds {idle[0]}, which the artifact does not descend from")
    try:
        TopologicalSorter({output: node.inputs.values() for output, node in nodes.items()}).prepare()
    except CycleError as error:
        raise VerificationError(LINEAGE, f"goes in a circle: {' from '.join(error.args[1])}") from error


def check_keys(lineage: BundledLineage) -> None:
    """Recompute the key of every node from its parts.

    Raises:
        VerificationError: a key is not the one of its parts, or parameters are in no typed form.
    """
    for node in lineage.nodes:
        key = step_key(node.step, node.code, node.inputs, _untyped_params(node), node.environment)
        if key != node.key:
            raise VerificationError(LINEAGE, f"holds a key of step {node.step!r} that does not follow from its parts")


def _untyped_params(node: Node) -> Mapping[str, Any]:
    try:
        params = untyped(node.params)
        if isinstance(params, dict) and typed(params) == node.params:
            return params
        problem = "another form is the typed one"
    except (ValueError, TypeError, OverflowError, RecursionError, CanonicalFormError) as error:
        problem = str(error)
    raise VerificationError(LINEAGE, f"holds parameters of step {node.step!r} that are in no typed form ({problem})")


def _reached(root: Digest, nodes: Mapping[Digest, Node]) -> set[Digest]:
    reached: set[Digest] = set()
    waiting = [root]
    while waiting:
        output = waiting.pop()
        if output not in nodes:
            raise VerificationError(LINEAGE, f"names {output}, and holds no node that made it")
        if output not in reached:
            reached.add(output)
            waiting += nodes[output].inputs.values()
    return reached
