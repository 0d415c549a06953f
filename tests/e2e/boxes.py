"""A container without a container: its command line, environment and mounts as the pod says, in mounts of its own.

What the pod has under /var/run is there for its process and for nobody else; everything else can only be read, but
for /dev/shm, as in a container with a read-only root. Its address is one of loopback's, so that every pod has its own
port 8443; that is the one thing its process is told otherwise (0.0.0.0 is the pod's address). Nothing of user ids is
played.
"""

from __future__ import annotations

import base64
import functools
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.controlplane.api import Api, ApiError
from tests.controlplane.cluster import NotHere

ROOT = Path(__file__).resolve().parents[2]
Object = dict[str, Any]

_INSIDE = """
set -e
mount --make-rprivate /
mount -t tmpfs tmpfs /run
{binds}
for at in $(awk '{{print $2}}' /proc/mounts); do
  case $at in
    /dev|/dev/*|/proc|/proc/*|/sys|/sys/*|/run|/run/*) ;;
    *) mount -o remount,bind,ro $at 2>/dev/null || true ;;
  esac
done
exec "$@"
"""


@functools.cache
def unshare() -> tuple[str, ...]:
    """What gives a process mounts of its own here."""
    for how in (("unshare", "--mount"), ("unshare", "--user", "--map-root-user", "--mount")):
        if shutil.which("unshare") and not subprocess.run([*how, "true"], capture_output=True, check=False).returncode:
            return how
    raise NotHere("needs mounts of its own for a process (unshare), which are not allowed here")


class Box:
    """The one container of this pod."""

    def __init__(self, pod: Object, home: Path, address: str, api: Api) -> None:
        home.mkdir(parents=True)
        self.pod, self.home, self.address, self._api = pod, home, address, api
        [self.container] = pod["spec"]["containers"]
        self.uid, self.name = pod["metadata"]["uid"], pod["metadata"]["name"]
        self.restarts = 0
        self._mounts = {mount["mountPath"]: self._volume(mount["name"]) for mount in self.container["volumeMounts"]}
        self.process = self._start()

    @property
    def log(self) -> str:
        return (self.home / "log").read_text()

    def restart(self) -> None:
        self.restarts += 1
        self.process = self._start()

    def port(self, name: str) -> int:
        [container_port] = [port["containerPort"] for port in self.container["ports"] if port["name"] == name]
        return int(container_port)

    def terminate(self) -> None:
        self.process.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """With its children: they are a group."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait(10)

    @property
    def memory(self) -> int:
        """Bytes held by all of its processes, what they share counted once."""
        return sum(_proportional(pid) for pid in _family(self.process.pid))

    def _start(self) -> subprocess.Popen[bytes]:
        binds = "\n".join(f"mkdir -p {path}; mount --bind {mount} {path}" for path, mount in self._mounts.items())
        command = self.container.get("command") or [sys.executable, "-m", "trimtab"]
        inside = ["sh", "-c", _INSIDE.format(binds=binds), "sh", *command, *self.container.get("args", ())]
        with (self.home / "log").open("ab") as log:
            return subprocess.Popen(
                [*unshare(), *inside], cwd=ROOT, env=self._environment(), stdout=log, stderr=log, start_new_session=True
            )

    def _environment(self) -> dict[str, str]:
        server = self._api.server.removeprefix("https://").split(":")
        # The API server leaves an empty value out.
        env = self.container.get("env", ())
        own = {one["name"]: one.get("value", "").replace("0.0.0.0", self.address) for one in env}
        return {
            "PATH": os.environ["PATH"],
            "HOME": "/",
            "PYTHONDONTWRITEBYTECODE": "1",
            "HOSTNAME": self.name,
            "KUBERNETES_SERVICE_HOST": server[0],
            "KUBERNETES_SERVICE_PORT": server[1],
            **own,
        }

    def _volume(self, name: str) -> Path:
        """A folder with what the volume holds."""
        [volume] = [each_volume for each_volume in self.pod["spec"]["volumes"] if each_volume["name"] == name]
        folder = self.home / "volumes" / name
        folder.mkdir(parents=True)
        sources = volume["projected"]["sources"] if "projected" in volume else [volume]
        for source in sources:
            for kind, fill in self._kinds.items():
                if kind in source:
                    self._filled(folder, source[kind], fill)
        return folder

    @staticmethod
    def _filled(folder: Path, source: Object, fill: Callable[[Path, Object], None]) -> None:
        """What may be missing is an empty folder where it is."""
        try:
            fill(folder, source)
        except ApiError as error:
            if error.status != 404 or not source.get("optional"):
                raise

    @property
    def _kinds(self) -> dict[str, Callable[[Path, Object], None]]:
        return {
            "serviceAccountToken": self._token,
            "configMap": self._config_map,
            "secret": self._secret,
            "downwardAPI": self._downward,
            "emptyDir": lambda folder, source: None,
        }

    def _token(self, folder: Path, source: Object) -> None:
        """For this pod: it is worth nothing when the pod is gone."""
        meta = self.pod["metadata"]
        bound = {"apiVersion": "v1", "kind": "Pod", "name": meta["name"], "uid": meta["uid"]}
        spec = {"expirationSeconds": source["expirationSeconds"], "boundObjectRef": bound}
        account = (
            f"/api/v1/namespaces/{meta['namespace']}/serviceaccounts/{self.pod['spec']['serviceAccountName']}/token"
        )
        token_request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
        (folder / source["path"]).write_text(self._api.request("POST", account, token_request)["status"]["token"])

    def _config_map(self, folder: Path, source: Object) -> None:
        for key, text in self._get("configmaps", source["name"])["data"].items():
            (folder / key).write_text(text)

    def _secret(self, folder: Path, source: Object) -> None:
        for key, text in (self._get("secrets", source["secretName"]).get("data") or {}).items():
            (folder / key).write_bytes(base64.b64decode(text))

    def _downward(self, folder: Path, source: Object) -> None:
        for item in source["items"]:
            assert item["fieldRef"]["fieldPath"] == "metadata.namespace"
            (folder / item["path"]).write_text(self.pod["metadata"]["namespace"])

    def _get(self, plural: str, name: str) -> Object:
        result: Object = self._api.request(
            "GET", f"/api/v1/namespaces/{self.pod['metadata']['namespace']}/{plural}/{name}"
        )
        return result


def _family(pid: int) -> list[int]:
    """It and all below."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []
    return [pid, *(one for child in children for one in _family(int(child)))]


def _proportional(pid: int) -> int:
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024
    return 0


def wait_until(stop: Callable[[], bool], seconds: float) -> bool:
    until = time.monotonic() + seconds
    while not stop():
        if time.monotonic() > until:
            return False
        time.sleep(0.05)
    return True
