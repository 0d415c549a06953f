"""The real service on this machine: certificates, a process, and a client as the API server is one."""

import base64
import json
import os
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jsonpatch
import msgspec
import urllib3

import certs
from trimtab.admission.patch import Operation, plain
from trimtab.cluster.api.pod import Pod
from trimtab.runtime import clock

_PATIENCE = 30
"""Seconds the service may take to come up."""


class DidNotStart(Exception):
    """The service did not come up; the text is what it said."""


class Client:
    """Sends AdmissionReviews over HTTPS, trusting only the authority issued for this run."""

    def __init__(self, url: str, authority: Path) -> None:
        self.url = url
        self.seconds: list[float] = []
        """How long each review took, connection kept."""
        self._http = urllib3.PoolManager(ca_certs=str(authority), retries=False, timeout=10.0)

    def review(self, pod: Pod, namespace: str) -> tuple[Operation, ...]:
        """The patch the service answers for this pod's creation."""
        body = json.dumps(_review(plain(pod), namespace)).encode()
        began = time.perf_counter()
        reply = self._http.request(
            "POST", f"{self.url}/mutate?timeout=2s", body=body, headers={"Content-Type": "application/json"}
        )
        self.seconds.append(time.perf_counter() - began)
        response = json.loads(reply.data)["response"]
        if "patch" not in response:
            return ()
        found: list[Operation] = json.loads(base64.b64decode(response["patch"]))
        return tuple(found)

    def admit(self, pod: Pod, namespace: str) -> Pod:
        """The pod after the service's patch, applied as the API server would."""
        patched = jsonpatch.apply_patch(plain(pod), list(self.review(pod, namespace)))
        return msgspec.convert(patched, Pod)


def _review(pod: dict[str, Any], namespace: str) -> dict[str, Any]:
    what = {"group": "", "version": "v1"}
    return {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": str(uuid.uuid4()),
            "kind": {**what, "kind": "Pod"},
            "resource": {**what, "resource": "pods"},
            "namespace": namespace,
            "operation": "CREATE",
            "object": {"apiVersion": "v1", "kind": "Pod", **pod},
        },
    }


@contextmanager
def running(folder: Path, policies: Path, cluster: Path) -> Iterator[Client]:
    """The webhook on a free port of this machine, stopped at the end. Raises DidNotStart."""
    pair, ready = folder / "certs", folder / "ready.json"
    certs.write(pair, certs.issue(["localhost", "127.0.0.1"], now=clock.utc()))
    environ = {name: value for name, value in os.environ.items() if not name.startswith("TRIMTAB_")}
    settings = {
        "LISTEN": "127.0.0.1:0", "CERTS": pair, "POLICIES": policies, "CLUSTER": cluster, "READY_FILE": ready,
        "LOG_FORMAT": "json", "DRAIN": 0, "GRACEFUL_TIMEOUT": 5,
    }  # fmt: skip
    environ |= {f"TRIMTAB_{name}": str(value) for name, value in settings.items()}
    with (folder / "webhook.log").open("w+", encoding="utf-8") as log:
        process = subprocess.Popen([sys.executable, "-m", "trimtab", "webhook"], env=environ, stdout=log, stderr=log)
        try:
            yield Client(_url(process, ready, log.name), pair / "ca.crt")
        finally:
            process.terminate()
            process.wait(timeout=_PATIENCE)


def _url(process: "subprocess.Popen[bytes]", ready: Path, log: str) -> str:
    until = time.monotonic() + _PATIENCE
    while time.monotonic() < until:
        if ready.exists():
            return str(json.loads(ready.read_text())["url"])
        if process.poll() is not None:
            break
        time.sleep(0.05)
    raise DidNotStart(Path(log).read_text(encoding="utf-8") or "the webhook said nothing")
