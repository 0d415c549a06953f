"""What a pool's state remembers of its resizes: those in progress, how far each workload is, and what failed.

`ResizeRecords` is part of the pool's state, which is signed. A record is written before the resize: whatever happens to
the process, what a pod requested before is known.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum

import msgspec
from msgspec.structs import replace as change

from trimtab.cluster.timestamps import Seconds
from trimtab.compaction.plan_types import HOUR_SECONDS, backoff_seconds
from trimtab.compaction.resize.types import ResizeChange, ResizeSettings


class ResizePhase(StrEnum):
    """How far a resize is."""

    RESIZING = "resizing"
    """It is announced, and the kubelet has not finished it."""
    VERIFYING = "verifying"
    """The containers have what they should, and the pod is watched."""
    REVERTING = "reverting"
    """The pod gets back what it had."""
    REPLACING = "replacing"
    """Its node cannot give that back: it is evicted as soon as its budget allows."""


class OpenResize(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One resize in progress, by the uid of its pod."""

    pod: str
    """namespace/name."""
    node: str
    owner: str
    """namespace/Kind/name of the topmost owner."""
    changes: tuple[ResizeChange, ...]
    since: Seconds
    """When it was announced."""
    phase: ResizePhase = ResizePhase.RESIZING
    phase_since: Seconds = 0
    """When the phase began; 0: with the record."""
    wave: int = 0
    restarts: dict[str, int] = {}
    """Container → how often it had been restarted before."""
    pressure: int = 0
    """The pod's pressure before, in percent; 0 also where it was not measured."""
    throttled: int = 0
    """How much it was throttled before, in percent; 0 also where it was not measured."""
    was_ready: bool = True
    code: str = ""
    """The reason's code of its revert; empty while there is none."""
    why: str = ""

    @property
    def began(self) -> Seconds:
        """When the phase began."""
        return self.phase_since or self.since

    def in_phase(self, phase: ResizePhase, now: Seconds, code: str = "", why: str = "") -> "OpenResize":
        """Returns the record in another phase; the reason stays where none is given."""
        return change(self, phase=phase, phase_since=now, code=code or self.code, why=why or self.why)


class WorkloadProgress(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How many waves of a workload were verified one after the other, and for which requests."""

    waves: int
    at: Seconds
    targets: dict[str, int] = {}
    """container/resource → the smallest request that was verified."""


class WorkloadFailure(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Failed resizes of one workload, in a row."""

    times: int
    last: Seconds
    code: str = ""

    def retry_after(self, settings: ResizeSettings) -> Seconds:
        """Returns the time before which no pod of the workload is resized."""
        return self.last + backoff_seconds(self.times, settings.first_backoff_seconds, settings.max_backoff_seconds)


MAX_REMEMBERED = 2_000
"""Workloads whose progress is remembered; the oldest are forgotten first, and begin with a canary again."""
FORGET_SECONDS = 14 * 86400
"""Failures and progress older than this are forgotten."""


class ResizeRecords(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """All that a pool's state holds of resizes. Every method returns new records."""

    open: dict[str, OpenResize] = {}
    """Uid of a pod → its resize in progress."""
    progress: dict[str, WorkloadProgress] = {}
    """Owner → how far it is."""
    failures: dict[str, WorkloadFailure] = {}
    """Owner → its failures in a row."""
    times: tuple[Seconds, ...] = ()
    """When pods were resized, in the last hour."""
    stopped_at: Seconds | None = None
    """When a revert found no room: the pool resizes nothing for a while."""
    verified: int = 0
    """Resizes that were verified, ever."""
    reverted: int = 0
    """Resizes that were reverted, ever."""
    replaced: int = 0
    """Pods that were evicted because a revert found no room, ever."""
    freed: dict[str, int] = {}
    """Resource → what verified resizes gave up, ever, in the scheduler's numbers."""
    refusals: dict[str, int] = {}
    """Reason code → pods that a policy wants to resize and that stay for this reason, at the last round."""
    uncovered: tuple[str, ...] = ()
    """Some pods that a policy wants to resize on nodes of no pool; only in the first pool's records."""
    uncovered_count: int = 0

    def with_open(self, uid: str, record: OpenResize) -> "ResizeRecords":
        """Returns the records with this resize, new or changed."""
        return change(self, open={**self.open, uid: record})

    def with_started(self, uid: str, record: OpenResize) -> "ResizeRecords":
        """Returns the records with a new resize, which counts in the hour."""
        return change(self.with_open(uid, record), times=(*self.times, record.since))

    def without_open(self, uid: str) -> "ResizeRecords":
        """Returns the records without this resize: it was never written, or its pod is gone."""
        return change(self, open={other: record for other, record in self.open.items() if other != uid})

    def with_verified(self, uid: str, now: Seconds) -> "ResizeRecords":
        """Returns the records after the verification of this resize; the last of its wave advances the workload."""
        record = self.open[uid]
        records = self.without_open(uid)
        freed = dict(self.freed)
        for each in record.changes:
            freed[each.resource] = freed.get(each.resource, 0) + each.given_up
        records = change(records, verified=self.verified + 1, freed=freed)
        if any(other.owner == record.owner for other in records.open.values()):
            return records
        failure = records.failures.get(record.owner)
        # A failure of this very wave: other pods of it were fine, which says nothing good of the workload.
        if failure is not None and failure.last >= record.since:
            return records
        before = records.progress.get(record.owner)
        targets = dict(before.targets) if before is not None else {}
        for each in record.changes:
            name = f"{each.container}/{each.resource}"
            targets[name] = min(targets.get(name, each.amount_after), each.amount_after)
        waves = max(record.wave + 1, before.waves if before is not None else 0)
        progress = {**records.progress, record.owner: WorkloadProgress(waves=waves, at=now, targets=targets)}
        failures = {owner: each for owner, each in records.failures.items() if owner != record.owner}
        return change(records, progress=progress, failures=failures)

    def with_failure(self, owner: str, code: str, now: Seconds) -> "ResizeRecords":
        """Returns the records after a resize of this workload failed: it backs off, and begins with a canary then. All
        failures of one wave count once."""
        last = self.failures.get(owner)
        oldest = min((record.since for record in self.open.values() if record.owner == owner), default=now)
        if last is not None and last.last >= oldest:
            return self
        failure = WorkloadFailure(times=last.times + 1 if last is not None else 1, last=now, code=code)
        return change(
            self,
            failures={**self.failures, owner: failure},
            progress={other: each for other, each in self.progress.items() if other != owner},
        )

    def with_reverted(self, uid: str) -> "ResizeRecords":
        """Returns the records after this resize was reverted."""
        return change(self.without_open(uid), reverted=self.reverted + 1)

    def with_replaced(self, uid: str) -> "ResizeRecords":
        """Returns the records after the pod was evicted, because it could not get back what it had."""
        return change(self.without_open(uid), replaced=self.replaced + 1)

    def stopped(self, now: Seconds) -> "ResizeRecords":
        """Returns the records after a revert found no room."""
        return change(self, stopped_at=now)

    def recent_count(self, now: Seconds) -> int:
        """Returns how many pods were resized in the last hour."""
        return sum(when > now - HOUR_SECONDS for when in self.times)

    def wave_of(self, owner: str, targets: Mapping[str, int]) -> int:
        """Returns the number of verified waves that count for these requests (container/resource → amount).

        Requests much smaller than those that were verified begin with a canary again.
        """
        progress = self.progress.get(owner)
        if progress is None:
            return 0
        for name, amount in targets.items():
            verified = progress.targets.get(name)
            if verified is None or amount * 100 < verified * SAME_PERCENT:
                return 0
        return progress.waves

    def without_old_entries(self, now: Seconds) -> "ResizeRecords":
        """Returns the records with no time later than now, and without what is too old to matter. Open resizes never
        become too old."""
        if self == _EMPTY:
            return self
        progress = {o: p for o, p in self.progress.items() if min(p.at, now) > now - FORGET_SECONDS}
        return change(
            self,
            open={uid: _clamp_record(record, now) for uid, record in self.open.items()},
            times=tuple(min(when, now) for when in self.times if when > now - HOUR_SECONDS),
            progress=dict(_newest(progress)),
            failures={
                owner: change(failure, last=min(failure.last, now))
                for owner, failure in self.failures.items()
                if min(failure.last, now) > now - FORGET_SECONDS
            },
            stopped_at=None if self.stopped_at is None else min(self.stopped_at, now),
        )


SAME_PERCENT = 95
"""A request of at least this share of a verified one counts as verified too: recommendations drift."""


def _clamp_record(record: OpenResize, now: Seconds) -> OpenResize:
    if record.since <= now and record.phase_since <= now:
        return record
    return change(record, since=min(record.since, now), phase_since=min(record.phase_since, now))


def _newest(progress: Mapping[str, WorkloadProgress]) -> Iterable[tuple[str, WorkloadProgress]]:
    if len(progress) <= MAX_REMEMBERED:
        return progress.items()
    return sorted(progress.items(), key=lambda item: (-item[1].at, item[0]))[:MAX_REMEMBERED]


_EMPTY = ResizeRecords()
