"""Runs the recommender's rounds: it collects usage, publishes recommendations, and stores the history."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from trimtab.cluster.recommendation import ShardOverflow, Workloads
from trimtab.cluster.whole_pods import is_whole_pod
from trimtab.histogram.batch_history import BatchHistory, ContainerKey
from trimtab.histogram.live_history import LiveHistory
from trimtab.kube.errors import KubeFault
from trimtab.recommender.checkpointer import Checkpointer
from trimtab.recommender.collector import UsageSource
from trimtab.recommender.daily_history import DailyHistoryWriter
from trimtab.recommender.expander_demotion import GroupDemoter
from trimtab.recommender.metrics import Metrics
from trimtab.recommender.parameter_writer import ParameterWriter
from trimtab.recommender.pod_watcher import PodWatchState
from trimtab.recommender.publisher import ContainerRecommendations, Publisher, compute_recommendations
from trimtab.recommender.reservations import ReservationMeasurer
from trimtab.recommender.sharded_configmaps import ShardedStore, StoreUnavailable
from trimtab.recommender.vpa_status_writer import VpaStatusWriter
from trimtab.runtime.log import Logger
from trimtab.usage.errors import UsageFault


@dataclass(slots=True, kw_only=True)
class Loop:
    """Runs the rounds. Not thread-safe. A round raises nothing: an error is logged, and the step is repeated in the
    next round."""

    history: LiveHistory
    source: UsageSource
    pod_state: PodWatchState
    checkpointer: Checkpointer
    publisher: Publisher
    metrics: Metrics
    log: Logger
    publish_interval_seconds: float
    now: Callable[[], int]
    """Returns the time in seconds since 1970."""
    elapsed: Callable[[], float]
    parameters: ParameterWriter | None = None
    """The writer of parameters for the namespaces that opted in, or None if there are no such namespaces."""
    vpa_status: VpaStatusWriter | None = None
    """The writer of the status of VPAs that name Trimtab, or None if it is not to be written."""
    measurer: ReservationMeasurer | None = None
    """The object that measures reservations, or None if they are not to be measured."""
    demoter: GroupDemoter | None = None
    daily_history: DailyHistoryWriter | None = None
    """The writer of the daily history in addition to the checkpoints, or None if that is not wanted."""
    alive: Callable[[], bool] = lambda: True
    """Returns whether the replica may continue, that is, whether it still leads."""
    recommendations: ContainerRecommendations = field(default_factory=lambda: ContainerRecommendations({}, {}))
    """The recommendations computed in the latest round."""
    fault_count: int = 0
    _last_published: float = float("-inf")
    _collected: bool = False
    """Whether usage has been read completely at least once."""

    def restore_state(self) -> None:
        """Restores the stored history, and reads the published recommendations. Raises StoreUnavailable."""
        for what, unreadable in (
            ("usage", self.checkpointer.restore_history()),
            ("recommendations", self.publisher.read_published()),
        ):
            self.metrics.unreadable.labels(what).set(len(unreadable))
            self.publisher.history_is_incomplete |= bool(unreadable) and what == "usage"
            for text in unreadable:
                self.log.warning("shard.unreadable", what=what, where=text.where, problem=text.problem)

    def _import(self, batch: BatchHistory) -> None:
        """Imports the history in VPAs' checkpoints after the first reading, but only for containers without cpu usage
        of their own."""
        containers_with_cpu = {container for container, resource in self.history.windows if resource == "cpu"}
        for container, resource in list(batch.dense_windows):
            if container in containers_with_cpu:
                del batch.dense_windows[container, resource]
        self.history.add_batch(batch)
        if batch.dense_windows:
            self.log.info("vpa-checkpoints.imported", containers=len(batch.dense_windows))

    def run_round(self, import_batch: Callable[[], BatchHistory] | None = None, *, everything: bool = False) -> None:
        """Runs one round. `import_batch` returns a history from another source, for the first round. `everything` means
        that there is no further round, so the budgets do not apply."""
        self._guarded("collect", self._collect)
        if import_batch is not None:
            self._guarded("import", lambda: self._import(import_batch()))
        # Before the first complete read, recommendations would come from a part of the history.
        if self._collected and self.elapsed() - self._last_published >= self.publish_interval_seconds:
            self._guarded("publish", lambda: self._publish(everything=everything))
        # In every round: what a LimitRange or a quota says counts from the next one.
        if self._collected and self.parameters is not None:
            self._guarded("parameters", self._write_parameters)
        if (vpa_status := self.vpa_status) is not None:
            if self._collected:
                self._guarded("vpa-status", lambda: self._write_vpa_status(vpa_status))
            self._guarded("vpa-status", lambda: vpa_status.report_age(self.now()))
        self._guarded("checkpoint", lambda: self._store(everything=False))
        if self._collected and (daily := self.daily_history) is not None:
            self._guarded("daily-history", lambda: self._write_days(daily))
        if (measurer := self.measurer) is not None:
            self._guarded("reservations", lambda: measurer.measure_if_due(self.now()))
        if (demoter := self.demoter) is not None:
            self._guarded("demotions", lambda: demoter.update_map(self.now()))

    def store_all(self) -> bool:
        """Stores everything before the process ends. Returns whether that was possible."""
        succeeded = self._guarded("checkpoint", lambda: self._store(everything=True))
        if (measurer := self.measurer) is not None:
            succeeded &= self._guarded("reservations", lambda: measurer.store_histories(self.now()))
        return succeeded

    def _collect(self) -> None:
        for (namespace, pod), kills in self.pod_state.take_new_kills().items():
            owner = self.pod_state.topmost_owner(namespace, pod)
            for container, kill in kills if owner is not None else ():
                assert owner is not None
                self.history.add_oom_kill(ContainerKey(namespace, owner.kind, owner.name, container), pod, kill)
        self.metrics.samples.inc(
            self.source.collect_usage(self.history, self.pod_state.owner_index(), self.now(), self.alive)
        )
        self.metrics.dropped_samples.inc(self.history.dropped_values)
        self.history.dropped_values = 0
        self._collected = True
        self.metrics.collected.set(self.now())
        self.metrics.containers.set(sum(not is_whole_pod(one.name) for one in self.history.list_containers()))

    def _publish(self, *, everything: bool) -> None:
        now = self.now()
        self.recommendations = compute_recommendations(self.history, now)
        self.metrics.set_recommendations(self.recommendations)
        store = self.publisher.shard_store
        self._report_writes(
            "recommendations", self.publisher.write_changes(self.recommendations, now, everything=everything), store
        )
        self.metrics.stored_bytes.labels("recommendations").set(store.stored_bytes)
        self._last_published = self.elapsed()

    def _write_parameters(self) -> None:
        assert self.parameters is not None
        all_workloads: Workloads = {}
        for workloads in self.publisher.published.values():
            all_workloads |= workloads
        written = self.parameters.write_changes(all_workloads, self.now())
        self.metrics.writes.labels("parameters").inc(written)
        self.metrics.faults.labels("parameters").inc(len(self.parameters.refused))
        if written:
            self.log.info("parameters.written", namespaces=written)

    def _write_vpa_status(self, vpa_status: VpaStatusWriter) -> None:
        written = vpa_status.write_changes(self.now())
        self.metrics.writes.labels("vpa-status").inc(written)
        self.metrics.faults.labels("vpa-status").inc(len(vpa_status.refused))
        if written:
            self.log.info("vpa-status.written", vpas=written)

    def _write_days(self, daily: DailyHistoryWriter) -> None:
        daily.write_due(self.history, self.now())

    def _store(self, *, everything: bool) -> None:
        checkpoints = self.checkpointer
        try:
            self._report_writes("usage", checkpoints.write_due(everything=everything), checkpoints.shard_store)
        finally:
            self.metrics.stored_bytes.labels("usage").set(checkpoints.stored_bytes)
            self.metrics.unsaved_seconds.set(checkpoints.unsaved_seconds)

    def _report_writes(self, what: str, written_shards: int, store: ShardedStore) -> None:
        self.metrics.writes.labels(what).inc(written_shards)
        self.metrics.shards.labels(what).set(len(store.stored_sizes))
        if written_shards:
            self.log.info(f"{what}.written", shards=written_shards, of=len(store.stored_sizes))

    def _guarded(self, what: str, step: Callable[[], None]) -> bool:
        """Runs a step and logs its error, if any. Returns whether it succeeded. Errors of other systems are expected,
        and even a bug must not stop the collection of usage."""
        try:
            step()
            return True
        except (UsageFault, KubeFault, StoreUnavailable, ShardOverflow) as error:
            self.log.warning(f"{what}.failed", error=str(error))
        except Exception as error:
            self.log.error(f"{what}.failed", error=f"{type(error).__name__}: {error}", exc_info=True)
        self.metrics.faults.labels(what).inc()
        self.fault_count += 1
        return False
