"""The most that any plan could save, in reports."""

from trimtab.cli.output import ReportPart
from trimtab.cli.reports.node_costs import Saving, convert_saving
from trimtab.cluster.format_count import format_count
from trimtab.compaction.plan_types import Bound


class BoundReport(ReportPart, frozen=True, kw_only=True):
    """An upper bound on what any plan can remove. It compares the sum of requests with the capacity, as if a pod could
    be split between nodes."""

    nodes: int
    """The largest number of nodes that can be removed."""
    saves: Saving
    pinned: int
    """The number of nodes with a pod that may not move."""
    nodes_unpinned: int
    """The largest number of nodes that could be removed if the pods that may not move could move, too."""
    saves_unpinned: Saving
    text: str


def report_bound(bound: Bound, unit: str, nodes: int) -> BoundReport:
    """Returns the plan's upper bound, with a sentence that states it. `nodes` is the number of all nodes."""
    unpinned_more = bound.unpinned_nodes - bound.nodes
    # Beside no drained node there are no others.
    most, other, more = (
        (f"more than {format_count(bound.nodes, 'node')}", "other ", "more ") if bound.nodes else ("any node", "", "")
    )
    limit = (
        f"because the {other}nodes are needed for the requests of the pods"
        if bound.nodes < bound.candidates
        else f"because no {other}node may be drained"
    )
    text = f"No plan can drain {most}, {limit}."
    if nodes and bound.nodes >= nodes:
        text = f"The requests of the pods do not limit the plan: all {format_count(nodes, 'node')} may be drained."
    if bound.pinned:
        pinned_text = format_count(bound.pinned, "node holds a pod", "nodes hold a pod")
        # A bound, not a plan: other rules may keep the nodes as well, such as the anti-affinity of these pods.
        unpinned_text = f"at most {format_count(unpinned_more, f'{more}node')}" if unpinned_more else f"no {more}nodes"
        text += f" {pinned_text} that may not be moved; without such pods, {unpinned_text} could be drained."
    return BoundReport(
        nodes=bound.nodes,
        saves=convert_saving(bound.saves, unit),
        pinned=bound.pinned,
        nodes_unpinned=bound.unpinned_nodes,
        saves_unpinned=convert_saving(bound.unpinned_saves, unit),
        text=text,
    )
