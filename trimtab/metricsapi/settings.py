"""The settings of the metrics API, with their units and the reasons for their defaults."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Literal

from trimtab.cluster.processes import METRICS_API
from trimtab.runtime.settings import ListenAddress


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of the metrics API; `environment.variable_name` returns the name of the environment variable for
    each."""

    process: ClassVar[str] = METRICS_API.name
    renamed: ClassVar[Mapping[str, str]] = {}

    listen: ListenAddress = ListenAddress("0.0.0.0", 8443)  # noqa: S104, RUF009  a frozen value
    """The HOST:PORT for the API, and for metrics and health. The default is all interfaces, because API servers and the
    kubelet connect from outside the pod."""

    namespace: str = "trimtab-system"
    """Trimtab's own namespace, in which the rules and the certificate's Secret are."""

    kubeconfig: Path | None = None
    """The path of a kubeconfig file. None: the pod's service account or, outside a cluster, your own kubeconfig."""

    rules_config_map: str = "trimtab-metrics"
    """The name of the ConfigMap with the rules, in Trimtab's namespace, under the key `rules.yaml`. If you change it,
    also change the role of the process."""

    rules_file: Path | None = None
    """The path of a file with rules that is used in place of the ConfigMap and read once at the start."""

    certs_folder: Path = Path(".trimtab/metrics-api")
    """The folder with `tls.crt` and `tls.key`. The default is a relative path, so that you can try the process without
    special permissions."""

    certs_secret: str | None = None
    """The name of the Secret with the certificate, which the replicas share and renew; the folder then only holds the
    key pair that is being served. None: cert-manager or you fill the folder."""

    certs_check_interval_seconds: float = 10.0
    """The seconds between two checks of the Secret with the certificate and of the APIService's caBundle."""

    service_name: str = "trimtab-metrics-api"
    """The name of the Service through which API servers call the process. The certificate contains this name."""

    client_ca_file: Path | None = Path(".trimtab/aggregation-layer.crt")
    """The file to which the process writes the certificate authorities of the aggregation layer, from the ConfigMap
    kube-system/extension-apiserver-authentication. Only a client with a certificate from these authorities can name a
    user."""

    scrape_files_folder: Path = Path(".trimtab/scrape")
    """The folder with the files that rules name as `ca` and `token.file`. Rules cannot name any other file."""

    pod_networks: str = ""
    """The networks of pods, separated by commas, such as `10.8.0.0/14,fd00:8::/48`: no address outside of them is
    scraped. Empty: any address that a pod can have. The process never sends a request to a metadata service of a cloud,
    nor to the addresses that the API server has when the process starts; to loopback only if a network here has it."""

    scrape_interval_seconds: float = 60.0
    """The number of seconds between two scrapes of a pod. A rate covers one interval. Every replica scrapes every pod,
    so each of them can answer."""

    scrape_timeout_seconds: float = 10.0
    """The longest time in seconds that one scrape may take, connection included."""

    connect_timeout_seconds: float = 2.0
    """The longest time in seconds until a pod accepts a connection. It is short, because a NetworkPolicy that drops
    packets lets each attempt take the whole time."""

    min_sample_gap_seconds: float = 10.0
    """The minimum number of seconds between two samples of a rate. A new pod is scraped a second time after this time,
    so that it soon has a rate."""

    max_sample_gap_seconds: float = 600.0
    """The maximum number of seconds between two samples of a rate: with a longer gap, the rate does not describe the
    present."""

    max_scrapes_per_second: int = 100
    """The largest number of scrapes that may start in one second, which happens when pods are new or after a pause."""

    max_concurrent_scrapes: int = 16
    """The largest number of scrapes at the same time. Each scrape has a thread, and a pod that responds slowly occupies
    its thread for up to the scrape timeout. Namespaces share the threads equally, and pods that did not respond in time
    share an eighth of them."""

    query_interval_seconds: float = 30.0
    """The number of seconds between two runs of a rule's query."""

    prometheus_url: str | None = None
    """The URL of Prometheus, or of a server with the same API, for rules with `from: query`."""

    prometheus_token_file: Path | None = None
    """The path of a file with the bearer token for Prometheus. It is read again for each query."""

    prometheus_token: str | None = field(default=None, repr=False)
    """The bearer token for Prometheus. A file is better, because it is read again when the token is renewed."""

    prometheus_ca_file: Path | None = None
    """The path of a file with the authorities that sign Prometheus' certificate. None: those of the system."""

    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """The lowest level of messages that are logged."""

    log_format: Literal["auto", "json", "console"] = "auto"
    """`auto`: colours on a terminal, JSON lines everywhere else."""

    ready_file: Path | None = None
    """The path of a file that the process writes as soon as it serves requests: JSON with `url`, `host`, `port` and
    `pid`. None: there is only the log line."""

    shutdown_delay_seconds: float = 5.0
    """The number of seconds from the stop signal until the process accepts no more connections, because endpoints need
    a few seconds to drop a pod."""

    graceful_timeout_seconds: float = 30.0
    """The longest time in seconds from the stop signal until the process ends. The pod's termination grace period must
    be longer."""

    keepalive_seconds: int = 120
    """For how many seconds an idle connection is kept open. It must be longer than the 90 seconds of API servers,
    because they must be the side that closes the connection."""

    max_connections: int = 1000
    """The largest number of open connections."""

    max_connections_per_address: int = 500
    """The largest number of open connections from one client address."""
