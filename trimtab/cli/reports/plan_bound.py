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
    """The largest saving of any plan."""
    pinned: int
    """The number of nodes with a pod that may not move."""
    nodes_unpinned: int
    """The largest number of nodes that could be removed if the pods that may not move could move, too."""
    saves_unpinned: Saving
    """The largest saving if the pods that may not move could move, too."""
    text: str
    """What limits every plan of this cluster; empty if it is only which nodes may be drained."""


def report_bound(bound: Bound, unit: str, nodes: int) -> BoundReport:
    """Returns the plan's upper bound, with a sentence that states it. `nodes` is the number of all nodes."""
    unpinned_more = bound.unpinned_nodes - bound.nodes
    # What limits no plan is not said: the reasons of the nodes say it better.
    sentences = []
    if nodes and bound.nodes >= nodes:
        sentences.append(
            f"The requests of the pods do not limit the plan: all {format_count(nodes, 'node')} may be drained."
        )
    elif bound.nodes < bound.candidates:
        # Beside no drained node there are no others.
        most, other = (f"more than {format_count(bound.nodes, 'node')}", "other ") if bound.nodes else ("any node", "")
        sentences.append(f"No plan can drain {most}, because the {other}nodes are needed for the requests of the pods.")
    if bound.pinned and unpinned_more:
        # A bound, not a plan: other rules may keep the nodes as well, such as the anti-affinity of these pods.
        pinned = format_count(bound.pinned, "node holds a pod", "nodes hold a pod")
        more = format_count(unpinned_more, f"{'more ' if bound.nodes else ''}node")
        sentences.append(f"{pinned} that may not be moved; without such pods, at most {more} could be drained.")
    return BoundReport(
        nodes=bound.nodes,
        saves=convert_saving(bound.saves, unit),
        pinned=bound.pinned,
        nodes_unpinned=bound.unpinned_nodes,
        saves_unpinned=convert_saving(bound.unpinned_saves, unit),
        text=" ".join(sentences),
    )
