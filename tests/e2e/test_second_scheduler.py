"""Do pods of a second scheduler land where the plan has room for them? Asked of a real one that packs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import yaml

from tests.controlplane.cluster import Cluster
from tests.controlplane.objects import Object
from tests.e2e.compactors import captured, pool
from tests.e2e.second_scheduler import second_scheduler

LOADS = (("3700m",), ("2400m",), ("600m", "600m", "600m"), ("400m", "350m"), ("300m",))
"""Node by node, the requests of its pods. A scheduler that spreads would put nothing on the first two. On the first
only what leaves the last node fits, so that the order in which pods leave changes nothing."""
KEPT = {"trimtab.dev/do-not-disrupt": "true"}
"""On the pods of the first two nodes: nothing may leave them."""


def test_what_leaves_lands_where_the_plan_says(cluster: Cluster, tmp_path: Path) -> None:
    name = f"packed-{cluster.namespace[-5:]}"
    # The taint keeps other tests' pods away: one of them on a node would change which is the fullest.
    nodes = cluster.pool(name, nodes=len(LOADS), cpu="4", memory="16Gi", taints=[f"only={name}:NoSchedule"])
    with second_scheduler(cluster.plane) as scheduler:
        filled(cluster, name, nodes, scheduler)
        cluster.apply(pool(cluster, name, protect={"singleReplicas": False}))
        steps = planned(captured(cluster, tmp_path), name)
        assert [step["node"] for step in steps] == [nodes[4], nodes[3]]
        for step in steps:
            for move in step["moves"]:
                place = carried_out(cluster, step["node"], move)
                assert place == move["target"], (move, looks(cluster, nodes))
    assert {move["target"] for step in steps for move in step["moves"]} == {nodes[0], nodes[1]}, "the fullest with room"


def test_the_printed_manifests_run_a_scheduler_that_packs(cluster: Cluster) -> None:
    name = f"packed-{cluster.namespace[-5:]}"
    scheduler = f"pack-{cluster.namespace[-5:]}"
    full, empty = cluster.pool(name, nodes=2, cpu="4", memory="16Gi")
    cluster.patch("Node", empty, {"spec": {"unschedulable": True}})
    cluster.deployment("before", replicas=2, cpu="500m", memory="1Gi", spec={"nodeSelector": {"pool": name}})
    cluster.eventually(lambda: len(cluster.running()) == 2, within=60)
    cluster.patch("Node", empty, {"spec": {"unschedulable": None}})
    cluster.eventually(lambda: cluster.is_ready(empty))
    command = [
        sys.executable,
        "-m",
        "trimtab",
        "scheduler",
        "manifests",
        "--cluster",
        "live",
        "--scheduler-name",
        scheduler,
        "--kubeconfig",
        str(cluster.kubeconfig),
    ]
    printed = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
    manifests = [one for one in yaml.safe_load_all(printed) if one["kind"] != "Deployment"]
    cluster.apply(manifests)
    [configuration] = [yaml.safe_load(one["data"]["config.yaml"]) for one in manifests if one["kind"] == "ConfigMap"]
    # A login with nothing but the rights of the printed ServiceAccount.
    user = f"system:serviceaccount:kube-system:{scheduler}"
    login = cluster.plane.kubeconfig_for(user, "system:serviceaccounts", "system:authenticated")
    try:
        with second_scheduler(cluster.plane, configuration, login):
            spec = {"schedulerName": scheduler, "nodeSelector": {"pool": name}}
            cluster.deployment("after", replicas=4, cpu="500m", memory="1Gi", spec=spec)
            pods = cluster.eventually(
                lambda: ready if len(ready := cluster.running("app=after")) == 4 else [], within=60
            )
            lease = cluster.get("Lease", scheduler, "kube-system")
    finally:
        for one in manifests:
            cluster.delete(one["kind"], one["metadata"]["name"], one["metadata"].get("namespace"))
        cluster.delete("Lease", scheduler, "kube-system")
    assert {pod["spec"]["nodeName"] for pod in pods} == {full}
    assert lease["spec"]["holderIdentity"]


def filled(cluster: Cluster, name: str, nodes: list[str], scheduler: str) -> None:
    """Each Deployment's only pod on its node: while it is placed the node is the only one that is open."""
    for node in nodes:
        cluster.patch("Node", node, {"spec": {"unschedulable": True}})
    for node, load in zip(nodes, LOADS, strict=True):
        cluster.patch("Node", node, {"spec": {"unschedulable": None}})
        cluster.eventually(lambda node=node: cluster.is_ready(node))  # type: ignore[misc]
        for at, cpu in enumerate(load):
            tolerations = [{"key": "only", "operator": "Exists"}]
            spec = {"schedulerName": scheduler, "nodeSelector": {"pool": name}, "tolerations": tolerations}
            notes = KEPT if node in nodes[:2] else {}
            cluster.deployment(f"{node}-{at}", cpu=cpu, memory="64Mi", annotations=notes, spec=spec)
        cluster.eventually(lambda: all(runs_on(cluster, f"{node}-{at}") for at in range(len(load))), within=60)  # noqa: B023
        cluster.patch("Node", node, {"spec": {"unschedulable": True}})
    for node in nodes:
        cluster.patch("Node", node, {"spec": {"unschedulable": None}})
    cluster.eventually(lambda: all(map(cluster.is_ready, nodes)))


def looks(cluster: Cluster, nodes: list[str]) -> list[Object]:
    """What may have led a pod past a node: its taints, its conditions, and all that is on it."""
    pods = [pod for pod in cluster.list("Pod", everywhere=True) if pod["spec"].get("nodeName") in nodes]
    return [
        {
            "node": node["metadata"]["name"],
            "spec": node["spec"],
            "conditions": node["status"]["conditions"],
            "pods": {
                f"{pod['metadata']['namespace']}/{pod['metadata']['name']}": pod["spec"]["containers"][0]["resources"]
                for pod in pods
                if pod["spec"]["nodeName"] == node["metadata"]["name"]
            },
        }
        for node in cluster.list("Node", everywhere=True)
        if node["metadata"]["name"] in nodes
    ]


def runs_on(cluster: Cluster, app: str) -> str:
    """The node of the workload's only pod, once it is ready; empty until then."""
    pods = cluster.list("Pod", selector=f"app={app}")
    ready = cluster.running(f"app={app}")
    return str(ready[0]["spec"]["nodeName"]) if len(pods) == len(ready) == 1 else ""


def planned(capture: Path, name: str) -> list[Object]:
    """The steps of `trimtab plan` for the pool, in order."""
    command = [sys.executable, "-m", "trimtab", "plan", "--cluster", str(capture), "-o", "json"]
    printed = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert printed.returncode == 0, printed.stderr
    report = json.loads(printed.stdout)
    steps = [step for wave in report["waves"] for step in wave["nodes"] if step["pool"] == name]
    assert steps, report
    return steps


def carried_out(cluster: Cluster, node: str, move: Object) -> str:
    """Where the pod's successor runs, once the node is cordoned and the pod evicted."""
    pod = move["pod"].partition("/")[2]
    app = cluster.get("Pod", pod)["metadata"]["labels"]["app"]
    cluster.patch("Node", node, {"spec": {"unschedulable": True}})
    cluster.evict(pod)
    return cluster.eventually(
        lambda: (place := runs_on(cluster, app)) != node and place, within=60, what=f"the successor of {pod} elsewhere"
    )
