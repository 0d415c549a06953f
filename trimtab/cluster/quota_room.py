"""Whether the ResourceQuotas of a namespace leave room for one more pod."""

from collections.abc import Iterable, Mapping

from trimtab.cluster.api.core import ResourceQuota
from trimtab.cluster.limit_ranges import effective_hard
from trimtab.cluster.quantity import NotAQuantity, scheduler_value

_PODS = ("pods", "count/pods")
_LIMITS = "limits."


def quota_without_room(quotas: Iterable[ResourceQuota], requests: Mapping[str, int]) -> str | None:
    """Returns the name of a ResourceQuota that rejects one more pod with these requests, which are in the scheduler's
    units, or None if it is not certain that one does.

    A quota with scopes is left out, because it may not count the pod. The limits of the pod are not known here: a quota
    that counts limits rejects it for certain only if the quota has no room at all, because such a pod must have limits.
    """
    for quota in quotas:
        if not quota.spec.scopes and not quota.spec.scope_selector.match_expressions and _is_full(quota, requests):
            return quota.metadata.name
    return None


def _is_full(quota: ResourceQuota, requests: Mapping[str, int]) -> bool:
    used = quota.status.used
    for name, hard in effective_hard(quota).items():
        resource = name.removeprefix("requests.").removeprefix(_LIMITS)
        added = 1 if name in _PODS or name.startswith(_LIMITS) else requests.get(resource, 0)
        if not added or name not in used:
            continue
        try:
            room = scheduler_value(resource, hard) - scheduler_value(resource, used[name])
        except NotAQuantity:
            continue
        if added > room:
            return True
    return False
