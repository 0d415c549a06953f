"""The requests that policies want running pods to have, container by container.

They are given for the pods of one owner, for each container and resource whose policy says `running: resize`. For each
of these there is either the request that a pod created now would get, or the reason why running pods do not get it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from trimtab.cluster.reason import Reason

ContainerResource = tuple[str, str]
"""(container, resource)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedRequest:
    """The request for one resource that one container of a running pod should have, in the scheduler's units."""

    amount: int
    """The request that a pod created now would get, within all bounds of the policy, the namespace and the container's
    limit."""
    policy: str
    """The name of the policy that sets the request."""
    reason: Reason
    """Says how the policy arrived at the amount."""
    floor: int = 0
    """The smallest request that a running container may get: the policy's `min`."""
    used: int = 0
    """The largest usage on record for the workload."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedRequests:
    """What policies want for all pods of one owner. If neither mapping has an entry for a container and resource, its
    request is left alone, because no policy asks to resize it."""

    requests: Mapping[ContainerResource, WantedRequest] = field(default_factory=dict)
    refusals: Mapping[ContainerResource, Reason] = field(default_factory=dict)
    """(container, resource) → why running pods are not resized although a policy asks for it."""

    @property
    def is_empty(self) -> bool:
        """Whether no policy asks for anything."""
        return not (self.requests or self.refusals)


NOTHING_WANTED = WantedRequests()
