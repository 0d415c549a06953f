"""How many containers go by recommendations that grow old?

Recommendations of workloads that stand count; what was published of a workload that is gone decides nothing.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from trimtab.cluster.recommendation import ContainerUsage
from trimtab.cluster.timestamps import Seconds
from trimtab.policy.actions.request_fields import ResourceRequestRule
from trimtab.policy.cluster_facts import ClusterFacts
from trimtab.policy.podpolicy import Policies


@dataclass(frozen=True, slots=True)
class RecommendationAges:
    """Containers of standing workloads, by the age of their recommendation."""

    fresh: int = 0
    aging: int = 0
    """Past half of the age at which the recommendation ends."""
    ended: int = 0


def ages(facts: ClusterFacts, policies: Policies, now: Seconds) -> RecommendationAges:
    """The containers by the age of their recommendation; it ends by the shortest `maxAge` of any policy, or by its own
    end where none says one."""
    max_age = min((rule.max_age for rule in _rules(policies) if rule.max_age is not None), default=None)
    counts = {"fresh": 0, "aging": 0, "ended": 0}
    for workload, containers in facts.recommendations.workloads.items():
        namespace, _, rest = workload.partition("/")
        kind, _, name = rest.partition("/")
        if (namespace, kind, name) in facts.owners:
            for usage in containers.values():
                counts[_age(usage, max_age, now)] += 1
    return RecommendationAges(**counts)


def _age(usage: ContainerUsage, max_age: int | None, now: Seconds) -> str:
    end, last = usage.end(max_age), usage.last_sample_at
    if end is None or last is None or now - last <= (end - last) / 2:
        return "fresh"
    return "aging" if now <= end else "ended"


def _rules(policies: Policies) -> Iterator[ResourceRequestRule]:
    for policy in policies.all:
        requests = policy.spec.actions.requests
        if requests is not None:
            special = (rule for part in requests.containers for rule in (part.cpu, part.memory))
            yield from (rule for rule in (requests.cpu, requests.memory, *special) if rule is not None)
