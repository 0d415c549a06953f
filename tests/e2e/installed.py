"""Trimtab as it is installed: the real manifests applied, the real processes under the account's own token.

Two things are played. The Service is an ExternalName `localhost`, which leads the API server to this machine; and in
front of the replicas stands a balancer that sends new connections to those that are ready, as kube-proxy does.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import ssl
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

import certs
from tests.controlplane import ports
from tests.controlplane.cluster import Cluster
from trimtab.command.install import carry
from trimtab.command.install.manifests import manifests
from trimtab.command.install.names import CONFIGURATION, SECRET, account
from trimtab.command.install.serving import environment
from trimtab.command.install.values import Values
from trimtab.kube import whole
from trimtab.kube.client import connect
from trimtab.kube.writer import Writer
from webhook import shared

ROOT = Path(__file__).resolve().parents[2]
EVERY = 0.3
"""Seconds between a keeper's looks; ten in production."""


class Balancer:
    """Passes connections on to the replicas that are ready; `serve` is what it passes them to."""

    def __init__(self) -> None:
        self.backends: list[int] = []
        self._next = 0
        self._listening = socket.create_server(("127.0.0.1", 0), backlog=512)
        self.port = int(self._listening.getsockname()[1])
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listening.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client:
            backends = list(self.backends)
            self._next += 1
            for offset in range(len(backends)):
                with contextlib.suppress(OSError):
                    port = backends[(self._next + offset) % len(backends)]
                    with socket.create_connection(("127.0.0.1", port), 2) as server:
                        server.settimeout(None)
                        back = threading.Thread(target=_pump, args=(server, client), daemon=True)
                        back.start()
                        _pump(client, server)
                        back.join()
                    return


def _pump(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
    for end in (source, target):
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)


class Replica:
    """One process, with the environment of the Deployment and the token of its account."""

    def __init__(self, home: Path, values: Values, kubeconfig: Path) -> None:
        home.mkdir(parents=True)
        [self.port] = ports.free(1)
        own = {
            "TRIMTAB_LISTEN": f"127.0.0.1:{self.port}", "TRIMTAB_CERTS": str(home / "certs"),
            "TRIMTAB_READY_FILE": str(home / "ready.json"), "TRIMTAB_CERTS_EVERY": str(EVERY), "TRIMTAB_DRAIN": "1",
            "TRIMTAB_GRACEFUL_TIMEOUT": "10",
        }  # fmt: skip
        environ = {**os.environ, **environment(values), **own, "KUBECONFIG": str(kubeconfig)}
        self.home, self.certs = home, home / "certs"
        with (home / "log").open("wb") as log:
            command = [sys.executable, "-m", "trimtab", "webhook"]
            self.process = subprocess.Popen(command, cwd=ROOT, env=environ, stderr=log)

    def ready(self) -> bool:
        """As its readiness probe finds it; nothing of its certificate is checked, as the kubelet doesn't."""
        anything = ssl.create_default_context()
        anything.check_hostname, anything.verify_mode = False, ssl.CERT_NONE
        try:
            url = f"https://127.0.0.1:{self.port}/readyz"
            return bool(urllib.request.urlopen(url, timeout=2, context=anything).status == 200)
        except OSError:
            return False

    @property
    def log(self) -> list[dict[str, Any]]:
        lines = (self.home / "log").read_text().splitlines()
        return [json.loads(line) for line in lines if line.startswith("{")]

    def send(self, number: int) -> None:
        """To the master and its worker."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        for pid in [self.process.pid, *map(int, children.read_text().split())]:
            os.kill(pid, number)

    def end(self, number: int = signal.SIGTERM) -> None:
        if self.process.poll() is None:
            with contextlib.suppress(OSError):
                self.send(signal.SIGCONT)
                self.send(number) if number == signal.SIGKILL else self.process.send_signal(number)
        self.process.wait(40)


class Installed:
    """The installation in a cluster, and its replicas."""

    def __init__(self, cluster: Cluster, home: Path) -> None:
        self.cluster, self.home, self.balancer = cluster, home, Balancer()
        self.values = Values(service_port=self.balancer.port)
        self.client = connect(str(cluster.kubeconfig))
        self.replicas: list[Replica] = []
        self._count = 0

    @property
    def manifests(self) -> list[dict[str, Any]]:
        external = {"type": "ExternalName", "externalName": "localhost"}
        return [
            {**found, "spec": external} if found["kind"] == "Service" else found for found in manifests(self.values)
        ]

    def apply(self) -> list[carry.Done]:
        return list(carry.apply(Writer(client=self.client), self.manifests, self.values))

    def remove(self) -> list[carry.Done]:
        return list(carry.remove(Writer(client=self.client), self.manifests, everything=True))

    def start(self, count: int = 1) -> list[Replica]:
        """So many more, behind the balancer when they are ready."""
        self._count += count
        made = [Replica(self.home / f"{self._count}-{n}", self.values, self.login) for n in range(count)]
        self.replicas += made
        for replica in made:
            self.cluster.eventually(replica.ready, within=60, what="a replica ready")
        self.route()
        return made

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
        path = f"/api/v1/namespaces/{self.values.namespace}/serviceaccounts/{account(process)}/token"
        asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}
        token = self.cluster.api.request("POST", path, asked)["status"]["token"]
        document = yaml.safe_load(self.cluster.kubeconfig.read_text())
        document["users"] = [{"name": document["contexts"][0]["context"]["user"], "user": {"token": token}}]
        file = self.home / f"{process}.kubeconfig"
        file.write_text(yaml.safe_dump(document))
        return file

    @property
    def store(self) -> certs.Folder:
        """What the Secret holds."""
        found = shared.folder_of(self._secret)
        assert found is not None
        return found

    @property
    def _secret(self) -> dict[str, Any]:
        return whole.get(self.client, "Secret", SECRET, self.values.namespace) or {}

    def write(self, folder: certs.Folder) -> None:
        """Into the Secret, as somebody else."""
        whole.put(Writer(client=self.client), shared.filled(self._secret, folder))

    @property
    def places(self) -> set[bytes]:
        """Every caBundle there is of ours."""
        found = (whole.get(self.client, kind, CONFIGURATION) for kind in shared.CONFIGURATIONS)
        return {bundle for configuration in found for bundle in shared.bundles(configuration or {})}

    @property
    def served(self) -> set[bytes]:
        """The certificates that replicas serve now."""
        return {(replica.certs / "tls.crt").read_bytes() for replica in self.replicas}

    def command(self, *arguments: str) -> str:
        """The command as a person runs it; what it prints."""
        given = [sys.executable, "-m", "trimtab", *arguments, "--kubeconfig", str(self.cluster.kubeconfig)]
        return subprocess.run(given, cwd=ROOT, check=True, capture_output=True, text=True, timeout=60).stdout

    def metric(self, series: str, **labels: str) -> float:
        """The sum over the API server's series of this name with these labels."""
        text = self.cluster.api.request("GET", "/metrics")
        wanted = [f'{key}="{value}"' for key, value in labels.items()]
        lines = [line for line in text.splitlines() if re.match(rf"{series}(\{{| )", line)]
        return sum(float(line.rpartition(" ")[2]) for line in lines if all(word in line for word in wanted))

    @property
    def lost(self) -> float:
        """Reviews of pods that an API server gave up so far, because of us."""
        return self.metric("apiserver_admission_webhook_fail_open_count", name="pods.trimtab.dev")

    def calls(self) -> bool:
        """Is a pod changed by us now? Nothing is stored."""
        found = self.cluster.create(pod(), dryRun="All")
        return changed(found)


def pod(name: str = "") -> dict[str, Any]:
    meta: dict[str, Any] = {"name": name} if name else {"generateName": "web-"}
    containers = [{"name": "app", "image": "app:1"}]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {"containers": containers}}


def changed(stored: dict[str, Any]) -> bool:
    return "trimtab.dev/changed" in stored["metadata"].get("annotations", {})


@contextlib.contextmanager
def installed(cluster: Cluster, home: Path) -> Iterator[Installed]:
    """Applied, two replicas ready, a policy in force; all taken away afterwards."""
    found = Installed(cluster, home)
    try:
        found.apply()
        found.start(2)
        cluster.apply(policy("e2e-sizes", cluster.namespace))
        cluster.eventually(found.calls, what="pods changed")
        yield found
    finally:
        found.stop(signal.SIGKILL)
        found.remove()
        found.balancer.close()


def policy(name: str, namespace: str) -> dict[str, Any]:
    spec = {
        "match": {"namespaces": {"include": [namespace]}},
        "actions": {"requests": {"cpu": {"from": "policy", "otherwise": "50m"}}},
    }
    return {"apiVersion": "trimtab.dev/v1alpha1", "kind": "PodPolicy", "metadata": {"name": name}, "spec": spec}
