"""The metrics of the watchdog, including the hourly cost of running pods. Every label has a limited set of values.

Costs are computed from requests, at the price of a core and of a GiB on the nodes that accept pods and have a price. If
no node has one, the cost metrics are absent instead of zero.
"""

from __future__ import annotations

from collections import Counter as Count
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from prometheus_client import CollectorRegistry, Gauge

from trimtab.admission.audit.drift import AuditState
from trimtab.admission.audit.findings import AuditFinding, Findings
from trimtab.admission.audit.harm import Counts
from trimtab.admission.audit.stale_overhead import class_overheads, overhead_of
from trimtab.cluster.api.meta import value_or
from trimtab.cluster.api.pod import PodSpec
from trimtab.cluster.node import HOSTNAME_LABEL
from trimtab.cluster.quantity import NotAQuantity
from trimtab.cluster.reason import NotYet
from trimtab.cluster.resources import QoS, qos_class, requests_without_overhead
from trimtab.machines.prices import labelled_price
from trimtab.policy.cluster_facts import ClusterFacts
from trimtab.runtime.metrics import Bounded
from trimtab.sizing.cost import ResourcePrice, average_price
from trimtab.workers.worker_metrics import WorkerMetrics

MICRO_DOLLARS = 1_000_000


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of pods in dollars per hour."""

    workload: float = 0.0
    """The cost of the containers' requests."""
    sandbox: float = 0.0
    """The cost of the pods' overhead."""

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.workload + other.workload, self.sandbox + other.sandbox)


def price_of(facts: ClusterFacts) -> ResourcePrice | None:
    """Returns the price of a core and of a GiB according to the nodes' labels, or None if no node has a price."""
    shapes = (
        machine.shape
        for (label, _), machines in facts.machines.items()
        if label == HOSTNAME_LABEL
        for machine in machines
    )
    prices = ((shape, labelled_price(shape.labels, {})) for shape in shapes)
    return average_price(
        (price.amount, shape.allocatable.get("cpu", 0) / 1000, shape.allocatable.get("memory", 0) / (1 << 30))
        for shape, price in prices
        if price is not None and shape.allocatable.get("cpu")
    )


def hourly_cost(price: ResourcePrice, millicores: int, memory_bytes: int) -> float:
    """Returns the cost of this cpu and memory in dollars per hour."""
    return (millicores / 1000 * price.core + memory_bytes / (1 << 30) * price.gib) / MICRO_DOLLARS


def cost_of(price: ResourcePrice, spec: PodSpec) -> Cost:
    """Returns the cost of one pod. Requests that cannot be parsed count as zero."""
    try:
        requests = requests_without_overhead(spec)
    except NotAQuantity:
        requests = {}
    return Cost(
        hourly_cost(price, requests.get("cpu", 0), requests.get("memory", 0)),
        hourly_cost(price, *overhead_of(value_or(spec.overhead, {}))),
    )


class Metrics(WorkerMetrics):
    """Defines the metrics of the watchdog, which are set after each round."""

    def __init__(self, registry: CollectorRegistry, leading: Callable[[], bool], age: Callable[[], float]) -> None:
        super().__init__(registry, "trimtab_", leading)
        self._policy, self._reason, self._class, self._namespace = Bounded(), Bounded(), Bounded(), Bounded(1000)

        self.unpatched = self.gauge(
            "unpatched_pods",
            "The number of running pods that lack a change of a policy, by reason.",
            "policy",
            "reason",
        )
        self.would = self.gauge(
            "would_change_pods",
            "The number of running pods that a policy in mode warn or audit would change.",
            "policy",
        )
        self.skipped = self.gauge(
            "skipped_pods",
            "The number of running pods that a policy matches but does not change, by reason.",
            "policy",
            "reason",
        )
        self.overhead = self.gauge(
            "wrong_overhead_pods",
            "The number of running pods whose overhead differs from that of their RuntimeClass, by reason.",
            "reason",
        )
        self.class_pods = self.gauge(
            "runtime_class_pods", "The number of running pods of each RuntimeClass.", "runtime_class"
        )
        self.class_cores = self.gauge(
            "overhead_cpu_cores",
            "The cores that the scheduler reserves for pod overhead, by RuntimeClass.",
            "runtime_class",
        )
        self.class_bytes = self.gauge(
            "overhead_memory_bytes",
            "The memory in bytes that the scheduler reserves for pod overhead, by RuntimeClass.",
            "runtime_class",
        )
        self.class_nodes = self.gauge(
            "runtime_class_node_types",
            "The number of node types on which pods of the RuntimeClass may run; if it is 0, the pods stay Pending.",
            "runtime_class",
        )
        self.class_without_nodes = self.gauge(
            "runtime_class_without_nodes",
            "1 if no node accepts the pods of a RuntimeClass according to the RuntimeClass: no-label, cordoned, "
            "tainted (each pod must tolerate the taints), may-come (an autoscaler may add a node).",
            "runtime_class",
            "reason",
        )
        self.class_dollars = self.gauge(
            "overhead_dollars_per_hour",
            "The cost of pod overhead in dollars an hour, by requests; absent while no price of a node is known.",
            "runtime_class",
        )
        self.namespace_dollars = self.gauge(
            "namespace_dollars_per_hour",
            "The cost of the running pods of a namespace in dollars an hour, by requests, with the part workload "
            "(containers) or sandbox (overhead); absent while no node has a price.",
            "namespace",
            "part",
        )
        self.evictions = self.counter(
            "runtime_class_evictions",
            "The number of pods that kubelets have evicted since the watchdog started.",
            "runtime_class",
        )
        self.refused = self.gauge(
            "would_deny_pods", "The number of running pods that would be denied if they were created now."
        )
        self.setting = self.gauge(
            "overhead_setting_wrong",
            "1 while pods show that the setting TRIMTAB_OVERHEAD is wrong; NaN while no pod shows its right value.",
        )
        self.pods = self.gauge(
            "policy_running_pods",
            "The number of running pods of each policy by state: matched, changed, overruled.",
            "policy",
            "state",
        )
        self.harm = self.gauge(
            "harm_pods",
            "The number of pods with a policy's change (after) and without it (before), and how many of them failed.",
            "policy",
            "trouble",
            "side",
            "count",
        )
        self.qos = self.gauge("qos_pods", "The number of running pods by their QoS class.", "qos")
        self.running = self.gauge("running_pods", "The number of running pods that the watchdog checks.")
        self.alike = self.gauge(
            "running_pod_groups",
            "The number of groups of equal running pods; the watchdog decides once for each group.",
        )
        self.behind = self.gauge(
            "watchdog_undecided_pod_groups", "The number of groups of pods about which the last check could not decide."
        )
        self.seconds = self.gauge("watchdog_check_duration_seconds", "The duration of the last check in seconds.")
        self.lost = self.gauge(
            "watchdog_lost_events", "The number of Events that could not be written since the watchdog started."
        )
        self.brakes = self.counter(
            "harm_brakes",
            "The number of policies that harm pods, by the watchdog's action: set-to-warn, reported, withheld, failed.",
            "policy",
            "trouble",
            "done",
        )
        self.faults = self.counter("watchdog_errors", "The number of checks that failed, by kind.", "kind")
        self.add_leadership("watchdog_leading")
        self.gauge(
            "watchdog_data_age_seconds", "The age in seconds of the watchdog's view of the cluster."
        ).set_function(age)

    def observe_round(self, state: AuditState, findings: Findings, facts: ClusterFacts, seconds: float) -> None:
        """Sets the gauges after one round, which took `seconds`."""
        self._set_class_gauges(state, facts)
        self._set_costs(state, facts)
        self.running.set(state.pod_count)
        self.alike.set(len(state.groups))
        self.behind.set(state.behind)
        self.seconds.set(seconds)
        for name, pods in _count_by_qos(state).items():
            self.qos.labels(name).set(pods)
        self._set_by_policy_and_reason(self.unpatched, findings.unpatched)
        self._set_by_policy_and_reason(self.skipped, findings.left_out)
        self.refused.set(sum(len(finding.pods) for finding in findings.refused))
        self.would.clear()
        self.pods.clear()
        for name, tally in findings.tallies.items():
            policy = self._policy(name)
            self.would.labels(policy).set(tally.would)
            for count_name in ("matched", "changed", "overruled"):
                self.pods.labels(policy, count_name).set(getattr(tally, count_name))
        self.overhead.clear()
        for (_, reason), pods in _sum_pods(findings.overhead).items():
            self.overhead.labels(reason).set(pods)
        self.setting.set(float("nan") if isinstance(findings.filled_by, NotYet) else findings.setting is not None)

    def _set_class_gauges(self, state: AuditState, facts: ClusterFacts) -> None:
        specs = ((alike.pod.spec, len(pods)) for alike, pods in state.groups.items())
        class_overhead_counts = (
            (value_or(spec.runtime_class_name, ""), value_or(spec.overhead, {}), count) for spec, count in specs
        )
        for gauge in (self.class_pods, self.class_cores, self.class_bytes, self.class_nodes, self.class_without_nodes):
            gauge.clear()
        for name, overhead in class_overheads((pod for pod in class_overhead_counts if pod[0]), facts).items():
            label = self._class(name)
            self.class_pods.labels(label).set(overhead.pods)
            self.class_cores.labels(label).set(overhead.millicores / 1000)
            self.class_bytes.labels(label).set(overhead.memory_bytes)
            self.class_nodes.labels(label).set(float("nan") if overhead.node_kinds is None else overhead.node_kinds)
            if overhead.no_nodes is not None:
                self.class_without_nodes.labels(label, overhead.no_nodes).set(1)

    def _set_costs(self, state: AuditState, facts: ClusterFacts) -> None:
        self.class_dollars.clear()
        self.namespace_dollars.clear()
        price = price_of(facts)
        if price is None:
            return
        by_class, by_namespace = dict[str, float](), dict[str, Cost]()
        for alike, pods in state.groups.items():
            pod_cost, spec = cost_of(price, alike.pod.spec), alike.pod.spec
            template_cost = Cost(pod_cost.workload * len(pods), pod_cost.sandbox * len(pods))
            namespace = self._namespace(alike.namespace)
            by_namespace[namespace] = by_namespace.get(namespace, Cost()) + template_cost
            if name := value_or(spec.runtime_class_name, ""):
                label = self._class(name)
                by_class[label] = by_class.get(label, 0.0) + template_cost.sandbox
        for label, dollars in by_class.items():
            self.class_dollars.labels(label).set(dollars)
        for namespace, cost in by_namespace.items():
            self.namespace_dollars.labels(namespace, "workload").set(cost.workload)
            self.namespace_dollars.labels(namespace, "sandbox").set(cost.sandbox)

    def count_eviction(self, runtime_class: str) -> None:
        """Counts the eviction of a pod with this RuntimeClass; `runtime_class` is empty for a pod without one."""
        self.evictions.labels(self._class(runtime_class or "none")).inc()

    def set_comparisons(self, counts: dict[str, Counts]) -> None:
        """Sets the metrics for the counts that the harm brake compares."""
        self.harm.clear()
        for policy, by_trouble in counts.items():
            for trouble, comparison in by_trouble.items():
                for side in ("before", "after"):
                    count = getattr(comparison, side)
                    for amount in ("pods", "hit"):
                        self.harm.labels(self._policy(policy), trouble, side, amount).set(getattr(count, amount))

    def count_brake(self, policy: str, trouble: str, done: str) -> None:
        """Counts a harmful policy. `done` is set-to-warn, reported, withheld or failed."""
        self.brakes.labels(self._policy(policy), trouble, done).inc()

    def _set_by_policy_and_reason(self, gauge: Gauge, findings: Iterable[AuditFinding]) -> None:
        gauge.clear()
        for (policy, reason), pods in _sum_pods(findings).items():
            gauge.labels(self._policy(policy), self._reason(reason)).set(pods)


def _count_by_qos(state: AuditState) -> dict[str, int]:
    """Returns quality of service class → number of pods, including classes without pods."""
    counts = dict.fromkeys(map(str, QoS), 0)
    for alike, pods in state.groups.items():
        counts[str(qos_class(alike.pod.spec))] += len(pods)
    return counts


def _sum_pods(findings: Iterable[AuditFinding]) -> Count[tuple[str, str]]:
    """Returns (policy, reason) → number of pods."""
    total: Count[tuple[str, str]] = Count()
    for finding in findings:
        total[finding.policy, finding.reason.code.name] += len(finding.pods)
    return total
