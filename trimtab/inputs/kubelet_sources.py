"""Reads what kubelets and container runtimes use: from live kubelets, from saved summaries, or from Prometheus."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from trimtab.cluster.api.core import Node
from trimtab.cluster.config_error import ConfigError
from trimtab.cluster.node import NodeInfo, node_from_api
from trimtab.inputs import live_cluster
from trimtab.inputs.command_faults import LoginError, RuntimeFailure, UsageError
from trimtab.inputs.progress import progress
from trimtab.inputs.usage_sources import several_clusters_mistake
from trimtab.kube.client import Client, connect_to_cluster
from trimtab.kube.errors import InvalidResponse, KubeFault, NotConfigured
from trimtab.reservations.measure import Reserved
from trimtab.reservations.overhead_history import DAY_SECONDS, OverheadHistory, OverheadSample
from trimtab.reservations.profile import MIB
from trimtab.sizing.pool_reservations import (
    ASSUMED_EVICTION_BYTES,
    WITHOUT_POOL,
    PoolNodes,
    PoolRuntime,
    group_nodes,
    with_configured,
)
from trimtab.usage.cluster_label import MixedClusters
from trimtab.usage.errors import UsageFault
from trimtab.usage.kubelet_overhead import (
    KubeletSettings,
    NodeOverhead,
    overhead_of_summary,
    read_kubelet_settings,
    read_overheads,
    settings_of_configz,
)
from trimtab.usage.prometheus import Prometheus
from trimtab.usage.prometheus_overhead import ScrapedNodes, read_node_facts, read_overhead_series

MAX_NAMED_NODES = 5
"""The largest number of nodes without an answer that a note names."""


@dataclass(slots=True)
class Measurements:
    """The measurements by pool and container runtime."""

    nodes: dict[PoolRuntime, PoolNodes]
    histories: dict[PoolRuntime, OverheadHistory] = field(default_factory=dict)
    sources: dict[str, dict[str, str]] = field(default_factory=dict)
    """How the usage of each node was measured: the pool's name and runtime, joined by a slash → the name of the node →
    the way of measuring."""
    notes: list[str] = field(default_factory=list)
    max_days: int = 30

    def add_overheads(self, overheads: Iterable[NodeOverhead]) -> None:
        """Add samples; samples of nodes that are in no pool are left out."""
        keys = {name: key for key, pool in self.nodes.items() for name in pool.names}
        for overhead in overheads:
            key = keys.get(overhead.node)
            if key is None:
                continue
            self.histories.setdefault(key, OverheadHistory(max_days=self.max_days)).add_sample(
                OverheadSample(
                    node=overhead.node,
                    second=overhead.second,
                    pods=overhead.pods,
                    millicores=overhead.millicores,
                    memory_bytes=overhead.memory_bytes,
                    max_memory_bytes=overhead.max_memory_bytes,
                )
            )
            if overhead.memory_source is not None:
                self.sources.setdefault(f"{key.pool}/{key.runtime}", {})[overhead.node] = overhead.memory_source


def read_nodes(cluster: live_cluster.ClusterOptions) -> list[NodeInfo]:
    """Returns the nodes of the snapshot or the cluster that are machines. Raises UsageError if there are none."""
    nodes = [node_from_api(shape) for shape in live_cluster.read_snapshot(cluster, ("Node",)).objects_of(Node)]
    if not nodes:
        raise UsageError([ConfigError(file="--cluster", expected="nodes", got="none")])
    return [node for node in nodes if node.nature.is_machine]


def measure_live(
    cluster: live_cluster.ClusterOptions, nodes: Sequence[NodeInfo], pools: Sequence[str], now: int
) -> Measurements:
    """Read the kubelet of each node of these pools once, and the configuration of one kubelet of each pool.

    If `pools` is empty, all pools are read. Raises RuntimeFailure, and UsageError for an unknown pool."""
    measurements = Measurements(group_nodes(nodes, now))
    select_pools(measurements, pools)
    names = sorted(name for pool in measurements.nodes.values() for name in pool.names)
    try:
        client = connect_to_cluster(cluster.kubeconfig, cluster.context)
        try:
            with progress().show_work(f"Reading {len(names)} kubelets"):
                _add_live(measurements, client, names)
        finally:
            client.close()
    except NotConfigured as error:
        raise LoginError(str(error)) from None
    except KubeFault as error:
        raise RuntimeFailure(str(error)) from None
    return measurements


def _add_live(measurements: Measurements, client: Client, names: Sequence[str]) -> None:
    answers = list(read_overheads(client, names))
    measurements.add_overheads(answer for answer in answers if isinstance(answer, NodeOverhead))
    faults = [answer for answer in answers if isinstance(answer, KubeFault)]
    measurements.notes += [str(fault) for fault in faults[:MAX_NAMED_NODES]]
    if len(faults) > MAX_NAMED_NODES:
        measurements.notes.append(f"{len(faults) - MAX_NAMED_NODES} more kubelets did not answer.")
    for key, pool in measurements.nodes.items():
        # All nodes of a pool have one configuration, so one of them tells it.
        answering = pool.names & measurements.histories.get(key, OverheadHistory()).nodes.keys()
        settings = read_kubelet_settings(client, min(answering)) if answering else None
        if isinstance(settings, KubeletSettings):
            measurements.nodes[key] = with_configured(pool, _reserved_settings(settings))
        elif isinstance(settings, KubeFault):
            measurements.notes.append(
                f"{settings}: Trimtab computes the present reservation as capacity minus allocatable."
            )


def _reserved_settings(settings: KubeletSettings) -> Reserved:
    return Reserved(millicores=settings.reserved_millicores, memory_bytes=settings.reserved_memory_bytes)


def measure_files(
    summaries: Sequence[str], configurations: Sequence[str], nodes: Sequence[NodeInfo], now: int
) -> Measurements:
    """Read saved summaries of kubelets, and saved kubelet configurations, which apply to every pool. Raises
    UsageError."""
    measurements = Measurements(group_nodes(nodes, now))
    mistakes: list[ConfigError] = []
    overheads: list[NodeOverhead] = []
    for file, content in live_cluster.read_paths(summaries, (".json",)):
        try:
            overheads.append(overhead_of_summary(content))
        except InvalidResponse as error:
            mistakes.append(ConfigError(file=file, expected="a kubelet's summary", got=str(error)))
    settings: KubeletSettings | None = None
    for file, content in live_cluster.read_paths(configurations, (".json",)):
        try:
            settings = settings_of_configz(content)
        except InvalidResponse as error:
            mistakes.append(ConfigError(file=file, expected="a kubelet's /configz", got=str(error)))
    if mistakes:
        raise UsageError(mistakes)
    measurements.add_overheads(overheads)
    if settings is not None:
        reserved = _reserved_settings(settings)
        measurements.nodes = {key: with_configured(pool, reserved) for key, pool in measurements.nodes.items()}
    return measurements


def measure_prometheus(prometheus: Prometheus, days: int, nodes: Sequence[NodeInfo] | None, now: int) -> Measurements:
    """Read the last days from Prometheus; if `nodes` is empty, also the facts about nodes. Raises RuntimeFailure."""
    start = now - days * DAY_SECONDS
    try:
        prometheus.check_one_cluster(start, now)
        with progress().show_work("Reading from Prometheus"):
            overheads = list(read_overhead_series(prometheus, start, now))
            facts = read_node_facts(prometheus, now) if nodes is None else None
    except MixedClusters as error:
        raise UsageError([several_clusters_mistake("--prometheus", mixed) for mixed in error.mixed_labels]) from None
    except UsageFault as error:
        raise RuntimeFailure(str(error)) from None
    groups = (
        group_nodes(nodes or (), now)
        if facts is None
        else _group_facts(facts, sorted({overhead.node for overhead in overheads}))
    )
    measurements = Measurements(groups, max_days=days + 1)
    measurements.add_overheads(overheads)
    if not overheads:
        measurements.notes.append(
            "Prometheus has no series of kubelets with the label `node`. It must scrape the kubelets' /metrics, "
            "/metrics/cadvisor and /metrics/resource."
        )
    return measurements


def _group_facts(scraped_nodes: ScrapedNodes, nodes: Sequence[str]) -> dict[PoolRuntime, PoolNodes]:
    members: dict[PoolRuntime, list[str]] = {}
    for node in nodes:
        runtime = scraped_nodes.runtimes.get(node, "").partition("://")[0]
        members.setdefault(PoolRuntime(scraped_nodes.pools.get(node, WITHOUT_POOL), runtime), []).append(node)
    return {
        key: PoolNodes(names=frozenset(names), reserved=_usual_reserved(scraped_nodes, names))
        for key, names in sorted(members.items())
    }


def _usual_reserved(scraped_nodes: ScrapedNodes, nodes: Sequence[str]) -> Reserved | None:
    """Returns the reservation of the node with the median reserved memory; None if kube-state-metrics has no metrics
    about capacity and allocatable."""
    amounts = sorted(
        (
            max(0, round((memory - scraped_nodes.allocatable[node, "memory"] - ASSUMED_EVICTION_BYTES) / MIB)) * MIB,
            max(
                0,
                round(
                    1000
                    * (scraped_nodes.capacity.get((node, "cpu"), 0) - scraped_nodes.allocatable.get((node, "cpu"), 0))
                ),
            ),
        )
        for node in nodes
        if (memory := scraped_nodes.capacity.get((node, "memory"))) is not None
        and (node, "memory") in scraped_nodes.allocatable
    )
    if not amounts:
        return None
    memory_bytes, millicores = amounts[len(amounts) // 2]
    return Reserved(millicores=millicores, memory_bytes=memory_bytes)


def select_pools(measurements: Measurements, names: Sequence[str]) -> None:
    """Remove the measurements of pools that are not named; without names, keep all. Raises UsageError for an unknown
    pool."""
    if not names:
        return
    pool_names = {key.pool for key in measurements.nodes}
    mistakes = [
        ConfigError(file="--pool", expected=f"one of {', '.join(sorted(pool_names)) or 'no pool'}", got=name)
        for name in names
        if name not in pool_names
    ]
    if mistakes:
        raise UsageError(mistakes)
    measurements.nodes = {key: pool for key, pool in measurements.nodes.items() if key.pool in names}
    measurements.histories = {key: kept for key, kept in measurements.histories.items() if key.pool in names}
