"""The settings of the recommender: their units, and the reasons for their defaults."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from trimtab.cluster.cluster_autoscaler import STATUS_NAME, STATUS_NAMESPACE
from trimtab.kube.leader_process import LeaderProcessSettings
from trimtab.runtime.settings import ListenAddress


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings(LeaderProcessSettings):
    """The recommender's settings; `environment.variable_name` gives the name of each one's variable."""

    process: ClassVar[str] = "recommender"

    listen: ListenAddress = ListenAddress("0.0.0.0", 9090)  # noqa: S104, RUF009  a frozen value
    """The HOST:PORT for metrics, health and `/missing`. The default is all interfaces, because Prometheus and the
    kubelet connect from outside the pod."""

    namespace: str = "trimtab-system"
    """Trimtab's own namespace, in which checkpoints, recommendations and the Lease are."""

    prometheus_url: str | None = None
    """The URL of Prometheus, Thanos, Mimir or a server with the same API: it has history from the first minute, and no
    gap after an outage. None: the metrics API (metrics-server), whose samples the recommender collects from now on."""

    use_kubelets: bool = False
    """True, without Prometheus: read each node's kubelet (`/stats/summary`, through the API server) instead of the
    metrics API. The kubelet reports cpu as a counter, so the recommender misses nothing between two rounds and needs
    no metrics-server. The default is false, because this needs `get` on `nodes/proxy`, which also lets its holder
    run commands in pods; docs/how-to/gather-usage.md has the role."""

    measure_reservations: bool = False
    """True: measure what kubelets and container runtimes use, and publish a reservation for each pool, from Prometheus
    if there is one, else from kubelets. The default is false: it needs to list nodes, and without Prometheus `get` on
    `nodes/proxy` as well; docs/how-to/reserve-for-the-kubelet.md has the role."""

    reservation_interval_seconds: float = 300.0
    """Seconds between two measurements of every node."""

    prometheus_token_file: Path | None = None
    """A file whose content is sent as a bearer token. The recommender reads it again in each round, because tokens are
    renewed."""

    prometheus_token: str | None = field(default=None, repr=False)
    """The bearer token itself. A file is better, because it is read again when the token is renewed."""

    prometheus_header_file: Path | None = None
    """A file with one header in each line, such as `Authorization: Basic …`. The recommender reads it again in each
    round."""

    prometheus_certificate_file: Path | None = None
    """The client certificate, for a server that requires one (mTLS)."""

    prometheus_key_file: Path | None = None
    """The key of the client certificate, if it is not in the same file."""

    prometheus_tenant: str | None = None
    """The tenant of Mimir and Cortex, sent as `X-Scope-OrgID`."""

    prometheus_ca_file: Path | None = None
    """A file of authorities that sign Prometheus' certificate. None: those of the system."""

    prometheus_matcher: str | None = None
    """A matcher that is added to every query, such as `cluster="prod"`, if one Prometheus serves several clusters.
    Without a matcher the recommender refuses the usage of more than one cluster, because it would become one
    history."""

    cpu_metric: str | None = None
    """The counter of cpu seconds, if relabelling gave it another name than cAdvisor's."""

    cpu_recording_rule: str | None = None
    """A recording rule that gives cores, instead of the counter."""

    memory_metric: str | None = None
    """The memory working set, if relabelling gave it another name than cAdvisor's."""

    prometheus_label_names: str | None = None
    """The names of the labels `namespace`, `pod` and `container` in Prometheus, such as
    `pod=k8s_pod_name,namespace=k8s_namespace`."""

    max_concurrent_queries: int = 4
    """The largest number of queries that are sent to Prometheus at the same time. It answers twenty at a time by
    default, and other clients need it too."""

    history_days: int = 14
    """Days of history that are kept. The default contains two weekends. Days are calendar days (UTC), and today is one
    of them."""

    query_step_seconds: int = 300
    """Seconds between the points of a Prometheus query. For memory the query returns the maximum of each step, so that
    it misses no peak."""

    cpu_rate_window: str = "5m"
    """The window over which Prometheus averages cpu, such as `5m`. It needs at least four scrapes, or one failed scrape
    leaves a gap."""

    collect_interval_seconds: float = 60.0
    """Seconds between two rounds. metrics-server itself reads usage every 15 to 60 seconds."""

    publish_interval_seconds: float = 600.0
    """Seconds between two checks of which recommendations changed. Two weeks of history change slowly."""

    publish_tolerance_percent: int = 5
    """Percent by which a P5 or P95 must have changed before it is written again: each write is an event for every
    webhook replica."""

    checkpoint_interval_seconds: float = 600.0
    """Seconds between two writes of one shard of the checkpoints. Without Prometheus, an unexpected end loses at most
    this much history, as long as `max_written_kilobytes` allows all shards in that time."""

    max_written_kilobytes: int = 1800
    """The largest amount in KB (1000 bytes) that is written to the API server in ten minutes: half of it is for
    recommendations, half for usage. What exceeds it waits; what changed most, or waited longest, is written first.
    When the recommender ends, it writes everything."""

    max_stored_megabytes: int = 256
    """The largest amount of usage in MB (1000000 bytes) that is stored in ConfigMaps; the default is an eighth of
    etcd's default quota, for about 70 000 containers. Beyond it the recommender deletes the oldest days."""

    demote_groups: bool = False
    """True: node groups that the cloud has no nodes for come last for an hour in the map of the cluster autoscaler's
    priority expander, if `trimtab machines priorities --apply` wrote that map. The Role comes from `trimtab install
    --demote-groups`."""

    autoscaler_namespace: str = STATUS_NAMESPACE
    """The namespace in which the cluster autoscaler runs: its own flag `--namespace`."""

    autoscaler_status_configmap: str = STATUS_NAME
    """The ConfigMap with the cluster autoscaler's status: its own flag `--status-config-map-name`."""

    parameter_namespaces: tuple[str, ...] = ()
    """Namespaces, separated by `:`, in which the recommender writes the ConfigMap `trimtab-requests`, which policies of
    the API server read (`trimtab policies compile --params usage`). The Role of each one comes from `trimtab install
    --parameter-namespace`."""

    use_vpa_checkpoints: bool = True
    """True: for containers without any other history, begin with the checkpoints of VPAs (cpu only)."""

    daily_history: str | None = None
    """A folder, or the URL of an object store such as `s3://bucket/history`, to which the recommender writes each day
    that is over, as Parquet for `trimtab fleet`. None: no history beyond the checkpoints. It needs the extra `fleet`,
    which the image does not have."""

    cluster_name: str | None = None
    """The name of this cluster in the history of `daily_history`, which needs one."""
