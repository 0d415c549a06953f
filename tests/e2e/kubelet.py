"""A kubelet in a few lines: the pods of two nodes run as plain processes (`boxes`), from what the API server stored.

It starts what is bound to its nodes, asks the readiness and liveness probes, tells the status, sends SIGTERM when a pod
is deleted, waits as long as its grace period says, and takes it from the API. Beside it a Service that leads to pods
that are ready, until a moment after they are asked to stop: endpoints are no quicker.
"""

from __future__ import annotations

import contextlib
import os
import ssl
import threading
import time
import urllib.request
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.controlplane.api import ApiError, Unreachable
from tests.controlplane.cluster import Cluster
from tests.e2e.boxes import Box, unshare
from tests.e2e.replicas import Balancer

Object = dict[str, Any]
NODES = ("real-0", "real-1")
"""Left alone by kwok's stages."""
LABELS = {"runs": "processes"}
PLACED = {"nodeSelector": LABELS, "tolerations": [{"key": "runs", "operator": "Exists"}]}
"""Values of the chart that lead a pod here."""
EVERY = 0.25
LATE = 0.5
"""Seconds until endpoints have forgotten a pod that is asked to stop."""


class Kubelet:
    """Use it as a context: everything is stopped at its end."""

    def __init__(self, cluster: Cluster, home: Path) -> None:
        unshare()
        self.cluster, self.home, self.balancer = cluster, home, Balancer()
        self.boxes: dict[str, Box] = {}
        self.ended: list[Box] = []
        self.ready: dict[str, bool] = {}
        self.troubles: list[str] = []
        """What a kubelet would have had to do by force: a kill after the grace period, a restart."""
        self._asked_to_stop: dict[str, float] = {}
        self._failures: dict[str, int] = {}
        self._over: set[str] = set()
        self._count = 0
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Kubelet:
        for name in NODES:
            self.cluster.create(
                {
                    "apiVersion": "v1",
                    "kind": "Node",
                    "metadata": {"name": name, "labels": LABELS},
                    "spec": {"taints": [{"key": "runs", "value": "processes", "effect": "NoSchedule"}]},
                    "status": {
                        "capacity": {"cpu": "8", "memory": "32Gi", "pods": "110"},
                        "allocatable": {"cpu": "8", "memory": "32Gi", "pods": "110"},
                    },
                }
            )
        self.cluster.eventually(lambda: all(map(self.cluster.is_ready, NODES)), what="the nodes Ready")
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join(30)
        for box in self.boxes.values():
            box.kill()
        self.balancer.close()

    def of(self, component: str) -> list[Box]:
        """The processes of this component that are not asked to stop."""
        return [
            box for box in self.boxes.values() if _component(box) == component and box.uid not in self._asked_to_stop
        ]

    @property
    def logs(self) -> Iterator[tuple[str, str]]:
        """(pod, what it wrote) of all there ever were."""
        for box in (*self.ended, *self.boxes.values()):
            yield box.name, box.log

    def _run(self) -> None:
        while not self._done.wait(EVERY):
            try:
                self._look()
            except (ApiError, Unreachable) as error:
                self.troubles.append(f"kubelet: {error}")

    def _look(self) -> None:
        pods = [pod for pod in self.cluster.list("Pod", everywhere=True) if pod["spec"].get("nodeName") in NODES]
        for pod in pods:
            uid = pod["metadata"]["uid"]
            if "deletionTimestamp" in pod["metadata"]:
                self._stop(pod)
            elif uid not in self.boxes and pod["status"].get("phase") in (None, "Pending"):
                with contextlib.suppress(ApiError):  # what a volume needs may not be there yet
                    self.boxes[uid] = self._box(pod)
            elif uid in self.boxes:
                self._watch(self.boxes[uid])
        self._route()

    def _box(self, pod: Object) -> Box:
        self._count += 1
        number = self._count
        own = os.getpid() % 62_500  # the pods of another suite on this machine have addresses of their own
        address = f"127.{own // 250 + 1}.{own % 250}.{number}"
        return Box(pod, self.home / f"{number}-{pod['metadata']['name']}", address, self.cluster.api)

    def _stop(self, pod: Object) -> None:
        uid = pod["metadata"]["uid"]
        box, now = self.boxes.get(uid), time.monotonic()
        if box is not None and box.process.poll() is None:
            if uid not in self._asked_to_stop:
                self._asked_to_stop[uid] = now
                box.terminate()
            elif now > self._asked_to_stop[uid] + pod["spec"]["terminationGracePeriodSeconds"]:
                self.troubles.append(f"{box.name} did not end in time\n{box.log[-2000:]}")
                box.kill()
            return
        if box is not None:
            self.ended.append(self.boxes.pop(uid))
        with contextlib.suppress(ApiError):
            options = {"gracePeriodSeconds": 0, "preconditions": {"uid": uid}}
            self.cluster.api.request("DELETE", _path(pod), options)

    def _watch(self, box: Box) -> None:
        code = box.process.poll()
        if code is not None and box.pod["spec"]["restartPolicy"] == "Always":
            self.troubles.append(f"{box.name} ended with {code}\n{box.log[-2000:]}")
            box.restart()
        elif code is not None and box.uid not in self._over:
            self._over.add(box.uid)
            self._tell(box, False, "Failed" if code else "Succeeded", code)
        elif code is not None:
            return
        else:
            self._probe(box)

    def _probe(self, box: Box) -> None:
        ready = self._answers(box, "readinessProbe")
        alive = not ready or self._answers(box, "livenessProbe")
        self._failures[box.uid] = 0 if alive else self._failures.get(box.uid, 0) + 1
        if self._failures[box.uid] == 20:
            self.troubles.append(f"{box.name} does not answer its liveness probe")
        if self.ready.get(box.uid) != ready:
            self._tell(box, ready, "Running")
            self.ready[box.uid] = ready

    def _answers(self, box: Box, kind: str) -> bool:
        probe = box.container.get(kind)
        if probe is None:
            return True
        get = probe["httpGet"]
        try:
            return bool(fetched(f"{get['scheme'].lower()}://{box.address}:{box.port(get['port'])}{get['path']}"))
        except OSError:
            return False

    def _tell(self, box: Box, ready: bool, phase: str, code: int | None = None) -> None:
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        state: Object = (
            {"running": {"startedAt": now}}
            if code is None
            else {"terminated": {"exitCode": code, "startedAt": now, "finishedAt": now}}
        )
        conditions = [
            {"type": kind, "status": str(ready), "lastTransitionTime": now} for kind in ("ContainersReady", "Ready")
        ]
        container = {
            "name": box.container["name"],
            "image": box.container["image"],
            "imageID": "",
            "ready": ready,
            "started": True,
            "restartCount": box.restarts,
            "state": state,
        }
        message = {
            "phase": phase,
            "startTime": now,
            "podIP": box.address,
            "podIPs": [{"ip": box.address}],
            "conditions": [*_kept(box), *conditions],
            "containerStatuses": [container],
        }
        with contextlib.suppress(ApiError):
            self.cluster.api.request(
                "PATCH", f"{_path(box.pod)}/status", {"status": message}, content_type="application/merge-patch+json"
            )

    def _route(self) -> None:
        """What endpoints do for the webhook's Service."""
        now = time.monotonic()
        boxes = [box for box in self.boxes.values() if _component(box) == "webhook" and self.ready.get(box.uid)]
        staying = [box for box in boxes if now < self._asked_to_stop.get(box.uid, now) + LATE]
        self.balancer.backends = [(box.address, box.port("https")) for box in staying]


def fetched(url: str) -> str:
    """The page; nothing of a certificate is checked, as the kubelet doesn't."""
    anything = ssl.create_default_context()
    anything.check_hostname, anything.verify_mode = False, ssl.CERT_NONE
    with urllib.request.urlopen(url, timeout=2, context=anything) as answer:
        return str(answer.read().decode())


def _component(box: Box) -> str:
    return str(box.pod["metadata"].get("labels", {}).get("app.kubernetes.io/component", ""))


def _kept(box: Box) -> list[Object]:
    """What the scheduler said of it."""
    return [one for one in box.pod["status"].get("conditions", ()) if one["type"] not in ("Ready", "ContainersReady")]


def _path(pod: Object) -> str:
    return f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"
