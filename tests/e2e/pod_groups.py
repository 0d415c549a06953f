"""Groups of pods on two nodes: one without a leader, played LeaderWorkerSets and JobSets, and a webhook that refuses
evictions.

The garbage collector and the controllers of StatefulSets, Deployments and Jobs are the real ones.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from tests.controlplane import objects
from tests.controlplane.api import Api, ApiError
from tests.controlplane.cluster import Cluster
from tests.controlplane.webhook_server import WebhookServer
from tests.e2e.surges import call_repeatedly, service
from trimtab.cluster.pod_groups import JOBSET_LABEL

Object = dict[str, Any]
LWS = "leaderworkerset.sigs.k8s.io"
KEY = f"{LWS}/group-key"
MOVES: Object = {"protect": {"singleReplicas": False}, "groups": "move"}
"""Settings of a pool."""
QUICK_END = {"terminationGracePeriodSeconds": 1}


class EvictionGuard(WebhookServer):
    """Refuses the evictions for which `refuses` is true, given the request of the review."""

    def __init__(self, refuses: Callable[[Object], bool]) -> None:
        super().__init__([])
        self.refuses = refuses

    def answer(self, review: Object) -> Object:
        answer = super().answer(review)
        if self.refuses(review["request"]):
            answer["response"] |= {"allowed": False, "status": {"code": 403, "message": "not now"}}
        return answer


@contextmanager
def guarded(cluster: Cluster, refuses: Callable[[Object], bool]) -> Iterator[EvictionGuard]:
    """The webhook, in force for the evictions in the cluster's namespace."""
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods/eviction"]}
    with EvictionGuard(refuses) as guard:
        cluster.webhook_configuration("guard", guard, rules=[{**rule, "scope": "*"}])
        yield guard


def close_node(cluster: Cluster, name: str, *, is_closed: bool = True) -> None:
    cluster.patch("Node", name, {"spec": {"unschedulable": is_closed or None}})


def add_second_node(cluster: Cluster, name: str) -> None:
    """A node whose own pods are too many to move, so that it stays."""
    cluster.create(objects.node(f"{name}-b", cpu="8", memory="32Gi", pods=110, labels={"pool": name}, taints=()))
    cluster.eventually(lambda: cluster.is_ready(f"{name}-b"))
    cluster.deployment("many", replicas=6, cpu="900m", spec={"nodeName": f"{name}-b"})
    cluster.eventually(lambda: len(cluster.running("app=many")) == 6)


def three_members(cluster: Cluster, label: str = KEY) -> None:
    """A group without a leader: a pod on the first node, two on the second, which stays."""
    name = cluster.namespace
    cluster.pool(name, nodes=1, cpu="4", memory="16Gi")
    spec = {"nodeSelector": {"pool": name}, **QUICK_END}
    cluster.deployment("train", replicas=1, cpu="300m", labels={label: "one"}, spec=spec)
    cluster.eventually(lambda: len(cluster.running("app=train")) == 1)
    close_node(cluster, f"{name}-0")
    add_second_node(cluster, name)
    cluster.patch("Deployment", "train", {"spec": {"replicas": 3}}, sub="scale")
    cluster.eventually(lambda: len(cluster.running("app=train")) == 3)
    close_node(cluster, f"{name}-0", is_closed=False)


def stateful_set(name: str, app: str, pool: str, replicas: int = 1, **metadata: Any) -> Object:
    template = objects.deployment(
        app,
        replicas=replicas,
        image="pause",
        cpu="300m",
        memory=None,
        labels=metadata.pop("labels", {}),
        annotations=metadata.pop("annotations", {}),
        spec={"nodeSelector": {"pool": pool}, **QUICK_END},
    )
    spec = {**template["spec"], "serviceName": app, "podManagementPolicy": "Parallel"}
    return {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": name, **metadata}, "spec": spec}


@contextmanager
def leader_worker_set(cluster: Cluster) -> Iterator[None]:
    """The controller, played: it labels each leader, gives it a StatefulSet of its own with one worker, and deletes the
    leader of a worker that ends (RecreateGroupOnPodRestart). What a deleted leader owned, the real garbage collector
    deletes."""
    api, name = Api(cluster.kubeconfig), cluster.namespace
    pods = api.kind("Pod")

    def look() -> None:
        items = api.request("GET", api.path(pods, name), timeout=10)["items"]
        stopped = {item["metadata"]["labels"].get("leader") for item in items if is_ending(item)}
        for leader in items:
            if leader["metadata"]["labels"].get("app") == "lead" and not is_ending(leader):
                control(leader, is_stopped=leader["metadata"]["uid"] in stopped)

    def control(leader: Object, *, is_stopped: bool) -> None:
        own, uid = leader["metadata"]["name"], leader["metadata"]["uid"]
        if is_stopped:
            foreground = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Foreground"}
            api.request("DELETE", api.path(pods, name, own), foreground)
            return
        labels = {f"{LWS}/name": "lead", f"{LWS}/group-index": own.rpartition("-")[2], "group": own}
        if "group" not in leader["metadata"]["labels"]:
            cluster.patch("Pod", own, {"metadata": {"labels": labels}})
        owner = {"apiVersion": "v1", "kind": "Pod", "name": own, "uid": uid, "controller": True}
        own_labels, annotations = {**labels, "leader": uid}, {f"{LWS}/leader-name": own}
        workers = stateful_set(own, "work", name, labels=own_labels, annotations=annotations, ownerReferences=[owner])
        workers["spec"]["selector"] = {"matchLabels": {"group": own, "app": "work"}}
        try:
            cluster.create(workers)
        except ApiError as error:
            if error.status != 409:
                raise

    with call_repeatedly(look):
        yield


def is_ending(item: Object) -> bool:
    return "deletionTimestamp" in item["metadata"]


@contextmanager
def two_groups(cluster: Cluster, first: str = "lead") -> Iterator[None]:
    """Two groups of a leader and a worker: of the first group, `first` runs on the first node, everything else on the
    second, which stays. Both have a Service; a budget permits that one leader is missing."""
    name = cluster.namespace
    cluster.pool(name, nodes=1, cpu="4", memory="16Gi")
    add_second_node(cluster, name)
    of_worker, of_leader = (f"{name}-b", f"{name}-0") if first == "lead" else (f"{name}-0", f"{name}-b")
    close_node(cluster, of_worker)
    cluster.create(stateful_set("lead", "lead", name))
    cluster.eventually(lambda: len(cluster.running("app=lead")) == 1)
    close_node(cluster, of_worker, is_closed=False)
    close_node(cluster, of_leader)
    spec = {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "lead"}}}
    budget = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "lead"}, "spec": spec}
    cluster.apply([service("lead"), service("work"), budget])
    with leader_worker_set(cluster):
        cluster.eventually(lambda: len(cluster.running("app=work")) == 1)
        close_node(cluster, f"{name}-b", is_closed=False)
        close_node(cluster, f"{name}-0")
        cluster.patch("StatefulSet", "lead", {"spec": {"replicas": 2}}, sub="scale")
        cluster.eventually(lambda: len(cluster.running("app in (lead,work)")) == 4)
        cluster.eventually(lambda: len(uids(cluster, "group=lead-0")) == 2)
        allowed = lambda: cluster.get("PodDisruptionBudget", "lead")["status"].get("disruptionsAllowed") == 1  # noqa: E731
        cluster.eventually(allowed)
        close_node(cluster, f"{name}-0", is_closed=False)
        yield


def job(name: str, pool: str, parallelism: int, backoff_limit: int) -> Object:
    """A Job of the JobSet `train`, whose pods take three seconds to end."""
    annotations = {"testbed.trimtab.dev/runs-for": "900s", "testbed.trimtab.dev/stops-after": "3s"}
    pod = objects.deployment(
        "train",
        replicas=1,
        image="pause",
        cpu="300m",
        memory=None,
        labels={JOBSET_LABEL: "train"},
        annotations=annotations,
        spec={"nodeSelector": {"pool": pool}, "restartPolicy": "Never"},
    )["spec"]["template"]
    spec = {"parallelism": parallelism, "backoffLimit": backoff_limit, "template": pod}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": spec}


@contextmanager
def job_set(cluster: Cluster, backoff_limit: int) -> Iterator[None]:
    """A JobSet of one Job with a pod on the first node and two on the second, which stays. Its controller is played:
    when the Job has failed, it deletes it and creates another one."""
    name = cluster.namespace
    cluster.pool(name, nodes=1, cpu="4", memory="16Gi")
    cluster.create(job("train-0", name, 1, backoff_limit))
    cluster.eventually(lambda: len(cluster.running("app=train")) == 1)
    close_node(cluster, f"{name}-0")
    add_second_node(cluster, name)
    cluster.patch("Job", "train-0", {"spec": {"parallelism": 3}})
    cluster.eventually(lambda: len(cluster.running("app=train")) == 3)
    close_node(cluster, f"{name}-0", is_closed=False)

    def replace_failed() -> None:
        for item in cluster.list("Job"):
            conditions = item.get("status", {}).get("conditions", ())
            if any(one["type"] == "Failed" and one["status"] == "True" for one in conditions):
                # A kubectl that fails, as when the Job is gone, is tried again.
                with suppress(AssertionError):
                    cluster.kubectl("-n", name, "delete", "job", item["metadata"]["name"], "--wait=false")
                    cluster.create(job(f"train-{time.monotonic_ns()}", name, 3, backoff_limit))

    with call_repeatedly(replace_failed):
        yield


def uids(cluster: Cluster, selector: str) -> set[str]:
    """The uids of the pods that stay."""
    return {pod["metadata"]["uid"] for pod in cluster.list("Pod", selector=selector) if not is_ending(pod)}
