"""The settings of the metrics API: their units, and the reasons for their defaults."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Literal

from trimtab.runtime.settings import ListenAddress


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The metrics API's settings; `environment.variable_name` gives the name of each one's variable."""

    process: ClassVar[str] = "metrics_api"

    listen: ListenAddress = ListenAddress("0.0.0.0", 8443)  # noqa: S104, RUF009  a frozen value
    """The HOST:PORT for the API, and for metrics and health. The default is all interfaces, because API servers and the
    kubelet connect from outside the pod."""

    namespace: str = "trimtab-system"
    """Trimtab's own namespace, in which the rules and the certificate's Secret are."""

    kubeconfig: Path | None = None
    """A kubeconfig file. None: the pod's own account, or else the kubeconfig of the person who starts the process."""

    rules_config_map: str = "trimtab-metrics"
    """The ConfigMap with the rules, in Trimtab's namespace, under the key `rules.yaml`. If you change it, change the
    process's role as well."""

    rules_file: Path | None = None
    """A file of rules that is read once at the start, instead of the ConfigMap."""

    certs_folder: Path = Path(".trimtab/metrics-api")
    """The folder with `tls.crt` and `tls.key`. The default is relative, so that a first try needs no rights."""

    certs_secret: str | None = None
    """The Secret that the replicas share and renew; the folder then only holds the pair that is served. None: something
    else fills the folder (cert-manager, a person)."""

    certs_check_interval_seconds: float = 10.0
    """Seconds between two checks of that Secret and of the APIService's caBundle."""

    service_name: str = "trimtab-metrics-api"
    """The Service through which API servers call: the certificate contains its name."""

    client_ca_file: Path | None = Path(".trimtab/aggregation-layer.crt")
    """The file into which the process writes the authorities of the aggregation layer, from the ConfigMap
    kube-system/extension-apiserver-authentication. Only a client with a certificate of theirs can name a user."""

    scrape_files_folder: Path = Path(".trimtab/scrape")
    """The folder with the files that rules name as `ca` and `token.file`. No other file can be named."""

    scrape_interval_seconds: float = 60.0
    """Seconds between two scrapes of one pod. A rate covers one interval. Every replica scrapes every pod, so each of
    them can answer."""

    scrape_timeout_seconds: float = 10.0
    """The longest time in seconds that one scrape may take, connection included."""

    min_sample_gap_seconds: float = 10.0
    """Seconds that must be between two samples of a rate. A new pod is scraped a second time after this time, so that
    it has a rate soon."""

    max_sample_gap_seconds: float = 600.0
    """Seconds between two samples beyond which their rate says nothing about now."""

    max_scrapes_per_second: int = 100
    """The largest number of scrapes that start in one second, while pods are new or after a pause."""

    max_concurrent_scrapes: int = 16
    """The largest number of scrapes at the same time: each has a thread. A pod that answers slowly takes one for up to
    the scrape timeout."""

    query_interval_seconds: float = 30.0
    """Seconds between two runs of the query of a rule."""

    prometheus_url: str | None = None
    """The URL of Prometheus, or of a server with the same API, for rules with `from: query`."""

    prometheus_token_file: Path | None = None
    """A file whose content is sent to Prometheus as a bearer token. It is read again for each query."""

    prometheus_token: str | None = field(default=None, repr=False)
    """The bearer token itself. A file is better, because it is read again when the token is renewed."""

    prometheus_ca_file: Path | None = None
    """A file of authorities that sign Prometheus' certificate. None: those of the system."""

    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """The lowest level that is logged."""

    log_format: Literal["auto", "json", "console"] = "auto"
    """`auto`: colours on a terminal, JSON lines everywhere else."""

    ready_file: Path | None = None
    """A file that the process writes when it serves requests: JSON with `url`, `host`, `port`, `pid`. None: only the
    log line."""

    shutdown_delay_seconds: float = 5.0
    """Seconds between the stop signal and the moment at which the process accepts no more connections: endpoints need a
    few seconds to drop a pod."""

    graceful_timeout_seconds: float = 30.0
    """The longest time in seconds from the stop signal to the end. The pod's grace period must be longer."""

    keepalive_seconds: int = 120
    """Seconds for which an idle connection is kept. API servers keep theirs for 90 seconds, and must be the side that
    closes them."""

    max_connections: int = 1000
    """The largest number of open connections."""

    max_connections_per_address: int = 500
    """The largest number of open connections from one client address."""
