"""What kube-state-metrics shows of a simulated churn, as a Prometheus that scrapes it has it, in OpenMetrics."""

from collections.abc import Iterator
from pathlib import Path

from trimtab.autoscaling.churn.churn_cluster import EPOCH, ChurnCluster
from trimtab.autoscaling.churn.churn_script import Churn
from trimtab.autoscaling.churn.churn_stand_in import ChurnStandIn
from trimtab.autoscaling.churn.stand_in_rules import StandInFlags
from trimtab.cluster.node import NodeInfo
from trimtab.cluster.pod import PodInfo
from trimtab.cluster.reason import Unreadable

Samples = dict[str, dict[str, list[tuple[int, float]]]]
"""Metric → labels → (second, value)."""
UNITS = {"cpu": "core", "memory": "byte", "pods": "integer"}


def record_scrapes(churn: Churn, begin: int, every: int, *, with_node_labels: bool = True) -> Samples:
    """Returns the samples of the churn with the stand-in alone, from `begin` on. `with_node_labels`: whether
    kube-state-metrics runs with --metric-labels-allowlist."""
    cluster = ChurnCluster(churn)
    stand_in = ChurnStandIn(cluster, StandInFlags())
    samples: Samples = {}
    bound_at: dict[str, int] = {}
    for second in range(10, churn.seconds + 1, 10):
        cluster.advance_to(second)
        bound_at = {uid: bound_at.get(uid, EPOCH + second) for uid, pod in cluster.pods.items() if pod.node}
        if second >= begin and (second - begin) % every == 0:
            for metric, labels, value in list_samples(cluster, bound_at, with_node_labels=with_node_labels):
                samples.setdefault(metric, {}).setdefault(labels, []).append((EPOCH + second, value))
        stand_in.run_scan()
    return samples


def write_open_metrics(path: Path, samples: Samples) -> None:
    """Writes the samples as promtool reads them: those of a metric stand together."""
    with path.open("w", encoding="ascii") as out:
        for metric, series in samples.items():
            out.write(f"# TYPE {metric} gauge\n")
            for labels, points in series.items():
                out.writelines(f"{metric}{{{labels}}} {value:.3f} {at}\n" for at, value in points)
        out.write("# EOF\n")


def list_samples(
    cluster: ChurnCluster, bound_at: dict[str, int], *, with_node_labels: bool
) -> Iterator[tuple[str, str, float]]:
    """Yields (metric, labels, value) of one scrape."""
    for node in cluster.nodes.values():
        yield from _list_node_samples(node, with_node_labels=with_node_labels)
    for pod in cluster.pods.values():
        yield from _list_pod_samples(pod, bound_at.get(pod.uid))
    for owner, top in cluster.top_owners.items():
        labels = _join(namespace=owner.namespace, replicaset=owner.name, owner_kind="Deployment", owner_name=top.name)
        yield "kube_replicaset_owner", labels, 1
    for budget in cluster.budgets:
        labels = _join(namespace=budget.namespace, poddisruptionbudget=budget.name)
        yield "kube_poddisruptionbudget_status_desired_healthy", labels, 1


def _list_node_samples(node: NodeInfo, *, with_node_labels: bool) -> Iterator[tuple[str, str, float]]:
    name = node.name
    yield "kube_node_info", _join(node=name, provider_id=node.provider_id, os_image="linux"), 1
    yield "kube_node_created", _join(node=name), node.created or 0
    labels = {f"label_{key.translate(_UNDERSCORES)}": text for key, text in node.labels.items()}
    yield "kube_node_labels", _join(node=name, **(labels if with_node_labels else {})), 1
    assert not isinstance(node.allocatable, Unreadable)
    for resource, amount in node.allocatable.items():
        value = amount / 1000 if resource == "cpu" else amount
        for metric in ("allocatable", "capacity"):
            labels_of_amount = _join(node=name, resource=resource, unit=UNITS[resource])
            yield f"kube_node_status_{metric}", labels_of_amount, value
    yield "kube_node_spec_unschedulable", _join(node=name), float(node.is_cordoned)
    yield "kube_node_status_condition", _join(node=name, condition="Ready", status="true"), float(node.is_ready)
    for taint in node.taints:
        yield "kube_node_spec_taint", _join(node=name, key=taint.key, value="", effect=taint.effect), 1


def _list_pod_samples(pod: PodInfo, bound_at: int | None) -> Iterator[tuple[str, str, float]]:
    own = {"namespace": pod.namespace, "pod": pod.name, "uid": pod.uid}
    assert pod.owner is not None
    yield (
        "kube_pod_info",
        _join(**own, node=pod.node, created_by_kind=pod.owner.kind, created_by_name=pod.owner.name),
        1,
    )
    yield "kube_pod_created", _join(**own), pod.created or 0
    for phase in ("Running", "Succeeded", "Failed"):
        yield "kube_pod_status_phase", _join(**own, phase=phase), float(pod.phase == phase)
    if bound_at is not None:
        yield "kube_pod_status_scheduled_time", _join(**own), bound_at
    if pod.deletion_requested_at is not None:
        yield "kube_pod_deletion_timestamp", _join(**own), pod.deletion_requested_at + pod.grace_seconds
    requests = pod.requirements.requests
    assert not isinstance(requests, Unreadable)
    for resource, amount in requests.items():
        value = amount / 1000 if resource == "cpu" else amount
        container = _join(**own, container="app", resource=resource, unit=UNITS[resource])
        yield "kube_pod_container_resource_requests", container, value


_UNDERSCORES = str.maketrans("./-", "___")


def _join(**labels: str) -> str:
    own = {**labels, "job": "kube-state-metrics", "instance": "10.0.0.1:8080"}
    return ",".join(f'{name}="{text}"' for name, text in own.items() if text)
