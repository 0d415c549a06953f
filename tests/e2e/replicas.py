"""Our processes as their Deployments start them, with the tokens of their accounts; and a Service before them."""

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
from pathlib import Path
from typing import Any

from tests.controlplane import environ, ports
from trimtab.installation.installed_processes import find_installed_process
from trimtab.installation.names import InstallValues
from trimtab.installation.processes.webhook import webhook_environment
from trimtab.runtime.environment import variable_name

ROOT = Path(__file__).resolve().parents[2]
EVERY = 0.3
"""Seconds between a keeper's looks; ten in production."""


class Balancer:
    """Passes connections on to the replicas that are ready: `backends`, by port of this machine or by address."""

    def __init__(self) -> None:
        self.backends: list[int | tuple[str, int]] = []
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
                    one = backends[(self._next + offset) % len(backends)]
                    at = one if isinstance(one, tuple) else ("127.0.0.1", one)
                    with socket.create_connection(at, 2) as server:
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

    def __init__(self, home: Path, values: InstallValues, kubeconfig: Path, team: str) -> None:
        home.mkdir(parents=True)
        self.team = team
        [self.port] = ports.free(1)
        own = {
            "TRIMTAB_WEBHOOK_LISTEN": f"127.0.0.1:{self.port}",
            "TRIMTAB_WEBHOOK_CERTS_FOLDER": str(home / "certs"),
            "TRIMTAB_WEBHOOK_READY_FILE": str(home / "ready.json"),
            "TRIMTAB_WEBHOOK_CERTS_CHECK_INTERVAL_SECONDS": str(EVERY),
            "TRIMTAB_WEBHOOK_SHUTDOWN_DELAY_SECONDS": "1",
            "TRIMTAB_WEBHOOK_GRACEFUL_TIMEOUT_SECONDS": "10",
        }
        surroundings = {**environ.plain(), **webhook_environment(values), **own, "KUBECONFIG": str(kubeconfig)}
        self.home, self.certs = home, home / "certs"
        with (home / "log").open("wb") as log:
            command = [sys.executable, "-m", "trimtab", "webhook"]
            self.process = subprocess.Popen(command, cwd=ROOT, env=surroundings, stderr=log)

    def ready(self) -> bool:
        """As its readiness probe finds it; nothing of its certificate is checked, as the kubelet doesn't."""
        try:
            return bool(self._ask("/readyz"))
        except OSError:
            return False

    def metric(self, name: str) -> float:
        """The sum over its series of this name."""
        return total(self._ask("/metrics"), name, {})

    def asked(self, given: dict[str, Any], namespace: str = "") -> dict[str, Any]:
        """Its response to the review of this pod of a namespace, the team's by default."""
        review = {
            "apiVersion": "admission.k8s.io/v1",
            "kind": "AdmissionReview",
            "request": {
                "uid": "asked",
                "operation": "CREATE",
                "namespace": namespace or self.team,
                "object": given,
                "resource": {"group": "", "version": "v1", "resource": "pods"},
            },
        }
        answer: dict[str, Any] = json.loads(self._ask("/mutate", json.dumps(review).encode()))["response"]
        return answer

    def _ask(self, path: str, body: bytes | None = None) -> str:
        request = urllib.request.Request(
            f"https://127.0.0.1:{self.port}{path}", body, {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=5, context=_anything()) as answer:
            return str(answer.read().decode())

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


SHORT_LEASE = {
    "lease_duration_seconds": "9",
    "renew_deadline_seconds": "5",
    "write_timeout_seconds": "3.5",
    "retry_period_seconds": "0.5",
}
"""Who finds no Lease waits as long as one lasts: half a minute and more by default."""

INTERVALS = {
    "watchdog": "check_interval_seconds",
    "compactor": "plan_interval_seconds",
    "recommender": "collect_interval_seconds",
}


class Worker:
    """A process behind a Lease, with the environment of its Deployment and the token of its account."""

    def __init__(self, home: Path, process: str, values: InstallValues, kubeconfig: Path) -> None:
        home.mkdir(parents=True)
        self.log, self._ready = home / "log", home / "ready.json"
        own = {"listen": "127.0.0.1:0", "ready_file": str(self._ready), INTERVALS[process]: "1", **SHORT_LEASE}
        surroundings = {
            **environ.plain(),
            **find_installed_process(process).environment(values),
            **{variable_name(process, field): value for field, value in own.items()},
            "KUBECONFIG": str(kubeconfig),
        }
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "trimtab", process], cwd=ROOT, env=surroundings, stderr=log
            )

    def metric(self, name: str, **labels: str) -> float:
        """The sum over the series of this name with these labels."""
        with urllib.request.urlopen(f"{json.loads(self._ready.read_text())['url']}/metrics", timeout=30) as answer:
            return total(answer.read().decode(), name, labels)


def _anything() -> ssl.SSLContext:
    """Nothing of a certificate is checked, as the kubelet doesn't."""
    result = ssl.create_default_context()
    result.check_hostname, result.verify_mode = False, ssl.CERT_NONE
    return result


def total(text: str, series: str, labels: dict[str, str]) -> float:
    """The sum over the series of this name with these labels, in what a scrape gave."""
    expected = [f'{key}="{value}"' for key, value in labels.items()]
    lines = [line for line in text.splitlines() if re.match(rf"{series}(\{{| )", line)]
    return sum(float(line.rpartition(" ")[2]) for line in lines if all(word in line for word in expected))
