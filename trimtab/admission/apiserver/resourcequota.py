"""Simulates the ResourceQuota plugin: a pod must specify the amounts that the namespace's quotas count, and must fit
into the quotas.

The plugin (apiserver pkg/admission/plugin/resourcequota/controller.go, pkg/quota/v1/evaluator/core/pods.go, 1.36) is
the last step. It reads `status`: `hard` as the quota controller has confirmed it, and `used`. For a quota without any
status, as in a file that was never applied, `spec.hard` is used: the required amounts are checked, but the usage is
unknown, and no pod is rejected because of it.
"""

from collections.abc import Iterable

from trimtab.admission.apiserver import resource_sums
from trimtab.admission.apiserver.outcome import PodRejected
from trimtab.admission.apiserver.resource_sums import round_quantities
from trimtab.cluster import quantity
from trimtab.cluster.api.core import ResourceQuota
from trimtab.cluster.api.meta import ResourceList, value_or
from trimtab.cluster.api.pod import Pod, PodSpec
from trimtab.cluster.resource_quotas import effective_hard, quota_covers, unnamed_resources
from trimtab.cluster.resources import Amounts, is_pod_level, limits_of, requests_of
from trimtab.policy.cluster_facts import ClusterFacts

PLUGIN = "ResourceQuota"
_EXCEEDED = "exceeded quota:"
_STANDARD_RESOURCES = ("cpu", "memory", "ephemeral-storage")
_COUNTED_NAMES = {
    "count/pods",
    "pods",
    *_STANDARD_RESOURCES,
    *(f"{side}.{part}" for side in ("requests", "limits") for part in _STANDARD_RESOURCES),
}


def check_quotas(pod: Pod, facts: ClusterFacts, namespace: str) -> Pod | PodRejected:
    """Returns the rejection of a pod that does not specify what a quota counts, or that exceeds a quota; otherwise the
    pod."""
    quotas = [quota for quota in facts.quotas.get(namespace, ()) if quota_covers(quota, pod) and _counted_names(quota)]
    if not quotas:
        return pod
    for quota in quotas:
        refused = _check_specified(quota, pod.spec) or _check_status(quota)
        if refused:
            return refused
    charged = quota_usage(pod)
    exceeded = (_check_exceeded(quota, charged) for quota in quotas)
    return next((refused for refused in exceeded if refused), pod)


def quota_usage(pod: Pod) -> ResourceList:
    """Returns the amounts that this pod uses, by the names that quotas have for them. Overhead is included, and zeros
    are left out."""
    requests, limits = _pod_requests(pod.spec), _pod_limits(pod.spec)
    amounts = {"count/pods": "1", "pods": "1"} | _quota_names(requests, limits)
    return {name: value for name, value in amounts.items() if quantity.parse(value)}


def _pod_requests(spec: PodSpec) -> ResourceList:
    """Returns the pod's requests (`PodRequests`, component-helpers resource/helpers.go): pod-level requests replace the
    sum, and overhead is added."""
    total = resource_sums.sum_containers(spec, requests_of) | _pod_level_resources(requests_of(spec.resources))
    return resource_sums.add_resources(total, value_or(spec.overhead, {}))


def _pod_limits(spec: PodSpec) -> ResourceList:
    """Returns the pod's limits (`PodLimits`): overhead is only added to limits that are set and not zero."""
    total = resource_sums.sum_containers(spec, limits_of) | _pod_level_resources(limits_of(spec.resources))
    overhead = value_or(spec.overhead, {})
    return resource_sums.add_resources(
        total, {n: v for n, v in overhead.items() if n in total and quantity.parse(total[n])}
    )


def _pod_level_resources(amounts: ResourceList) -> ResourceList:
    return {name: value for name, value in amounts.items() if is_pod_level(name)}


def _quota_names(requests: ResourceList, limits: ResourceList) -> ResourceList:
    amounts: ResourceList = {}
    for name, value in requests.items():
        if name in _STANDARD_RESOURCES or name.startswith("hugepages-"):
            amounts |= {name: value, f"requests.{name}": value}
        elif _is_extended(name):
            amounts[f"requests.{name}"] = value
    return amounts | {f"limits.{name}": value for name, value in limits.items() if name in _STANDARD_RESOURCES}


def _is_extended(name: str) -> bool:
    return "/" in name and "kubernetes.io/" not in name


def _counted_names(quota: ResourceQuota) -> list[str]:
    """Returns the names of the amounts that the quota counts for pods."""
    return sorted(name for name in effective_hard(quota) if name in _COUNTED_NAMES or _is_counted_prefix(name))


def _is_counted_prefix(name: str) -> bool:
    if name.startswith(("hugepages-", "requests.hugepages-")):
        return True
    return name.startswith("requests.") and _is_extended(name)


def _check_specified(quota: ResourceQuota, spec: PodSpec) -> PodRejected | None:
    missing = [f"{name} for: {','.join(lacking)}" for name, lacking in unnamed_resources(_counted_names(quota), spec)]
    message = f"failed quota: {quota.metadata.name}: must specify {'; '.join(missing)}"
    return PodRejected(403, PLUGIN, message) if missing else None


def _check_status(quota: ResourceQuota) -> PodRejected | None:
    if all(name in quota.status.used for name in _counted_names(quota) if name in quota.status.hard):
        return None
    message = f"status unknown for quota: {quota.metadata.name}, resources: {','.join(_counted_names(quota))}"
    return PodRejected(403, PLUGIN, message)


def _check_exceeded(quota: ResourceQuota, charged: ResourceList) -> PodRejected | None:
    hard, used = round_quantities(quota.status.hard), round_quantities(quota.status.used)
    after = {
        name: resource_sums.add_quantities(used.get(name, 0), value) for name, value in charged.items() if name in hard
    }
    exceeded = sorted(name for name, value in after.items() if quantity.compare_quantities(value, hard[name]) > 0)
    if not exceeded:
        return None
    parts = [("requested", charged), ("used", used), ("limited", hard)]
    amounts = ", ".join(f"{word}: {_format_amounts(values, exceeded)}" for word, values in parts)
    return PodRejected(403, PLUGIN, f"{_EXCEEDED} {quota.metadata.name}, {amounts}")


def find_refusing_quota(quotas: Iterable[ResourceQuota], pod: Pod, growth: Amounts) -> str | None:
    """Returns the name of a quota that would refuse `pod` although the pod that it replaces is gone, or None if there
    is none.

    `growth`: how much more the pod requests than the one that it replaces, in the scheduler's units. Without growth, a
    quota refuses the pod only if the namespace uses more than the quota allows now, as after the quota was lowered.
    """
    for quota in quotas:
        if not quota_covers(quota, pod):
            continue
        hard, used = quota.status.hard, quota.status.used
        for name in quota_usage(pod).keys() & hard.keys() & used.keys():
            resource = name.removeprefix("requests.").removeprefix("limits.")
            more = 0 if name.startswith("limits.") else growth.get(resource, 0)
            in_use = quantity.scheduler_value(resource, used[name]) + more
            if in_use > quantity.scheduler_value(resource, hard[name]):
                return quota.metadata.name
    return None


def is_exceeded(quota: ResourceQuota) -> bool:
    """Returns whether a namespace uses more than its quota allows, as after the quota was lowered."""
    hard, used = quota.status.hard, quota.status.used
    return any(name in used and quantity.compare_quantities(used[name], limit) > 0 for name, limit in hard.items())


def is_exceeded_quota(rejected: PodRejected | None) -> bool:
    """Returns whether a pod was rejected because the namespace would use more than a quota allows."""
    return rejected is not None and rejected.plugin == PLUGIN and rejected.message.startswith(_EXCEEDED)


def _format_amounts(values: ResourceList, names: list[str]) -> str:
    return ",".join(f"{name}={quantity.canonical_form(values[name])}" for name in names if name in values)
