"""What can be set about the recommender, in which unit, and why the default is what it is."""

from dataclasses import dataclass, field
from pathlib import Path

from trimtab.kube.leader_process import LeaderProcessSettings
from trimtab.runtime.settings import ListenAddress


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings(LeaderProcessSettings):
    """One process's settings; each comes from `TRIMTAB_` and the field's name in capitals."""

    listen: ListenAddress = ListenAddress("0.0.0.0", 9090)  # noqa: S104, RUF009  a frozen value
    """HOST:PORT for metrics, health and `/missing`. All interfaces: Prometheus and the kubelet ask from outside."""

    namespace: str = "trimtab-system"
    """Our own namespace: checkpoints, recommendations and the Lease are here."""

    prometheus: str | None = None
    """URL of Prometheus, Thanos, Mimir or what speaks like them: history from the first minute, and no hole after an
    outage. None: the metrics API (metrics-server), whose moments are gathered from now on."""

    kubelets: bool = False
    """Without Prometheus: ask each node's kubelet (`/stats/summary`, through the API server) instead of the metrics
    API. Cpu is counted there, so nothing between two rounds is missed, and metrics-server is not needed. Not the
    default: it takes `get` on `nodes/proxy`, which also lets run commands in pods; docs/how-to/gather-usage.md has the
    role."""

    prometheus_token_file: Path | None = None
    """File whose content is sent as a bearer token; read again for each round, since tokens are renewed."""

    prometheus_token: str | None = field(default=None, repr=False)
    """The bearer token itself. A file is better: it is read again when it is renewed."""

    prometheus_header_file: Path | None = None
    """File with a header in each line, such as `Authorization: Basic …`; read again for each round."""

    prometheus_certificate: Path | None = None
    """The client's own certificate, for a server that asks for one (mTLS)."""

    prometheus_key: Path | None = None
    """The certificate's key, where it is not in the same file."""

    prometheus_tenant: str | None = None
    """Sent as `X-Scope-OrgID`: the tenant of Mimir and Cortex."""

    prometheus_ca: Path | None = None
    """Certificates that Prometheus' own is signed by. None: those of the system."""

    matcher: str | None = None
    """A matcher that every query carries, such as `cluster="prod"`, where one Prometheus serves several clusters.
    Without one the usage of more than one cluster is refused: it would become one history."""

    cpu_metric: str | None = None
    """The counter of cpu seconds, where relabelling gave it another name than cAdvisor's."""

    cpu_recorded: str | None = None
    """A recording rule that gives cores, instead of the counter."""

    memory_metric: str | None = None
    """The working set of memory, likewise."""

    label_names: str | None = None
    """What `namespace`, `pod` and `container` are called there, such as `pod=k8s_pod_name,namespace=k8s_namespace`."""

    queries_at_once: int = 4
    """Queries that Prometheus is asked at the same time: it answers twenty, which others need, too."""

    days: int = 14
    """Of history that is kept: two weekends. A ring of calendar days (UTC), today among them."""

    step: int = 300
    """Seconds between points asked of Prometheus. Memory is asked as the most of each step: no peak is lost."""

    rate: str = "5m"
    """What Prometheus averages cpu over: four scrapes at least, or one that failed leaves a hole."""

    interval: float = 60.0
    """Seconds between two rounds. metrics-server itself looks every 15 to 60 seconds."""

    publish_every: float = 600.0
    """Seconds between two looks at what would be recommended. Two weeks change slowly."""

    tolerance: int = 5
    """Percent by which a P5 or P95 must have changed to be written again: each write wakes every webhook."""

    checkpoint_every: float = 600.0
    """Seconds between two writes of one shard of the checkpoints, and what an unexpected end costs at the most where
    there is no Prometheus, as long as `max_written_kilobytes` has room for all of them in that time."""

    max_written_kilobytes: int = 1800
    """KB (1000 bytes) that are written to the API server in ten minutes at the most: half of it recommendations, half
    usage. What finds no room waits, what changed most or waited longest first. Only at our end everything is kept."""

    max_stored_megabytes: int = 256
    """MB (1000000 bytes) of usage that stand in ConfigMaps at the most, an eighth of what etcd holds unless told
    otherwise. About 70 000 containers; beyond it the oldest days go."""

    vpa_checkpoints: bool = True
    """Begin with what VPAs wrote down, for containers that nothing else is known of: cpu only."""
