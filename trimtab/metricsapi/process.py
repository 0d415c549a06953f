"""Wires one replica of the metrics API, and runs it from start to end. All replicas serve; there is no leader.

The first process waits for the certificate and for the authorities of the aggregation layer, and listens. The worker,
which gunicorn forks, has the watches, the threads and the samples.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import NoReturn

from prometheus_client import CollectorRegistry

import certs
from trimtab.cluster.reason import Unreadable
from trimtab.kube.certificate_rotation import (
    MIN_INTERVAL_SECONDS,
    OBSERVATIONS_TO_SETTLE,
    CertificateRotator,
    KubeSecretStore,
    certificate_names,
    step_until_pair,
)
from trimtab.kube.client import Client, connect_to_cluster
from trimtab.kube.errors import KubeFault
from trimtab.kube.server_addresses import find_server_addresses
from trimtab.metricsapi.api_request import API_SERVICE_NAME
from trimtab.metricsapi.asgi import MetricsApplication, MetricsService
from trimtab.metricsapi.authorization import Authorizer, ask_api_server
from trimtab.metricsapi.collector import Collector
from trimtab.metricsapi.metrics import Metrics
from trimtab.metricsapi.pod_addresses import AddressRules, build_address_rules
from trimtab.metricsapi.queries import query_prometheus
from trimtab.metricsapi.rule_inputs import (
    HEADER_INTERVAL_SECONDS,
    RULES_INTERVAL_SECONDS,
    RequestHeaderKeeper,
    RulesReader,
    RunningPodWatcher,
    read_request_header_config,
    repeat_until_stopped,
    write_client_authorities,
)
from trimtab.metricsapi.scraper import PodScraper
from trimtab.metricsapi.settings import Settings
from trimtab.runtime import clock, environment, log
from trimtab.runtime.files import CannotServe
from trimtab.runtime.graceful_shutdown import GracefulShutdown
from trimtab.runtime.log import Logger
from trimtab.runtime.serve import launch_gunicorn

APPLICATION = "trimtab.metricsapi.process:build_application()"
"""The expression that gunicorn evaluates in its worker, after the fork."""
TICK_SECONDS = 0.2
"""The seconds between two checks of what is due. Scrapes that become due in between start together."""
MIN_REBUILD_SECONDS = 1.0
"""The minimum number of seconds between two computations of the targets, because a rollout changes hundreds of pods in
a second."""


def run(settings: Settings, logger: Logger) -> NoReturn:
    """Serves until a signal arrives, and then raises `SystemExit`.

    Raises CannotServe if the aggregation layer is not configured, if there is no certificate in time, or if the address
    cannot be bound; NotConfigured if there is no cluster; certs.CertsError if the folder has no key pair.
    """
    client = connect_to_cluster(str(settings.kubeconfig) if settings.kubeconfig else None)
    try:
        assert settings.client_ca_file is not None
        try:
            config = read_request_header_config(client)
            if isinstance(config, Unreadable):
                raise CannotServe(f"{config}; without this ConfigMap the process cannot identify any client")
            write_client_authorities(settings.client_ca_file, config)
        except (KubeFault, OSError) as error:
            raise CannotServe(str(error)) from error
        if settings.certs_secret is not None:
            step_until_pair(build_rotator(settings, client, logger), logger)
    finally:
        client.close()

    def log_reload(problem: certs.Problem | None) -> None:
        if problem is None:
            logger.info("certificate reloaded", folder=str(settings.certs_folder))
        else:
            logger.warning(
                "certificate files rejected, the previous certificate stays in use", code=problem.code, why=problem.says
            )

    loader = certs.CertificateLoader(settings.certs_folder, log_reload, settings.client_ca_file)
    launch_gunicorn(APPLICATION, settings, logger, loader.front)


def build_rotator(settings: Settings, client: Client, logger: Logger) -> CertificateRotator:
    """Returns the rotator for the Secret in the settings, and for the caBundle of the APIService."""
    assert settings.certs_secret is not None
    store = KubeSecretStore(client, settings.certs_secret, settings.namespace, API_SERVICE_NAME)
    names = certificate_names(settings.service_name, settings.namespace)
    return CertificateRotator(
        store, settings.certs_folder, names, logger, clock.utc_now, looks=OBSERVATIONS_TO_SETTLE, kinds=("APIService",)
    )


@dataclass(slots=True)
class Replica:
    """The threads of a worker process."""

    settings: Settings
    client: Client
    log: Logger
    stop: GracefulShutdown = field(default_factory=GracefulShutdown)
    metrics: Metrics = field(default_factory=lambda: Metrics(CollectorRegistry()))
    scraper: PodScraper = field(init=False)
    collector: Collector = field(init=False)
    rules: RulesReader = field(init=False)
    pods: RunningPodWatcher = field(init=False)
    header: RequestHeaderKeeper = field(init=False)
    _rebuilt_at: float = float("-inf")

    def __post_init__(self) -> None:
        settings = self.settings
        assert settings.client_ca_file is not None
        self.scraper = PodScraper(
            settings.scrape_files_folder, settings.scrape_timeout_seconds, settings.connect_timeout_seconds
        )
        self.collector = Collector(
            settings,
            self.scraper.scrape,
            query_prometheus(settings),
            ThreadPoolExecutor(settings.max_concurrent_scrapes, "scrape"),
            self.metrics,
            self.log,
            clock.elapsed_seconds,
            lambda: clock.utc_now().timestamp(),
        )
        self.rules = RulesReader(settings, self.client, self.log)
        self.pods = RunningPodWatcher(self.client, self._address_rules())
        self.header = RequestHeaderKeeper(self.client, settings.client_ca_file, self.log)
        self.metrics.add_values(self.collector.count_values)
        self.metrics.add_scrape_queue(lambda: self.collector.slots_in_use, self.collector.overdue_seconds)
        self.metrics.add_certificate_expiry(self._read_expiry)

    def _address_rules(self) -> AddressRules:
        try:
            return build_address_rules(self.settings.pod_networks, find_server_addresses(self.client.server_url))
        except OSError as error:
            raise CannotServe(
                f"the host of {self.client.server_url} has no address, so it is not certain that no scrape reaches the "
                f"API server: {error}"
            ) from None
        except ValueError as error:
            raise CannotServe(f"TRIMTAB_METRICS_API_POD_NETWORKS: {error}") from None

    def start(self) -> None:
        """Starts all threads. Call it after the fork, because threads do not survive a fork."""
        self.pods.start()
        self._start_thread("header", self.header.read_again, HEADER_INTERVAL_SECONDS)
        self._start_thread("rules", self.read_rules, RULES_INTERVAL_SECONDS)
        self._start_thread("collector", self.run_step, TICK_SECONDS)
        if self.settings.certs_secret is not None:
            rotator = build_rotator(self.settings, self.client, self.log)
            every = max(self.settings.certs_check_interval_seconds, MIN_INTERVAL_SECONDS)
            threading.Thread(
                target=rotator.run_until_stopped,
                args=(self.stop.wait_for_stop, every),
                name="certificates",
                daemon=True,
            ).start()

    def read_rules(self) -> None:
        """Reads the rules again."""
        if self.rules.read_again():
            self.log.info("rules read", rules=len(self.rules.rules or ()))
            self.pods.mark_changed()
        self.metrics.invalid_rules.set(self.rules.is_invalid)

    def run_step(self) -> None:
        """Applies changes of rules and pods, and starts scrapes and queries that are due."""
        now = clock.elapsed_seconds()
        if self.rules.rules is not None and now - self._rebuilt_at >= MIN_REBUILD_SECONDS:
            pods = self.pods.take_changed_pods()
            if pods is not None:
                self._rebuilt_at = now
                self.scraper.keep_connections(self.collector.replace_inputs(self.rules.rules, pods))
        self.collector.run_step()
        self.scraper.end_overdue_scrapes()

    def close(self) -> None:
        """Stops all threads."""
        self.stop.request_stop()
        self.pods.stop()
        self.client.close()

    def _read_expiry(self) -> float:
        return certs.read_status(self.settings.certs_folder, clock.utc_now()).expires_at_seconds

    def _start_thread(self, name: str, action: Callable[[], None], every: float) -> None:
        def guarded() -> None:
            try:
                action()
            except Exception as error:
                self.log.error("step failed", step=name, error=f"{type(error).__name__}: {error}", exc_info=True)

        def loop() -> None:
            guarded()
            repeat_until_stopped(guarded, every, self.stop.wait_for_stop)

        threading.Thread(target=loop, name=name, daemon=True).start()


def build_application() -> MetricsApplication:
    """Returns the application for a worker, with the settings from the environment."""
    settings = environment.read_as(os.environ, Settings)
    return MetricsApplication(build_service(settings, log.build_logger(settings.log_level, settings.log_format)))


def build_service(settings: Settings, logger: Logger) -> MetricsService:
    """Returns the service for a worker, with its threads running."""
    client = connect_to_cluster(str(settings.kubeconfig) if settings.kubeconfig else None)
    replica = Replica(settings, client, logger)
    replica.start()
    return MetricsService(
        header_config=lambda: replica.header.config,
        authorizer=Authorizer(ask_api_server(client)),
        answer=replica.collector.answer_request,
        readiness=replica.collector.readiness,
        metrics=replica.metrics,
        log=logger,
        close=replica.close,
        stop=GracefulShutdown(),
    )
