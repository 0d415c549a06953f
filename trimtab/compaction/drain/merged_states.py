"""What the states of several pools say together."""

from collections.abc import Iterable, Mapping

from trimtab.cluster.timestamps import Seconds
from trimtab.compaction.drain.pool_state import MIN_NAMESPACE_FAILURES, PoolState
from trimtab.compaction.plan_types import Failure, Observations
from trimtab.compaction.terms.term_ledger import NodeDelay, TermLedger


def merge_observations(states: Mapping[str, PoolState], emptying: Mapping[str, str]) -> Observations:
    """Returns the observations of all pools together. Each node is in one pool, so nothing is counted twice."""
    by_pool = [state.to_observations({}) for _, state in sorted(states.items())]
    return Observations(
        under_since={node: since for each in by_pool for node, since in each.under_since.items()},
        failures={node: failure for each in by_pool for node, failure in each.failures.items()},
        failing={
            (pool, namespace): Failure(times=times, last=last)
            for pool, state in states.items()
            for namespace, (times, last) in state.failing.items()
            if times >= MIN_NAMESPACE_FAILURES
        },
        evictions=tuple(sorted(when for each in by_pool for when in each.evictions)),
        draining=emptying,
        terms=merge_terms(states.values()),
    )


def merge_terms(states: Iterable[PoolState]) -> TermLedger:
    """Returns what the pools together recorded about the terms of pods. A workload may have pods in several pools."""
    delays: dict[str, NodeDelay] = {}
    disruptions: dict[str, tuple[Seconds, ...]] = {}
    for state in states:
        delays |= state.delays
        for workload, times in state.disruptions.items():
            disruptions[workload] = (*disruptions.get(workload, ()), *times)
    return TermLedger(delays, disruptions)


def moved_pods(states: Iterable[PoolState]) -> frozenset[str]:
    """Returns the pods (namespace/name) that were moved recently and must not be moved again."""
    return frozenset(pod for state in states for pod in state.moved)
