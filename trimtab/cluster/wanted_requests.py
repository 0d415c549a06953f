"""The requests that policies want running pods to have, container by container.

A decision about one owner's pods: what a pod that is created now would get, for each container and resource of which a
policy says `running: resize`; or why a running pod does not get it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from trimtab.cluster.reason import Reason

ContainerResource = tuple[str, str]
"""(container, resource)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedRequest:
    """The request that one container of a running pod should have of one resource, in the scheduler's numbers."""

    amount: int
    """What a pod that is created now would get, with all bounds of the policy, its namespace and its limit."""
    policy: str
    """The policy that gives it."""
    reason: Reason
    """Where the number comes from."""
    floor: int = 0
    """The least that a running container may have: the policy's `min`."""
    used: int = 0
    """The largest use that is recorded for the workload."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedRequests:
    """What policies want for all pods of one owner. A container and resource that is in neither mapping is left alone:
    no policy asks for its resize."""

    requests: Mapping[ContainerResource, WantedRequest] = field(default_factory=dict)
    refusals: Mapping[ContainerResource, Reason] = field(default_factory=dict)
    """Container and resource → why running pods do not follow, although a policy asks for it."""

    @property
    def is_empty(self) -> bool:
        """Whether no policy asks for anything."""
        return not (self.requests or self.refusals)


NOTHING_WANTED = WantedRequests()
