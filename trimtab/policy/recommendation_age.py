"""Counts containers by the age of their recommendation. Only workloads that exist are counted, because the
recommendation of a deleted one has no effect. A recommendation stops being valid at the age `VALIDITY_SECONDS`
(trimtab/cluster/recommendation.py)."""

from dataclasses import dataclass

from trimtab.cluster.owner import parse_owner_key
from trimtab.cluster.recommendation import ContainerUsage
from trimtab.cluster.timestamps import Seconds
from trimtab.cluster.whole_pods import is_whole_pod
from trimtab.policy.actions.requests_of_policies import usage_rules
from trimtab.policy.cluster_facts import ClusterFacts
from trimtab.policy.podpolicy import Policies


@dataclass(frozen=True, slots=True)
class RecommendationAges:
    """Numbers of containers of existing workloads, by the age of their recommendation."""

    fresh: int = 0
    aging: int = 0
    """The number of containers whose recommendation is older than half of the age at which it stops being valid."""
    ended: int = 0


def count_recommendation_ages(facts: ClusterFacts, policies: Policies, now: Seconds) -> RecommendationAges:
    """Returns the numbers of containers by the age of their recommendation. A recommendation stops being valid at the
    shortest `maxAge` of all policies or, if no policy sets one, 14 days after its last sample."""
    # The shortest age is the first at which any policy stops using a recommendation.
    max_age = min((rule.max_age for rule in usage_rules(policies) if rule.max_age is not None), default=None)
    counts = {"fresh": 0, "aging": 0, "ended": 0}
    for workload, containers in facts.recommendations.workloads.items():
        if parse_owner_key(workload) in facts.owners:
            for usage in (usage for name, usage in containers.items() if not is_whole_pod(name)):
                counts[_classify_age(usage, max_age, now)] += 1
    return RecommendationAges(**counts)


def _classify_age(usage: ContainerUsage, max_age: int | None, now: Seconds) -> str:
    end, last = usage.validity_end(max_age), usage.last_sample_at
    # Without an end a recommendation is valid for ever.
    if end is None or last is None or now - last <= (end - last) / 2:
        return "fresh"
    return "aging" if now <= end else "ended"
