"""The changes of a manifest that set a container's request, so that the API server accepts the result.

A request may not be above its limit. A VPA with RequestsOnly never recommends more than the limit, and one with
RequestsAndLimits raises the limit in proportion; a fix does the same.
"""

from math import ceil

from trimtab.autoscaling.container_amounts import MEMORY, format_amount, limit_of, request_of
from trimtab.autoscaling.lint_snapshot import LintWorkload, container_policy_of
from trimtab.autoscaling.objects import LintContainer
from trimtab.autoscaling.rule import ManifestChange
from trimtab.autoscaling.simulation.vpa_updater import scale_limit
from trimtab.cluster.api.autoscaling import VerticalPodAutoscaler
from trimtab.cluster.api.meta import value_or

REQUESTS_ONLY = "RequestsOnly"


def cap_at_limit(vpa: VerticalPodAutoscaler, container: LintContainer, resource: str, amount: int) -> int:
    """Returns the request that the VPA sets if it recommends `amount`: with RequestsOnly, at most the container's
    limit (VPA, pkg/utils/vpa/capping.go)."""
    limit = limit_of(container, resource)
    is_capped = limit is not None and container_policy_of(vpa, container.name).controlled_values == REQUESTS_ONLY
    return min(amount, limit) if is_capped and limit is not None else amount


def change_request(
    workload: LintWorkload, vpa: VerticalPodAutoscaler, container: LintContainer, resource: str, amount: float
) -> list[ManifestChange]:
    """Returns the changes that set a container's request to an amount, in millicores or bytes. If that is above the
    limit, the request is set to the limit, or the limit is raised too, as the VPA would do it."""
    limit, request = limit_of(container, resource), request_of(container, resource)
    path = workload.container_path(container, "resources", "requests", resource)
    capped = cap_at_limit(vpa, container, resource, ceil(amount))
    written = _whole_units(resource, capped)
    if limit is None or written <= limit:
        return [ManifestChange(workload.subject, path, format_amount(resource, written))]
    if capped <= limit:
        # A container's limit as its manifest has it.
        resources = value_or(container.resources, None)
        assert resources is not None
        return [ManifestChange(workload.subject, path, str(value_or(resources.limits, {})[resource]))]
    raised = _whole_units(resource, max(written, scale_limit(limit, request, written) or 0))
    limit_path = workload.container_path(container, "resources", "limits", resource)
    return [
        ManifestChange(workload.subject, path, format_amount(resource, written)),
        ManifestChange(workload.subject, limit_path, format_amount(resource, raised)),
    ]


def _whole_units(resource: str, amount: int) -> int:
    """Returns the amount rounded up to what `format_amount` writes without rounding: mebibytes of memory."""
    return -(-amount >> 20) << 20 if resource == MEMORY else amount
