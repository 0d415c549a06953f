"""The metrics of the compactor.

The metrics of pools are calculated when they are scraped, which keeps that work out of the rounds.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Callable, Iterator, Mapping

from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from trimtab.cluster.pool import PoolIndex
from trimtab.compaction.drain.cluster_view import ClusterView
from trimtab.compaction.drain.pool_state import HistoryEntry
from trimtab.compaction.drain.start import ActiveDrains
from trimtab.compaction.order.order_object import FINAL_PHASES
from trimtab.compaction.pool_usage import PoolUsage, pool_usages
from trimtab.compaction.resize.types import DEFAULT_RESIZE_SETTINGS
from trimtab.compactor.error_guard import WORK_KINDS, ErrorGuard
from trimtab.compactor.loop import Loop
from trimtab.runtime.metrics import Bounded
from trimtab.workers.worker_metrics import WorkerMetrics

_BY: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "capacity": ("The capacity of the pool's ready nodes by resource, in cores, bytes or pods.", ("pool", "resource")),
    "allocatable": (
        "The allocatable amount of the pool's ready nodes by resource, in cores, bytes or pods.",
        ("pool", "resource"),
    ),
    "requested": (
        "The requests of the pods on the pool's ready nodes by resource, in cores, bytes or pods, including "
        "DaemonSets.",
        ("pool", "resource"),
    ),
    "full_nodes": (
        "The number of ready nodes that are at least 99 percent full, by the resource that is full.",
        ("pool", "resource"),
    ),
    "under_used_nodes": (
        "The number of ready nodes whose requests are at or below the pool's `underUsed` thresholds now, no "
        "matter for how long.",
        ("pool",),
    ),
    "cost_dollars_per_hour": (
        "The present cost of the pool's nodes in dollars an hour; absent if no price is known.",
        ("pool",),
    ),
    "unpriced_nodes": ("The number of nodes without a known price, which the cost does not include.", ("pool",)),
    "unreadable_objects": (
        "The number of nodes and pods with invalid amounts, which the sums do not include.",
        ("pool", "what"),
    ),
    "node_info": (
        "Always 1, for each node of the pool: joins the metrics of other exporters with pools, zones and machine "
        "types.",
        ("pool", "node", "zone", "instance_type"),
    ),
    "node_cost_dollars_per_hour": (
        "The present cost of a node in dollars an hour; absent if its price is not known.",
        ("pool", "node"),
    ),
    "node_performance_ratio": (
        "The speed of a node's core relative to a core of m5.large; absent if no measurement of the machine type "
        "is known.",
        ("pool", "node"),
    ),
}
_FULL = ("cpu", "memory", "pods", "volumes")


class PoolCollector(Collector):
    """Reports metrics of the pools in `view`, while this replica leads."""

    def __init__(self, registry: CollectorRegistry, leading: Callable[[], bool]) -> None:
        self._leading, self._pool = leading, Bounded()
        self.view: ClusterView | None = None
        registry.register(self)

    def describe(self) -> Iterator[GaugeMetricFamily]:
        """Yields the metrics without samples."""
        yield from _families().values()

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yields the metrics with the values of all pools."""
        view = self.view
        if view is None or not self._leading():
            return
        families = _families()
        for pool, usage in pool_usages(view).items():
            _add_samples(families, self._pool(pool), usage)
        yield from families.values()


def _families() -> dict[str, GaugeMetricFamily]:
    return {
        name: GaugeMetricFamily(f"trimtab_compactor_pool_{name}", says, labels=labels)
        for name, (says, labels) in _BY.items()
    }


def _add_samples(families: Mapping[str, GaugeMetricFamily], pool: str, usage: PoolUsage) -> None:
    for name in ("capacity", "allocatable", "requested"):
        for resource, amount in getattr(usage, name).items():
            families[name].add_metric([pool, resource], amount / 1000 if resource == "cpu" else amount)
    for resource in _FULL:
        families["full_nodes"].add_metric([pool, resource], usage.full[resource])
    families["under_used_nodes"].add_metric([pool], usage.under_used)
    if usage.unpriced < len(usage.nodes) or not usage.nodes:
        families["cost_dollars_per_hour"].add_metric([pool], usage.cost / 1_000_000)
    families["unpriced_nodes"].add_metric([pool], usage.unpriced)
    for what in ("nodes", "pods"):
        families["unreadable_objects"].add_metric([pool, what], usage.unread[what])
    for node, figures in usage.nodes.items():
        families["node_info"].add_metric([pool, node, figures.zone, figures.instance_type], 1)
        if figures.cost is not None:
            families["node_cost_dollars_per_hour"].add_metric([pool, node], figures.cost / 1_000_000)
        if figures.performance is not None:
            families["node_performance_ratio"].add_metric([pool, node], figures.performance)


EVICTION_DECISIONS = ("evicted", "refused")
END_DECISIONS = ("removed", "released", "abandoned")
RESIZE_DECISIONS = (
    "resized",
    "resize-verified",
    "resize-reverted",
    "resize-stopped",
    "resize-replaced",
    "resize-rejected",
)


class Metrics(WorkerMetrics):
    """The metrics: it counts decisions as they are recorded, and reads all other values from the loop after each
    round."""

    def __init__(self, registry: CollectorRegistry, leading: Callable[[], bool], age: Callable[[], float]) -> None:
        super().__init__(registry, "trimtab_compactor_", leading)
        self._pool, self._code = Bounded(), Bounded()
        self.nodes = self.gauge(
            "nodes",
            "The number of nodes by state: staying, planned, emptying (being drained), emptied (drained).",
            "pool",
            "state",
        )
        self.refusals = self.gauge(
            "refused_nodes", "The number of nodes that the last plan does not drain, by reason code.", "reason"
        )
        self.evictions = self.counter(
            "evictions", "The number of evictions by result: evicted, or refused by the API server.", "pool", "result"
        )
        self.drains = self.counter(
            "drains",
            "The number of drains that ended, by result: removed (the node was removed), released (uncordoned), "
            "abandoned.",
            "pool",
            "how",
            "reason",
        )
        self.twice = self.gauge(
            "repeatedly_moved_pods",
            "The number of evicted pods whose predecessor was also moved only a short time before.",
        )
        self.pending = self.counter(
            "pending_seconds", "The seconds that successors of evicted pods waited for a node, in total."
        )
        self.saved = self.gauge(
            "removed_nodes", "The number of nodes that were removed after a drain, since the pool was created.", "pool"
        )
        self.gained = self.gauge(
            "savings",
            "The savings of all nodes that were removed after a drain, in the unit that the label names.",
            "pool",
            "unit",
        )
        self.worth = self.gauge(
            "plan_savings",
            "The savings of the last plan if it is carried out, in the unit that the label names.",
            "unit",
        )
        self.plan_seconds = self.gauge(
            "plan_duration_seconds", "The duration of the computation of the last plan, in seconds."
        )
        self.scaler = self.gauge(
            "autoscaler_healthy",
            "1 if the cluster autoscaler is healthy, 0 if it is unhealthy or does not report, NaN if its health "
            "is not known.",
        )
        self.closed = self.gauge(
            "pool_closed", "1 while the pool is closed after failures: no drain starts in it.", "pool"
        )
        self.forecast_room = self.gauge(
            "forecast_room",
            "The free capacity that the pool's pods will request within `keep.payback`, by the pool's history, in "
            "cores or bytes. Absent without a forecast.",
            "pool",
            "resource",
        )
        self.forecast_kept = self.gauge(
            "forecast_sufficient_ratio",
            "The share of the forecasts so far that were at least what the pods then requested.",
            "pool",
        )
        self.paused = self.gauge("paused", "1 while the compactor is paused.")
        self.unread = self.counter(
            "unreadable_states",
            "The number of pool states that could not be read, and of which the compactor kept a copy.",
            "pool",
        )
        self.others = self.gauge(
            "foreign_nodes",
            "The number of nodes with the annotation of a compactor of another namespace. This compactor does "
            "not change such nodes.",
        )
        self.doubtful = self.gauge(
            "unauthentic_nodes",
            "The number of nodes with a drain annotation that this compactor did not sign. This compactor does "
            "not change such nodes.",
        )
        self.resizes = self.counter(
            "resizes",
            "The number of resizes of running pods by result: resized, verified, reverted, stopped (no room "
            "for the former requests), replaced, rejected.",
            "pool",
            "result",
            "reason",
        )
        self.open_resizes = self.gauge("open_resizes", "The number of resizes in progress, by phase.", "pool", "phase")
        self.resize_freed = self.gauge(
            "resize_freed",
            "The requests that verified resizes freed since the pool was created, in cores or bytes.",
            "pool",
            "resource",
        )
        self.unresized = self.gauge(
            "unresized_pods",
            "The number of pods that policies want to resize but that were not resized, by reason code.",
            "pool",
            "reason",
        )
        self.uncovered = self.gauge(
            "uncovered_resizes",
            "The number of pods that policies want to resize, on nodes that are in no pool or in several pools.",
        )
        self.backing_off = self.gauge(
            "resize_backoffs", "The number of workloads that are not resized for a while after a failed resize.", "pool"
        )
        self.orders = self.gauge(
            "drain_orders",
            "The number of DrainOrders that wait, or that the compactor has accepted, by phase.",
            "phase",
        )
        self.oldest_order = self.gauge(
            "oldest_drain_order_seconds",
            "The seconds since the oldest DrainOrder was created that has not ended; 0 if there is none.",
        )
        self.keys = self.gauge(
            "signing_keys", "1 once the leader has read its signing keys, 0 while it waits for them."
        )
        self.faults = self.counter(
            "errors", "The number of errors of the compactor by operation; the log contains each of them.", "kind"
        )
        for kind in WORK_KINDS:
            self.faults.labels(kind)
        self._faults: Tally[str] = Tally()
        self.pool_collector = PoolCollector(registry, leading)
        self.add_leadership()
        self.gauge(
            "data_age_seconds",
            "The age in seconds of the compactor's view of the cluster; NaN while this replica does not lead.",
        ).set_function(age)

    def count_decision(self, record: HistoryEntry) -> None:
        """Counts a decision."""
        pool = self._pool(record.pool)
        if record.what in EVICTION_DECISIONS:
            self.evictions.labels(pool, record.what).inc()
        elif record.what in RESIZE_DECISIONS:
            result = record.what.removeprefix("resize-")
            self.resizes.labels(pool, result, self._code(record.code)).inc()
        elif record.what == "unreadable":
            self.unread.labels(pool).inc()
        elif record.what in END_DECISIONS:
            self.drains.labels(pool, record.what, self._code(record.code)).inc()

    def update_errors(self, faults: ErrorGuard) -> None:
        """Adds the unexpected errors since the last call to the metric."""
        for kind, count in faults.kinds.items():
            self.faults.labels(kind).inc(max(0, count - self._faults[kind]))
        self._faults = Tally(faults.kinds)

    def update_from(self, loop: Loop, seconds: float) -> None:
        """Updates the metrics after a round; `seconds`: its duration."""
        view = loop.view
        if view is None:
            return
        self.pool_collector.view = view
        self._update_nodes(loop, view)
        self.twice.set(loop.drainer.moved_twice)
        self.others.set(len(view.annotations.others))
        self.doubtful.set(len(view.annotations.doubtful))
        self.plan_seconds.set(loop.planner.plan_seconds)
        self.paused.set(bool(view.paused))
        scaler = view.autoscaler
        self.scaler.set(float("nan") if scaler is None else scaler.healthy and not scaler.is_silent(view.now))
        moved = {pod for memory in loop.pool_states.states.values() for pod in memory.moved}
        self.pending.inc(seconds * sum(not pod.node and pod.key in moved for pod in view.inventory.pods))
        self._update_resizes(loop, view)
        orders = loop.orders.orders_in_progress if loop.orders is not None else {}
        self.orders.clear()
        for phase, count in Tally(phase for phase, _ in orders.values()).items():
            self.orders.labels(phase).set(count)
        open_since = [created for phase, created in orders.values() if phase not in FINAL_PHASES]
        self.oldest_order.set(max(0, view.now - min(open_since)) if open_since else 0)
        for pool in view.pools:
            memory = loop.pool_states.state_of(pool.name)
            self.saved.labels(self._pool(pool.name)).set(memory.saved)
            for unit, amount in memory.worth.items():
                self.gained.labels(self._pool(pool.name), unit).set(amount)
            self.closed.labels(self._pool(pool.name)).set(memory.closed is not None)
            if memory.demand.judged:
                self.forecast_kept.labels(self._pool(pool.name)).set(memory.demand.kept / memory.demand.judged)
        self.forecast_room.clear()
        for name, room in loop.planner.needed_room.items():
            self.forecast_room.labels(self._pool(name), "cpu").set(room.millicores / 1000)
            self.forecast_room.labels(self._pool(name), "memory").set(room.amount_of("memory"))

    def _update_resizes(self, loop: Loop, view: ClusterView) -> None:
        self.open_resizes.clear()
        self.unresized.clear()
        uncovered = 0
        for pool in view.pools:
            name, records = self._pool(pool.name), loop.pool_states.state_of(pool.name).resizes
            for phase, count in Tally(record.phase.value for record in records.open.values()).items():
                self.open_resizes.labels(name, phase).set(count)
            for resource, amount in records.freed.items():
                self.resize_freed.labels(name, resource).set(amount / 1000 if resource == "cpu" else amount)
            for code, count in records.refusals.items():
                self.unresized.labels(name, self._code(code)).set(count)
            settings = loop.resizer.settings_of(pool) if loop.resizer is not None else DEFAULT_RESIZE_SETTINGS
            self.backing_off.labels(name).set(
                sum(view.now < failure.retry_after(settings) for failure in records.failures.values())
            )
            uncovered += records.uncovered_count
        self.uncovered.set(uncovered)

    def _update_nodes(self, loop: Loop, view: ClusterView) -> None:
        active, plan = loop.drainer.active_drains(view), loop.planner.last_plan
        going = {step.node for step in plan.all_steps} if plan else set()
        states: Tally[tuple[str, str]] = Tally()
        index = PoolIndex(view.pools)
        for node in view.inventory.nodes:
            pool = index.first_pool_of(node)
            if pool is not None:
                states[self._pool(pool.name), _node_state(node.name, active, going)] += 1
        self.nodes.clear()
        for labels, count in states.items():
            self.nodes.labels(*labels).set(count)
        self.refusals.clear()
        if plan is not None:
            self.worth.clear()
            self.worth.labels(plan.unit).set(plan.total_savings)
            for code, count in Tally(reason.code.name for reason in plan.refusals.values()).items():
                self.refusals.labels(code).set(count)


def _node_state(node: str, active: ActiveDrains, going: set[str]) -> str:
    if node in active.emptying:
        return "emptying"
    if node in active.emptied:
        return "emptied"
    return "planned" if node in going else "staying"
