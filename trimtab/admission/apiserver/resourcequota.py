"""Does a pod fit into what is left of its namespace's quotas, and does it name what they count?

The ResourceQuota plugin (apiserver pkg/admission/plugin/resourcequota/controller.go, pkg/quota/v1/evaluator/core/
pods.go, 1.36): the very last step. It reads `status`: `hard` as the quota controller confirmed it, `used` as counted.
A quota without any status, as in a file that never was in a cluster, is taken by its `spec.hard`: what must be
specified is told, what is used is not known and nothing is refused for it.
"""

from trimtab.admission.apiserver import resource_sums
from trimtab.admission.apiserver.outcome import PodRejected
from trimtab.admission.apiserver.resource_sums import stored
from trimtab.cluster import quantity
from trimtab.cluster.api.core import ResourceQuota
from trimtab.cluster.api.meta import ResourceList, get
from trimtab.cluster.api.pod import Pod, PodSpec
from trimtab.cluster.limit_ranges import hard_of, quota_covers, unnamed
from trimtab.cluster.resources import is_pod_level, limits_of, requests_of
from trimtab.policy.cluster_facts import ClusterFacts

PLUGIN = "ResourceQuota"
_PART = ("cpu", "memory", "ephemeral-storage")
_COUNTED = {"count/pods", "pods", *_PART, *(f"{side}.{part}" for side in ("requests", "limits") for part in _PART)}


def validate(pod: Pod, facts: ClusterFacts, namespace: str) -> Pod | PodRejected:
    """Refused by what a quota makes a pod say, then by what it leaves."""
    covering = [q for q in facts.quotas.get(namespace, ()) if quota_covers(q, pod) and _names(q)]
    if not covering:
        return pod
    for quota in covering:
        refused = _unspecified(quota, pod.spec) or _unknown(quota)
        if refused:
            return refused
    charged = charge(pod)
    exceeded = (_exceeded(quota, charged) for quota in covering)
    return next((refused for refused in exceeded if refused), pod)


def charge(pod: Pod) -> ResourceList:
    """What this pod takes from a quota, by the quota's names: overhead included, zeros left out."""
    requests, limits = _requests(pod.spec), _limits(pod.spec)
    found = {"count/pods": "1", "pods": "1"} | _as_quota(requests, limits)
    return {name: value for name, value in found.items() if quantity.parse(value)}


def _requests(spec: PodSpec) -> ResourceList:
    """`PodRequests` (component-helpers resource/helpers.go): pod-level instead of the sum, overhead on top."""
    total = resource_sums.containers(spec, requests_of) | _pod_level(requests_of(spec.resources))
    return resource_sums.plus(total, get(spec.overhead, {}))


def _limits(spec: PodSpec) -> ResourceList:
    """`PodLimits`: overhead is added only to limits that are there and not zero."""
    total = resource_sums.containers(spec, limits_of) | _pod_level(limits_of(spec.resources))
    overhead = get(spec.overhead, {})
    return resource_sums.plus(total, {n: v for n, v in overhead.items() if n in total and quantity.parse(total[n])})


def _pod_level(written: ResourceList) -> ResourceList:
    return {name: value for name, value in written.items() if is_pod_level(name)}


def _as_quota(requests: ResourceList, limits: ResourceList) -> ResourceList:
    found: ResourceList = {}
    for name, value in requests.items():
        if name in _PART or name.startswith("hugepages-"):
            found |= {name: value, f"requests.{name}": value}
        elif _extended(name):
            found[f"requests.{name}"] = value
    return found | {f"limits.{name}": value for name, value in limits.items() if name in _PART}


def _extended(name: str) -> bool:
    return "/" in name and "kubernetes.io/" not in name


def _names(quota: ResourceQuota) -> list[str]:
    """What the quota counts of pods."""
    return sorted(name for name in hard_of(quota) if name in _COUNTED or _by_prefix(name))


def _by_prefix(name: str) -> bool:
    if name.startswith(("hugepages-", "requests.hugepages-")):
        return True
    return name.startswith("requests.") and _extended(name)


def _unspecified(quota: ResourceQuota, spec: PodSpec) -> PodRejected | None:
    missing = [f"{name} for: {','.join(lacking)}" for name, lacking in unnamed(_names(quota), spec)]
    told = f"failed quota: {quota.metadata.name}: must specify {'; '.join(missing)}"
    return PodRejected(403, PLUGIN, told) if missing else None


def _unknown(quota: ResourceQuota) -> PodRejected | None:
    if all(name in quota.status.used for name in _names(quota) if name in quota.status.hard):
        return None
    told = f"status unknown for quota: {quota.metadata.name}, resources: {','.join(_names(quota))}"
    return PodRejected(403, PLUGIN, told)


def _exceeded(quota: ResourceQuota, charged: ResourceList) -> PodRejected | None:
    hard, used = stored(quota.status.hard), stored(quota.status.used)
    after = {name: resource_sums.add(used.get(name, 0), value) for name, value in charged.items() if name in hard}
    over = sorted(name for name, value in after.items() if quantity.compare(value, hard[name]) > 0)
    if not over:
        return None
    parts = [("requested", charged), ("used", used), ("limited", hard)]
    told = ", ".join(f"{word}: {_listed(values, over)}" for word, values in parts)
    return PodRejected(403, PLUGIN, f"exceeded quota: {quota.metadata.name}, {told}")


def _listed(values: ResourceList, names: list[str]) -> str:
    return ",".join(f"{name}={quantity.canonical(values[name])}" for name in names if name in values)
