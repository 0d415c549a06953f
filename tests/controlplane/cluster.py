"""A cluster to test on, in sentences: our own control plane's, or somebody's by kubeconfig.

A Cluster stands in one namespace, remembers what it made outside of it, and `clean_up()` takes all of it away.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from tests.controlplane import objects
from tests.controlplane.api import Api, ApiError, Unreachable
from tests.controlplane.auditor import Auditor
from tests.controlplane.binaries import kubectl
from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.objects import Object
from tests.controlplane.webhook_server import Serving

T = TypeVar("T")
Objects = list[Object]  # inside the class `list` is a verb
Names = list[str]
SMALL = "pause"  # never pulled: kwok plays the kubelet


class NotHere(Exception):
    """This cluster can't play that. The message says what it would take; the suite skips with it."""


class Cluster:
    """`plane` is None for somebody's cluster."""

    def __init__(self, kubeconfig: Path, namespace: str = "default", plane: ControlPlane | None = None) -> None:
        self.kubeconfig = kubeconfig
        self.namespace = namespace
        self.api = Api(kubeconfig)
        self._plane = plane
        self._outside: list[tuple[str, str]] = []

    # ── objects ──────────────────────────────────────────────────────────────────────────────────────

    def apply(self, given: str | Object | Sequence[Object]) -> Objects:
        """Server-side apply of YAML or dicts; what has a namespace and names none goes to ours. Returns them as stored."""
        return [self._send("PATCH", item) for item in objects.documents(given)]

    def create(self, given: str | Object, **query: Any) -> Object:
        """One object by POST, as stored."""
        [item] = objects.documents(given)
        return self._send("POST", item, **query)

    def get(self, kind: str, name: str, namespace: str | None = None) -> Object:
        return self._ask("GET", kind, name, namespace)

    def list(self, kind: str, namespace: str | None = None, *, selector: str | None = None, everywhere: bool = False) -> Objects:
        """Those of our namespace unless `namespace` or `everywhere` says otherwise. `selector` is a label selector."""
        found = self.api.kind(kind)
        inside = None if everywhere else namespace or self.namespace
        return list(self.api.items(found, inside, labelSelector=selector))

    def delete(self, kind: str, name: str, namespace: str | None = None, *, grace: int | None = None) -> None:
        """What is gone already is fine."""
        try:
            self._ask("DELETE", kind, name, namespace, gracePeriodSeconds=grace)
        except ApiError as error:
            if error.status != 404:
                raise

    def patch(self, kind: str, name: str, changes: Object, namespace: str | None = None, sub: str = "") -> Object:
        """A merge patch."""
        found = self.api.kind(kind)
        path = self.api.path(found, namespace or self.namespace, name, sub)
        return self._object("PATCH", path, changes, content_type="application/merge-patch+json")

    # ── sentences ────────────────────────────────────────────────────────────────────────────────────

    def pool(
        self,
        name: str,
        nodes: int = 1,
        *,
        cpu: str = "8",
        memory: str = "32Gi",
        pods: int = 110,
        label: str = "pool",
        labels: Mapping[str, str] | None = None,
        taints: Sequence[str | Object] = (),
    ) -> Names:
        """Nodes `name-0`, `name-1`, … labelled `pool=name`, Ready on return. Taints as kubectl writes them."""
        self.needs_own("nodes made by the test (kwok)")
        names = [f"{name}-{number}" for number in range(nodes)]
        wanted = [objects.taint(taint) for taint in taints]
        for node in names:
            given = {label: name, **(labels or {})}
            self.create(objects.node(node, cpu=cpu, memory=memory, pods=pods, labels=given, taints=wanted))
        self.eventually(lambda: all(map(self.is_ready, names)), within=20, what=f"pool {name} Ready")
        return names

    def some_nodes(self) -> None:
        """For tests to which any node will do: two of ours, or what somebody's cluster has."""
        if self._plane is not None:
            self.pool(f"any-{self.namespace[-5:]}", nodes=2)

    def is_ready(self, node: str) -> bool:
        """Ready, and no longer tainted as new."""
        found = self.get("Node", node)
        ready = any(c["type"] == "Ready" and c["status"] == "True" for c in found["status"].get("conditions", ()))
        return ready and not any(t["key"].startswith("node.kubernetes.io/") for t in found["spec"].get("taints", ()))

    def deployment(
        self,
        name: str,
        *,
        replicas: int = 1,
        cpu: str | None = None,
        memory: str | None = None,
        labels: Mapping[str, str] | None = None,
        annotations: Mapping[str, str] | None = None,
        spec: Object | None = None,
    ) -> Object:
        """One container with these requests; pods are labelled `app=name`; `spec` is laid over the pod's spec."""
        return self.create(
            objects.deployment(
                name, replicas=replicas, image=self.image, cpu=cpu, memory=memory,
                labels=labels or {}, annotations=annotations or {}, spec=spec or {},
            )
        )

    def pod(self, given: Object | None = None, name: str = "pod", *, dry_run: bool = False) -> Object:
        """A pod as the API server stored it. `given` is a spec laid over one container, or a whole Pod."""
        whole = given or {}
        if whole.get("kind") != "Pod":
            spec = {"containers": [objects.container("main", self.image, None, None)], **whole}
            whole = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}
        return self.create(whole, dryRun="All" if dry_run else None)

    def evict(self, pod: str) -> None:
        """By the eviction API: a budget that is spent answers 429."""
        path = self.api.path(self.api.kind("Pod"), self.namespace, pod, "eviction")
        self._object("POST", path, {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod}})

    def running(self, selector: str | None = None) -> Objects:
        """Our pods that run and are Ready."""
        return [pod for pod in self.list("Pod", selector=selector) if _is_running(pod)]

    def webhook_configuration(
        self,
        name: str,
        serving: Serving,
        *,
        by: str = "url",
        path: str | None = None,
        failure_policy: str = "Fail",
        reinvocation_policy: str = "Never",
        timeout_seconds: int = 5,
        rules: Sequence[Object] | None = None,
        **more: Any,
    ) -> Object:
        """Registers a webhook for pods created in our namespace, called by URL or, `by="service"`, through a Service.

        Returns when the API server calls it. The Service is an ExternalName `localhost`: the certificate is checked
        against NAME.NAMESPACE.svc as in any cluster.
        """
        self.needs_own("webhooks on this machine")
        where = serving.path if path is None else path
        configuration = objects.mutating_webhook(
            name, client_config=self._client_config(name, serving, by, where), namespace=self.namespace,
            failure_policy=failure_policy, reinvocation_policy=reinvocation_policy,
            timeout_seconds=timeout_seconds, rules=rules, more=more,
        )
        stored = self.create(configuration)
        self.eventually(lambda: self._is_refused(objects.probe(name)), what=f"webhook {name} in force", every=0.02)
        return stored

    def eventually(self, fn: Callable[[], T], within: float = 15.0, what: str = "", every: float = 0.1) -> T:
        """Calls until the answer is true and returns it. Assertions, refusals and silence count as "not yet"."""
        deadline = time.monotonic() + within
        last: object = None
        while True:
            try:
                last = answer = fn()
                if answer:
                    return answer
            except (AssertionError, ApiError, Unreachable) as error:
                last = error
            if time.monotonic() > deadline:
                if self._plane is not None:
                    self._plane.processes.check()
                raise AssertionError(f"not within {within:g} s: {what or fn}; last: {last!r}")
            time.sleep(every)

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        """What it prints; a failure raises with what it said."""
        program = str(kubectl()) if self._plane is None else self._plane.binaries["kubectl"]
        env = {**os.environ, "KUBECONFIG": str(self.kubeconfig)}
        argv = [program, "--namespace", self.namespace, *arguments]
        done = subprocess.run(argv, input=stdin, env=env, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, f"kubectl {' '.join(arguments)}: {done.stderr}"
        return done.stdout

    # ── the control plane itself ─────────────────────────────────────────────────────────────────────

    @property
    def plane(self) -> ControlPlane:
        """Our own control plane; NotHere on somebody's cluster."""
        self.needs_own("the control plane's processes")
        assert self._plane is not None
        return self._plane

    @property
    def auditor(self) -> Auditor:
        """Who did what, from now on."""
        return Auditor(self.plane.layout.audit_log)

    @property
    def image(self) -> str:
        return SMALL if self._plane is not None else os.environ.get("E2E_IMAGE", "nginx")

    def needs_own(self, what: str) -> None:
        if self._plane is None:
            raise NotHere(f"needs {what}: runs on the suite's own control plane only (make e2e without KUBECONFIG)")

    def restart(self, component: str, signal: int = 15) -> None:
        self.plane.restart(component, signal)

    def freeze(self, component: str) -> None:
        self.plane.freeze(component)

    def thaw(self, component: str) -> None:
        self.plane.thaw(component)

    # ── namespaces ───────────────────────────────────────────────────────────────────────────────────

    def in_namespace(self, name: str) -> Cluster:
        """The same cluster seen from a new namespace that is ready for pods."""
        self.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        self._outside.pop()  # the one that stands in it takes it away
        inside = Cluster(self.kubeconfig, name, self._plane)
        inside.eventually(lambda: inside.get("ServiceAccount", "default"), what="the default service account")
        return inside

    def clean_up(self) -> None:
        """Takes away what was made outside of our namespace, newest first, then the namespace. Does not wait for its end."""
        for kind, name in reversed(self._outside):
            if kind != "Node":
                self.delete(kind, name)
        self.delete("Namespace", self.namespace)
        for kind, name in self._outside:
            if kind == "Node":
                self.delete(kind, name)
        self.api.close()

    # ── how ──────────────────────────────────────────────────────────────────────────────────────────

    def _send(self, method: str, item: Object, **query: Any) -> Object:
        kind = self.api.kind(item["kind"], item["apiVersion"])
        name = item["metadata"].get("name", "")
        namespace = item["metadata"].get("namespace") or self.namespace
        if method == "POST":
            stored = self._object("POST", self.api.path(kind, namespace), item, **query)
        else:
            path = self.api.path(kind, namespace, name)
            how = {"fieldManager": "e2e", "force": "true", **query}
            stored = self._object("PATCH", path, item, content_type="application/apply-patch+yaml", **how)
        if not kind.namespaced and (item["kind"], stored["metadata"]["name"]) not in self._outside:
            self._outside.append((item["kind"], stored["metadata"]["name"]))
        return stored

    def _ask(self, method: str, kind: str, name: str, namespace: str | None, **query: Any) -> Object:
        path = self.api.path(self.api.kind(kind), namespace or self.namespace, name)
        return self._object(method, path, **query)

    def _object(self, method: str, path: str, body: Any = None, **more: Any) -> Object:
        answer: Object = self.api.request(method, path, body, **more)
        return answer

    def _is_refused(self, item: Object) -> bool:
        try:
            self.create(item, dryRun="All")
        except ApiError as error:
            return error.status == 500
        return False

    def _client_config(self, name: str, serving: Serving, by: str, path: str) -> Object:
        if by == "url":
            return {"url": f"https://127.0.0.1:{serving.port}{path}", "caBundle": serving.ca_bundle}
        service = {"type": "ExternalName", "externalName": "localhost"}
        self.apply({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": service})
        there = {"name": name, "namespace": self.namespace, "path": path, "port": serving.port}
        return {"service": there, "caBundle": serving.ca_bundle}


def _is_running(pod: Object) -> bool:
    ready = any(c["type"] == "Ready" and c["status"] == "True" for c in pod["status"].get("conditions", ()))
    return ready and pod["status"]["phase"] == "Running" and "deletionTimestamp" not in pod["metadata"]
