"""Reads from Prometheus what kubelets and container runtimes use themselves, if it scrapes the kubelets.

If cAdvisor's series for cgroups exist (with the `id` of the kubelet's and the runtime's systemd unit), they are read;
otherwise the node's own series minus those of its pods. All of them need the label `node`, which the scrape
configuration must add.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from trimtab.usage.kubelet_overhead import NodeOverhead, OverheadSource
from trimtab.usage.prometheus import Prometheus
from trimtab.usage.series import Series

KUBELET_IDS = "/(system|runtime|kubelet)[.]slice/kubelet[.]service"
RUNTIME_IDS = "/(system|runtime|containerd)[.]slice/(containerd|crio|docker|cri-docker)[.]service"
PODS_IDS = "/kubepods([.]slice)?"
MILLICORES = 1000.0
FACTS_SECONDS = 60
POINTS_IN_STEP = 60
"""The number of moments in a step at which the usage is calculated to find its maximum. It applies if the usage is the
difference of two series. The moments are at least a minute apart."""

_ByMoment = dict[tuple[str, int], float]
"""(node, time in seconds) → amount."""


@dataclass(frozen=True, slots=True)
class ScrapedNodes:
    """What kube-state-metrics and the compactor report about nodes."""

    pools: Mapping[str, str]
    """Node → its pool; a node that is not in the mapping is in no pool."""
    runtimes: Mapping[str, str]
    """Node → its container runtime; for a node that is not in the mapping, it is unknown."""
    capacity: Mapping[tuple[str, str], float]
    """(node, resource) → capacity in cores or bytes."""
    allocatable: Mapping[tuple[str, str], float]


def read_overhead_series(prometheus: Prometheus, start: int, end: int) -> Iterator[NodeOverhead]:
    """Yields the overhead of every node at every step, sorted by node and time. Raises UsageFault."""
    step = prometheus.query_plan.step_seconds
    queries = _queries(prometheus, max(step, 60))
    read = {name: _read_by_node(prometheus, query, start, end, name) for name, query in queries.items()}
    moments = sorted(read["pods running"])
    for node, second in moments:
        at = {name: amounts.get((node, second)) for name, amounts in read.items()}
        cpu, cpu_source = _known_use(at["kubelet cpu"], at["runtime cpu"], at["node cpu"], at["pods cpu"])
        memory, memory_source = _known_use(
            at["kubelet memory"], at["runtime memory"], at["node memory"], at["pods memory"]
        )
        yield NodeOverhead(
            node=node,
            second=second,
            pods=round(at["pods running"] or 0),
            millicores=None if cpu is None else cpu * MILLICORES,
            memory_bytes=memory,
            cpu_source=cpu_source,
            memory_source=memory_source,
            max_memory_bytes=_max_memory(memory_source, at),
        )


def _max_memory(source: OverheadSource | None, amounts: Mapping[str, float | None]) -> float | None:
    """Returns the largest memory usage since the previous step, or None if it is unknown. `source` says how the usage
    is determined, as for the present usage."""
    if source is OverheadSource.SYSTEM_CONTAINERS:
        # The two need not peak together: their sum is never too small.
        kubelet, runtime = amounts["kubelet memory peak"], amounts["runtime memory peak"]
        return None if kubelet is None or runtime is None else kubelet + runtime
    return amounts["memory peak of the node less its pods"] if source is OverheadSource.NODE_LESS_PODS else None


def _known_use(
    kubelet: float | None, runtime: float | None, node: float | None, pods: float | None
) -> tuple[float | None, OverheadSource | None]:
    if kubelet is not None and runtime is not None:
        return kubelet + runtime, OverheadSource.SYSTEM_CONTAINERS
    if node is not None and pods is not None:
        return max(0.0, node - pods), OverheadSource.NODE_LESS_PODS
    return None, None


def _queries(prometheus: Prometheus, step: int) -> dict[str, str]:
    """Returns part (kubelet, runtime, node, pods) → its query, which gives one value per node."""
    window = prometheus.query_plan.rate_window

    def cgroup(resource: str, ids: str) -> str:
        matchers = prometheus.join_matchers(f'id=~"{ids}"')
        if resource == "cpu":
            inner = f"rate(container_cpu_usage_seconds_total{{{matchers}}}[{window}])"
        else:
            memory = f"container_memory_working_set_bytes{{{matchers}}}"
            inner = memory if resource == "memory" else f"max_over_time({memory}[{step}s])"
        # Several scrapers may report one cgroup: without the inner aggregation, the sum would count each of them.
        return f"sum by (node) (max by (node, id) ({inner}))"

    own = prometheus.join_matchers("")
    node_memory = f"max by (node) (node_memory_working_set_bytes{{{own}}})"
    rest = f"{node_memory} - on (node) {cgroup('memory', PODS_IDS)}"
    # The node and its pods peak at other moments, so the difference of their maxima is not the most of the difference.
    resolution = max(60, step // POINTS_IN_STEP)
    # The line is fitted to the memory at single moments: the most of an hour lies above it by the noise.
    return {
        **{
            f"{part} {resource}": cgroup(resource, ids)
            for part, ids in (("kubelet", KUBELET_IDS), ("runtime", RUNTIME_IDS), ("pods", PODS_IDS))
            for resource in ("cpu", "memory")
        },
        "kubelet memory peak": cgroup("max memory", KUBELET_IDS),
        "runtime memory peak": cgroup("max memory", RUNTIME_IDS),
        "memory peak of the node less its pods": f"max_over_time(({rest})[{step}s:{resolution}s])",
        "node cpu": f"max by (node) (rate(node_cpu_usage_seconds_total{{{own}}}[{window}]))",
        "node memory": node_memory,
        "pods running": f"max by (node) (kubelet_running_pods{{{own}}}) "
        f"or count by (node) (max by (node, namespace, pod) (kube_pod_info{{{own}}}))",
    }


def _read_by_node(prometheus: Prometheus, query: str, start: int, end: int, what: str) -> _ByMoment:
    step = prometheus.query_plan.step_seconds
    # The decoder knows the labels of pods: the node takes the place of one.
    renamed = f'label_replace({query}, "pod", "$1", "node", "(.+)")'
    amounts: _ByMoment = {}
    for series in prometheus.query_range(renamed, start - start % step, end, step, f"read the {what} of nodes"):
        if series.pod:
            for second, value in zip(series.times, series.values, strict=True):
                amounts[series.pod, int(second)] = value
    return amounts


def read_node_facts(server: Prometheus, end: int) -> ScrapedNodes:
    """Returns the pools, container runtimes and capacities of the nodes, as far as other programs export them. Raises
    UsageFault."""

    def answers_of(metric: str, label: str, matcher: str = "") -> list[Series]:
        """Returns the series of a metric, with the node's name as the pod and the value of the label as the
        container."""
        query = f"max by (node, {label}) ({metric}{{{server.join_matchers(matcher)}}})"
        for name, source in (("pod", "node"), ("container", label)):
            query = f'label_replace({query}, "{name}", "$1", "{source}", "(.+)")'
        answers = server.query_range(query, end - FACTS_SECONDS, end, FACTS_SECONDS, f"read the {metric} of nodes")
        return [series for series in answers if series.pod and series.container and series.values]

    def label_of(metric: str, label: str) -> dict[str, str]:
        return {series.pod: series.container for series in answers_of(metric, label)}

    def amounts_of(metric: str) -> dict[tuple[str, str], float]:
        series_list = answers_of(metric, "resource", 'resource=~"cpu|memory"')
        return {(series.pod, series.container): series.values[-1] for series in series_list}

    return ScrapedNodes(
        pools=label_of("trimtab_compactor_pool_node_info", "pool"),
        runtimes=label_of("kube_node_info", "container_runtime_version"),
        capacity=amounts_of("kube_node_status_capacity"),
        allocatable=amounts_of("kube_node_status_allocatable"),
    )
