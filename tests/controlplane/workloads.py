"""Large clusters to prepare once: give one of these functions to `prepared.start`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

from tests.bench.openb_workload import is_from_trace, make_workload
from tests.controlplane import objects
from tests.controlplane.cluster import Cluster, NotHere
from tests.controlplane.objects import Object

AT_ONCE = 8


def openb(cluster: Cluster) -> None:
    """The openb trace, placed by the default scheduler: 310 nodes, 772 Deployments, 260 budgets, 6 170 pods.

    The trace is not carried here: `make bench-data` fetches it.
    """
    if not is_from_trace():
        raise NotHere("needs the openb trace: `make bench-data` fetches it")
    items = make_workload()
    nodes = [item for item in items if item["kind"] == "Node"]
    create_all(cluster, nodes)
    create_all(cluster, [item for item in items if item["kind"] != "Node"])
    deployed = sum(item["spec"]["replicas"] for item in items if item["kind"] == "Deployment")
    alone = sum(item["kind"] == "Pod" for item in items)
    wait_for_pods(cluster, deployed + alone + len(nodes))  # the DaemonSet's: one a node


def crowd(cluster: Cluster, *, nodes: int, pods: int) -> None:
    """Bare pods, dealt out to the nodes without the scheduler: the quickest way to very many real ones."""
    names = [f"node-{number:04d}" for number in range(nodes)]
    create_all(cluster, [_large(name) for name in names])
    create_all(cluster, [_bound(number, names[number % nodes], cluster.image) for number in range(pods)])
    wait_for_pods(cluster, pods)


def create_all(cluster: Cluster, items: Iterable[Object]) -> None:
    """Several at a time; the first refusal is raised."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for _ in pool.map(cluster.create, items):
            pass


def wait_for_pods(cluster: Cluster, count: int, slowest: float = 10.0) -> None:
    """Until so many of our namespace's pods run; at least `slowest` pods a second are expected."""
    cluster.eventually(lambda: _phases(cluster)["Running"] >= count, within=60 + count / slowest, every=2)


def _phases(cluster: Cluster) -> Counter[str]:
    return Counter(pod["status"]["phase"] for pod in cluster.list("Pod"))


def _large(name: str) -> Object:
    return objects.node(name, cpu="64", memory="256Gi", pods=250, labels={"pool": "crowd"}, taints=())


def _bound(number: int, node: str, image: str) -> Object:
    container = objects.container("main", image, f"{10 + number % 190}m", f"{16 + number % 240}Mi")
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"pod-{number:05d}", "labels": {"app": f"app-{number % 500}"}},
        "spec": {"nodeName": node, "containers": [container]},
    }
