"""The values of a resize: changes of single containers, proposals for pods, and refusals with their reasons."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

from trimtab.cluster import quantity
from trimtab.cluster.reason import Reason
from trimtab.cluster.timestamps import Seconds


class ResizeChange(msgspec.Struct, frozen=True, kw_only=True):
    """One request of one container before and after; both as written, so that a revert restores the very text."""

    container: str
    resource: str
    before: str
    after: str

    @property
    def amount_before(self) -> int:
        """The request before, in the scheduler's numbers."""
        return quantity.scheduler_value(self.resource, self.before)

    @property
    def amount_after(self) -> int:
        """The request after, in the scheduler's numbers."""
        return quantity.scheduler_value(self.resource, self.after)

    @property
    def given_up(self) -> int:
        """By how much the request shrinks; negative if it grows."""
        return self.amount_before - self.amount_after

    def __str__(self) -> str:
        return f"{self.container} {self.resource} {self.before} → {self.after}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ResizeProposal:
    """One pod to resize. All its changes go in one direction: shrinks come first, and what is left to raise follows."""

    pod: str
    """namespace/name."""
    uid: str
    node: str
    pool: str
    owner: str
    """namespace/Kind/name of the topmost owner: its pods are resized in waves."""
    version: str
    """The resourceVersion on which it was decided."""
    changes: tuple[ResizeChange, ...]
    policies: tuple[str, ...]
    reason: Reason
    still_counted: Mapping[str, int] = field(default_factory=dict)
    """Resource → the part of what the containers give up that is not free on the node afterwards, because an init
    container requests it too."""

    @property
    def is_shrink(self) -> bool:
        """Whether the requests shrink."""
        return self.changes[0].given_up > 0

    def given_up(self, resource: str) -> int:
        """Returns by how much the pod's request of a resource shrinks; negative if it grows."""
        return sum(change.given_up for change in self.changes if change.resource == resource)


@dataclass(frozen=True, slots=True)
class ResizeRefusal:
    """Why one pod, of which a policy wants a resize, is not resized now."""

    pod: str
    """namespace/name."""
    reason: Reason


@dataclass(frozen=True, slots=True)
class ResizeAdvice:
    """What `propose_resizes` finds."""

    proposals: tuple[ResizeProposal, ...] = ()
    """Shrinks first."""
    refusals: tuple[ResizeRefusal, ...] = ()
    uncovered: tuple[str, ...] = ()
    """Pods (namespace/name) that a policy wants to resize, on nodes that no pool has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResizeSettings:
    """The limits of resizes in one pool."""

    canary_percent: int = 10
    """The share of a workload's pods that the first wave resizes, at least one pod. Each verified wave doubles it."""
    changes_per_hour: int = 60
    """The maximum number of pods that are resized in an hour. Reverts do not count."""
    max_open: int = 200
    """The maximum number of pods in verification at a time: each has a record in the pool's state."""
    verify_seconds: int = 600
    """How long a resized pod is watched before what it gave up counts as free."""
    answer_seconds: int = 120
    """How long a kubelet may take to answer."""
    deferred_seconds: int = 300
    """How long a kubelet may defer, or apply, a resize."""
    unready_seconds: int = 60
    """How long a resized pod that was ready may be not ready."""
    min_change_percent: int = 10
    """Smaller changes are not worth a resize."""
    memory_headroom_percent: int = 15
    """How much more memory than it uses a pod keeps at least."""
    min_pod_seconds: int = 300
    """How long a pod must have run: a pod that starts may use far more than later."""
    max_pressure_percent: int = 20
    """The share of a minute in which processes of the pod wait for cpu or memory (PSI `some`, 60 s) that counts as
    harm, if it was lower before."""
    first_backoff_seconds: int = 3600
    """How long a workload waits after its first failure, twice as long after each further one."""
    max_backoff_seconds: int = 7 * 86400


DEFAULT_RESIZE_SETTINGS = ResizeSettings()


@dataclass(frozen=True, slots=True)
class MeasuredUse:
    """What containers use now, as far as it was measured."""

    amounts: Mapping[tuple[str, str, str], int] = field(default_factory=dict)
    """(uid of the pod, container, resource) → the use now, in the scheduler's numbers."""
    pressures: Mapping[str, int] = field(default_factory=dict)
    """Uid of a pod → percent of the last minute in which its processes waited for cpu or memory, where its kubelet
    reports PSI."""
    throttled: Mapping[str, int] = field(default_factory=dict)
    """Uid of a pod → percent of the recent periods in which it was throttled by its cpu limit, where that is known."""
    at: Seconds | None = None
    """When it was measured, or None if it was not."""

    def use_of(self, uid: str, container: str, resource: str) -> int | None:
        """Returns the use now, or None if it is not known."""
        return self.amounts.get((uid, container, resource))


NOT_MEASURED = MeasuredUse()
