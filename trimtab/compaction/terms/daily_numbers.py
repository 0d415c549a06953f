"""How many evictions of the day the nodes of one plan leave to the workloads whose pods limit them."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from trimtab.cluster.disruption_terms import DisruptionTerms, read_terms
from trimtab.cluster.format_count import format_count
from trimtab.cluster.pod import PodInfo
from trimtab.cluster.pool import Pool
from trimtab.cluster.reason import Reason
from trimtab.cluster.timestamps import Seconds
from trimtab.compaction.terms.reasons import SPENT_FOR_TODAY
from trimtab.compaction.terms.term_ledger import TermLedger, workload_of
from trimtab.compaction.terms.term_obstacles import counted_workload


@dataclass(slots=True)
class DailyNumbers:
    """What nodes of a plan take of the daily numbers, one node after the other."""

    ledger: TermLedger
    now: Seconds | None
    _reserved: Counter[str] = field(default_factory=Counter)
    """Workload → the evictions that nodes before need."""

    def reserve(self, pods: Iterable[PodInfo]) -> None:
        """Counts the evictions of these pods, of which the drain has begun."""
        self._reserved.update(
            workload_of(pod) for pod in pods if counted_workload(pod) and pod.deletion_requested_at is None
        )

    def reserve_within(self, pods: Sequence[PodInfo], moving: Iterable[int], pool: Pool) -> dict[int, Reason]:
        """Counts the evictions of the moving pods of one node, which are numbers in `pods`. If one of them permits
        fewer, counts none, and returns the number of each such pod with the reason."""
        limits = {
            number: terms
            for number in moving
            if pods[number].annotations and isinstance((terms := read_terms(pods[number].annotations)).per_day, int)
        }
        needed = Counter(workload_of(pods[number]) for number in limits)
        reasons = {
            number: reason
            for number, terms in limits.items()
            if (reason := self._shortage_reason(pods[number], terms, needed, pool)) is not None
        }
        if not reasons:
            self._reserved.update(needed)
        return reasons

    def _shortage_reason(self, pod: PodInfo, terms: DisruptionTerms, needed: Counter[str], pool: Pool) -> Reason | None:
        workload = workload_of(pod)
        if self.now is None or not self.ledger.are_terms_in_force(pod.node, self.now, pool.max_term_delay):
            return None
        spent = self.ledger.count_disruptions(workload, self.now) + self._reserved[workload]
        assert isinstance(terms.per_day, int)
        if spent + needed[workload] <= terms.per_day:
            return None
        return SPENT_FOR_TODAY(
            f"pod {pod.key} permits {format_count(terms.per_day, 'eviction')} of {workload} in 24 hours: "
            f"{spent} are made or planned, and the node needs {needed[workload]}"
        )
