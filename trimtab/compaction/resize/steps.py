"""The possible next steps of resizes, as values, and what each of them changes in the records.

A process applies `record_step` first, saves the records where `writes` says so, and then writes to the cluster.
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
    """Why this pod now: the wave, and what it is about."""


@dataclass(frozen=True, slots=True)
class Revert:
    """Write back what the pod requested before."""

    uid: str
    version: str
    record: OpenResize
    """In phase REVERTING."""
    reason: Reason
    is_new: bool
    """False where an earlier attempt did not reach the pod."""
    blames_workload: bool = True
    """Whether the workload backs off."""

    @property
    def changes(self) -> tuple[ResizeChange, ...]:
        """The changes back."""
        return tuple(
            ResizeChange(container=c.container, resource=c.resource, before=c.after, after=c.before)
            for c in self.record.changes
        )


@dataclass(frozen=True, slots=True)
class Advance:
    """Nothing is written: the record enters another phase."""

    uid: str
    record: OpenResize
    reason: Reason
    stops_pool: bool = False
    """A revert found no room: the pool resizes nothing for a while."""


@dataclass(frozen=True, slots=True)
class Replace:
    """Evict the pod: its node has no room for its former requests."""

    uid: str
    record: OpenResize
    reason: Reason


@dataclass(frozen=True, slots=True)
class Finish:
    """The resize is over: its record is removed."""

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


def reject_step(records: ResizeRecords, step: Resize, now: Seconds) -> ResizeRecords:
    """Returns the records after the API server rejected this resize: the workload backs off."""
    return records.with_failure(step.record.owner, r.REJECTED.name, now).without_open(step.proposal.uid)


def writes(step: ResizeStep) -> bool:
    """Returns whether the step writes to the cluster, so that the records are saved before."""
    return isinstance(step, Resize | Revert | Replace)
