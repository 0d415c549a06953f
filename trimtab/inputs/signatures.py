"""The signed marks of drains and the stored states of compactors, as a cluster has them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from trimtab.cluster.api.meta import value_or
from trimtab.cluster.node import node_from_api as node_of
from trimtab.cluster.reason import Unreadable
from trimtab.cluster.snapshot import ConfigMap
from trimtab.compaction.drain import pool_state as memories
from trimtab.compaction.drain.annotation import DrainAnnotations, read_annotations
from trimtab.compaction.drain.pool_state import PoolState
from trimtab.compactor.node_signatures import NodeSigner
from trimtab.compactor.pool_state_store import config_map_name, read_verified
from trimtab.kube.client import Client
from trimtab.kube.listing import iter_objects
from trimtab.kube.resources import LIST_SOURCES


def read_drain_annotations(client: Client, namespace: str, signer: NodeSigner | None) -> DrainAnnotations:
    """Returns the drain annotations of all nodes, verified with the keys. Raises KubeFault."""
    nodes = (node_of(shape) for _, shape in iter_objects(client, LIST_SOURCES["Node"]))
    return read_annotations(nodes, signer.keys if signer is not None else None, namespace)


def read_states(client: Client, namespace: str, signer: NodeSigner | None) -> Mapping[str, PoolState | Unreadable]:
    """Returns the state of each pool, verified with the keys if there are any. Raises KubeFault."""
    place = replace(LIST_SOURCES["ConfigMap"], namespace=namespace, label_selector=memories.STATE_LABEL)
    pools: dict[str, ConfigMap] = {}
    for _, shape in iter_objects(client, place):
        labels: Mapping[str, str] = value_or(shape.metadata.labels, {})
        pools[labels.get(memories.STATE_LABEL, "")] = shape
    return {
        pool: read_verified(shape, signer)
        if signer is not None
        else memories.decode_state(shape.metadata.name, shape.data)
        for pool, shape in pools.items()
        if shape.metadata.name == config_map_name(pool)
    }
