"""Captures of a simulated churn: the objects that an API server would list, as `trimtab capture` writes them."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from trimtab.autoscaling.churn.churn_cluster import EPOCH, ChurnCluster
from trimtab.autoscaling.churn.churn_history import ChurnRecord
from trimtab.autoscaling.churn.churn_objects import NAMESPACE, ChurningWorkload
from trimtab.autoscaling.churn.churn_script import Churn, ChurnOptions, draw_churn
from trimtab.autoscaling.churn.churn_stand_in import ChurnStandIn
from trimtab.autoscaling.churn.pod_shapes import generate_shapes
from trimtab.autoscaling.churn.stand_in_rules import StandInFlags
from trimtab.cluster.kinds import REPLICA_SET
from trimtab.cluster.node import NodeInfo
from trimtab.cluster.pdb import Pdb
from trimtab.cluster.pod import PodInfo
from trimtab.cluster.reason import Unreadable
from trimtab.cluster.timestamps import format_timestamp
from trimtab.inputs.capture_series import SeriesFolder

CLUSTER_UID = "0c7f4a1e-churn"


def record_alone(churn: Churn, begin: int, every: int, scan: int = 10) -> Iterator[tuple[int, bytes]]:
    """Yields (time, capture) of the churn with the stand-in for the cluster autoscaler alone, from `begin` on. `scan`:
    the seconds between two of its scans."""
    yield from record_cluster(ChurnCluster(churn), begin, every, scan)


def record_cluster(cluster: ChurnCluster, begin: int, every: int, scan: int = 10) -> Iterator[tuple[int, bytes]]:
    """Yields (time, capture) of the churn of this cluster, which is at its beginning, with the stand-in alone. Then the
    history of the cluster is that of the whole churn. `scan`: the seconds between two scans of the stand-in."""
    stand_in = ChurnStandIn(cluster, StandInFlags(scan_seconds=scan))
    bound_at, encoder = dict[str, int](), _TextCache()
    for second in range(scan, cluster.churn.seconds + 1, scan):
        cluster.advance_to(second)
        bound_at = {uid: bound_at.get(uid, EPOCH + second) for uid, pod in cluster.pods.items() if pod.node}
        if second >= begin and (second - begin) % every == 0:
            yield EPOCH + second, join_capture_file(encoder.encode_objects(cluster, bound_at))
        stand_in.run_scan()


@dataclass(slots=True)
class _TextCache:
    """Encodes the objects of a cluster in memory; those that have not changed since, only once."""

    texts: dict[str, tuple[object, bytes]] = field(default_factory=dict)
    """Key → the value that was encoded last, and its text."""

    def encode_objects(self, cluster: ChurnCluster, bound_at: Mapping[str, int]) -> list[bytes]:
        """Returns the text of each object that an API server lists."""
        former, self.texts = self.texts, {}
        for node in cluster.nodes.values():
            self._take(f"node {node.name}", node, former, lambda node=node: node_object(node))  # type: ignore[misc]
        for pod in cluster.pods.values():
            self._take(pod.uid, pod, former, lambda pod=pod: pod_object(pod, bound_at.get(pod.uid)))  # type: ignore[misc]
        return [*(text for _, text in self.texts.values()), *map(msgspec.json.encode, list_other_objects(cluster))]

    def _take(
        self, key: str, value: object, former: Mapping[str, tuple[object, bytes]], describe: Callable[[], Any]
    ) -> None:
        entry = former.get(key)
        if entry is None or entry[0] is not value:
            entry = value, msgspec.json.encode(describe())
        self.texts[key] = entry


def record_captures(path: Path, hours: float = 1.5, every: int = 60) -> None:
    """Writes a series of captures of a small cluster that never rests into this folder."""
    folder = SeriesFolder(path, every)
    churn = draw_churn(ChurnOptions(hours=hours, cores=60, seed=2), generate_shapes())
    for at, content in record_alone(churn, 300, every):
        folder.append_round(at, content)


def run_alone(churn: Churn) -> list[ChurnRecord]:
    """Returns the history of the churn with the stand-in alone."""
    cluster = ChurnCluster(churn)
    stand_in = ChurnStandIn(cluster, StandInFlags())
    for second in range(10, churn.seconds + 1, 10):
        cluster.advance_to(second)
        stand_in.run_scan()
    return cluster.history


def encode_capture_file(objects: list[dict[str, Any]]) -> bytes:
    """Returns the objects as a capture file."""
    return join_capture_file(map(msgspec.json.encode, objects))


def join_capture_file(texts: Iterable[bytes]) -> bytes:
    """Returns the encoded objects as a capture file."""
    body = b",\n".join(texts)
    return b'{"apiVersion":"v1","kind":"List","items":[\n' + body + b"\n]}\n"


def list_objects(cluster: ChurnCluster, bound_at: Mapping[str, int]) -> list[dict[str, Any]]:
    """Returns the objects of the cluster in memory as an API server lists them. `bound_at`: uid of a pod → when it got
    its node."""
    return [
        *(node_object(node) for node in cluster.nodes.values()),
        *(pod_object(pod, bound_at.get(pod.uid)) for pod in cluster.pods.values()),
        *list_other_objects(cluster),
    ]


def list_other_objects(cluster: ChurnCluster) -> list[dict[str, Any]]:
    """Returns the objects of the cluster that are neither nodes nor pods."""
    objects = [
        namespace_object("kube-system", CLUSTER_UID),
        namespace_object(NAMESPACE, "churn"),
        *map(budget_object, cluster.budgets),
    ]
    replicas = Counter(pod.owner for pod in cluster.pods.values())
    for owner, top in cluster.top_owners.items():
        objects.append(
            {
                "apiVersion": "apps/v1",
                "kind": "ReplicaSet",
                "metadata": {
                    "namespace": owner.namespace,
                    "name": owner.name,
                    "ownerReferences": [owner_reference("apps/v1", "Deployment", top.name)],
                },
                "spec": {"replicas": replicas[owner]},
            }
        )
    return [*objects, *(deployment_object(one) for one in cluster.workloads.values() if not one.is_job)]


def deployment_object(workload: ChurningWorkload) -> dict[str, Any]:
    """Returns a Deployment of the churn. Its status counts pods of the present template as updated."""
    updated = sum(generation == workload.generation for generation in workload.pods.values())
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"namespace": NAMESPACE, "name": workload.name, "generation": 1},
        "spec": {"replicas": workload.wanted},
        "status": {"observedGeneration": 1, "replicas": len(workload.pods), "updatedReplicas": updated},
    }


def namespace_object(name: str, uid: str) -> dict[str, Any]:
    """Returns a Namespace."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "uid": uid}}


def owner_reference(version: str, kind: str, name: str) -> dict[str, Any]:
    """Returns a reference to a controller."""
    return {"apiVersion": version, "kind": kind, "name": name, "uid": f"{kind}-{name}", "controller": True}


def node_object(node: NodeInfo) -> dict[str, Any]:
    """Returns a Node."""
    amounts = quantities(node.allocatable)
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": node.name,
            "uid": node.uid,
            "labels": dict(node.labels),
            "creationTimestamp": format_timestamp(node.created or 0),
        },
        "spec": {
            "providerID": node.provider_id,
            "unschedulable": node.is_cordoned,
            "taints": [{"key": taint.key, "value": taint.value, "effect": taint.effect} for taint in node.taints],
        },
        "status": {
            "allocatable": amounts,
            "capacity": amounts,
            "conditions": [{"type": "Ready", "status": "True" if node.is_ready else "False"}],
        },
    }


def quantities(amounts: Mapping[str, int] | Unreadable) -> dict[str, str]:
    """Returns amounts as the API server writes them."""
    assert not isinstance(amounts, Unreadable)
    return {name: f"{amount}m" if name == "cpu" else str(amount) for name, amount in amounts.items()}


def pod_object(pod: PodInfo, bound_at: int | None = None) -> dict[str, Any]:
    """Returns a Pod."""
    metadata: dict[str, Any] = {
        "name": pod.name,
        "namespace": pod.namespace,
        "uid": pod.uid,
        "labels": dict(pod.requirements.labels),
        "creationTimestamp": format_timestamp(pod.created or 0),
    }
    if pod.owner is not None:
        version = "apps/v1" if pod.owner.kind == REPLICA_SET else "batch/v1"
        metadata["ownerReferences"] = [owner_reference(version, pod.owner.kind, pod.owner.name)]
    if pod.deletion_requested_at is not None:
        metadata["deletionTimestamp"] = format_timestamp(pod.deletion_requested_at + pod.grace_seconds)
    conditions = [{"type": "Ready", "status": "True" if pod.is_ready else "False"}]
    if pod.is_unschedulable:
        conditions.append({"type": "PodScheduled", "status": "False", "reason": "Unschedulable"})
    spec: dict[str, Any] = {
        "terminationGracePeriodSeconds": pod.grace_seconds,
        "containers": [{"name": "app", "resources": {"requests": quantities(pod.requirements.requests)}}],
    }
    if pod.node:
        spec["nodeName"] = pod.node
    status: dict[str, Any] = {"phase": pod.phase, "conditions": conditions}
    if bound_at is not None:
        bound = format_timestamp(bound_at)
        status["startTime"] = bound
        conditions.append({"type": "PodScheduled", "status": "True", "lastTransitionTime": bound})
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": status}


def budget_object(budget: Pdb) -> dict[str, Any]:
    """Returns a PodDisruptionBudget of the churn."""
    assert budget.selector is not None
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"namespace": budget.namespace, "name": budget.name, "generation": 1},
        "spec": {
            "selector": {"matchLabels": dict(budget.selector.match_labels)},
            "maxUnavailable": budget.max_allowed,
        },
        "status": {"observedGeneration": 1, "disruptionsAllowed": budget.allowed},
    }
