"""Whether a replacement would bring replicas together that ask, without requiring it, to be on different nodes.

Such pods say so by a topology spread with ScheduleAnyway, or by preferred anti-affinity, over host names. One new node
in place of one node changes nothing for them. In place of several nodes, it may have no more of them than one of these
nodes had.
"""

from collections import Counter
from dataclasses import dataclass, field

from trimtab.cluster.node import HOSTNAME_LABEL
from trimtab.cluster.pod import SchedulingRequirements
from trimtab.compaction.replace.node_sets import ReplacementSet
from trimtab.compaction.search.problem import CompactionProblem
from trimtab.scheduling.cluster_model import ClusterModel


@dataclass(slots=True)
class SoftSpread:
    """Counts on each node the pods of each workload that would rather be on different nodes."""

    model: ClusterModel
    problem: CompactionProblem
    _counts: dict[int, Counter[int]] = field(default_factory=dict)

    def is_kept(self, one: ReplacementSet) -> bool:
        """Returns whether no more pods of a workload come together than are on one of the nodes now."""
        counts = [count for node in one.nodes if (count := self._count_on(node))]
        total, largest = Counter[int](), Counter[int]()
        for count in counts if len(counts) > 1 else ():
            total, largest = total + count, largest | count
        return total == largest

    def _count_on(self, node: int) -> Counter[int]:
        if node not in self._counts:
            classes = [self.model.successor_class_of[pod] for pod in self.problem.pods_to_move[node]]
            self._counts[node] = Counter(one.workload for one in classes if _prefers_different_nodes(one.ask))
        return self._counts[node]


def _prefers_different_nodes(ask: SchedulingRequirements) -> bool:
    return any(constraint.topology_key == HOSTNAME_LABEL for constraint in ask.soft_spreads) or any(
        weight < 0 and term.topology_key == HOSTNAME_LABEL for weight, term in ask.preferred_affinity
    )
