"""The watchdog in numbers. Every label is a word of ours or bounded.

What do running pods cost an hour, and which part of it is their sandbox's?

By requests, at what a core and a GiB cost on the nodes that take pods and tell their price. Where none tells it nothing
is said of money: never a wrong zero.
"""

from __future__ import annotations

from collections import Counter as Count
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from prometheus_client import CollectorRegistry, Counter, Gauge

from trimtab.admission.audit.drift import AuditState
from trimtab.admission.audit.findings import AuditFinding, Findings
from trimtab.admission.audit.harm import Counts
from trimtab.admission.audit.stale_overhead import class_overheads, overhead_of
from trimtab.cluster.api.meta import get
from trimtab.cluster.api.pod import PodSpec
from trimtab.cluster.node import HOSTNAME
from trimtab.cluster.quantity import NotAQuantity
from trimtab.cluster.reason import NotYet
from trimtab.cluster.resources import QoS, qos, requests_without_overhead
from trimtab.machines.prices import labelled_price
from trimtab.policy.cluster_facts import ClusterFacts
from trimtab.runtime.metrics import Bounded
from trimtab.sizing.cost import ResourcePrice, of_nodes

MICRO_DOLLARS = 1_000_000


@dataclass(frozen=True, slots=True)
class Cost:
    """Dollars an hour."""

    workload: float = 0.0
    """Of what containers ask for."""
    sandbox: float = 0.0
    """Of pod overhead."""

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.workload + other.workload, self.sandbox + other.sandbox)


def price_of(facts: ClusterFacts) -> ResourcePrice | None:
    """What a core and a GiB cost, by the labels of the nodes; None where none tells its price."""
    shapes = (one.shape for (label, _), found in facts.machines.items() if label == HOSTNAME for one in found)
    prices = ((shape, labelled_price(shape.labels, {})) for shape in shapes)
    return of_nodes(
        (price.amount, shape.allocatable.get("cpu", 0) / 1000, shape.allocatable.get("memory", 0) / (1 << 30))
        for shape, price in prices
        if price is not None and shape.allocatable.get("cpu")
    )


def hourly(price: ResourcePrice, millicores: int, memory_bytes: int) -> float:
    """Dollars an hour."""
    return (millicores / 1000 * price.core + memory_bytes / (1 << 30) * price.gib) / MICRO_DOLLARS


def cost_of(price: ResourcePrice, spec: PodSpec) -> Cost:
    """Of one pod; what cannot be read costs nothing."""
    try:
        asked = requests_without_overhead(spec)
    except NotAQuantity:
        asked = {}
    return Cost(
        hourly(price, asked.get("cpu", 0), asked.get("memory", 0)), hourly(price, *overhead_of(get(spec.overhead, {})))
    )


class Metrics:
    """Set after each look."""

    def __init__(self, registry: CollectorRegistry, leading: Callable[[], bool], age: Callable[[], float]) -> None:
        self.registry = registry
        self._policy, self._reason, self._class, self._namespace = Bounded(), Bounded(), Bounded(), Bounded(1000)

        def gauge(name: str, says: str, *labels: str) -> Gauge:
            return Gauge(f"trimtab_{name}", says, labels, registry=registry)

        self.unpatched = gauge(
            "unpatched_pods", "Running pods that lack a change of a policy, by reason.", "policy", "reason"
        )
        self.would = gauge(
            "would_change_pods", "Running pods that a policy in mode warn or audit would change.", "policy"
        )
        self.skipped = gauge(
            "skipped_pods", "Running pods that a policy matches and leaves out, by reason.", "policy", "reason"
        )
        self.overhead = gauge(
            "wrong_overhead_pods", "Running pods whose overhead is not their RuntimeClass's, by reason.", "reason"
        )
        self.class_pods = gauge("runtime_class_pods", "Running pods of each RuntimeClass.", "runtime_class")
        self.class_cores = gauge(
            "overhead_cpu_cores",
            "Cores that the scheduler reserves for pod overhead, by RuntimeClass.",
            "runtime_class",
        )
        self.class_bytes = gauge(
            "overhead_memory_bytes", "Memory that the scheduler reserves for pod overhead.", "runtime_class"
        )
        self.class_nodes = gauge(
            "runtime_class_node_types", "Types of nodes that a RuntimeClass's pods may run on; 0: they wait.",
            "runtime_class",
        )  # fmt: skip
        self.class_without_nodes = gauge(
            "runtime_class_without_nodes",
            "1 where no node takes a RuntimeClass's pods by what the class says: no-label, cordoned, tainted (each pod"
            " must tolerate by itself), may-come (an autoscaler may make one).",
            "runtime_class", "reason",
        )  # fmt: skip
        self.class_dollars = gauge(
            "overhead_dollars_per_hour",
            "The cost of pod overhead by requests; absent while no price of a node is known.",
            "runtime_class",
        )  # fmt: skip
        self.namespace_dollars = gauge(
            "namespace_dollars_per_hour",
            "What the running pods of a namespace cost by requests: part workload is their containers', sandbox their"
            " overhead's; absent while no node tells its price.", "namespace", "part",
        )  # fmt: skip
        self.evictions = Counter(
            "trimtab_runtime_class_evictions", "Pods that kubelets evicted since the watchdog started.",
            ["runtime_class"], registry=registry,
        )  # fmt: skip
        self.refused = gauge("would_deny_pods", "Running pods that would be denied if they were created now.")
        self.setting = gauge(
            "overhead_setting_wrong", "1 while pods show that the overhead setting is wrong; NaN: not known yet."
        )
        self.pods = gauge(
            "policy_running_pods",
            "Running pods of each policy by state: matched, changed, overruled.",
            "policy",
            "state",
        )
        self.harm = gauge("harm_pods", "Pods with a policy's change (after) and without (before), and failed ones.",
                          "policy", "trouble", "side", "count")  # fmt: skip
        self.qos = gauge("qos_pods", "Running pods by their quality of service class.", "qos")
        self.running = gauge("running_pods", "Running pods in the watchdog's watch.")
        self.alike = gauge("running_pod_groups", "Groups of equal running pods; each group is decided once.")
        self.behind = gauge("watchdog_undecided_pod_groups", "Groups of pods that the last check did not decide.")
        self.seconds = gauge("watchdog_check_duration_seconds", "The duration of the last check.")
        self.lost = gauge("watchdog_lost_events", "Events that could not be written since the watchdog started.")
        self.brakes = Counter("trimtab_harm_brakes", "Policies found harmful: put-to-warn, told, failed.",
                              ["policy", "trouble", "done"], registry=registry)  # fmt: skip
        self.faults = Counter("trimtab_watchdog_errors", "Checks that failed, by kind.", ["kind"], registry=registry)
        gauge("watchdog_leading", "1 in the replica that leads, 0 in the others.").set_function(leading)
        gauge(
            "watchdog_data_age_seconds", "Seconds since what the watches hold was last known to be right."
        ).set_function(age)

    def look(self, seen: AuditState, found: Findings, facts: ClusterFacts, seconds: float) -> None:
        """One look and how long it took."""
        self._by_class(seen, facts)
        self._money(seen, facts)
        self.running.set(seen.pods)
        self.alike.set(len(seen.groups))
        self.behind.set(seen.behind)
        self.seconds.set(seconds)
        for name, pods in _by_qos(seen).items():
            self.qos.labels(name).set(pods)
        self._by_both(self.unpatched, found.unpatched)
        self._by_both(self.skipped, found.left_out)
        self.refused.set(sum(len(one.pods) for one in found.refused))
        self.would.clear()
        self.pods.clear()
        for name, tally in found.tallies.items():
            policy = self._policy(name)
            self.would.labels(policy).set(tally.would)
            for state in ("matched", "changed", "overruled"):
                self.pods.labels(policy, state).set(getattr(tally, state))
        self.overhead.clear()
        for (_, reason), pods in _summed(found.overhead).items():
            self.overhead.labels(reason).set(pods)
        self.setting.set(float("nan") if isinstance(found.filled_by, NotYet) else found.setting is not None)

    def _by_class(self, seen: AuditState, facts: ClusterFacts) -> None:
        specs = ((alike.pod.spec, len(pods)) for alike, pods in seen.groups.items())
        named = ((get(spec.runtime_class_name, ""), get(spec.overhead, {}), count) for spec, count in specs)
        for gauge in (self.class_pods, self.class_cores, self.class_bytes, self.class_nodes, self.class_without_nodes):
            gauge.clear()
        for name, found in class_overheads((pod for pod in named if pod[0]), facts).items():
            label = self._class(name)
            self.class_pods.labels(label).set(found.pods)
            self.class_cores.labels(label).set(found.millicores / 1000)
            self.class_bytes.labels(label).set(found.memory_bytes)
            self.class_nodes.labels(label).set(float("nan") if found.node_kinds is None else found.node_kinds)
            if found.no_nodes is not None:
                self.class_without_nodes.labels(label, found.no_nodes).set(1)

    def _money(self, seen: AuditState, facts: ClusterFacts) -> None:
        self.class_dollars.clear()
        self.namespace_dollars.clear()
        price = price_of(facts)
        if price is None:
            return
        by_class, by_namespace = dict[str, float](), dict[str, Cost]()
        for alike, pods in seen.groups.items():
            one, spec = cost_of(price, alike.pod.spec), alike.pod.spec
            whole = Cost(one.workload * len(pods), one.sandbox * len(pods))
            namespace = self._namespace(alike.namespace)
            by_namespace[namespace] = by_namespace.get(namespace, Cost()) + whole
            if name := get(spec.runtime_class_name, ""):
                label = self._class(name)
                by_class[label] = by_class.get(label, 0.0) + whole.sandbox
        for label, dollars in by_class.items():
            self.class_dollars.labels(label).set(dollars)
        for namespace, cost in by_namespace.items():
            self.namespace_dollars.labels(namespace, "workload").set(cost.workload)
            self.namespace_dollars.labels(namespace, "sandbox").set(cost.sandbox)

    def evicted(self, runtime_class: str) -> None:
        """A kubelet evicted a pod of this class; empty: of none."""
        self.evictions.labels(self._class(runtime_class or "none")).inc()

    def compared(self, counts: dict[str, Counts]) -> None:
        """What the harm brake looks at."""
        self.harm.clear()
        for policy, by_trouble in counts.items():
            for trouble, compared in by_trouble.items():
                for side in ("before", "after"):
                    count = getattr(compared, side)
                    for what in ("pods", "hit"):
                        self.harm.labels(self._policy(policy), trouble, side, what).set(getattr(count, what))

    def braked(self, policy: str, trouble: str, done: str) -> None:
        """A policy was found harmful; `done`: put-to-warn, told, failed."""
        self.brakes.labels(self._policy(policy), trouble, done).inc()

    def _by_both(self, gauge: Gauge, found: Iterable[AuditFinding]) -> None:
        gauge.clear()
        for (policy, reason), pods in _summed(found).items():
            gauge.labels(self._policy(policy), self._reason(reason)).set(pods)


def _by_qos(seen: AuditState) -> dict[str, int]:
    """All three classes: that there is none of one is known, too."""
    found = dict.fromkeys(map(str, QoS), 0)
    for alike, pods in seen.groups.items():
        found[str(qos(alike.pod.spec))] += len(pods)
    return found


def _summed(found: Iterable[AuditFinding]) -> Count[tuple[str, str]]:
    """Pods by policy and reason."""
    total: Count[tuple[str, str]] = Count()
    for one in found:
        total[one.policy, one.reason.code.name] += len(one.pods)
    return total
