"""The compactor in numbers."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge

from trimtab.compaction.drain.begin import Standing
from trimtab.compaction.drain.memory import Record
from trimtab.compaction.drain.view import View
from trimtab.compactor.faults import KINDS, Faults
from trimtab.compactor.figures import Figures
from trimtab.compactor.loop import Loop
from trimtab.runtime.metrics import Bounded

EVICTIONS = ("evicted", "refused")
ENDS = ("taken", "released", "dropped")


class Metrics:
    """Counts records as a sink; reads the rest off the loop after each round."""

    def __init__(self, registry: CollectorRegistry, leading: Callable[[], bool], age: Callable[[], float]) -> None:
        self.registry = registry
        self._pool, self._code = Bounded(), Bounded()
        prefix = "trimtab_compactor_"

        def gauge(name: str, says: str, *labels: str) -> Gauge:
            return Gauge(f"{prefix}{name}", says, labels, registry=registry)

        def counter(name: str, says: str, *labels: str) -> Counter:
            return Counter(f"{prefix}{name}", says, labels, registry=registry)

        self.nodes = gauge("nodes", "Nodes by what becomes of them: staying, planned, emptying, emptied.",
                           "pool", "state")  # fmt: skip
        self.refusals = gauge("refusals", "Nodes that stay by the last plan, by the reason's code.", "reason")
        self.evictions = counter("evictions", "Evictions asked for: evicted, or refused by the API server.",
                                 "pool", "result")  # fmt: skip
        self.drains = counter("drains", "Drains that ended: the node was taken, released (given back) or dropped.",
                              "pool", "how", "reason")  # fmt: skip
        self.twice = gauge("moved_twice", "Pods whose predecessor had been moved only a short time before.")
        self.pending = counter("pending_seconds", "Seconds that successors of evicted pods waited for a node, summed.")
        self.saved = gauge("saved_nodes", "Nodes that were taken after we emptied them, ever.", "pool")
        self.gained = gauge("saved", "What the nodes taken after we emptied them save together, in its unit.",
                            "pool", "unit")  # fmt: skip
        self.worth = gauge(
            "plan_saves", "What carrying out the last plan would save, in the unit of its label.", "unit"
        )
        self.plan_seconds = gauge("plan_seconds", "How long the last plan took.")
        self.scaler = gauge("autoscaler_healthy", "1 healthy, 0 ill or silent, NaN: nothing is known of it.")
        self.closed = gauge("pool_closed", "1 while failures keep the pool closed: nothing begins in it.", "pool")
        self.paused = gauge("paused", "1 while the switch stops everything.")
        self.unread = counter("unread_states", "States of pools that could not be read and were put aside.", "pool")
        self.others = gauge("foreign_nodes", "Nodes with the note of a compactor of another namespace: left alone.")
        self.faults = counter("faults", "Errors of ours, by what was being done; each is in the log.", "kind")
        for kind in KINDS:
            self.faults.labels(kind)
        self._faults: Tally[str] = Tally()
        self.figures = Figures(registry, leading)
        Gauge(f"{prefix}leading", "1 in the replica that leads, 0 in the others.", registry=registry).set_function(
            leading
        )
        Gauge(
            f"{prefix}data_age_seconds",
            "Seconds since what the watch holds was last known to be right; NaN while it does not lead.",
            registry=registry,
        ).set_function(age)

    def count(self, record: Record) -> None:
        """A sink of the books."""
        pool = self._pool(record.pool)
        if record.what in EVICTIONS:
            self.evictions.labels(pool, record.what).inc()
        elif record.what == "unread":
            self.unread.labels(pool).inc()
        elif record.what in ENDS:
            self.drains.labels(pool, record.what, self._code(record.code)).inc()

    def faulty(self, faults: Faults) -> None:
        """What went wrong since we were told last, of this leadership's loop."""
        for kind, count in faults.kinds.items():
            self.faults.labels(kind).inc(max(0, count - self._faults[kind]))
        self._faults = Tally(faults.kinds)

    def read(self, loop: Loop, seconds: float) -> None:
        """After a round that lasted so long."""
        view = loop.view
        if view is None:
            return
        self.figures.view = view
        self._nodes(loop, view)
        self.twice.set(loop.drains.twice)
        self.others.set(len(loop.drains.of_others(view)))
        self.plan_seconds.set(loop.planning.seconds)
        self.paused.set(bool(view.paused))
        scaler = view.autoscaler
        self.scaler.set(float("nan") if scaler is None else scaler.healthy and not scaler.silent(view.at))
        self.pending.inc(seconds * self._waiting(loop, view))
        for pool in view.pools:
            memory = loop.books.of(pool.name)
            self.saved.labels(self._pool(pool.name)).set(memory.saved)
            for unit, amount in memory.worth.items():
                self.gained.labels(self._pool(pool.name), unit).set(amount)
            self.closed.labels(self._pool(pool.name)).set(memory.closed is not None)

    def _waiting(self, loop: Loop, view: View) -> int:
        moved = {pod for memory in loop.books.memories.values() for pod in memory.moved}
        return sum(not pod.node and pod.key in moved for pod in view.inventory.pods)

    def _nodes(self, loop: Loop, view: View) -> None:
        standing, plan = loop.drains.standing(view), loop.planning.plan
        going = {step.node for step in plan.steps} if plan else set()
        states: Tally[tuple[str, str]] = Tally()
        for node in view.inventory.nodes:
            pool = next((pool for pool in view.pools if pool.has(node)), None)
            if pool is not None:
                states[self._pool(pool.name), _state(node.name, standing, going)] += 1
        self.nodes.clear()
        for labels, count in states.items():
            self.nodes.labels(*labels).set(count)
        self.refusals.clear()
        if plan is not None:
            self.worth.clear()
            self.worth.labels(plan.unit).set(plan.saves)
            for code, count in Tally(reason.code.name for reason in plan.refusals.values()).items():
                self.refusals.labels(code).set(count)


def _state(node: str, standing: Standing, going: set[str]) -> str:
    if node in standing.emptying:
        return "emptying"
    if node in standing.emptied:
        return "emptied"
    return "planned" if node in going else "staying"
