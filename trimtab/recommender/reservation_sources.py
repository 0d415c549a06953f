"""The nodes and samples for measuring reservations, and the ConfigMaps in which the results are stored."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from trimtab.cluster.node import NodeInfo, node_from_api
from trimtab.cluster.published_reservations import RESERVATIONS_KEY, RESERVATIONS_LABEL
from trimtab.kube import listing
from trimtab.kube.client import Client
from trimtab.kube.errors import KubeFault
from trimtab.kube.objects import Writer
from trimtab.kube.resources import LIST_SOURCES
from trimtab.recommender.reservations import (
    HISTORY_KEY,
    HISTORY_LABEL,
    HISTORY_PREFIX,
    RESERVATIONS_NAME,
    ConfigMapStore,
)
from trimtab.recommender.sharded_configmaps import ConfigMapShardBackend
from trimtab.usage.kubelet_overhead import NodeOverhead, read_overheads
from trimtab.usage.prometheus import Prometheus
from trimtab.usage.prometheus_overhead import read_overhead_series

FIRST_STEP_SECONDS = 3600
"""The step, in seconds, with which a week of history is read at first; later readings use the step of the queries."""


def list_nodes(client: Client) -> list[NodeInfo]:
    """Returns every node of the cluster that is a machine, and so has a kubelet to measure. Raises KubeFault."""
    nodes = [node_from_api(shape) for _, shape in listing.iter_objects(client, LIST_SOURCES["Node"])]
    return [node for node in nodes if node.nature.is_machine]


def read_from_kubelets(client: Client, nodes: Sequence[str], _start: int, _now: int) -> Iterator[NodeOverhead]:
    """Yields the present overhead of every kubelet. Raises the fault of the first node if none of them responds."""
    faults: list[KubeFault] = []
    for answer in read_overheads(client, nodes):
        if isinstance(answer, KubeFault):
            faults.append(answer)
        else:
            yield answer
    # One silent node is normal; if all of them are, the right to read or the API server is missing.
    if faults and len(faults) == len(nodes):
        raise faults[0]


def read_from_prometheus(prometheus: Prometheus, _nodes: Sequence[str], start: int, now: int) -> Iterator[NodeOverhead]:
    """Yields the overhead of every node that Prometheus has since `start`. Raises UsageFault."""
    prometheus.check_one_cluster(start, now)
    step = prometheus.query_plan.step_seconds
    if now - start > FIRST_STEP_SECONDS * 2:
        step = max(step, FIRST_STEP_SECONDS)
    yield from read_overhead_series(
        replace(prometheus, query_plan=replace(prometheus.query_plan, step_seconds=step)), start, now
    )


def configmap_store(writer: Writer, namespace: str) -> ConfigMapStore:
    """Returns the store for the ConfigMaps with reservations and histories in Trimtab's namespace."""
    return ConfigMapStore(
        published=ConfigMapShardBackend(writer, namespace, RESERVATIONS_NAME, RESERVATIONS_LABEL, RESERVATIONS_KEY),
        histories=ConfigMapShardBackend(writer, namespace, HISTORY_PREFIX, HISTORY_LABEL, HISTORY_KEY),
    )
