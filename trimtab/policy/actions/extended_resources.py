"""How many pieces of an extended resource should this container hold?

Nobody overcommits them: the API server wants request and limit to be equal, and whole.
"""

from collections.abc import Mapping

from trimtab.cluster.resources import limits_of, requests_of
from trimtab.policy import reasons
from trimtab.policy.pod_changes import PodChanges, ResourceRequest
from trimtab.policy.pod_context import ContainerRef


def propose_extended(wanted: Mapping[str, int], draft: PodChanges, place: ContainerRef) -> None:
    """A request and a limit that follows it, of each resource that the container does not name itself."""
    resources = place.container.resources
    requests, limits = requests_of(resources), limits_of(resources)
    for resource, pieces in wanted.items():
        name = f"{place.name}.requests.{resource}"
        written = requests.get(resource, limits.get(resource))
        if written is not None and str(written) != str(pieces):
            draft.leave_unchanged(name, reasons.ALREADY_SET(f"the container asks for {written} itself"))
            continue
        if not draft.decide_first(name, str(pieces)) or written is not None:
            continue
        want = ResourceRequest(
            place=place, resource=resource, value=str(pieces), policy=draft.policy,
            reason=reasons.POLICY_SAYS(f"the policy says {pieces}"),
        )  # fmt: skip
        draft.requests[place, resource] = want
        draft.limits[place, resource] = ResourceRequest(
            place=place, resource=resource, value=None, factor="1", policy=draft.policy, reason=want.reason
        )
