"""What is known of the workload that a VPA targets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from trimtab.cluster.owner import OwnerKey
from trimtab.cluster.reason import NotYet
from trimtab.cluster.recommendation import RESOURCES
from trimtab.cluster.timestamps import Seconds
from trimtab.cluster.whole_pods import is_whole_pod
from trimtab.histogram.batch_history import ContainerKey
from trimtab.histogram.daily_window import DailyHistograms
from trimtab.histogram.live_history import LiveHistory
from trimtab.histogram.oom_kills import BumpUp
from trimtab.histogram.time_buckets import DAY
from trimtab.sizing.adaptive_bounds import oom_floor
from trimtab.sizing.statistics import UsageStatistics, summarize_usage
from trimtab.sizing.vpa.settings import VpaSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetPods:
    """The pods of a VPA's target at present."""

    topmost: OwnerKey
    """The topmost owner of the target, under which usage is stored; the target itself if it has no owner."""
    count: int = 0
    containers: frozenset[str] = frozenset()
    """The names of the main containers of these pods."""
    init_containers: frozenset[str] = frozenset()
    """The names of their init containers and sidecars, which a VPA does not size."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetUsage:
    """The usage of a VPA's target: a view of the history, from which each VPA takes its own window."""

    history: LiveHistory
    containers: Mapping[str, ContainerKey] = field(default_factory=dict)
    """Container with usage → its key in the history."""

    def summarize(
        self, container: str, resource: str, settings: VpaSettings, now: Seconds
    ) -> UsageStatistics | NotYet | None:
        """Returns the statistics of one resource in the VPA's window, without OOM kills; None if the container has no
        usage at all."""
        key = self.containers.get(container)
        if key is None:
            return None
        return summarize_usage(
            resource,
            self._window(key, resource, settings),
            now,
            self.history.running_peaks(key, resource),
            kind=key.kind,
            running_seconds=self._window(key, "cpu", settings).observed_seconds,
            pods=self.history.average_pod_uses(key, resource),
            percentiles=settings.percentiles_of(resource),
        )

    def _window(self, key: ContainerKey, resource: str, settings: VpaSettings) -> DailyHistograms:
        return shorten_window(self.history.get_window(key, resource), settings.window_days)

    def oom_floor(
        self, container: str, bump_up: BumpUp, statistics: UsageStatistics, settings: VpaSettings, now: Seconds
    ) -> float:
        """Returns the memory in bytes that the container needs at least after its OOM kills; 0 if there were none."""
        key = self.containers[container]
        if statistics.resource != "memory":
            return 0.0
        record = self.history.oom_records.get(key)
        return oom_floor(record, statistics.max, now, settings.window_days * DAY, bump_up)

    @property
    def last_sample_at(self) -> Seconds | None:
        """The time of the newest sample of any container, or None if there is none."""
        windows = (
            self.history.windows.get((key, resource)) for key in self.containers.values() for resource in RESOURCES
        )
        return max((window.last for window in windows if window is not None and window.last), default=None)


def shorten_window(window: DailyHistograms, days: int) -> DailyHistograms:
    """Returns the last `days` days of a window; the window itself if it has no more days than that."""
    if days >= window.days:
        return window
    shorter = DailyHistograms(days)
    shorter.merge(window)
    return shorter


def group_by_owner(history: LiveHistory, owners: Iterable[OwnerKey]) -> dict[OwnerKey, TargetUsage]:
    """Returns owner → the usage of its containers, for those of these owners that have usage."""
    wanted, containers = set(owners), dict[OwnerKey, dict[str, ContainerKey]]()
    for key in history.list_containers():
        if key.owner in wanted and not is_whole_pod(key.name):
            containers.setdefault(key.owner, {})[key.name] = key
    return {owner: TargetUsage(history=history, containers=keys) for owner, keys in containers.items()}
