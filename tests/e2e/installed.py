"""Trimtab as it is installed: the real manifests applied, the real processes under the account's own token.

Two things are played. The Service is an ExternalName `localhost`, which leads the API server to this machine; and in
front of the replicas stands a balancer that sends new connections to those that are ready, as kube-proxy does.
"""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import yaml

import certs
from tests.controlplane.api import ApiError
from tests.controlplane.cluster import Cluster
from tests.e2e.replicas import ROOT, Balancer, Replica, Worker, total
from trimtab.cli.install import apply as apply_module
from trimtab.cli.install.cleanup_step import CleanupStep
from trimtab.cluster.processes import account_name
from trimtab.installation.manifests import render_manifests
from trimtab.installation.names import CERTIFICATE_SECRET, CONFIGURATION_NAME, InstallValues
from trimtab.kube import certificate_rotation, objects
from trimtab.kube.client import connect_to_cluster
from trimtab.kube.objects import Writer
from webhook import cert_manager


class Installed:
    """The installation in a cluster, and its replicas."""

    def __init__(self, cluster: Cluster, home: Path) -> None:
        self.cluster, self.home, self.balancer = cluster, home, Balancer()
        self.values = InstallValues(service_port=self.balancer.port)
        self.client = connect_to_cluster(str(cluster.kubeconfig))
        self.replicas: list[Replica] = []
        self._count = 0

    @property
    def manifests(self) -> list[dict[str, Any]]:
        external = {"type": "ExternalName", "externalName": "localhost"}
        return [
            {**manifest, "spec": external} if manifest["kind"] == "Service" else manifest
            for manifest in render_manifests(self.values)
        ]

    def apply(self) -> list[CleanupStep]:
        return list(apply_module.apply_manifests(Writer(client=self.client), self.manifests, self.values))

    def remove(self) -> list[CleanupStep]:
        return list(
            apply_module.remove_manifests(Writer(client=self.client), self.manifests, self.values, everything=True)
        )

    def start(self, count: int = 1) -> list[Replica]:
        """So many more, behind the balancer when they are ready."""
        self._count += count
        replicas = [
            Replica(self.home / f"{self._count}-{n}", self.values, self.login, self.cluster.namespace)
            for n in range(count)
        ]
        self.replicas += replicas
        for replica in replicas:
            self.cluster.eventually(replica.ready, within=60, what="a replica ready")
        self.route()
        return replicas

    def route(self) -> None:
        """What endpoints do: only who is ready is sent new connections."""
        self.balancer.backends = [replica.port for replica in self.replicas if replica.ready()]

    def stop(self, number: int = signal.SIGTERM) -> None:
        for replica in self.replicas:
            replica.end(number)
        self.replicas = []
        self.balancer.backends = []

    @property
    def login(self) -> Path:
        """The webhook's."""
        return self.login_of("webhook")

    def login_of(self, process: str) -> Path:
        """A kubeconfig with the token that the account gets in a pod, and nothing else."""
        path = f"/api/v1/namespaces/{self.values.namespace}/serviceaccounts/{account_name(process)}/token"
        token_request = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": 3600},
        }
        token = self.cluster.api.request("POST", path, token_request)["status"]["token"]
        document = yaml.safe_load(self.cluster.kubeconfig.read_text())
        document["users"] = [{"name": document["contexts"][0]["context"]["user"], "user": {"token": token}}]
        file = self.home / f"{process}.kubeconfig"
        file.write_text(yaml.safe_dump(document))
        return file

    @property
    def store(self) -> certs.CertificateFiles:
        """What the Secret holds."""
        files = certificate_rotation.files_in_secret(self._secret)
        assert files is not None
        return files

    @property
    def _secret(self) -> dict[str, Any]:
        return objects.get_plain(self.client, "Secret", CERTIFICATE_SECRET, self.values.namespace) or {}

    def write(self, folder: certs.CertificateFiles) -> None:
        """Into the Secret, as somebody else."""
        objects.replace_plain(Writer(client=self.client), certificate_rotation.with_files(self._secret, folder))

    @property
    def places(self) -> set[bytes]:
        """Every caBundle there is of ours."""
        stored_objects = (
            objects.get_plain(self.client, kind, CONFIGURATION_NAME) for kind in cert_manager.CONFIGURATIONS
        )
        return {
            bundle
            for configuration in stored_objects
            for bundle in certificate_rotation.ca_bundles(configuration or {})
        }

    @property
    def served(self) -> set[bytes]:
        """The certificates that replicas serve now."""
        return {(replica.certs / "tls.crt").read_bytes() for replica in self.replicas}

    def command(self, *arguments: str) -> str:
        """The command as a person runs it; what it prints."""
        command = [sys.executable, "-m", "trimtab", *arguments, "--kubeconfig", str(self.cluster.kubeconfig)]
        return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True, timeout=60).stdout

    def metric(self, series: str, **labels: str) -> float:
        """The sum over the API server's series of this name with these labels."""
        text = self.cluster.api.request("GET", "/metrics")
        return total(text, series, labels)

    @property
    def lost(self) -> float:
        """Reviews of pods that an API server gave up so far, because of us."""
        return self.metric("apiserver_admission_webhook_fail_open_count", name="pods.trimtab.dev")

    def create(self, count: int, clients: int = 8) -> list[dict[str, Any]]:
        """So many pods by so many clients; whatever is refused raises."""
        with ThreadPoolExecutor(clients) as pool:
            return list(pool.map(lambda _: self.cluster.create(pod()), range(count)))

    @property
    def missed(self) -> set[str]:
        """The pods of the team that came through without us, as the command names them."""
        report = json.loads(self.command("admit", "--cluster", "live", "--running", "-o", "json"))
        findings = [one for one in report["findings"] if one["namespace"] == self.cluster.namespace]
        return {name for one in findings if one["reason"]["code"] == "missed-by-webhook" for name in one["names"]}

    @contextlib.contextmanager
    def working(self, process: str) -> Iterator[Worker]:
        """`trimtab watchdog`, `compactor` or `recommender` under its account, leading on entry; it ends well."""
        worker = Worker(self.home / f"{process}-{time.monotonic_ns()}", process, self.values, self.login_of(process))
        try:
            leads = f"{process}.leads"
            self.cluster.eventually(lambda: leads in worker.log.read_text(), within=60, what=f"{process} leads")
            yield worker
        finally:
            worker.process.terminate()
            assert worker.process.wait(60) == 0

    def calls(self) -> bool:
        """Is a pod changed by us now? Nothing is stored."""
        result = self.cluster.create(pod(), dryRun="All")
        return changed(result)


def vacated(cluster: Cluster) -> None:
    """What an earlier test took away is gone, and not only on its way out."""
    for kind, name in (
        ("Namespace", InstallValues().namespace),
        ("CustomResourceDefinition", "podpolicies.trimtab.dev"),
    ):
        cluster.eventually(lambda kind=kind, name=name: _settled(cluster, kind, name), within=90, what=f"no old {name}")


def _settled(cluster: Cluster, kind: str, name: str) -> bool:
    try:
        return "deletionTimestamp" not in cluster.get(kind, name)["metadata"]
    except ApiError as error:
        return error.status == 404


def pod(name: str = "") -> dict[str, Any]:
    meta: dict[str, Any] = {"name": name} if name else {"generateName": "web-"}
    containers = [{"name": "app", "image": "app:1"}]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {"containers": containers}}


def changed(stored: dict[str, Any]) -> bool:
    return "trimtab.dev/changed" in stored["metadata"].get("annotations", {})


@contextlib.contextmanager
def installed(cluster: Cluster, home: Path) -> Iterator[Installed]:
    """Applied, two replicas ready, a policy in force; all taken away afterwards."""
    installation = Installed(cluster, home)
    vacated(cluster)
    try:
        installation.apply()
        installation.start(2)
        cluster.apply(policy("e2e-sizes", cluster.namespace))
        cluster.eventually(installation.calls, what="pods changed")
        yield installation
    finally:
        installation.stop(signal.SIGKILL)
        installation.remove()
        installation.balancer.close()


def policy(name: str, namespace: str) -> dict[str, Any]:
    spec = {
        "match": {"namespaces": {"include": [namespace]}},
        "actions": {"requests": {"cpu": {"from": "policy", "otherwise": "50m"}}},
    }
    return {"apiVersion": "trimtab.dev/v1alpha1", "kind": "PodPolicy", "metadata": {"name": name}, "spec": spec}
