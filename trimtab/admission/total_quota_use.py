"""Whether the quotas of a namespace have room for all the pods of manifests together.

The API server checks each pod alone, so a quota that admits one replica may refuse the next.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from trimtab.admission.apiserver.resource_sums import add_resources, multiply_quantity
from trimtab.admission.apiserver.resourcequota import quota_usage
from trimtab.cluster import quantity
from trimtab.cluster.api.meta import ResourceList
from trimtab.cluster.api.pod import Pod
from trimtab.cluster.resource_quotas import effective_hard, quota_covers
from trimtab.policy.cluster_facts import ClusterFacts


@dataclass(frozen=True, slots=True, kw_only=True)
class NewPods:
    """Pods of one template that a quota does not count yet."""

    namespace: str
    pod: Pod
    """One of the pods as the API server stores it."""
    count: int


def list_small_quotas(new_pods: Iterable[NewPods], facts: ClusterFacts) -> Iterator[str]:
    """Yields one sentence for each quota that has no room for all the pods that it counts."""
    by_namespace: dict[str, list[NewPods]] = defaultdict(list)
    for pods in new_pods:
        by_namespace[pods.namespace].append(pods)
    for namespace, all_pods in sorted(by_namespace.items()):
        for quota in facts.quotas.get(namespace, ()):
            needed = _total_use(pods for pods in all_pods if quota_covers(quota, pods.pod))
            # The amounts that exceed the quota. A quota without a status, as in a file, counts as unused.
            used = quota.status.used
            if short := [
                f"{name} {needed[name]} ({used.get(name, '0')} of {hard} is used)"
                for name, hard in sorted(effective_hard(quota).items())
                if name in needed
                and quantity.parse(needed[name]) + quantity.parse(used.get(name, "0")) > quantity.parse(hard)
            ]:
                yield (
                    f"ResourceQuota {namespace}/{quota.metadata.name} refuses some of the new pods, because together "
                    f"they need more than it has left: {', '.join(short)}."
                )


def _total_use(new_pods: Iterable[NewPods]) -> ResourceList:
    total: ResourceList = {}
    for pods in new_pods:
        usage = quota_usage(pods.pod)
        total = add_resources(total, {name: multiply_quantity(amount, pods.count) for name, amount in usage.items()})
    return total
