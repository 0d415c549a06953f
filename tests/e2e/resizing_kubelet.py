"""A kubelet that can resize, for the fake nodes of one pool: kwok runs the pods, this answers resizes as a real one.

It reports `status.containerStatuses[].resources` and `allocatedResources` for each pod that runs. Where the spec
differs from what a container has, it answers as it is told: it makes the change (PodResizeInProgress for a moment, then
the new `resources`), defers it, calls it infeasible, or is silent. A pod that grows beyond what its node has is
deferred, whatever it is told.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from datetime import UTC, datetime
from typing import Any

from tests.controlplane.api import ApiError, Unreachable
from tests.controlplane.cluster import Cluster
from trimtab.cluster import quantity

Object = dict[str, Any]
EVERY = 0.2


class ResizingKubelet:
    """Use it as a context. `answers`: app → done, Deferred, Infeasible or silent."""

    def __init__(self, cluster: Cluster, pool: str, answers: dict[str, str] | None = None) -> None:
        self.cluster, self.pool, self.answers = cluster, pool, answers or {}
        self.old = False
        """It cannot resize: it reports nothing."""
        self.qos: dict[str, set[str]] = defaultdict(set)
        """Pod → every class of service that it was seen with."""
        self.overfull: list[str] = []
        """Nodes on which the specs of pods together asked for more than there is."""
        self.sizes: dict[str, list[str]] = defaultdict(list)
        """Pod → the cpu requests that its spec had, one after the other."""
        self._killed: dict[str, Object] = {}
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> ResizingKubelet:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join(20)

    def kill(self, pod: Object) -> None:
        """Its container runs out of memory now, and starts again."""
        self._killed[pod["metadata"]["uid"]] = {
            "restartCount": 1,
            "lastState": {"terminated": {"exitCode": 137, "reason": "OOMKilled", "finishedAt": _now()}},
        }

    def _run(self) -> None:
        while not self._done.wait(EVERY):
            try:
                self.look()
            except (ApiError, Unreachable):
                continue

    def look(self) -> None:
        nodes = {
            node["metadata"]["name"]: node
            for node in self.cluster.list("Node", selector=f"pool={self.pool}", everywhere=True)
        }
        pods = [
            pod
            for pod in self.cluster.list("Pod", everywhere=True)
            if pod["spec"].get("nodeName") in nodes and pod["status"].get("phase") == "Running"
        ]
        holdings: dict[str, int] = defaultdict(int)
        requests: dict[str, int] = defaultdict(int)
        for pod in pods:
            holdings[pod["spec"]["nodeName"]] += _cpu(_has(pod) or _spec(pod))
            requests[pod["spec"]["nodeName"]] += _cpu(_spec(pod))
        for name, amount in requests.items():
            if amount > _cpu(nodes[name]["status"]["allocatable"]):
                self.overfull.append(name)
        for pod in pods:
            name, size = pod["metadata"]["name"], _spec(pod).get("cpu", "")
            self.qos[name].add(pod["status"].get("qosClass", ""))
            if self.sizes[name][-1:] != [size]:
                self.sizes[name].append(size)
            if "deletionTimestamp" not in pod["metadata"] and not self.old:
                node = pod["spec"]["nodeName"]
                room = _cpu(nodes[node]["status"]["allocatable"]) - holdings[node]
                self._answer(pod, room)

    def _answer(self, pod: Object, room: int) -> None:
        spec, has = _spec(pod), _has(pod)
        answer = self.answers.get(pod["metadata"]["labels"].get("app", ""), "done")
        killed = self._killed.pop(pod["metadata"]["uid"], None)
        pending = _condition(pod, "PodResizePending")
        if has is None or killed is not None:
            self._tell(pod, has or spec, [], **(killed or {}))
        elif _same(spec, has):
            if pending or _condition(pod, "PodResizeInProgress"):
                self._tell(pod, has, [])
        elif answer == "silent":
            return
        elif answer == "done" and _cpu(spec) - _cpu(has) <= room:
            if _condition(pod, "PodResizeInProgress"):
                self._tell(pod, spec, [])
            else:
                self._tell(pod, has, [("PodResizeInProgress", "", "")])
        elif not pending:
            reason = "Deferred" if answer == "done" else answer
            self._tell(pod, has, [("PodResizePending", reason, f"the node says {reason}")])

    def _tell(self, pod: Object, has: Object, conditions: list[tuple[str, str, str]], **more: Any) -> None:
        """Writes the status, as the kubelet does."""
        actual_conditions = [c for c in pod["status"].get("conditions", []) if not c["type"].startswith("PodResize")]
        actual_conditions += [
            {"type": kind, "status": "True", "reason": reason, "message": message, "lastTransitionTime": _now()}
            for kind, reason, message in conditions
        ]
        [container] = pod["spec"]["containers"]
        [old] = pod["status"].get("containerStatuses") or [{}]
        limits = container["resources"].get("limits")
        resources = {"requests": has, **({"limits": limits} if limits else {})}
        status = {
            "name": container["name"],
            "image": container["image"],
            "imageID": "",
            "ready": True,
            "started": True,
            "restartCount": 0,
            "state": {"running": {"startedAt": _now()}},
            **old,
            **more,
            "resources": resources,
            "allocatedResources": has,
        }
        whole = {**pod, "status": {**pod["status"], "conditions": actual_conditions, "containerStatuses": [status]}}
        meta = pod["metadata"]
        path = f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}/status"
        self.cluster.api.request("PUT", path, whole)


def _spec(pod: Object) -> Object:
    requests: Object = pod["spec"]["containers"][0]["resources"].get("requests", {})
    return requests


def _has(pod: Object) -> Object | None:
    statuses = pod["status"].get("containerStatuses") or [{}]
    requests: Object | None = statuses[0].get("resources", {}).get("requests")
    return requests


def _cpu(amounts: Object) -> int:
    return quantity.scheduler_value("cpu", amounts.get("cpu", 0))


def _same(one: Object, other: Object) -> bool:
    return one.keys() == other.keys() and all(quantity.is_same_quantity(one[name], other[name]) for name in one)


def _condition(pod: Object, kind: str) -> Object | None:
    return next((c for c in pod["status"].get("conditions", ()) if c["type"] == kind), None)


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
