"""Which node belongs to which node group of the cluster autoscaler, and what is kept where this is not known.

A node and a group are matched by names: the provider's address of the node, its labels and annotations. Where names do
not match, the status still says how many nodes each group has. If only one group can have the remaining nodes, and as
many as there are, they are its nodes. Otherwise each of them may belong to each group that has more nodes than match
it, so no more of them are removed than the group with the least to spare can lose.
"""

from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from trimtab.cluster.cluster_autoscaler import NodeGroupStatus
from trimtab.cluster.format_count import format_count, join_first
from trimtab.cluster.node import NodeInfo, group_of
from trimtab.cluster.node_nature import NodeKind

_IN_NO_GROUP = (NodeKind.CONTROL_PLANE, NodeKind.EDGE, NodeKind.SERVERLESS, NodeKind.KARPENTER)
_MAX_NAMES = 3
"""The largest number of names that a sentence lists."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeGroups:
    """The node groups of the nodes of a cluster, as far as they are known."""

    by_node: Mapping[str, NodeGroupStatus] = field(default_factory=dict)
    """Node → its group; a node whose group is not known is not there."""
    counted: NodeGroupStatus | None = None
    """The group whose nodes are known by their number alone, or None."""
    counted_nodes: tuple[str, ...] = ()
    """The nodes that belong to `counted`."""
    unmatched_nodes: tuple[str, ...] = ()
    """The nodes that match no group, while fewer nodes match a group with a minimum than it has and than its minimum
    is."""
    possible_groups: tuple[NodeGroupStatus, ...] = ()
    """The groups with a minimum to which `unmatched_nodes` may belong."""

    @property
    def unmatched_minimum(self) -> int:
        """How many of `unmatched_nodes` must remain, so that no group can be under its minimum, whichever group they
        belong to."""
        # How many nodes the group can lose; 0 if its size is not known.
        spare = min(
            (max((_size(group) or 0) - (group.min_size or 0), 0) for group in self.possible_groups),
            default=len(self.unmatched_nodes),
        )
        return max(len(self.unmatched_nodes) - spare, 0)

    @property
    def minimums(self) -> Mapping[str, int]:
        """Group → its minimum, for groups with a minimum to which nodes belong."""
        return {group.name: group.min_size for group in self.by_node.values() if group.min_size}

    @property
    def notes(self) -> tuple[str, ...]:
        """A sentence about nodes whose group is counted instead of matched, or is not known; empty if names say it
        all."""
        if self.counted is not None:
            return (
                f"{describe_nodes(self.counted_nodes)} {'matches' if len(self.counted_nodes) == 1 else 'match'} no "
                f"node group of the cluster autoscaler by name; only node group {self.counted.name} has as many more "
                f"nodes as these, so they count as its nodes",
            )
        if not self.unmatched_nodes:
            return ()
        groups = join_first([describe_minimum(group) for group in self.possible_groups], _MAX_NAMES)
        return (
            f"{describe_nodes(self.unmatched_nodes)} cannot be matched by name to a node group of the cluster "
            f"autoscaler, and may belong to {groups}; so {self.unmatched_minimum} of them must remain; a label of "
            "the nodes whose value is the name of the group states the group",
        )


def describe_nodes(names: Sequence[str]) -> str:
    """Returns the number of the nodes and the first names."""
    return f"{format_count(len(names), 'node')} ({join_first(names, _MAX_NAMES)})"


def describe_minimum(group: NodeGroupStatus) -> str:
    """Returns the group's name with its number of nodes and its minimum."""
    size = _size(group)
    return f"{group.name} ({'unknown size' if size is None else format_count(size, 'node')}, minimum {group.min_size})"


def assign_node_groups(
    nodes: Iterable[NodeInfo],
    groups: Sequence[NodeGroupStatus],
    named_groups: Container[str] = (),
    named_nodes: Container[str] = (),
) -> NodeGroups:
    """Returns the groups of the nodes.

    `named_groups`: the names of the groups that a pool names. `named_nodes`: the nodes of these pools. They limit each
    other already, so neither is unknown.
    """
    by_node: dict[str, NodeGroupStatus] = {}
    unmatched: list[str] = []
    for node in nodes if any(group.min_size for group in groups) else ():
        group = group_of(node, groups)
        if group is not None:
            by_node[node.name] = group
        elif node.name not in named_nodes and not any(node.nature.sign_of(kind) for kind in _IN_NO_GROUP):
            unmatched.append(node.name)
    matches = Counter(group.name for group in by_node.values())
    rest = [group for group in groups if group.name not in named_groups and _has_more_nodes(group, matches[group.name])]
    # As many of the matching nodes as the minimum requires are never removed, so then the others may go.
    limited = tuple(group for group in rest if (group.min_size or 0) > matches[group.name])
    if not unmatched or not limited:
        return NodeGroups(by_node=by_node)
    if len(rest) == 1 and _size(rest[0]) in (None, len(unmatched) + matches[rest[0].name]):
        by_node |= dict.fromkeys(unmatched, rest[0])
        return NodeGroups(by_node=by_node, counted=rest[0], counted_nodes=tuple(sorted(unmatched)))
    return NodeGroups(by_node=by_node, unmatched_nodes=tuple(sorted(unmatched)), possible_groups=limited)


def _size(group: NodeGroupStatus) -> int | None:
    return group.target if group.registered is None else group.registered


def _has_more_nodes(group: NodeGroupStatus, matches: int) -> bool:
    """Returns whether the group has more nodes than match it. A group whose size is not known has none if one
    matches."""
    size = _size(group)
    return not matches if size is None else size > matches
