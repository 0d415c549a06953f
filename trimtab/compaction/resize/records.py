"""What a pool's state records about resizes: those in progress, how many waves of each workload were verified, and what
failed.

`ResizeRecords` is part of the pool's state, which is signed. A record is written before the resize, so that the pod's
earlier requests are known even if the process is killed.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum

import msgspec
from msgspec.structs import replace as change

from trimtab.cluster.fair_share import take_turns
from trimtab.cluster.timestamps import Seconds
from trimtab.compaction.plan_types import HOUR_SECONDS, backoff_seconds
from trimtab.compaction.resize.types import ResizeChange, ResizeSettings


class ResizePhase(StrEnum):
    """The phase of a resize in progress."""

    RESIZING = "resizing"
    """The resize is recorded, and the kubelet has not finished it."""
    VERIFYING = "verifying"
    """The containers have the new resources, and the pod is watched for harm."""
    REVERTING = "reverting"
    """The pod gets back its earlier requests."""
    REPLACING = "replacing"
    """The pod's node has no room for its earlier requests: the pod is evicted as soon as its budget allows."""


class OpenResize(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One resize in progress. Records are keyed by the uid of the pod."""

    pod: str
    """The pod as namespace/name."""
    node: str
    owner: str
    """The pod's topmost owner as namespace/Kind/name."""
    changes: tuple[ResizeChange, ...]
    since: Seconds
    """When the resize was recorded, before it was written to the cluster."""
    phase: ResizePhase = ResizePhase.RESIZING
    phase_since: Seconds = 0
    """When the present phase began; 0 if it began at `since`."""
    wave: int = 0
    restarts: dict[str, int] = {}
    """Container → the number of its restarts before the resize."""
    pressure: int = 0
    """The pressure (PSI) of the pod before the resize, in percent of the time; 0 if it was not measured."""
    throttled: int = 0
    """How much of the time the pod was throttled before the resize, in percent; 0 if it was not measured."""
    was_ready: bool = True
    code: str = ""
    """The code of the reason for the revert; empty if the resize is not being reverted."""
    why: str = ""

    @property
    def began(self) -> Seconds:
        """When the present phase began, in seconds since 1970."""
        return self.phase_since or self.since

    def in_phase(self, phase: ResizePhase, now: Seconds, code: str = "", why: str = "") -> "OpenResize":
        """Returns the record in another phase. If no `code` or `why` is given, the present reason is kept."""
        return change(self, phase=phase, phase_since=now, code=code or self.code, why=why or self.why)


class WorkloadProgress(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How many waves of a workload have been verified in a row, and for which requests."""

    waves: int
    at: Seconds
    targets: dict[str, int] = {}
    """container/resource → the smallest request that was verified."""


class WorkloadFailure(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How often in a row resizes of one workload have failed."""

    times: int
    last: Seconds
    code: str = ""

    def retry_after(self, settings: ResizeSettings) -> Seconds:
        """Returns the time before which no pod of the workload is resized."""
        return self.last + backoff_seconds(self.times, settings.first_backoff_seconds, settings.max_backoff_seconds)


MAX_REMEMBERED = 2_000
"""The number of workloads whose progress is remembered. The oldest of the namespace with the most are forgotten first;
such a workload begins with a canary again."""
FORGET_SECONDS = 14 * 86400
"""Failures and progress that are older than this many seconds are forgotten."""


class ResizeRecords(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Everything that a pool's state records about resizes. It is immutable: every method returns new records."""

    open: dict[str, OpenResize] = {}
    """Uid of a pod → its resize in progress."""
    progress: dict[str, WorkloadProgress] = {}
    """Owner → its verified waves."""
    failures: dict[str, WorkloadFailure] = {}
    """Owner → its failures in a row."""
    times: tuple[Seconds, ...] = ()
    """The times of the resizes in the last hour."""
    stopped_at: Seconds | None = None
    """When a revert last found no room on its node. The pool then starts no resize for a while. None: that has not
    happened."""
    verified: int = 0
    """The total number of verified resizes."""
    reverted: int = 0
    """The total number of reverted resizes."""
    replaced: int = 0
    """The total number of pods that were evicted because their node had no room for a revert."""
    freed: dict[str, int] = {}
    """Resource → the total amount that verified resizes have freed, in the scheduler's units."""
    refusals: dict[str, int] = {}
    """Reason code → the number of pods in the last round that a policy wants to resize but that are not resized for
    this reason."""
    uncovered: tuple[str, ...] = ()
    """Some of the pods that a policy wants to resize but whose node is in no pool. They are only in the records of the
    first pool."""
    uncovered_count: int = 0

    def with_open(self, uid: str, record: OpenResize) -> "ResizeRecords":
        """Returns the records with this resize added or replaced."""
        return change(self, open={**self.open, uid: record})

    def with_started(self, uid: str, record: OpenResize) -> "ResizeRecords":
        """Returns the records with a new resize, which counts in the resizes of the hour."""
        return change(self.with_open(uid, record), times=(*self.times, record.since))

    def without_open(self, uid: str) -> "ResizeRecords":
        """Returns the records without this resize, because it was never written or its pod no longer exists."""
        return change(self, open={other: record for other, record in self.open.items() if other != uid})

    def with_verified(self, uid: str, now: Seconds) -> "ResizeRecords":
        """Returns the records after this resize was verified. With the last resize of a wave, the wave counts as
        verified, too."""
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
        """Returns the records after a resize of this workload failed. The workload backs off, and afterwards begins
        with a canary. All failures of one wave count as one."""
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
        """Returns the records after the pod was evicted because its node had no room for its earlier requests."""
        return change(self.without_open(uid), replaced=self.replaced + 1)

    def stopped(self, now: Seconds) -> "ResizeRecords":
        """Returns the records after a revert found no room on its node."""
        return change(self, stopped_at=now)

    def recent_count(self, now: Seconds) -> int:
        """Returns how many pods were resized in the last hour."""
        return sum(when > now - HOUR_SECONDS for when in self.times)

    def wave_of(self, owner: str, targets: Mapping[str, int]) -> int:
        """Returns how many verified waves of the workload count for these requests (container/resource → amount).

        It is 0 if the requests are much smaller than those that were verified: the workload then begins with a canary.
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
        """Returns the records without entries that are too old to matter, and with times in the future replaced by now.
        Resizes in progress are kept whatever their age."""
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
"""A request of at least this percentage of a verified request counts as verified too, because recommendations change a
little from day to day."""


def _clamp_record(record: OpenResize, now: Seconds) -> OpenResize:
    if record.since <= now and record.phase_since <= now:
        return record
    return change(record, since=min(record.since, now), phase_since=min(record.phase_since, now))


def _newest(progress: Mapping[str, WorkloadProgress]) -> Iterable[tuple[str, WorkloadProgress]]:
    if len(progress) <= MAX_REMEMBERED:
        return progress.items()
    newest = sorted(progress.items(), key=lambda item: (-item[1].at, item[0]))
    return take_turns(newest, lambda item: item[0].partition("/")[0])[:MAX_REMEMBERED]


_EMPTY = ResizeRecords()
