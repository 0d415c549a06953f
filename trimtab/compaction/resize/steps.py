"""The next steps that a resize can take, as values, and how each of them changes the records.

A process first applies `record_step`; if `writes` is true for the step, it saves the records; then it writes to the
cluster.
"""

from dataclasses import dataclass

from trimtab.cluster.reason import Reason
from trimtab.cluster.timestamps import Seconds
from trimtab.compaction.resize import reasons as r
from trimtab.compaction.resize.records import OpenResize, ResizeRecords
from trimtab.compaction.resize.types import ResizeChange, ResizeProposal


@dataclass(frozen=True, slots=True)
class Resize:
    """Write the requests of the proposal into the running pod."""

    proposal: ResizeProposal
    record: OpenResize
    reason: Reason
    """Which wave the pod belongs to, and what the resize changes."""


@dataclass(frozen=True, slots=True)
class Revert:
    """Write the pod's earlier requests back."""

    uid: str
    version: str
    record: OpenResize
    """The record of the resize, in phase REVERTING."""
    reason: Reason
    is_new: bool
    """Whether this is the first attempt; False if an earlier one did not reach the pod."""
    blames_workload: bool = True
    """Whether the workload backs off because of this revert."""

    @property
    def changes(self) -> tuple[ResizeChange, ...]:
        """The changes that restore the earlier requests."""
        return tuple(
            ResizeChange(container=c.container, resource=c.resource, before=c.after, after=c.before)
            for c in self.record.changes
        )


@dataclass(frozen=True, slots=True)
class Advance:
    """Only the record changes: it enters another phase."""

    uid: str
    record: OpenResize
    reason: Reason
    stops_pool: bool = False
    """Whether a revert found no room on its node, so that the pool starts no resize for a while."""


@dataclass(frozen=True, slots=True)
class Replace:
    """Evict the pod, because its node has no room for its earlier requests."""

    uid: str
    record: OpenResize
    reason: Reason


@dataclass(frozen=True, slots=True)
class Finish:
    """Remove the record, because the resize is finished."""

    uid: str
    record: OpenResize
    reason: Reason


@dataclass(frozen=True, slots=True)
class Await:
    """Do nothing now; `reason` says for what the resize waits."""

    uid: str
    record: OpenResize
    reason: Reason


ResizeStep = Resize | Revert | Advance | Replace | Finish | Await


def record_step(records: ResizeRecords, step: ResizeStep, now: Seconds) -> ResizeRecords:
    """Returns the records with this step, before it is written to the cluster."""
    if isinstance(step, Resize):
        return records.with_started(step.proposal.uid, step.record)
    if isinstance(step, Revert):
        after = records.with_open(step.uid, step.record)
        if step.is_new and step.blames_workload:
            return after.with_failure(step.record.owner, step.reason.code.name, now)
        return after
    if isinstance(step, Advance):
        after = records.with_open(step.uid, step.record)
        if not step.stops_pool:
            return after
        return after.with_failure(step.record.owner, step.record.code or r.NO_ROOM.name, now).stopped(now)
    if isinstance(step, Finish):
        return _finish(records, step, now)
    return records


def _finish(records: ResizeRecords, step: Finish, now: Seconds) -> ResizeRecords:
    if step.uid not in records.open:
        return records
    if step.reason.code is r.VERIFIED:
        return records.with_verified(step.uid, now)
    if step.reason.code is r.REVERTED:
        return records.with_reverted(step.uid)
    if step.reason.code is r.REPLACED:
        return records.with_replaced(step.uid)
    return records.without_open(step.uid)


def reject_step(records: ResizeRecords, resize: Resize, now: Seconds) -> ResizeRecords:
    """Returns the records after the API server rejected this resize, so that the workload backs off."""
    return records.with_failure(resize.record.owner, r.REJECTED.name, now).without_open(resize.proposal.uid)


def writes(step: ResizeStep) -> bool:
    """Returns whether the step writes to the cluster, so that the records must be saved before."""
    return isinstance(step, Resize | Revert | Replace)
