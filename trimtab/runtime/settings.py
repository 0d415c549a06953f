"""The webhook's settings, with their units and the reasons for their defaults."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal, Protocol

from trimtab.cluster.overhead_writer import OverheadWriter
from trimtab.cluster.processes import WEBHOOK

COMMON_SETTINGS = frozenset(
    {
        "namespace",
        "policies",
        "overhead",
        "autoscaler_namespace",
        "autoscaler_status_configmap",
        "log_level",
        "log_format",
    }
)
"""The fields whose variable has no process in its name, because the processes of an installation must agree on them, or
because one log collector reads the logs of all."""

LIVE_CLUSTER = Path("live")
"""The value of `Settings.cluster` with which the facts come from the running cluster instead of a file."""


@dataclass(frozen=True, slots=True)
class ListenAddress:
    """The address to listen on. Port 0 means any free port; the log and the ready file name the chosen one."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class ServerSettings(Protocol):
    """The settings of a process that gunicorn serves, as far as `trimtab.runtime.serve` reads them."""

    @property
    def listen(self) -> ListenAddress: ...
    @property
    def certs_folder(self) -> Path: ...
    @property
    def client_ca_file(self) -> Path | None: ...
    @property
    def ready_file(self) -> Path | None: ...
    @property
    def shutdown_delay_seconds(self) -> float: ...
    @property
    def graceful_timeout_seconds(self) -> float: ...
    @property
    def keepalive_seconds(self) -> int: ...
    @property
    def max_connections(self) -> int: ...
    @property
    def max_connections_per_address(self) -> int: ...


_RENAMED = {
    "AUTOSCALER_STATUS": "autoscaler_status_configmap",
    "CERTS": "certs_folder",
    "CERTS_EVERY": "certs_check_interval_seconds",
    "CERTS_SECRET": "certs_secret",
    "CLIENT_CA": "client_ca_file",
    "CLIENT_NAME": "client_common_name",
    "CLUSTER": "cluster",
    "CONFIGURATION": "configuration_name",
    "CONNECTIONS": "max_connections",
    "DRAIN": "shutdown_delay_seconds",
    "GRACEFUL_TIMEOUT": "graceful_timeout_seconds",
    "KEEPALIVE": "keepalive_seconds",
    "LISTEN": "listen",
    "PAUSED": "paused",
    "READY_FILE": "ready_file",
    "SERVICE": "service_name",
    "WEBHOOK_CONNECTIONS_PER_ADDRESS": "max_connections_per_address",
}
"""Former variable without `TRIMTAB_` → the present field, for settings that had another name in earlier versions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of the webhook; `trimtab.runtime.environment` gives each one its environment variable."""

    process: ClassVar[str] = WEBHOOK.name
    renamed: ClassVar[Mapping[str, str]] = _RENAMED

    listen: ListenAddress = ListenAddress("0.0.0.0", 8443)  # noqa: S104
    """The HOST:PORT to listen on. The default is all interfaces, because the API server calls the pod's address; port
    8443 needs no special privilege."""

    certs_folder: Path = Path(".trimtab/certs")
    """The folder with `tls.crt` and `tls.key`. The default is a relative path, so that you can try the webhook without
    special permissions; the chart sets another one."""

    certs_secret: str | None = None
    """The name of the Secret in Trimtab's namespace with the certificate, which the replicas share and renew; the
    folder then only holds the key pair that is being served. None: cert-manager or you fill the folder, and the webhook
    reads no Secret."""

    certs_check_interval_seconds: float = 10.0
    """The number of seconds between two checks of the Secret with the certificate and of both webhook configurations. A
    new authority signs certificates only after three checks have found it in both configurations, because API servers
    need a moment to notice it."""

    client_ca_file: Path | None = None
    """The path of a file with the authorities (PEM) that sign the API servers' client certificates. Only a client with
    such a certificate may then send reviews; health and metrics stay open. None: any client that reaches the port may
    send a review, and so find out what policies do to pods."""

    client_common_name: str | None = None
    """The common name that the client certificate must have, for authorities that also sign other certificates. None:
    any."""

    service_name: str = "trimtab-webhook"
    """The name of the Service through which API servers call the webhook. The certificate contains this name."""

    configuration_name: str = "trimtab"
    """The name of both webhook configurations. The webhook keeps their caBundle equal to the one in the Secret."""

    policies: tuple[Path, ...] = ()
    """The files or folders with policies, separated by `:`. Empty: the cluster's PodPolicies if TRIMTAB_WEBHOOK_CLUSTER
    is `live`, otherwise the recommended set that is part of Trimtab."""

    cluster: Path | None = None
    """Where the facts about the cluster come from: `live` (watches, with KUBECONFIG or the pod's service account), or
    the path of a snapshot file. None: there are no facts, and a policy that needs one reports it as missing."""

    overhead: OverheadWriter = "server"
    """The component that sets the overhead of pods. `server`: the API server's RuntimeClass admission plugin, which is
    on by default. `webhook`: Trimtab's webhook."""

    namespace: str = "trimtab-system"
    """Trimtab's own namespace. The webhook never changes its pods."""

    autoscaler_namespace: str = "kube-system"
    """The namespace in which the cluster autoscaler writes its status: the value of its flag `--namespace`."""

    autoscaler_status_configmap: str = "cluster-autoscaler-status"
    """The ConfigMap with the cluster autoscaler's status: the value of its flag `--status-config-map-name`. If several
    autoscalers run in the namespace, the names of all their statuses, separated by commas. The webhook's role lets it
    read only these names: if you change them, give the same names to `trimtab install` or to the chart."""

    paused: bool = False
    """True: the webhook admits every pod unchanged. Use it as the emergency switch."""

    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """The lowest level of messages that are logged. `info` has one line for each changed pod."""

    log_format: Literal["auto", "json", "console"] = "auto"
    """`auto`: colours on a terminal, JSON lines everywhere else."""

    ready_file: Path | None = None
    """The path of a file that the webhook writes as soon as it serves requests: JSON with `url`, `host`, `port` and
    `pid`. None: there is only the log line."""

    shutdown_delay_seconds: float = 5.0
    """The number of seconds from the stop signal until the webhook accepts no more connections, because endpoints need
    a few seconds to drop a pod."""

    graceful_timeout_seconds: float = 30.0
    """The longest time in seconds from the stop signal until the process ends. The pod's termination grace period must
    be longer."""

    keepalive_seconds: int = 120
    """For how many seconds an idle connection is kept open. It must be longer than the 90 seconds of the API server,
    because the API server must be the side that closes the connection."""

    max_connections: int = 2000
    """The largest number of open connections, which need at most 106 MB of memory. An API server opens as many as it
    has pods to review at the same moment, by default up to 200. If there are too many, the webhook closes a connection
    of the address with the most connections: one that was never used, or else the one that has been idle the longest.
    """

    max_connections_per_address: int = 1000
    """The largest number of open connections from one client address, including unfinished handshakes. The default is
    half of all, so that no machine can lock the others out. All API servers behind one address count together: the
    default is enough for five of them with 200 each."""

    @property
    def is_live(self) -> bool:
        """Whether the facts about the cluster come from watches."""
        return self.cluster == LIVE_CLUSTER
