"""A cluster to test on, in sentences: our own control plane's, or somebody's by kubeconfig.

A Cluster stands in one namespace, and `clean_up()` takes away everything it made.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.controlplane import objects
from tests.controlplane.api import ApiError
from tests.controlplane.auditor import Auditor
from tests.controlplane.binaries import kubectl
from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.objects import Object
from tests.controlplane.verbs import Names, Objects, Verbs
from tests.controlplane.webhook_server import Serving

FAKE_IMAGE = "pause"  # never pulled: kwok plays the kubelet


class NotHere(Exception):
    """This cluster can't play that. The message says what it would take; the suite skips with it."""


class Cluster(Verbs):
    """`plane` is None for somebody's cluster, and for other users' logins at ours."""

    def __init__(self, kubeconfig: Path, namespace: str = "default", plane: ControlPlane | None = None) -> None:
        super().__init__(kubeconfig, namespace)
        self._plane = plane

    # ── nodes and pods ───────────────────────────────────────────────────────────────────────────────

    def pool(
        self,
        name: str,
        nodes: int = 1,
        *,
        cpu: str = "8",
        memory: str = "32Gi",
        pods: int = 110,
        labels: Mapping[str, str] | None = None,
        taints: Sequence[str | Object] = (),
    ) -> Names:
        """Nodes `name-0`, `name-1`, … labelled `pool=name`, Ready on return. Taints as in kubectl."""
        self.needs_own("nodes made by the test (kwok)")
        names = [f"{name}-{number}" for number in range(nodes)]
        values = {"pool": name, **(labels or {})}
        expected_taints = [objects.taint(taint) for taint in taints]
        for node in names:
            self.create(objects.node(node, cpu=cpu, memory=memory, pods=pods, labels=values, taints=expected_taints))
        within = 20 + nodes / 20
        self.eventually(lambda: all(map(self.is_ready, names)), within=within, what=f"pool {name} Ready")
        return names

    def some_nodes(self) -> None:
        """For tests to which any node will do: two of ours, or what somebody's cluster has."""
        if self._plane is not None:
            self.pool(f"any-{self.namespace[-5:]}", nodes=2)

    def is_ready(self, node: str) -> bool:
        """Ready, and no longer tainted as new."""
        described_node = self.get("Node", node)
        taints = [taint["key"] for taint in described_node["spec"].get("taints", ())]
        return _has_ready(described_node) and not any(key.startswith("node.kubernetes.io/") for key in taints)

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
        """One container with these requests, pods labelled `app=name`; `spec` is laid over the pod's spec."""
        return self.create(
            objects.deployment(
                name,
                replicas=replicas,
                image=self.image,
                cpu=cpu,
                memory=memory,
                labels=labels or {},
                annotations=annotations or {},
                spec=spec or {},
            )
        )

    def pod(self, given: Object | None = None, name: str = "pod", *, dry_run: bool = False) -> Object:
        """A pod as the API server stored it. `given` is a whole Pod, or a spec laid over one container's."""
        whole = given or {}
        if whole.get("kind") != "Pod":
            spec = {"containers": [objects.container("main", self.image, None, None)], **whole}
            whole = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}
        return self.create(whole, dryRun="All" if dry_run else None)

    def running(self, selector: str | None = None) -> Objects:
        """Our pods that run, are Ready and stay."""
        return [
            pod
            for pod in self.list("Pod", selector=selector)
            if _has_ready(pod) and pod["status"]["phase"] == "Running" and "deletionTimestamp" not in pod["metadata"]
        ]

    @property
    def image(self) -> str:
        """What containers run. On somebody's cluster it is pulled, so E2E_IMAGE may name another."""
        return FAKE_IMAGE if self._plane is not None else os.environ.get("E2E_IMAGE", "nginx")

    # ── webhooks ─────────────────────────────────────────────────────────────────────────────────────

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
        """Registers a webhook for the pods created in our namespace; in force on return.

        It is called by URL or, `by="service"`, through a Service (an ExternalName `localhost`), whose
        certificate is checked against NAME.NAMESPACE.svc as in any cluster. `more` are fields of the webhook.
        """
        if by == "service" or not os.environ.get("E2E_WEBHOOK_HOST"):
            self.needs_own("webhooks on this machine")
        configuration = objects.mutating_webhook(
            name,
            client_config=self._client_config(name, serving, by, path or serving.path),
            namespace=self.namespace,
            failure_policy=failure_policy,
            reinvocation_policy=reinvocation_policy,
            timeout_seconds=timeout_seconds,
            rules=rules,
            more=more,
        )
        stored = self.create(configuration)
        self.eventually(lambda: self._in_force(name), what=f"webhook {name} in force", every=0.02)
        return stored

    def _client_config(self, name: str, serving: Serving, by: str, path: str) -> Object:
        if by == "url":
            return {"url": f"https://{serving.host}:{serving.port}{path}", "caBundle": serving.ca_bundle}
        spec = {"type": "ExternalName", "externalName": "localhost"}
        self.apply({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec})
        service = {"name": name, "namespace": self.namespace, "path": path, "port": serving.port}
        return {"service": service, "caBundle": serving.ca_bundle}

    def _in_force(self, name: str) -> bool:
        try:
            self.create(objects.probe(name), dryRun="All")
        except ApiError as error:
            return error.status == 500
        return False

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

    def needs_own(self, what: str) -> None:
        if self._plane is None:
            raise NotHere(f"needs {what}: runs on the suite's own control plane only (no KUBECONFIG)")

    def restart(self, component: str, signal: int = 15) -> None:
        self.plane.restart(component, signal)

    def take_down(self, component: str, signal: int = 15) -> None:
        self.plane.take_down(component, signal)

    def bring_back(self, component: str) -> None:
        self.plane.bring_back(component)

    def freeze(self, component: str) -> None:
        self.plane.freeze(component)

    def thaw(self, component: str) -> None:
        self.plane.thaw(component)

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        """What it prints; a failure raises with what it said."""
        program = str(kubectl()) if self._plane is None else self._plane.binaries["kubectl"]
        env = {**os.environ, "KUBECONFIG": str(self.kubeconfig)}
        argv = [program, "--namespace", self.namespace, *arguments]
        done = subprocess.run(argv, input=stdin, env=env, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, f"kubectl {' '.join(arguments)}: {done.stderr}"
        return done.stdout

    def _explain(self) -> None:
        if self._plane is not None:
            self._plane.processes.check()

    # ── namespaces ───────────────────────────────────────────────────────────────────────────────────

    def in_namespace(self, name: str) -> Cluster:
        """The same cluster seen from a new namespace that is ready for pods."""
        inside = Cluster(self.kubeconfig, name, self._plane)
        inside.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        inside.eventually(lambda: inside.get("ServiceAccount", "default"), what="the default service account")
        return inside

    def clean_up(self) -> None:
        """Takes away what we made outside of the namespace, newest first, and it; does not wait."""
        nodes = [environment for environment in self._outside if environment[0] == "Node"]
        others = [environment for environment in reversed(self._outside) if environment[0] != "Node"]
        for kind, name in [*others, *nodes]:  # a pod leaves its node before the node goes
            self.delete(kind, name)
        self.api.close()


def _has_ready(item: Object) -> bool:
    conditions = item["status"].get("conditions", ())
    return any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)
