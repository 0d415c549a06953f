"""A Kubernetes control plane as five processes on loopback.

with ControlPlane.start(binaries) as plane:
    Cluster(plane.kubeconfig) …
"""

from __future__ import annotations

import contextlib
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType

from tests.controlplane import flags, kubeconfig, ports
from tests.controlplane.api import Api, ApiError, Unreachable
from tests.controlplane.binaries import Binaries
from tests.controlplane.certificates import Authority, signing_key
from tests.controlplane.flags import Layout
from tests.controlplane.processes import Processes

COMPONENTS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok")
CLIENTS = ("kube-controller-manager", "kube-scheduler")
# Its listener waits a minute for connections that watch for ever, and no longer answers meanwhile.
GRACE = {"kube-apiserver": 2.0}
MASTERS = ("system:masters",)


class ControlPlane:
    """Everything one control plane has: folder, authority, processes. Make it with `start`."""

    def __init__(self, binaries: Binaries, extra_flags: Mapping[str, Sequence[str]], start_up: int = 0) -> None:
        self.binaries = binaries
        self.start_up = start_up
        self.extra_flags = extra_flags
        self.folder = Path(tempfile.mkdtemp(prefix="trimtab-e2e-"))
        self.processes = Processes(self.folder, folders=[self.folder])
        self.authority = Authority(self.folder, "testbed-ca")
        self._logins: dict[tuple[str, tuple[str, ...]], Path] = {}
        self._writing = threading.Lock()
        self.layout = self._layout()
        self.kubeconfig = self.layout.kubeconfigs["admin"]
        self.api = Api(self.kubeconfig)

    @classmethod
    def start(
        cls,
        binaries: Binaries,
        *,
        saved: Path | None = None,
        extra_flags: Mapping[str, Sequence[str]] | None = None,
        start_up: int = 0,
    ) -> ControlPlane:
        """Returns when every component is ready. `saved`: begin with the data that `save()` wrote there.

        `extra_flags`: component → flags added to its command line. `start_up`: seconds until a pod is Ready.
        """
        for last in (False, False, True):
            plane = cls(binaries, extra_flags or {}, start_up)
            try:
                if saved is not None:
                    shutil.copytree(saved, plane.layout.data)
                plane.start_all(restored=saved is not None)
                return plane
            except BaseException as error:
                plane.stop()
                if last or "address already in use" not in str(error):  # else somebody took a port meanwhile
                    raise
        raise AssertionError("unreachable")

    def __enter__(self) -> ControlPlane:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start_all(self, restored: bool = False) -> None:
        """In the order they lean on each other, each only when what it leans on is ready."""
        self.start_component("etcd", wait=False)
        self.start_component("kube-apiserver")  # it waits for etcd by itself
        if restored:
            self._forget_leases()
        self._start_clients()

    def start_component(self, component: str, wait: bool = True) -> int:
        """Its pid."""
        command = getattr(flags, component.replace("-", "_"))(self.layout)
        argv = [self.binaries[component], *command, *self.extra_flags.get(component, ())]
        pid = self.processes.start(component, argv)
        if wait:
            self.wait_ready(component)
        return pid

    def take_down(self, component: str, number: int = signal.SIGTERM) -> None:
        """Ends it by this signal and waits until it is gone. Whatever leans on it is left to cope."""
        self.processes.stop(component, number, grace=GRACE.get(component, 10.0))

    def bring_back(self, component: str) -> None:
        """On the same port, with the same certificate; ready on return.

        With the API server its clients here start anew: after a second outage they would wait out a back-off
        of up to 30 s, which is their business and no test's.
        """
        self.start_component(component)
        if component == "kube-apiserver":
            for client in COMPONENTS[2:]:
                self.processes.stop(client)
            self._start_clients()

    def restart(self, component: str, number: int = signal.SIGTERM) -> None:
        self.take_down(component, number)
        self.bring_back(component)

    def freeze(self, component: str) -> None:
        """It keeps its connections and answers nothing until `thaw`."""
        self.processes.send(component, signal.SIGSTOP)

    def thaw(self, component: str) -> None:
        self.processes.send(component, signal.SIGCONT)

    def wait_ready(self, component: str, within: float = 120.0) -> None:
        deadline = time.monotonic() + within
        while True:
            self.processes.check()
            try:
                return self._ask_health(component)
            except (ApiError, Unreachable) as error:
                if time.monotonic() > deadline:
                    tail = self.processes.log_tail(component)
                    raise TimeoutError(f"{component} is not ready after {within:g} s: {error}\n{tail}") from error
            time.sleep(0.05)

    def save(self, path: Path) -> None:
        """What etcd holds, as a folder for `start(saved=…)`. Everything is stopped meanwhile."""
        for component in reversed(COMPONENTS):
            last = component == "etcd"  # what the others have to say is in etcd already
            self.processes.stop(component, signal.SIGTERM if last else signal.SIGKILL)
        unfinished = path.with_name(f".{path.name}.unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        shutil.copytree(self.layout.data, unfinished)
        shutil.rmtree(path, ignore_errors=True)
        unfinished.rename(path)
        self.start_all(restored=True)

    def stop(self) -> None:
        """In reverse order, waiting for each, but without grace: nothing is kept. Removes the folder."""
        with contextlib.suppress(AssertionError):
            for component in reversed(COMPONENTS):
                self.processes.stop(component, signal.SIGKILL)
        self.api.close()
        self.processes.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def kubeconfig_for(self, user: str, *groups: str) -> Path:
        """Who logs in with it is `user` in `groups`, no more: what RBAC gives them is what they may do."""
        with self._writing:  # two tests at once must not write one file
            if (user, groups) not in self._logins:
                self._logins[user, groups] = self._login(user, groups)
            return self._logins[user, groups]

    def _login(self, user: str, groups: tuple[str, ...]) -> Path:
        name = "".join(letter if letter.isalnum() else "-" for letter in "-".join((user, *groups)))
        client = self.authority.client(f"user-{name}", user, groups)
        server = self.layout.url("kube-apiserver")
        return kubeconfig.write(self.folder / f"{name}.kubeconfig", server, self.authority.certificate, user, client)

    def _start_clients(self) -> None:
        for component in COMPONENTS[2:]:
            self.start_component(component, wait=False)
        for component in COMPONENTS[2:]:
            self.wait_ready(component)

    def _layout(self) -> Layout:
        names = (*COMPONENTS, "etcd-peer")
        layout = Layout(
            folder=self.folder,
            minor=flags.minor_of(self.binaries.kubernetes),
            authority=self.authority.pair,
            serving=self.authority.server("serving", ["kubernetes", "kubernetes.default", "kubernetes.default.svc"]),
            aggregator=self.authority.client("front-proxy", "front-proxy"),
            service_accounts=signing_key(self.folder, "service-accounts"),
            ports=dict(zip(names, ports.free(len(names)), strict=True)),
            kubeconfigs={},
            stages=flags.stages(self.folder, self.start_up),
        )
        self.layout = layout
        layout.kubeconfigs["admin"] = self.kubeconfig_for("admin", *MASTERS)
        layout.kubeconfigs["kwok"] = self.kubeconfig_for("kwok", *MASTERS)
        layout.kubeconfigs.update({name: self.kubeconfig_for(f"system:{name}") for name in CLIENTS})
        return layout

    def _ask_health(self, component: str) -> None:
        path = {"etcd": "/health", "kube-apiserver": "/readyz"}.get(component, "/healthz")
        self.api.request("GET", self.layout.url(component) + path, timeout=5.0)

    def _forget_leases(self) -> None:
        """Earlier fake kubelets still hold the nodes' leases; the new ones would wait 40 s for their end."""
        self.api.request("DELETE", "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases")
