"""The smallest requests that a VPA may set under a LimitRange's maxLimitRequestRatio, and the changes that ensure them.

A VPA with RequestsOnly lowers a request below a limit that stays. It respects the min and max of LimitRanges, but not
their ratio of limit to request (VPA, pkg/utils/vpa/capping.go), so only its minAllowed can.
"""

from collections.abc import Mapping
from typing import Any

from trimtab.autoscaling.container_amounts import RESOURCES, amount_in
from trimtab.autoscaling.lint_snapshot import LintSnapshot, LintWorkload, container_policy_of, controls_resource
from trimtab.autoscaling.rule import LintSubject, ManifestChange
from trimtab.cluster.api.autoscaling import VerticalPodAutoscaler
from trimtab.cluster.api.meta import value_or
from trimtab.cluster.api.pod import Container
from trimtab.cluster.limit_ranges import held_limit, least_for_ratio
from trimtab.cluster.quantity import NotAQuantity, format_quantity

REQUESTS_ONLY = "RequestsOnly"
_POLICIES = ("spec", "resourcePolicy", "containerPolicies")


def unmet_minima(
    snapshot: LintSnapshot, vpa: VerticalPodAutoscaler, workload: LintWorkload, container: Container
) -> dict[str, int]:
    """Returns resource → the smallest request that the ratio of a LimitRange allows with the container's limit, for the
    resources whose minAllowed is below it."""
    minima = dict[str, int]()
    policy, resources = container_policy_of(vpa, container.name), value_or(container.resources, None)
    for resource in RESOURCES:
        bounds = snapshot.bounds_in(workload.namespace, resource)
        if bounds.ratio is None or not controls_resource(vpa, container.name, resource):
            continue
        written = None if resources is None else value_or(resources.limits, {}).get(resource)
        limit = held_limit(bounds, written)
        try:
            least = 0 if limit is None else least_for_ratio(resource, limit, bounds.ratio.value)
        except NotAQuantity:
            continue
        if (amount_in(policy.min_allowed, resource) or 0) < least:
            minima[resource] = least
    return minima


def minimum_changes(
    snapshot: LintSnapshot, vpa: VerticalPodAutoscaler, subject: LintSubject, container: str, minima: Mapping[str, int]
) -> list[ManifestChange]:
    """Returns the changes that give a container RequestsOnly and these minima, in a policy of its own. Empty if a
    maximum of the VPA is below one of them."""
    policy = container_policy_of(vpa, container)
    for resource, least in minima.items():
        most = amount_in(policy.max_allowed, resource)
        if most is not None and most < least:
            return []
    amounts = {resource: format_quantity(resource, least) for resource, least in minima.items()}
    names = [one.container_name for one in vpa.spec.resource_policy.container_policies]
    if container in names:
        path = (*_POLICIES, names.index(container))
        changes = (
            []
            if policy.controlled_values == REQUESTS_ONLY
            else [ManifestChange(subject, (*path, "controlledValues"), REQUESTS_ONLY)]
        )
        if not policy.min_allowed:
            return [*changes, ManifestChange(subject, (*path, "minAllowed"), amounts)] if amounts else changes
        return changes + [ManifestChange(subject, (*path, "minAllowed", name), text) for name, text in amounts.items()]
    added = {**wildcard_policy(snapshot, subject), "containerName": container, "controlledValues": REQUESTS_ONLY}
    if amounts:
        added["minAllowed"] = {**(added.get("minAllowed") or {}), **amounts}
    return [ManifestChange(subject, (*_POLICIES, len(names)), added)]


def wildcard_policy(snapshot: LintSnapshot, subject: LintSubject) -> dict[str, Any]:
    """Returns the VPA's policy for all containers (`*`) as plain values. A policy for one container would replace it
    for that container."""
    resource_policy = snapshot.document_value(subject).get("spec", {}).get("resourcePolicy") or {}
    policies = resource_policy.get("containerPolicies") or ()
    return next((dict(policy) for policy in policies if policy.get("containerName") == "*"), {})
