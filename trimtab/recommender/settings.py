"""What can be set about the recommender, in which unit, and why the default is what it is."""

from dataclasses import dataclass
from pathlib import Path

from trimtab.kube.replicated import Replicated
from trimtab.runtime.settings import Address


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings(Replicated):
    """One process's settings; each comes from `TRIMTAB_` and the field's name in capitals."""

    listen: Address = Address("0.0.0.0", 9090)  # noqa: S104, RUF009  a frozen value
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

    prometheus_tenant: str | None = None
    """Sent as `X-Scope-OrgID`: the tenant of Mimir and Cortex."""

    prometheus_ca: Path | None = None
    """Certificates that Prometheus' own is signed by. None: those of the system."""

    matcher: str | None = None
    """A matcher that every query carries, such as `cluster="prod"`, where one Prometheus serves several clusters."""

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
    there is no Prometheus. N shards are N writes of at most 900 KB in that time."""

    vpa_checkpoints: bool = True
    """Begin with what VPAs wrote down, for containers that nothing else is known of: cpu only."""
