"""Whether the terms of a pod permit its eviction now."""

from trimtab.cluster.disruption_terms import PER_DAY_ANNOTATION, WINDOWS_ANNOTATION, TermMistake, read_terms
from trimtab.cluster.format_count import format_count
from trimtab.cluster.pod import PodInfo
from trimtab.cluster.pool import Pool
from trimtab.cluster.reason import Reason
from trimtab.cluster.timestamps import Seconds
from trimtab.compaction.terms import reasons as t
from trimtab.compaction.terms.term_ledger import TermLedger, workload_of


def find_term_obstacle(
    pod: PodInfo, pool: Pool, ledger: TermLedger, now: Seconds | None, chosen: int = 0
) -> Reason | None:
    """Returns why the pod's own terms forbid its eviction now, or None if they permit it, or if the pool's ceiling ends
    them. Without a time, no window is checked.

    chosen: evictions of the pod's workload that are decided and not recorded yet.
    """
    terms = read_terms(pod.annotations)
    if not terms.windows and terms.per_day is None:
        return None
    if not ledger.are_terms_in_force(pod.node, now, pool.max_term_delay):
        return None
    mistake = next((one for one in (terms.windows, terms.per_day) if isinstance(one, TermMistake)), None)
    if mistake is not None:
        return t.UNREADABLE_TERMS(f"pod {pod.key}: {mistake}")
    if now is None:
        return None
    if not terms.is_open(now):
        windows = pod.annotations[WINDOWS_ANNOTATION]
        return t.OUTSIDE_OWN_WINDOWS(f"pod {pod.key} may be evicted only in its own windows ({windows})")
    if isinstance(terms.per_day, int):
        workload = workload_of(pod)
        count = ledger.count_disruptions(workload, now) + chosen
        if count >= terms.per_day:
            return t.SPENT_FOR_TODAY(
                f"{format_count(count, 'pod')} of {workload} were evicted in the last 24 hours, and pod {pod.key} "
                f"permits {pod.annotations[PER_DAY_ANNOTATION]}"
            )
    return None


def counted_workload(pod: PodInfo) -> str:
    """Returns the workload whose evictions are counted because this pod limits them, or an empty string."""
    return workload_of(pod) if PER_DAY_ANNOTATION in pod.annotations else ""
