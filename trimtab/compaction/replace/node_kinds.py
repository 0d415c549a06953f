"""What a new node has in common with the nodes that it replaces: zone, capacity type (spot or not) and architecture,
but for what their pool lets change (`replaceAcross`)."""

from collections.abc import Collection, Iterable

from trimtab.cluster.node import NodeInfo
from trimtab.cluster.pool_values import ReplaceAcross
from trimtab.machines.prices import is_spot

ReplacedKind = tuple[str | None, bool | None, str | None]
"""(zone, whether it is spot, architecture), in the order of `ReplaceAcross`; None for what may change."""


def kind_of(node: NodeInfo, across: Collection[ReplaceAcross] = ()) -> ReplacedKind:
    """Returns what a replacement of the node keeps, if `across` may change."""
    return (
        None if ReplaceAcross.ZONES in across else node.zone,
        None if ReplaceAcross.CAPACITY_TYPES in across else is_spot(node),
        None if ReplaceAcross.ARCHITECTURES in across else node.architecture,
    )


def list_changes(nodes: Iterable[NodeInfo], new_node: NodeInfo) -> tuple[ReplaceAcross, ...]:
    """Returns in what the new node differs from any of the nodes."""
    kinds, new = [kind_of(node) for node in nodes], kind_of(new_node)
    return tuple(
        across
        for position, across in enumerate(ReplaceAcross)
        if any(kind[position] != new[position] for kind in kinds)
    )
