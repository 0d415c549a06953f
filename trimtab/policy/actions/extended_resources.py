"""Adds extended resources, such as licenses, to containers.

Extended resources cannot be overcommitted: the API server requires that request and limit are equal whole numbers.
"""

from collections.abc import Mapping

from trimtab.cluster.resources import limits_of, requests_of
from trimtab.policy import reasons
from trimtab.policy.pod_changes import PodChanges, ResourceRequest
from trimtab.policy.pod_context import ContainerRef


def propose_extended(wanted: Mapping[str, int], changes: PodChanges, container: ContainerRef) -> None:
    """Proposes, for each resource that the container does not name itself, a request and a limit equal to the
    request."""
    resources = container.container.resources
    requests, limits = requests_of(resources), limits_of(resources)
    for resource, pieces in wanted.items():
        field = f"{container.name}.requests.{resource}"
        author_amount = requests.get(resource, limits.get(resource))
        if author_amount is not None and str(author_amount) != str(pieces):
            changes.leave_unchanged(
                field, reasons.ALREADY_SET(f"the container itself already requests {author_amount}")
            )
            continue
        if not changes.decide_first(field, str(pieces)) or author_amount is not None:
            continue
        request = ResourceRequest(
            place=container,
            resource=resource,
            value=str(pieces),
            policy=changes.policy,
            reason=reasons.POLICY_SAYS(f"the policy requests {pieces}"),
        )
        changes.requests[container, resource] = request
        changes.limits[container, resource] = ResourceRequest(
            # The limit follows the request by a factor of one, so clamping one of them keeps both equal.
            place=container,
            resource=resource,
            value=None,
            factor="1",
            policy=changes.policy,
            reason=request.reason,
        )
