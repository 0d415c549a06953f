"""The command lines of the five processes. Why a flag is there stands beside it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tests.controlplane.certificates import Pair

CONFIG = Path(__file__).with_name("config")


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Where everything of one control plane is."""

    folder: Path
    minor: tuple[int, int]
    """Of Kubernetes."""
    authority: Pair
    serving: Pair
    aggregator: Pair
    service_accounts: Pair
    ports: dict[str, int]
    kubeconfigs: dict[str, Path]
    stages: Path
    """What kwok plays."""

    @property
    def data(self) -> Path:
        return self.folder / "etcd"

    @property
    def audit_log(self) -> Path:
        return self.folder / "audit.log"

    def url(self, component: str) -> str:
        scheme = "http" if component in ("etcd", "kwok") else "https"
        return f"{scheme}://127.0.0.1:{self.ports[component]}"


def minor_of(version: str) -> tuple[int, int]:
    """(1, 36) of 1.36.2."""
    major, minor, *_ = version.split(".")
    return int(major), int(minor)


def stages(folder: Path, start_up: int) -> Path:
    """The stages, with pods that take so many seconds to be Ready unless their annotation says otherwise."""
    text = (CONFIG / "stages.yaml").read_text()
    head, mark, tail = text.partition("metadata: {name: pod-starts}")
    tail = tail.replace("durationMilliseconds: 0", f"durationMilliseconds: {start_up * 1000}", 1)
    item = folder / "stages.yaml"
    item.write_text(head + mark + tail)
    return item


def etcd(at: Layout) -> list[str]:
    client, peer = at.url("etcd"), f"http://127.0.0.1:{at.ports['etcd-peer']}"
    return [
        "--name=testbed",
        f"--data-dir={at.data}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=testbed={peer}",
        "--heartbeat-interval=10",
        "--election-timeout=100",  # a member alone waits this long for its own vote: 1 s by default
        "--unsafe-no-fsync",  # the data lives as long as the test
        "--quota-backend-bytes=8589934592",
        "--log-level=warn",
    ]


def kube_apiserver(at: Layout) -> list[str]:
    ca = at.authority.certificate
    return [
        f"--etcd-servers={at.url('etcd')}",
        "--bind-address=127.0.0.1",
        "--advertise-address=127.0.0.1",  # else it looks for a default route, which a machine may not have
        "--endpoint-reconciler-type=none",  # loopback is no valid endpoint of the `kubernetes` Service
        f"--secure-port={at.ports['kube-apiserver']}",
        f"--tls-cert-file={at.serving.certificate}",
        f"--tls-private-key-file={at.serving.key}",
        f"--client-ca-file={ca}",
        "--authorization-mode=Node,RBAC",  # our roles are part of what is tested
        "--enable-admission-plugins=NodeRestriction",  # a kubelet writes its own node alone, as everywhere
        "--allow-privileged=true",
        "--service-cluster-ip-range=10.96.0.0/16",
        f"--service-account-issuer={at.url('kube-apiserver')}",
        f"--service-account-key-file={at.service_accounts.certificate}",
        f"--service-account-signing-key-file={at.service_accounts.key}",
        # The aggregation layer. It refuses to start without the allowed names when its CA is the clients' CA,
        # and without --enable-aggregator-routing a Service of type ExternalName `localhost` leads to this
        # machine.
        f"--requestheader-client-ca-file={ca}",
        "--requestheader-allowed-names=front-proxy",
        "--requestheader-username-headers=X-Remote-User",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        f"--proxy-client-cert-file={at.aggregator.certificate}",
        f"--proxy-client-key-file={at.aggregator.key}",
        f"--audit-policy-file={CONFIG / 'audit-policy.yaml'}",
        f"--audit-log-path={at.audit_log}",
        "--audit-log-mode=blocking-strict",  # in the log as it is answered, not some time later
        "--audit-log-maxsize=1000000",  # megabytes: never rotated, the auditor reads one file
        "--event-ttl=1h",
        "--profiling=false",
    ]


def left_out_controllers(minor: tuple[int, int]) -> tuple[str, ...]:
    """The controllers that give nodes addresses and routes, which fake nodes need not. 1.37 ends at a name that it does
    not know, and knows no node-route-controller any more."""
    return ("node-ipam-controller",) if minor >= (1, 37) else ("node-route-controller", "node-ipam-controller")


def kube_controller_manager(at: Layout) -> list[str]:
    return [
        *_client(at, "kube-controller-manager"),
        f"--root-ca-file={at.authority.certificate}",
        f"--service-account-private-key-file={at.service_accounts.key}",
        f"--cluster-signing-cert-file={at.authority.certificate}",
        f"--cluster-signing-key-file={at.authority.key}",
        "--use-service-account-credentials=true",
        f"--controllers={','.join(('*', *(f'-{name}' for name in left_out_controllers(at.minor))))}",
        "--concurrent-deployment-syncs=20",
        "--concurrent-replicaset-syncs=20",
        "--concurrent-namespace-syncs=20",
    ]


def kube_scheduler(at: Layout) -> list[str]:
    return _client(at, "kube-scheduler")


def kwok(at: Layout) -> list[str]:
    return [
        f"--kubeconfig={at.kubeconfigs['kwok']}",
        f"--config={at.stages}",
        "--manage-all-nodes=true",
        "--node-lease-duration-seconds=40",
        f"--server-address=127.0.0.1:{at.ports['kwok']}",
        "--node-ip=127.0.0.1",
    ]


def _client(at: Layout, component: str) -> list[str]:
    """Common to controller manager and scheduler."""
    kubeconfig = at.kubeconfigs[component]
    return [
        f"--kubeconfig={kubeconfig}",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        "--leader-elect=false",
        "--kube-api-qps=500",
        "--kube-api-burst=1000",
        "--bind-address=127.0.0.1",
        f"--secure-port={at.ports[component]}",
        f"--tls-cert-file={at.serving.certificate}",
        f"--tls-private-key-file={at.serving.key}",
        "--profiling=false",
    ]
