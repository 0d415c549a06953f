"""What can be set, in which unit, and why the default is what it is."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

LIVE = Path("live")
"""Of `Settings.cluster`: the cluster itself."""


@dataclass(frozen=True, slots=True)
class ListenAddress:
    """Where to listen. Port 0 means: any free one, told in the ready line and the ready file."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """One process's settings; each comes from `TRIMTAB_` and the field's name in capitals."""

    listen: ListenAddress = ListenAddress("0.0.0.0", 8443)  # noqa: S104
    """HOST:PORT. All interfaces, because the API server calls the pod's address; 8443 needs no privilege."""

    certs: Path = Path(".trimtab/certs")
    """Folder with `tls.crt` and `tls.key`. Relative, so that a first try needs no rights; a chart sets it."""

    certs_secret: str | None = None
    """Secret in our namespace that the replicas share and renew; the folder then only holds what is served from
    it. None: the folder is somebody else's (cert-manager, a person), and no cluster is asked for a pair."""

    certs_every: float = 10.0
    """Seconds between two looks at that Secret and at both webhook configurations. A new authority signs only after
    three looks have found it in both: API servers need a moment to notice."""

    client_ca: Path | None = None
    """Authorities (PEM) that sign the API servers' client certificate. Only who shows one may send reviews then; health
    and metrics stay open. None: whoever reaches the port may ask, and learns what policies do to pods."""

    client_name: str | None = None
    """The common name that certificate must carry, where those authorities sign others, too. None: any."""

    service: str = "trimtab-webhook"
    """The Service API servers call us by: the pair carries its name."""

    configuration: str = "trimtab"
    """Name of both webhook configurations, whose caBundle is kept equal to the Secret's."""

    policies: tuple[Path, ...] = ()
    """Files or folders of policies, separated by `:`. Empty: the cluster's own PodPolicies where TRIMTAB_CLUSTER is
    `live`, otherwise the recommended set we ship."""

    cluster: Path | None = None
    """Where the facts come from: `live` (watches, by KUBECONFIG or as the pod we are in), or a snapshot file. None
    means no facts: what needs one is told as missing."""

    overhead: Literal["server", "webhook"] = "server"
    """Who writes pod overhead. `server`: the API server's RuntimeClass admission, which is on by default."""

    namespace: str = "trimtab-system"
    """Our own namespace: its pods are never changed."""

    autoscaler_namespace: str = "kube-system"
    """Where the cluster autoscaler writes its status: its own flag `--namespace`."""

    autoscaler_status: str = "cluster-autoscaler-status"
    """The ConfigMap of its status: its flag `--status-config-map-name`. The webhook may read the one of this name
    alone: whoever changes it gives `trimtab install` the same name, or the chart."""

    paused: bool = False
    """True lets every pod through unchanged: the one switch for a bad day."""

    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """The least that is written. `info` has one line per changed pod."""

    log_format: Literal["auto", "json", "console"] = "auto"
    """`auto`: colours on a terminal, JSON lines everywhere else."""

    ready_file: Path | None = None
    """Written when requests are served: JSON with `url`, `host`, `port`, `pid`. None: only the log line."""

    drain: float = 5.0
    """Seconds between the stop signal and the end of accepting: endpoints need a few to forget a pod."""

    graceful_timeout: float = 30.0
    """Seconds from the stop signal to the end at the latest; the pod's grace period must be longer."""

    keepalive: int = 120
    """Seconds an idle connection is kept. The API server keeps them 90: it must be the one that lets go."""

    connections: int = 2000
    """Connections held at once: 106 MB of memory at the most. An API server has as many as it has pods to ask about in
    the same moment, 200 by default. One too many ends, of the address that has most, the one that was never used or was
    silent longest."""

    webhook_connections_per_address: int = 1000
    """Connections held at once from one client address, unfinished handshakes included: half of all by default, so that
    no machine locks the others out. All API servers behind one address count as one: five of them with 200 each."""

    @property
    def live(self) -> bool:
        """Do the facts come from watches?"""
        return self.cluster == LIVE
