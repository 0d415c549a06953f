"""Adds usage to the live history: samples of current usage, or ranges from Prometheus.

Samples are taken in a thread of their own, because a moment that is missed is lost. Publishing takes seconds if there
are many containers, and as long as the API server needs. So the thread does not wait for the loop: its samples are put
into a queue, and the loop adds them to the history in its next round.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from trimtab.histogram.live_history import HistoryImport, LiveHistory
from trimtab.histogram.pod_sums import WholePodSamples
from trimtab.histogram.time_buckets import DAY
from trimtab.usage.errors import GarbledSource, RefusedSource, UsageFault
from trimtab.usage.owners import OwnerIndex
from trimtab.usage.prometheus import Prometheus
from trimtab.usage.series import MAX_SKEW_SECONDS, Series, container_key

SCRAPE_LAG_SECONDS = 120
"""The number of seconds after which a scrape can be queried, because remote write takes a while."""
Alive = Callable[[], bool]
"""A function that returns whether the replica may continue."""


class UsageSource(Protocol):
    """A source from which usage is collected."""

    def collect_usage(self, history: LiveHistory, owners: OwnerIndex, now: int, alive: Alive) -> int:
        """Adds the usage since the last call to the history, and returns the number of series. Raises UsageFault or
        KubeFault: everything added until then is complete, and the next call adds the rest."""


@dataclass(slots=True)
class InstantCollector:
    """Collects current usage from the metrics API or from kubelets, which have no history."""

    take_readings: Callable[[], Iterable[Iterable[Series]]]
    """Returns every reading since the last call, each with one sample for each container and resource."""
    collect_whole_pods: Callable[[], WholePodSamples] | None = None
    """Returns a collection for the samples of whole pods, or None if their usage is not recorded."""

    def collect_usage(self, history: LiveHistory, owners: OwnerIndex, now: int, alive: Alive) -> int:
        count = 0
        whole_pods = self.collect_whole_pods() if self.collect_whole_pods is not None else WholePodSamples({})
        try:
            for reading in self.take_readings():
                for series in reading:
                    second, value = series.times[0], series.values[0]
                    if second <= now + MAX_SKEW_SECONDS:
                        key = container_key(series, owners)
                        count += history.add_sample(key, series.pod, series.resource, second, value)
                        whole_pods.add_samples(key, series.pod, series.resource, series.times, series.values)
                for together in whole_pods.take_last_averages():
                    history.add_sample(
                        together.key, together.pod, together.resource, together.times[0], together.values[0]
                    )
        finally:
            history.close_intervals(now)
        return count


@dataclass(slots=True)
class RangeCollector:
    """Collects from Prometheus everything since the last reading, namespace by namespace; the first time, the whole
    window."""

    prometheus: Prometheus
    collect_whole_pods: Callable[[], WholePodSamples] | None = None
    """Returns a collection for the samples of whole pods, or None if their usage is not recorded."""
    _begin: int | None = None
    """The first second of a reading that was interrupted, or None."""
    _failing: set[str] = field(default_factory=set)
    """The namespaces whose last reading failed. They are read after all others, so that they hold back only
    themselves."""

    def collect_usage(self, history: LiveHistory, owners: OwnerIndex, now: int, alive: Alive) -> int:
        step = self.prometheus.query_plan.step_seconds
        # On the grid of steps, so that consecutive passes neither repeat nor skip a point.
        end, oldest = (now - SCRAPE_LAG_SECONDS) // step * step, now - history.days * DAY
        imported_until = min(history.imported_until.values(), default=oldest) if history.is_complete else oldest
        pass_start = imported_until if self._begin is None else self._begin
        # An interrupted pass continues from its own start: the namespaces that it finished are ahead of the others.
        begin = self._begin = max(oldest, pass_start)
        if begin >= end:
            return 0
        self.prometheus.check_one_cluster(begin, end)
        # The owners of pods: those known in the cluster and, for other pods, those in Prometheus. Most pods of the
        # last two weeks no longer exist in the cluster.
        metric_owners = self.prometheus.read_owners(begin, end)
        all_owners, count = replace(owners, reported=metric_owners), 0
        namespaces = self.prometheus.list_namespaces(begin, end)
        # An empty answer after earlier usage would mark everything as imported, and the gap would never be filled.
        if not namespaces and history.imported_until:
            raise GarbledSource(
                "Prometheus has no series of containers: it lost its data, or has not collected any yet"
            )
        refusal: UsageFault | None = None
        for namespace in sorted(namespaces, key=lambda namespace: (namespace in self._failing, namespace)):
            start = max(oldest, history.imported_until.get(namespace, oldest))
            if not alive() or start >= end:
                continue
            self._failing.add(namespace)
            try:
                count += self._import_namespace(history, all_owners, namespace, start, end)
            except (RefusedSource, GarbledSource) as fault:
                # What is wrong with the queries of one namespace says nothing about those of the others.
                refusal = refusal or fault
            else:
                self._failing.discard(namespace)
        if refusal is not None:
            raise refusal
        if alive():
            self._mark_imported(history, end)
            self._begin, history.is_complete = None, True
        history.drop_stale(now)
        return count

    @staticmethod
    def _mark_imported(history: LiveHistory, end: int) -> None:
        """Records that every namespace was imported up to `end`, including those without any series."""
        for namespace in history.imported_until:
            history.close_namespace_intervals(namespace, end)
            history.imported_until[namespace] = end

    def _import_namespace(self, history: LiveHistory, owners: OwnerIndex, namespace: str, start: int, end: int) -> int:
        history_import, count = HistoryImport(history), 0
        whole_pods = self.collect_whole_pods() if self.collect_whole_pods is not None else WholePodSamples({})
        for series in self.prometheus.read_series(self.prometheus.plan_queries(start, end, (namespace,))):
            key = container_key(series, owners)
            history_import.add_series(key, series.pod, series.resource, series.times, series.values)
            whole_pods.add_samples(key, series.pod, series.resource, series.times, series.values)
            history.dropped_values += series.dropped_values
            count += 1
        for together in whole_pods.take_averages():
            history_import.add_series(together.key, together.pod, together.resource, together.times, together.values)
        history_import.commit(namespace, end)
        return count


MAX_QUEUED_READINGS = 60
"""The maximum number of readings in the queue: enough for an hour with one reading a minute. If there are more, the
oldest is dropped and counted as missed."""

Reading = Sequence[Series] | Exception
"""The series that were read, or the error that prevented the reading."""


@dataclass(slots=True)
class Sampler:
    """Takes a reading at a fixed interval in a thread of its own, from `__enter__` to `__exit__`."""

    read_usage: Callable[[], Iterable[Series]]
    interval_seconds: float
    """The number of seconds from the start of one reading to the start of the next."""
    elapsed: Callable[[], float]
    on_missed: Callable[[], object] = lambda: None
    """Called for each reading that was dropped unused, or that could not start because the previous one took too
    long."""
    _queue: deque[Reading] = field(default_factory=deque)
    _available: threading.Event = field(default_factory=threading.Event)
    _done: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def __enter__(self) -> Sampler:
        self._thread = threading.Thread(target=self._run, name="sampler", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Ends the thread. If a reading is in progress, it runs to its end, and its result is dropped."""
        self._done.set()

    def join_thread(self) -> None:
        """Waits until no reading is in progress; call it after `__exit__`."""
        if self._thread is not None:
            self._thread.join()

    def wait_for_reading(self, alive: Callable[[], bool]) -> None:
        """Waits until there is a reading, or until the replica may not continue."""
        while alive() and not self._available.wait(0.5):
            pass

    def take_readings(self) -> Iterator[Sequence[Series]]:
        """Yields the readings in the queue, the oldest first. If the last one failed, its error is raised after all
        readings before it."""
        self._available.clear()
        fault: Exception | None = None
        while self._queue:
            reading = self._queue.popleft()
            # A later reading shows that the source works again, so only the last error counts.
            if isinstance(reading, Exception):
                fault = reading
            else:
                fault = None
                yield reading
        if fault is not None:
            raise fault

    def _run(self) -> None:
        while not self._done.is_set():
            started = self.elapsed()
            self._enqueue(self._take_reading())
            missed_intervals = (self.elapsed() - started) // self.interval_seconds
            for _ in range(int(missed_intervals)):
                self.on_missed()
            self._done.wait(max(0.0, started + (missed_intervals + 1) * self.interval_seconds - self.elapsed()))

    def _take_reading(self) -> Reading:
        try:
            return list(self.read_usage())
        except Exception as fault:  # noqa: BLE001  raised in the round, which reports it
            return fault

    def _enqueue(self, reading: Reading) -> None:
        if len(self._queue) >= MAX_QUEUED_READINGS:
            self._queue.popleft()
            self.on_missed()
        self._queue.append(reading)
        self._available.set()
