"""The settings of the recommender: their units, and the reasons for their defaults."""

from dataclasses import dataclass, field
from pathlib import Path

from trimtab.kube.leader_process import LeaderProcessSettings
from trimtab.runtime.settings import ListenAddress


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings(LeaderProcessSettings):
    """One process's settings; each is read from `TRIMTAB_` and the field's name in capitals."""

    listen: ListenAddress = ListenAddress("0.0.0.0", 9090)  # noqa: S104, RUF009  a frozen value
    """HOST:PORT for metrics, health and `/missing`. All interfaces: Prometheus and the kubelet connect from outside."""

    namespace: str = "trimtab-system"
    """Trimtab's own namespace, which has the checkpoints, the recommendations and the Lease."""

    prometheus: str | None = None
    """URL of Prometheus, Thanos, Mimir or a compatible server: history from the first minute, and no gap after an
    outage. None: the metrics API (metrics-server), whose samples are recorded from now on."""

    kubelets: bool = False
    """Without Prometheus: read each node's kubelet (`/stats/summary`, through the API server) instead of the metrics
    API. Kubelets count cpu seconds, so nothing between two rounds is missed, and metrics-server is not needed. Not the
    default: it needs `get` on `nodes/proxy`, which also allows running commands in pods; docs/how-to/gather-usage.md has
    the role."""

    prometheus_token_file: Path | None = None
    """File whose content is sent as a bearer token; it is read again for each round, since tokens are renewed."""

    prometheus_token: str | None = field(default=None, repr=False)
    """The bearer token itself. A file is better: it is read again when it is renewed."""

    prometheus_header_file: Path | None = None
    """File with one header per line, such as `Authorization: Basic …`; it is read again for each round."""

    prometheus_certificate: Path | None = None
    """The client certificate, for a server that requires one (mTLS)."""

    prometheus_key: Path | None = None
    """The certificate's key, where it is not in the same file."""

    prometheus_tenant: str | None = None
    """Sent as `X-Scope-OrgID`: the tenant of Mimir and Cortex."""

    prometheus_ca: Path | None = None
    """Certificates that signed the certificate of Prometheus. None: those of the system."""

    matcher: str | None = None
    """A matcher that is part of every query, such as `cluster="prod"`, where one Prometheus serves several clusters.
    Without it the usage of more than one cluster is refused: it would become one history."""

    cpu_metric: str | None = None
    """The counter of cpu seconds, where relabelling gave it another name than cAdvisor's."""

    cpu_recorded: str | None = None
    """A recording rule that gives cores, instead of the counter."""

    memory_metric: str | None = None
    """The working set of memory, where relabelling gave it another name."""

    label_names: str | None = None
    """The names of the labels `namespace`, `pod` and `container` at the server, such as
    `pod=k8s_pod_name,namespace=k8s_namespace`."""

    queries_at_once: int = 4
    """Queries that are sent to Prometheus at the same time: it answers twenty, and others need it, too."""

    days: int = 14
    """Days of history that are retained: two weekends. A ring of calendar days (UTC), today included."""

    step: int = 300
    """Seconds between points queried from Prometheus. Memory is queried as the maximum of each step, so no peak is
    lost."""

    rate: str = "5m"
    """The range that Prometheus averages cpu over: at least four scrapes, so that a failed one leaves no gap."""

    interval: float = 60.0
    """Seconds between two rounds. metrics-server itself reads usage every 15 to 60 seconds."""

    publish_every: float = 600.0
    """Seconds between two computations of the recommendations. Two weeks of usage change slowly."""

    tolerance: int = 5
    """Percent by which a P5 or P95 must change to be written again: each write is sent to every webhook."""

    checkpoint_every: float = 600.0
    """Seconds between two writes of one shard of the checkpoints, and the maximum that an unexpected end loses without
    Prometheus, as long as `max_written_kilobytes` has room for all shards in that time."""

    max_written_kilobytes: int = 1800
    """KB (1000 bytes) that are written to the API server in ten minutes at most: half of it recommendations, half
    usage. Beyond it writes wait, the largest change or the longest wait first. Only at the end of the process
    everything is written."""

    max_stored_megabytes: int = 256
    """MB (1000000 bytes) of usage in ConfigMaps at most, an eighth of the default capacity of etcd. About 70 000
    containers; beyond it the oldest days are removed."""

    vpa_checkpoints: bool = True
    """Begin with the history in the VPAs' checkpoints, for containers without other usage: cpu only."""
