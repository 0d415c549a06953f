"""The settings of the recommender, with their units and the reasons for their defaults."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from trimtab.cluster.cluster_autoscaler import STATUS_NAME, STATUS_NAMESPACE
from trimtab.cluster.processes import RECOMMENDER
from trimtab.runtime.settings import ListenAddress
from trimtab.workers.leader_process import LeaderProcessSettings

_RENAMED = {
    "CHECKPOINT_EVERY": "checkpoint_interval_seconds",
    "CPU_METRIC": "cpu_metric",
    "CPU_RECORDED": "cpu_recording_rule",
    "DAYS": "history_days",
    "INTERVAL": "collect_interval_seconds",
    "KUBECONFIG": "kubeconfig",
    "KUBELETS": "use_kubelets",
    "LABEL_NAMES": "prometheus_label_names",
    "LEASE": "lease_duration_seconds",
    "LISTEN": "listen",
    "MATCHER": "prometheus_matcher",
    "MAX_STORED_MEGABYTES": "max_stored_megabytes",
    "MAX_WRITTEN_KILOBYTES": "max_written_kilobytes",
    "MEMORY_METRIC": "memory_metric",
    "PROMETHEUS": "prometheus_url",
    "PROMETHEUS_CA": "prometheus_ca_file",
    "PROMETHEUS_CERTIFICATE": "prometheus_certificate_file",
    "PROMETHEUS_HEADER_FILE": "prometheus_header_file",
    "PROMETHEUS_KEY": "prometheus_key_file",
    "PROMETHEUS_TENANT": "prometheus_tenant",
    "PROMETHEUS_TOKEN": "prometheus_token",
    "PROMETHEUS_TOKEN_FILE": "prometheus_token_file",
    "PUBLISH_EVERY": "publish_interval_seconds",
    "QUERIES_AT_ONCE": "max_concurrent_queries",
    "RATE": "cpu_rate_window",
    "READY_FILE": "ready_file",
    "RENEW_DEADLINE": "renew_deadline_seconds",
    "RETRY": "retry_period_seconds",
    "STEP": "query_step_seconds",
    "TOLERANCE": "publish_tolerance_percent",
    "VPA_CHECKPOINTS": "use_vpa_checkpoints",
    "WRITE_DEADLINE": "write_timeout_seconds",
}
"""Former variable without `TRIMTAB_` → the present field, for settings that had another name in earlier versions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings(LeaderProcessSettings):
    """The settings of the recommender; `environment.variable_name` returns the name of the environment variable for
    each."""

    process: ClassVar[str] = RECOMMENDER.name
    renamed: ClassVar[Mapping[str, str]] = _RENAMED

    listen: ListenAddress = ListenAddress("0.0.0.0", 9090)  # noqa: S104, RUF009  a frozen value
    """The HOST:PORT for metrics, health and `/missing`. The default is all interfaces, because Prometheus and the
    kubelet connect from outside the pod."""

    namespace: str = "trimtab-system"
    """Trimtab's own namespace, in which checkpoints, recommendations and the Lease are."""

    prometheus_url: str | None = None
    """The URL of Prometheus, Thanos, Mimir or a server with the same API, which has history from before the recommender
    started and during outages. None: the recommender collects samples from the metrics API (metrics-server) from now
    on."""

    use_kubelets: bool = False
    """True, without Prometheus: read each node's kubelet (`/stats/summary`, through the API server) instead of the
    metrics API. The kubelet reports cpu as a counter, so the recommender misses no usage between two rounds and needs
    no metrics-server. The default is false, because this needs the permission `get` on `nodes/proxy`, with which one
    can also run commands in pods; docs/how-to/size-requests.md#kubelets has the role."""

    measure_reservations: bool = False
    """True: measure what kubelets and container runtimes use, and publish a reservation for each pool, from Prometheus
    if there is one, else from kubelets. The default is false because this needs permission to list nodes and, without
    Prometheus, `get` on `nodes/proxy`; deploy/recommender-kubelets.yaml has the role."""

    reservation_interval_seconds: float = 300.0
    """The number of seconds between two measurements of all nodes."""

    prometheus_token_file: Path | None = None
    """The path of a file with the bearer token for Prometheus. The recommender reads it again in each round, because
    tokens are renewed."""

    prometheus_token: str | None = field(default=None, repr=False)
    """The bearer token for Prometheus. A file is better, because it is read again when the token is renewed."""

    prometheus_header_file: Path | None = None
    """The path of a file with one header in each line, such as `Authorization: Basic …`. The recommender reads it again
    in each round."""

    prometheus_certificate_file: Path | None = None
    """The path of a file with the client certificate, for a server that requires one (mTLS)."""

    prometheus_key_file: Path | None = None
    """The path of a file with the key of the client certificate, if the key is not in the same file."""

    prometheus_tenant: str | None = None
    """The tenant of Mimir and Cortex, sent as `X-Scope-OrgID`."""

    prometheus_ca_file: Path | None = None
    """The path of a file with the authorities that sign Prometheus' certificate. None: those of the system."""

    prometheus_matcher: str | None = None
    """A matcher that is added to every query, such as `cluster="prod"`, if one Prometheus serves several clusters.
    Without a matcher, the recommender rejects the usage of more than one cluster, because it would be mixed in one
    history."""

    cpu_metric: str | None = None
    """The name of the counter of cpu seconds, if relabelling has changed cAdvisor's name."""

    cpu_recording_rule: str | None = None
    """The name of a recording rule for cpu usage in cores, which is used in place of the counter."""

    memory_metric: str | None = None
    """The name of the metric for the memory working set, if relabelling has changed cAdvisor's name."""

    prometheus_label_names: str | None = None
    """The names of the labels `namespace`, `pod` and `container` in Prometheus, such as
    `pod=k8s_pod_name,namespace=k8s_namespace`."""

    max_concurrent_queries: int = 4
    """The largest number of queries that are sent to Prometheus at the same time. By default, Prometheus answers twenty
    at a time, and other clients need it too."""

    history_days: int = 14
    """The number of days of history that are kept. The default includes two weekends. Days are calendar days (UTC), and
    today is one of them."""

    query_step_seconds: int = 300
    """The number of seconds between the points of a Prometheus query. For memory, the query returns the maximum of each
    step, so that no peak is missed."""

    cpu_rate_window: str = "5m"
    """The window over which Prometheus averages cpu usage, such as `5m`. It must contain at least four scrapes;
    otherwise one failed scrape leaves a gap."""

    collect_interval_seconds: float = 60.0
    """The number of seconds between two rounds. metrics-server itself reads usage every 15 to 60 seconds."""

    publish_interval_seconds: float = 600.0
    """The number of seconds between two checks of which recommendations have changed. Two weeks of history change
    slowly."""

    publish_tolerance_percent: int = 5
    """By how many percent a P5 or P95 must have changed before it is written again: each write is an event for every
    replica of the webhook."""

    checkpoint_interval_seconds: float = 600.0
    """The number of seconds between two writes of one shard of the checkpoints. Without Prometheus, an unexpected end
    loses at most this much history, provided that `max_written_kilobytes` allows all shards to be written in that time.
    """

    max_written_kilobytes: int = 1800
    """The largest amount in KB (1000 bytes) that is written to the API server in ten minutes: half of it is for
    recommendations, half for usage. What exceeds the limit waits; what has changed most, or has waited longest, is
    written first. When the recommender ends, it writes everything."""

    max_stored_megabytes: int = 256
    """The largest amount of usage in MB (1000000 bytes) that is stored in ConfigMaps. The default is an eighth of
    etcd's default quota, enough for about 70 000 containers. If there is more, the recommender deletes the oldest days.
    """

    demote_groups: bool = False
    """True: node groups for which the cloud has no nodes come last for an hour in the map of the cluster autoscaler's
    priority expander, if `trimtab machines priorities --apply` wrote that map. `trimtab install --demote-groups`
    creates the Role for this."""

    autoscaler_namespace: str = STATUS_NAMESPACE
    """The namespace in which the cluster autoscaler runs: the value of its flag `--namespace`."""

    autoscaler_status_configmap: str = STATUS_NAME
    """The ConfigMap with the cluster autoscaler's status: the value of its flag `--status-config-map-name`. If several
    autoscalers run in the namespace, the names of all their statuses, separated by commas."""

    parameter_namespaces: tuple[str, ...] = ()
    """The namespaces, separated by `:`, in which the recommender writes the ConfigMap `trimtab-requests` for policies
    of the API server (`trimtab policies compile --params usage`). `trimtab install --parameter-namespace` creates the
    Role for each."""

    parameters_in_own_namespace: bool = False
    """True: write the parameters of `parameter_namespaces` into Trimtab's own namespace, where no tenant writes, as
    ConfigMaps `trimtab-requests.NAMESPACE`. Policies that were compiled with `--params-namespace` read them there; they
    may also replace requests (`when: always`)."""

    write_vpa_status: bool = False
    """True: write the recommendation of VPAs that name `trimtab` as their only recommender. `trimtab install
    --vpa-recommender` creates the ClusterRole for this; docs/how-to/keep-your-vpa.md explains it."""

    record_pod_sums: bool = False
    """True: also record the usage of all containers of a pod together, for policies with `podLevelRequests`. Pods with
    two containers then take half as much memory and storage again, pods with many containers less."""

    use_vpa_checkpoints: bool = True
    """True: containers without any other history begin with the checkpoints of VPAs (cpu only)."""

    daily_history: str | None = None
    """A folder, or the URL of an object store such as `s3://bucket/history`, to which the recommender writes each day
    that is over, as Parquet for `trimtab fleet`. None: there is no history beyond the checkpoints. This needs the extra
    `fleet`, which is not in the image."""

    cluster_name: str | None = None
    """The name of this cluster in the history of `daily_history`; it is required there."""
