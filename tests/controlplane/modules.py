"""The Go modules the binaries come from: one folder each, whose go.mod is the one place with versions."""

from __future__ import annotations

import hashlib
import os
import platform
import re
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent / "modules"
DEFAULT_KUBERNETES = "1.36"


@dataclass(frozen=True, slots=True, kw_only=True)
class Module:
    """One go.mod folder and what is built from it: binary name → Go package."""

    folder: Path
    path: str
    packages: dict[str, str]
    minutes: float  # of a cold build on two cores, to tell whoever waits

    @property
    def version(self) -> str:
        """As required in go.mod, without the v."""
        result = re.search(rf"{re.escape(self.path)} v(\S+)", (self.folder / "go.mod").read_text())
        assert result, f"{self.folder}/go.mod does not require {self.path}"
        return result[1]

    @property
    def ldflags(self) -> str:
        """A server built without these reports v0.0.0, and features that compare versions misbehave."""
        if self.path != "k8s.io/kubernetes":
            return "-s -w"
        major, minor, _ = self.version.split(".", 2)
        stamps = {"gitVersion": f"v{self.version}", "gitMajor": major, "gitMinor": minor}
        return " ".join(["-s -w", *(f"-X k8s.io/component-base/version.{k}={v}" for k, v in stamps.items())])

    @property
    def key(self) -> str:
        """Names a build: the same key, the same binaries."""
        content = b"".join((self.folder / name).read_bytes() for name in ("go.mod", "go.sum"))
        digest = hashlib.sha256(content + self.ldflags.encode()).hexdigest()[:8]
        name = re.sub(r"/v\d+$", "", self.path).removesuffix("/server").rsplit("/", 1)[-1]
        return f"{name}-{self.version}-{platform.system().lower()}-{platform.machine()}-{digest}"


def kubernetes(minor: str | None = None) -> Module:
    """The Kubernetes of `E2E_K8S` (a minor such as 1.34), 1.36 unless told."""
    minor = minor or os.environ.get("E2E_K8S") or DEFAULT_KUBERNETES
    folder = HERE / f"kubernetes-{minor}"
    if not folder.is_dir():
        facts = sorted(path.name.removeprefix("kubernetes-") for path in HERE.glob("kubernetes-*"))
        raise LookupError(f"E2E_K8S={minor}: there is no {folder.name} in {HERE}; known are {', '.join(facts)}")
    tools = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl")
    packages = {tool: f"k8s.io/kubernetes/cmd/{tool}" for tool in tools}
    return Module(folder=folder, path="k8s.io/kubernetes", packages=packages, minutes=6)


def etcd() -> Module:
    path = "go.etcd.io/etcd/server/v3"
    return Module(folder=HERE / "etcd", path=path, packages={"etcd": path}, minutes=1)


def kwok() -> Module:
    path = "sigs.k8s.io/kwok"
    return Module(folder=HERE / "kwok", path=path, packages={"kwok": f"{path}/cmd/kwok"}, minutes=2)


def helm() -> Module:
    path = "helm.sh/helm/v4"
    return Module(folder=HERE / "helm", path=path, packages={"helm": f"{path}/cmd/helm"}, minutes=5)


def custom_metrics_adapter() -> Module:
    """The reference implementation of the custom metrics API, with values that a test sets."""
    path = "sigs.k8s.io/custom-metrics-apiserver"
    packages = {"custom-metrics-adapter": f"{path}/test-adapter"}
    return Module(folder=HERE / "custom-metrics-apiserver", path=path, packages=packages, minutes=3)


def kube_state_metrics() -> Module:
    """What shows a Prometheus the objects of a cluster, as `trimtab replay` reads them there."""
    path = "k8s.io/kube-state-metrics/v2"
    return Module(folder=HERE / "kube-state-metrics", path=path, packages={"kube-state-metrics": path}, minutes=2)


def vertical_pod_autoscaler() -> Module:
    """The VPA's own updater, admission controller and recommender: what acts on the status that we write."""
    path = "k8s.io/autoscaler/vertical-pod-autoscaler"
    packages = {f"vpa-{part}": f"{path}/pkg/{part}" for part in ("updater", "admission-controller", "recommender")}
    return Module(folder=HERE / "vpa", path=path, packages=packages, minutes=7)


def karpenter() -> Module:
    """Karpenter with its kwok provider, which makes machines of a catalogue: only benches need it."""
    path = "sigs.k8s.io/karpenter"
    return Module(folder=HERE / "karpenter", path=path, packages={"karpenter-kwok": f"{path}/kwok"}, minutes=8)
