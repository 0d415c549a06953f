"""What ResourceQuotas leave for the pods of a workload whose requests a VPA sets.

A VPA evicts one pod after the other, and each successor has the new requests. So all pods of the workload must fit into
a quota with these requests, next to what else the namespace uses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from trimtab.admission.apiserver import pod_classes
from trimtab.admission.apiserver.outcome import PodRejected
from trimtab.admission.apiserver.resourcequota import check_quotas, quota_usage
from trimtab.admission.resource_refusal import complete_resources
from trimtab.cluster import quantity
from trimtab.cluster.api.core import QuotaStatus, ResourceQuota
from trimtab.cluster.api.meta import change, value_or
from trimtab.cluster.api.pod import Pod
from trimtab.cluster.owner import OwnerKey
from trimtab.cluster.resource_quotas import effective_hard, quota_covers
from trimtab.policy.cluster_facts import ClusterFacts

_MILLI = quantity.NANO_PER_UNIT // 1000


@dataclass(slots=True)
class VpaQuotas:
    """The pods of a snapshot, and the pods that the VPAs proposed so far may have."""

    pods: Mapping[OwnerKey, Sequence[Pod]] = field(default_factory=dict)
    """Workload → its pods that are not finished."""
    _promised: dict[OwnerKey, tuple[Pod, int]] = field(default_factory=dict)
    """Workload → (a pod with the largest requests that its proposed VPA sets, the number of pods)."""

    def promise_room(self, owner: OwnerKey, largest: Pod, count: int) -> None:
        """Records that a workload may have this many pods with these requests."""
        self._promised[owner] = largest, count

    def refuse_pods(self, owner: OwnerKey, pod: Pod, count: int, facts: ClusterFacts) -> PodRejected | None:
        """Returns why a quota refuses the last of this many pods, if they replace the present pods of the workload;
        None if it refuses none. The quantities must be readable."""
        namespace = owner.namespace
        completed = _completed(pod, facts, namespace)
        quotas = tuple(
            self._expect_use(quota, owner, completed, count, facts) for quota in facts.quotas.get(namespace, ())
        )
        result = check_quotas(completed, replace(facts, quotas={namespace: quotas}), namespace)
        return result if isinstance(result, PodRejected) else None

    def _expect_use(
        self, quota: ResourceQuota, owner: OwnerKey, pod: Pod, count: int, facts: ClusterFacts
    ) -> ResourceQuota:
        """Returns the quota with the usage before the last pod is created."""
        hard = effective_hard(quota)
        present = [own for key, pods in self.pods.items() if key.namespace == owner.namespace for own in pods]
        used = (
            {name: quantity.parse(amount) for name, amount in quota.status.used.items()}
            if quota.status.hard
            else _sum_usage(quota, [(own, 1) for own in present])
        )
        others = {key: promise for key, promise in self._promised.items() if key != owner}
        replaced = [(own, -1) for key in (owner, *others) for own in self.pods.get(key, ())]
        expected = [
            (_completed(largest, facts, key.namespace), number)
            for key, (largest, number) in others.items()
            if key.namespace == owner.namespace
        ]
        replaced = [(own, sign) for own, sign in replaced if (own.metadata.namespace or "default") == owner.namespace]
        change_of_use = _sum_usage(quota, [*replaced, *expected, (pod, count - 1)])
        return change(
            quota,
            status=QuotaStatus(
                hard=hard,
                used={name: _written(max(0, used.get(name, 0) + change_of_use.get(name, 0))) for name in hard},
            ),
        )


def _completed(pod: Pod, facts: ClusterFacts, namespace: str) -> Pod:
    """Returns the pod with the requests and the overhead that the API server adds."""
    completed = complete_resources(pod, facts, namespace)
    if not value_or(completed.spec.runtime_class_name, ""):
        return completed
    result = pod_classes.apply_runtime_class(completed, facts, namespace)
    return completed if isinstance(result, PodRejected) else result


def _sum_usage(quota: ResourceQuota, counted_pods: Sequence[tuple[Pod, int]]) -> dict[str, int]:
    """Returns name → the sum of what these pods use of the quota, in billionths. Each pod counts as often as its number
    says."""
    total: dict[str, int] = {}
    for pod, number in counted_pods:
        if number and quota_covers(quota, pod):
            for name, amount in quota_usage(pod).items():
                total[name] = total.get(name, 0) + number * quantity.parse(amount)
    return total


def _written(nano: int) -> str:
    if nano % quantity.NANO_PER_UNIT == 0:
        return str(nano // quantity.NANO_PER_UNIT)
    return f"{nano // _MILLI}m" if nano % _MILLI == 0 else f"{nano}n"
