"""The values of a resize: changes of single containers, proposals for pods, and refusals with their reasons."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

from trimtab.cluster import quantity
from trimtab.cluster.reason import Reason
from trimtab.cluster.timestamps import Seconds


class ResizeChange(msgspec.Struct, frozen=True, kw_only=True):
    """One request of one container before and after the resize. Both are kept as text, so that a revert restores
    exactly the same text."""

    container: str
    resource: str
    before: str
    after: str

    @property
    def amount_before(self) -> int:
        """The request before the resize, in the scheduler's unit."""
        return quantity.scheduler_value(self.resource, self.before)

    @property
    def amount_after(self) -> int:
        """The request after the resize, in the scheduler's unit."""
        return quantity.scheduler_value(self.resource, self.after)

    @property
    def given_up(self) -> int:
        """By how much the request becomes smaller; negative if it becomes larger."""
        return self.amount_before - self.amount_after

    def __str__(self) -> str:
        return f"{self.container} {self.resource} {self.before} → {self.after}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ResizeProposal:
    """A resize of one pod. All its changes have the same direction: if any request should become smaller, those changes
    come first, and larger requests follow in a later resize."""

    pod: str
    """The pod as namespace/name."""
    uid: str
    node: str
    pool: str
    owner: str
    """The pod's topmost owner as namespace/Kind/name. The pods of one owner are resized in waves."""
    version: str
    """The resourceVersion of the pod for which the resize was decided."""
    changes: tuple[ResizeChange, ...]
    policies: tuple[str, ...]
    reason: Reason
    still_counted: Mapping[str, int] = field(default_factory=dict)
    """Resource → the part of the reduction that frees nothing on the node, because an init container still requests
    that amount."""

    @property
    def is_shrink(self) -> bool:
        """Whether the requests become smaller."""
        return self.changes[0].given_up > 0

    def given_up(self, resource: str) -> int:
        """Returns by how much the pod's request of a resource becomes smaller; negative if it becomes larger."""
        return sum(change.given_up for change in self.changes if change.resource == resource)


@dataclass(frozen=True, slots=True)
class ResizeRefusal:
    """Why one pod is not resized now although a policy wants it."""

    pod: str
    """The pod as namespace/name."""
    reason: Reason


@dataclass(frozen=True, slots=True)
class ResizeAdvice:
    """The result of `propose_resizes`."""

    proposals: tuple[ResizeProposal, ...] = ()
    """The proposed resizes; those that make requests smaller come first."""
    refusals: tuple[ResizeRefusal, ...] = ()
    uncovered: tuple[str, ...] = ()
    """Pods (namespace/name) that a policy wants to resize but whose node is in no pool."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResizeSettings:
    """The limits of resizes in one pool."""

    canary_percent: int = 10
    """The percentage of a workload's pods that the first wave resizes (at least one pod). Each verified wave doubles
    it."""
    changes_per_hour: int = 60
    """The maximum number of pods that are resized in an hour. Reverts do not count."""
    max_open: int = 200
    """The maximum number of resizes in progress, because each has a record in the pool's state."""
    verify_seconds: int = 600
    """How long a resized pod is watched before the freed resources count as free, in seconds."""
    answer_seconds: int = 120
    """How long a kubelet may take to answer a resize, in seconds."""
    deferred_seconds: int = 300
    """How long a kubelet may defer or apply a resize, in seconds."""
    unready_seconds: int = 60
    """How long a resized pod that was ready may be not ready, in seconds."""
    min_change_percent: int = 10
    """Changes below this percentage of the request are not made."""
    memory_headroom_percent: int = 15
    """A pod keeps at least this percentage more memory than it uses."""
    min_pod_seconds: int = 300
    """How long a pod must have run before it is resized, in seconds: while it starts, it may use far more than
    later."""
    max_pressure_percent: int = 20
    """How long, in seconds, a resized pod may be unready if it was ready before."""
    first_backoff_seconds: int = 3600
    """How long a workload waits after its first failure, in seconds; each further failure doubles the time."""
    max_backoff_seconds: int = 7 * 86400


DEFAULT_RESIZE_SETTINGS = ResizeSettings()


@dataclass(frozen=True, slots=True)
class MeasuredUse:
    """The amounts that containers use now, as far as they were measured."""

    amounts: Mapping[tuple[str, str, str], int] = field(default_factory=dict)
    """(uid of the pod, container, resource) → the present usage, in the scheduler's unit."""
    pressures: Mapping[str, int] = field(default_factory=dict)
    """Uid of a pod → percent of the last minute in which its processes waited for cpu or memory. Only for pods whose
    kubelet reports PSI."""
    throttled: Mapping[str, int] = field(default_factory=dict)
    """Uid of a pod → percent of recent scheduling periods in which its cpu limit throttled it. Only for pods for which
    this is known."""
    at: Seconds | None = None
    """When the usage was measured, or None if it was not."""

    def use_of(self, uid: str, container: str, resource: str) -> int | None:
        """Returns the present usage of a container, or None if it is not known."""
        return self.amounts.get((uid, container, resource))


NOT_MEASURED = MeasuredUse()
