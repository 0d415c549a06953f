"""Publishes recommendations for the webhook and for `trimtab recommend`, and lists what is missing.

A container with too little history gets no recommendation: the page `/missing` lists these containers and what each one
needs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from trimtab.cluster.reason import NotYet, Unreadable
from trimtab.cluster.recommendation import ContainerUsage, ShardLayout, Workloads, decode, encode
from trimtab.histogram.batch_history import RESOURCES, ContainerKey
from trimtab.histogram.checkpoint import workload_key
from trimtab.histogram.live_history import LiveHistory
from trimtab.histogram.time_buckets import DAY
from trimtab.recommender.sharded_configmaps import ShardBackend, ShardedStore
from trimtab.recommender.write_budget import PERIOD_SECONDS, WriteBudget
from trimtab.sizing.recommendation import build_container_usage, measure_change
from trimtab.sizing.statistics import summarize_usage


@dataclass(frozen=True, slots=True)
class ContainerRecommendations:
    """The result of computing the recommendations of all containers."""

    workloads: Workloads
    missing: Mapping[ContainerKey, Mapping[str, NotYet]]
    """Container → resource without a recommendation → what is missing for it."""


def compute_recommendations(history: LiveHistory, now: int) -> ContainerRecommendations:
    """Returns the recommendations for all containers of a history."""
    workloads: Workloads = {}
    missing: dict[ContainerKey, dict[str, NotYet]] = {}
    for container in history.list_containers():
        statistics = {
            resource: summarize_usage(
                resource,
                history.get_window(container, resource),
                now,
                history.running_peaks(container, resource),
                kind=container.kind,
                running_seconds=history.get_window(container, "cpu").observed_seconds,
                oom=history.oom_records.get(container),
                pods=history.average_pod_uses(container, resource),
            )
            for resource in RESOURCES
        }
        published = build_container_usage(
            statistics["cpu"], statistics["memory"], now=now, last=_last_sample(history, container)
        )
        if published is not None:
            workloads.setdefault(workload_key(container), {})[container.name] = published
        missing_resources = {
            resource: not_yet for resource, not_yet in statistics.items() if isinstance(not_yet, NotYet)
        }
        if missing_resources:
            missing[container] = missing_resources
    return ContainerRecommendations(workloads, missing)


def _last_sample(history: LiveHistory, container: ContainerKey) -> int | None:
    """Returns the time of the container's newest sample, or None if it has none. Cpu has a sample for every moment,
    memory one per interval."""
    windows = (history.windows.get((container, resource)) for resource in RESOURCES)
    return max((window.last for window in windows if window is not None and window.last), default=None)


def _knows_less(new_usage: ContainerUsage, old_usage: ContainerUsage) -> bool:
    """Returns whether a short history would replace a longer one. This can happen after stored usage was lost; the
    published recommendation is then kept for a day."""
    for resource in RESOURCES:
        after, before = new_usage.percentiles_of(resource), old_usage.percentiles_of(resource)
        if before is not None and not before.young and (after is None or after.young):
            return True
    return False


MAX_WAIT_SECONDS = PERIOD_SECONDS
"""The number of seconds after which a changed shard is written before all that wait for less, whatever the size of
their changes."""
_NEW_WORKLOADS, _OVERDUE = 1e6, 1e12
"""The urgency of a shard whose workloads differ, and of one that waits for too long: above that of every change."""

SHARD_BYTES = 64_000
"""The maximum size of one shard in bytes: about a hundred containers, which are all written if one of them has
changed."""


@dataclass(slots=True)
class Publisher:
    """Publishes recommendations in shards. Not thread-safe."""

    shard_backend: ShardBackend
    history: LiveHistory
    tolerance: float
    budget: WriteBudget
    history_is_incomplete: bool = False
    """Whether some of the stored usage could not be read, so that a container without history may still exist."""
    shard_store: ShardedStore = field(init=False)
    published: dict[int, Workloads] = field(default_factory=dict)
    _to_publish: Workloads = field(default_factory=dict)
    _waiting_since: dict[int, float] = field(default_factory=dict)
    """Shard that has changed and was not written since → when that was noticed."""

    def __post_init__(self) -> None:
        self.shard_store = ShardedStore(
            self.shard_backend, self._render, self.budget, self._record_write, max_bytes=SHARD_BYTES
        )

    def read_published(self) -> tuple[Unreadable, ...]:
        """Reads the published recommendations. Returns the shards that cannot be read. Raises StoreUnavailable."""
        unreadable, texts = [], self.shard_backend.load_texts()
        for number, text in texts.items():
            workloads = decode(f"recommendations {number}", text)
            if isinstance(workloads, Unreadable):
                unreadable.append(workloads)
            else:
                self.published[number] = workloads
        # The number of shards is a power of two: the highest number shows how many there were.
        count = 1 << max(texts, default=0).bit_length()
        self.shard_store.set_stored(texts, self.published, ShardLayout(max(1, count), by_workload=True))
        return tuple(unreadable)

    def write_changes(self, recommendations: ContainerRecommendations, now: int, *, everything: bool = False) -> int:
        """Writes the shards that have changed, as far as the budget allows; those that wait for too long come first,
        and then those with the largest change. With `everything`, writes all of them. Returns how many were written.
        Raises StoreUnavailable."""
        self._to_publish = {name: dict(containers) for name, containers in recommendations.workloads.items()}
        for name, container, old in self._iter_published():
            new = self._to_publish.get(name, {}).get(container)
            # A recommendation is only dropped when its container would certainly be known: after a restart without
            # stored usage it stays.
            if new is None and not self._is_gone(name, now):
                self._to_publish.setdefault(name, {})[container] = old
            elif new is not None and _knows_less(new, old):
                self._to_publish[name][container] = old
        written_shards = self.shard_store.write_urgent(
            self._to_publish.keys(), self._shard_urgency, unlimited=everything
        )
        self.published = {
            shard: workloads for shard, workloads in self.published.items() if shard in self.shard_store.stored_sizes
        }
        return written_shards

    def _iter_published(self) -> Iterator[tuple[str, str, ContainerUsage]]:
        for workloads in self.published.values():
            for name, containers in workloads.items():
                for container, recommendation in containers.items():
                    yield name, container, recommendation

    def _is_gone(self, name: str, now: int) -> bool:
        """Returns whether a published container no longer exists: the history of its namespace covers the whole window
        and does not have it."""
        namespace = name.partition("/")[0]
        namespace_firsts = [
            window.first
            for (key, _), window in self.history.windows.items()
            if key.namespace == namespace and window.last
        ]
        if not namespace_firsts and self.history_is_incomplete:
            return False
        firsts = namespace_firsts or [window.first for window in self.history.windows.values() if window.last]
        return bool(firsts) and now - min(firsts) >= (self.history.days - 1) * DAY

    def _shard_urgency(self, shard: int, workloads: Sequence[str]) -> float:
        """Returns how urgent it is to write the shard; 0 if nothing has changed.

        Workloads of all namespaces are in the same shards, so changes of one namespace, which may be large and come
        without end, must not hold back the others: a shard that waits for `MAX_WAIT_SECONDS` has its turn.
        """
        change, now = self._shard_change(shard, workloads), self.budget.elapsed()
        if not change:
            self._waiting_since.pop(shard, None)
            return 0.0
        waited = now - self._waiting_since.setdefault(shard, now)
        return _OVERDUE + waited if waited >= MAX_WAIT_SECONDS else min(change, _NEW_WORKLOADS)

    def _shard_change(self, shard: int, workloads: Sequence[str]) -> float:
        """Returns by how much the shard's recommendations differ from the published ones, beyond the tolerance (see
        `sizing.recommendation`)."""
        before = self.published.get(shard)
        if before is None or before.keys() != set(workloads):
            return _NEW_WORKLOADS
        return max((self._workload_change(before[name], self._to_publish[name]) for name in workloads), default=0.0)

    def _workload_change(self, before: Mapping[str, ContainerUsage], after: Mapping[str, ContainerUsage]) -> float:
        if before.keys() != after.keys():
            return _NEW_WORKLOADS
        return max((measure_change(before[name], after[name], self.tolerance) for name in after), default=0.0)

    def _render(self, workloads: Sequence[str], _layout: ShardLayout) -> str:
        return encode({name: self._to_publish[name] for name in workloads})

    def _record_write(self, shard: int, workloads: Sequence[str]) -> None:
        self._waiting_since.pop(shard, None)
        self.published[shard] = {name: self._to_publish[name] for name in workloads}


class MissingRecommendation(msgspec.Struct, frozen=True, kw_only=True):
    """One resource of one container that has no recommendation."""

    container: str
    """The container as NAMESPACE/KIND/NAME/CONTAINER."""
    resource: str
    reason: str
    text: str
    have: str
    need: str


def render_missing(recommendations: ContainerRecommendations | None) -> bytes:
    """Returns the page `/missing` as JSON. `leading` is false in a replica that does not lead, which has no history."""
    missing = recommendations.missing.items() if recommendations else ()
    lines = [
        MissingRecommendation(
            container=str(container),
            resource=resource,
            reason=not_yet.reason.code.name,
            text=str(not_yet.reason),
            have=not_yet.have,
            need=not_yet.need,
        )
        for container, by_resource in missing
        for resource, not_yet in by_resource.items()
    ]
    return msgspec.json.encode({"leading": recommendations is not None, "missing": lines}) + b"\n"
