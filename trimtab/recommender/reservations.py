"""Measures what kubelets and container runtimes use, and publishes recommended reservations.

Every few minutes, one sample of each node is added to the history of its pool. The recommendations are one ConfigMap,
`trimtab-reservations`, which is written only if one of them has changed by more than the tolerance. The history of each
pool is a ConfigMap of its own, written once an hour and at the end of the process.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import msgspec

from trimtab.cluster.bounded_decode import BytesRefused, decode_json
from trimtab.cluster.node import NodeInfo
from trimtab.cluster.published_reservations import PublishedReservation, PublishedReservations, decode_reservations
from trimtab.cluster.reason import NotYet, Unreadable
from trimtab.recommender.metrics import ReservationMetrics
from trimtab.recommender.sharded_configmaps import ConfigMapShardBackend
from trimtab.reservations.encode_history import decode_history, encode_history
from trimtab.reservations.measure import Reserved
from trimtab.reservations.overhead_fit import OverheadFit
from trimtab.reservations.overhead_history import DAY_SECONDS, OverheadHistory, OverheadSample
from trimtab.runtime.log import Logger
from trimtab.sizing.pool_reservations import PoolReservation, PoolRuntime, assess_pools, group_nodes
from trimtab.usage.kubelet_overhead import NodeOverhead, with_counted_cpu

RESERVATIONS_NAME = "trimtab-reservations"
HISTORY_PREFIX = "trimtab-overhead"
HISTORY_LABEL = "trimtab.dev/overhead"
HISTORY_KEY = "overhead"
HISTORY_DAYS = 8
"""The number of days of history, including today: before a reservation is lowered, a whole week must have been
measured."""
STORE_INTERVAL_SECONDS = 3600
MAX_HISTORY_BYTES = 900_000
"""The maximum size of a stored history in bytes. A ConfigMap holds no more than a megabyte."""


class ReservationStore(Protocol):
    """Stores reservations and histories. Every method raises StoreUnavailable."""

    def load_published(self) -> str:
        """Returns the text of the published reservations, or an empty string if there is none."""

    def store_published(self, text: str) -> None: ...

    def load_histories(self) -> Mapping[str, str]:
        """Returns name → text of each pool's history."""

    def store_history(self, name: str, text: str) -> None: ...

    def delete_history(self, name: str) -> None: ...


@dataclass(frozen=True, slots=True)
class ConfigMapStore:
    """Stores reservations and histories in ConfigMaps."""

    published: ConfigMapShardBackend
    histories: ConfigMapShardBackend

    def load_published(self) -> str:
        """Returns the text of the published reservations, or an empty string if there is none."""
        return self.published.texts_by_name().get(RESERVATIONS_NAME, "")

    def store_published(self, text: str) -> None:
        """Writes the published reservations."""
        self.published.apply_config_map(RESERVATIONS_NAME, text)

    def load_histories(self) -> Mapping[str, str]:
        """Returns name → text of each pool's history."""
        return self.histories.texts_by_name()

    def store_history(self, name: str, text: str) -> None:
        """Writes the history of one pool."""
        self.histories.apply_config_map(name, text)

    def delete_history(self, name: str) -> None:
        """Deletes the history of one pool."""
        self.histories.delete_config_map(name)


class _StoredHistory(msgspec.Struct, frozen=True):
    pool: str
    runtime: str
    text: str


ReadNodes = Callable[[], Iterable[NodeInfo]]
ReadOverheads = Callable[[Sequence[str], int, int], Iterable[NodeOverhead]]
"""A function of (nodes, from, until) that returns the overheads of these nodes in this time. A source without history
returns only the latest overhead of each node. Raises UsageFault or KubeFault."""


@dataclass(slots=True, kw_only=True)
class ReservationMeasurer:
    """Measures, assesses and publishes reservations. Not thread-safe. A step raises the errors of its source and its
    store."""

    read_nodes: ReadNodes
    read_overheads: ReadOverheads
    store: ReservationStore
    metrics: ReservationMetrics
    log: Logger
    interval_seconds: float
    histories: dict[PoolRuntime, OverheadHistory] = field(default_factory=dict)
    pools: list[PoolReservation] = field(default_factory=list)
    """The results of the latest step, one for each pool."""
    _published: dict[PoolRuntime, PublishedReservation] = field(default_factory=dict)
    _previous: dict[str, NodeOverhead] = field(default_factory=dict)
    """Node → its last reading, from which the increase of counters is computed."""
    _read_until: int | None = None
    _stored_at: int = 0
    _restored: bool = False

    def measure_if_due(self, now: int) -> None:
        """Measures once if the interval has passed since the last time, and publishes what has changed."""
        if not self._restored:
            self._restore(now)
        if self._read_until is not None and now - self._read_until < self.interval_seconds:
            return
        groups = group_nodes(self.read_nodes(), now)
        keys = {name: key for key, pool in groups.items() for name in pool.names}
        start = max(self._read_until or 0, now - HISTORY_DAYS * DAY_SECONDS)
        readings = list(self.read_overheads(sorted(keys), start, now))
        for reading in readings:
            if reading.node in keys:
                counted = with_counted_cpu(self._previous.get(reading.node), reading)
                self._previous[reading.node] = reading
                self.histories.setdefault(keys[reading.node], OverheadHistory(max_days=HISTORY_DAYS)).add_sample(
                    OverheadSample(
                        node=counted.node,
                        second=counted.second,
                        pods=counted.pods,
                        millicores=counted.millicores,
                        memory_bytes=counted.memory_bytes,
                        max_memory_bytes=counted.max_memory_bytes,
                    )
                )
        self._read_until = now
        for history in self.histories.values():
            history.drop_old_days(now)
        self.histories = {key: kept for key, kept in self.histories.items() if kept.groups}
        reserved = {key: _reserved_of(published) for key, published in self._published.items()}
        self.pools = assess_pools(groups, self.histories, published=reserved)
        self.metrics.set_pools(self.pools)
        self._publish(now)
        if now - self._stored_at >= STORE_INTERVAL_SECONDS:
            self.store_histories(now)

    def _publish(self, now: int) -> None:
        """Writes the recommendations if one of them differs from the published one."""
        pool_keys = {pool.key for pool in self.pools}
        wanted = {key: published for key, published in self._published.items() if key in pool_keys}
        for pool in self.pools:
            if not isinstance(pool.recommended, NotYet):
                old = self._published.get(pool.key)
                is_same = old is not None and _reserved_of(old) == pool.recommended
                wanted[pool.key] = old if old is not None and is_same else _published_pool(pool, pool.recommended, now)
        if wanted != self._published:
            content = PublishedReservations(pools=tuple(wanted[key] for key in sorted(wanted)))
            self.store.store_published(msgspec.json.encode(content).decode())
            self._published = wanted
            self.log.info("reservations.written", pools=len(wanted))

    def store_histories(self, now: int) -> None:
        """Writes the history of every pool, and deletes stored histories of pools without one."""
        names = set()
        for key, history in sorted(self.histories.items()):
            text = msgspec.json.encode(_StoredHistory(key.pool, key.runtime, encode_history(history))).decode()
            if len(text) > MAX_HISTORY_BYTES:
                self.log.warning("overhead.too-large", pool=key.pool, bytes=len(text))
                continue
            names.add(_history_name(key))
            self.store.store_history(_history_name(key), text)
        for name in self.store.load_histories().keys() - names:
            self.store.delete_history(name)
        self._stored_at = now

    def _restore(self, now: int) -> None:
        unreadable_histories = 0
        for name, text in self.store.load_histories().items():
            restored = _decode_stored(name, text)
            if isinstance(restored, Unreadable):
                unreadable_histories += 1
                self.log.warning("overhead.unreadable", where=restored.where, problem=restored.problem)
            else:
                key, history = restored
                self.histories[key] = history
        published = _decode_published(self.store.load_published())
        if isinstance(published, Unreadable):
            self.log.warning("reservations.unreadable", problem=published.problem)
        self._published = {} if isinstance(published, Unreadable) else published
        self.metrics.unreadable.labels("overhead").set(unreadable_histories)
        self.metrics.unreadable.labels("reservations").set(isinstance(published, Unreadable))
        lasts = [history.last for history in self.histories.values() if history.last is not None]
        # What Prometheus has since then is read; a source without history begins anew.
        self._read_until = max(lasts, default=None)
        self._stored_at = now
        self._restored = True


def _history_name(key: PoolRuntime) -> str:
    """Returns the name of the ConfigMap with a pool's history. It is a hash, because a pool's name may not be valid as
    the name of a ConfigMap."""
    return f"{HISTORY_PREFIX}-{hashlib.sha256(f'{key.pool}/{key.runtime}'.encode()).hexdigest()[:12]}"


def _decode_stored(name: str, text: str) -> tuple[PoolRuntime, OverheadHistory] | Unreadable:
    try:
        stored = decode_json(text, _StoredHistory)
    except (msgspec.DecodeError, BytesRefused, RecursionError) as error:
        return Unreadable(name, f"the history is damaged: {error}")
    history = decode_history(name, stored.text, HISTORY_DAYS)
    return history if isinstance(history, Unreadable) else (PoolRuntime(stored.pool, stored.runtime), history)


def _decode_published(text: str) -> dict[PoolRuntime, PublishedReservation] | Unreadable:
    """Returns the published reservations in a text; none if the text is empty."""
    pools = decode_reservations(text) if text else ()
    if isinstance(pools, Unreadable):
        return pools
    return {PoolRuntime(pool.pool, pool.runtime): pool for pool in pools}


def _reserved_of(published: PublishedReservation) -> Reserved:
    return Reserved(millicores=published.millicores, memory_bytes=published.memory_bytes)


def _published_pool(pool: PoolReservation, reserved: Reserved, now: int) -> PublishedReservation:
    assert not isinstance(pool.use, NotYet)
    cpu, memory = pool.use.cpu.fit, pool.use.memory.fit
    return PublishedReservation(
        pool=pool.key.pool,
        runtime=pool.key.runtime,
        millicores=reserved.millicores,
        memory_bytes=reserved.memory_bytes,
        nodes=pool.use.nodes,
        since=now,
        base_millicores=round(cpu.base, 3) if isinstance(cpu, OverheadFit) else None,
        millicores_per_pod=round(cpu.per_pod, 3) if isinstance(cpu, OverheadFit) else None,
        base_bytes=round(memory.base) if isinstance(memory, OverheadFit) else None,
        bytes_per_pod=round(memory.per_pod) if isinstance(memory, OverheadFit) else None,
        days=round(pool.use.span_seconds / DAY_SECONDS, 2),
    )
