"""One replica of the recommender, from its start to its end."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from prometheus_client import CollectorRegistry

from trimtab.cluster.api.core import Namespace
from trimtab.cluster.pause_mark import pause_reason_in
from trimtab.histogram.batch_history import BatchHistory
from trimtab.histogram.live_history import LiveHistory
from trimtab.kube.objects import read_object
from trimtab.recommender import sharded_configmaps
from trimtab.recommender.checkpointer import Checkpointer
from trimtab.recommender.collector import InstantCollector, RangeCollector, Sampler, UsageSource
from trimtab.recommender.daily_history import DailyHistoryWriter
from trimtab.recommender.expander_demotion import GroupDemoter
from trimtab.recommender.loop import Loop
from trimtab.recommender.metrics import Metrics
from trimtab.recommender.parameter_writer import ParameterWriter
from trimtab.recommender.pod_watcher import PodWatcher, PodWatchState
from trimtab.recommender.publisher import ContainerRecommendations, Publisher, render_missing
from trimtab.recommender.reservation_sources import (
    configmap_store,
    list_nodes,
    read_from_kubelets,
    read_from_prometheus,
)
from trimtab.recommender.reservations import ReservationMeasurer
from trimtab.recommender.settings import Settings
from trimtab.recommender.sharded_configmaps import StoreUnavailable
from trimtab.recommender.vpa_status_writer import VpaStatusWriter
from trimtab.recommender.vpa_watcher import VpaWatcher
from trimtab.recommender.write_budget import WriteBudget
from trimtab.runtime import clock
from trimtab.runtime.environment import variable_name
from trimtab.runtime.http_pages import Page
from trimtab.runtime.log import Logger
from trimtab.usage import vpa_checkpoints as vpa
from trimtab.usage.cluster_label import Matchers, NoMatcher
from trimtab.usage.daily_store import DailyStore, import_arrow
from trimtab.usage.errors import UnreachableSource
from trimtab.usage.http_client import HttpApi as Server
from trimtab.usage.kubelet import Kubelets
from trimtab.usage.metrics_api import read_metrics
from trimtab.usage.prometheus import Prometheus, QueryPlan
from trimtab.usage.prometheus_queries import Names, invalid_names, parse_label_names
from trimtab.usage.series import Series
from trimtab.usage.server_warnings import DistinctWarnings
from trimtab.workers.leader_process import LeaderProcess
from trimtab.workers.worker import run_worker

Wait = Callable[[], None]
"""A function that waits until the next round, or until the replica may not continue."""
MAX_SILENCE_SECONDS = 1800.0
"""After this many seconds without a completed step, the liveness probe fails. (The first round reads two weeks.)"""


@dataclass(slots=True)
class Process:
    """The recommender's part of a replica: everything that the replica does while it leads."""

    settings: Settings
    replica: LeaderProcess
    once: bool = False
    """Whether a single round is run."""
    loop: Loop | None = None
    log: Logger = field(init=False)
    metrics: Metrics = field(init=False)

    def __post_init__(self) -> None:
        self.log = self.replica.log
        self.metrics = Metrics(CollectorRegistry(), self.replica.is_leading)

    @property
    def registry(self) -> CollectorRegistry:
        return self.metrics.registry

    @property
    def pages(self) -> Mapping[str, Page]:
        return {"/missing": lambda: (200, "application/json", render_missing(self._recommendations()))}

    def lead(self) -> bool:
        """Runs rounds as long as this replica leads. Everything is read again at the start, because another replica may
        have changed it in the meantime."""
        has_vpas = self.settings.write_vpa_status
        with_containers = has_vpas or self.settings.record_pod_sums
        with PodWatcher(self.replica.client, with_containers=with_containers) as watcher, ExitStack() as stack:
            source, wait = self._source(stack, watcher.state)
            vpas = stack.enter_context(VpaWatcher(self.replica.client)) if has_vpas else None
            loop = self._loop(watcher, source, vpas)
            succeeded = self._open_loop(loop, watcher) and self._run_rounds(loop, watcher, wait)
            # Only a loop that was opened has a history to store, and only the leader may write it.
            if self.loop is loop and self.replica.is_leading():
                succeeded = loop.store_all() and succeeded
        self.loop = None
        return succeeded

    def _open_loop(self, loop: Loop, watcher: PodWatcher) -> bool:
        """Waits until all lists are read and the stored history is restored. Returns False if the replica no longer
        leads."""

        def restore_state() -> bool:
            if not watcher.is_synced:
                return False
            try:
                watcher.apply_changes()
                loop.restore_state()
            except StoreUnavailable as error:
                self.log.warning("state.not-read", error=str(error))
                self.replica.wait_while_leading(self.settings.retry_period_seconds)
                return False
            self.loop = loop
            return True

        return self.replica.retry_while_leading(restore_state)

    def _run_rounds(self, loop: Loop, watcher: PodWatcher, wait: Wait) -> bool:
        import_batch: Callable[[], BatchHistory] | None = (
            self._vpa_histories if self.settings.use_vpa_checkpoints else None
        )
        while self.replica.may_continue():
            wait()
            watcher.apply_changes()
            loop.run_round(import_batch, everything=self.once)
            # VPAs' histories are imported once, in the first round.
            import_batch = None
            if self.once:
                return loop.fault_count == 0
        return not self.once

    def _vpa_histories(self) -> BatchHistory:
        """Returns the histories in the VPAs' checkpoints; empty if there are none."""
        batch = BatchHistory(self.settings.history_days)
        vpa.list_checkpoints(self.replica.client).add_to_batch(batch)
        return batch

    def _loop(self, watcher: PodWatcher, source: UsageSource, vpas: VpaWatcher | None) -> Loop:
        settings, writer = self.settings, self.replica.fenced_writer
        usage, recommendations = (
            sharded_configmaps.checkpoint_backend(writer, settings.namespace),
            sharded_configmaps.recommendation_backend(writer, settings.namespace),
        )
        days, history, half_budget = (
            sharded_configmaps.day_backend(writer, settings.namespace),
            LiveHistory(settings.history_days),
            self._half_budget,
        )
        names = settings.parameter_namespaces
        own = settings.namespace if settings.parameters_in_own_namespace else None
        parameters = ParameterWriter(writer, names, self.log, own) if names else None
        ceiling = settings.max_stored_megabytes * 1_000_000
        self.metrics.max_stored_bytes.set(ceiling)
        checkpoints = Checkpointer(
            usage,
            days,
            history,
            settings.checkpoint_interval_seconds,
            half_budget(),
            clock.elapsed_seconds,
            max_stored_bytes=ceiling,
        )
        return Loop(
            history=history,
            source=source,
            pod_state=watcher.state,
            checkpointer=checkpoints,
            publisher=Publisher(recommendations, history, settings.publish_tolerance_percent / 100, half_budget()),
            metrics=self.metrics,
            log=self.log,
            parameters=parameters,
            vpa_status=self._vpa_status(vpas, watcher, history) if vpas is not None else None,
            measurer=self._measurer(),
            demoter=self._demoter(),
            daily_history=self._daily_history(),
            publish_interval_seconds=settings.publish_interval_seconds,
            now=_now,
            elapsed=clock.elapsed_seconds,
            alive=self.replica.may_continue,
        )

    def _vpa_status(self, vpas: VpaWatcher, watcher: PodWatcher, history: LiveHistory) -> VpaStatusWriter:
        return VpaStatusWriter(
            writer=self.replica.fenced_writer,
            history=history,
            read_vpas=vpas.read_changes,
            pods=watcher.state,
            metrics=self.metrics.vpa_status,
            log=self.log,
            tolerance=self.settings.publish_tolerance_percent / 100,
            interval_seconds=self.settings.publish_interval_seconds,
            elapsed=clock.elapsed_seconds,
            read_pause=self._read_pause,
        )

    def _read_pause(self) -> str:
        """Returns why Trimtab is paused, or an empty text if it is not. Raises KubeFault."""
        own = self.settings.namespace
        namespace = read_object(self.replica.client, "Namespace", own)
        assert isinstance(namespace, Namespace)
        return pause_reason_in([namespace], own)

    def _measurer(self) -> ReservationMeasurer | None:
        """Returns the object that measures reservations, or None if that is not switched on."""
        settings, client = self.settings, self.replica.client
        if not settings.measure_reservations:
            return None
        server = self._prometheus() if settings.prometheus_url is not None else None
        return ReservationMeasurer(
            read_nodes=lambda: list_nodes(client),
            read_overheads=partial(read_from_prometheus, server) if server else partial(read_from_kubelets, client),
            store=configmap_store(self.replica.fenced_writer, settings.namespace),
            metrics=self.metrics.reservations,
            log=self.log,
            interval_seconds=settings.reservation_interval_seconds,
        )

    def _demoter(self) -> GroupDemoter | None:
        """Returns the object that demotes node groups without nodes, or None if that is not switched on."""
        settings = self.settings
        if not settings.demote_groups:
            return None
        return GroupDemoter(
            writer=self.replica.fenced_writer,
            namespace=settings.autoscaler_namespace,
            status_name=settings.autoscaler_status_configmap,
            metrics=self.metrics.demotions,
            log=self.log,
        )

    def _daily_history(self) -> DailyHistoryWriter | None:
        """Returns the object that writes days that are over to a store, or None if that is not switched on."""
        settings = self.settings
        if settings.daily_history is None or settings.cluster_name is None:
            return None
        store = DailyStore(settings.daily_history)
        return DailyHistoryWriter(store, settings.cluster_name, self.log, clock.elapsed_seconds)

    def _half_budget(self) -> WriteBudget:
        """Returns a budget of half the configured bytes: one half is for usage, the other for recommendations."""
        return WriteBudget(self.settings.max_written_kilobytes * 500, clock.elapsed_seconds)

    def _source(self, stack: ExitStack, pods: PodWatchState) -> tuple[UsageSource, Wait]:
        """Returns the source of usage, and the function that waits for the next round."""
        records, has_history = self.settings.record_pod_sums, self.settings.prometheus_url is not None
        whole_pods = partial(pods.collect_whole_pods, with_gone=has_history) if records else None
        if has_history:
            return RangeCollector(self._prometheus(), whole_pods), Pauses(
                lambda: self.replica.wait_while_leading(self.settings.collect_interval_seconds)
            )
        look = self._instant_source()
        if self.once:
            return InstantCollector(lambda: [look()], whole_pods), lambda: None
        sampler = Sampler(
            look, self.settings.collect_interval_seconds, clock.elapsed_seconds, self.metrics.missed_readings.inc
        )
        stack.enter_context(sampler)
        return InstantCollector(sampler.take_readings, whole_pods), lambda: sampler.wait_for_reading(
            self.replica.may_continue
        )

    def _prometheus(self) -> Prometheus:
        settings = self.settings
        assert settings.prometheus_url is not None
        files = (settings.prometheus_ca_file, settings.prometheus_certificate_file, settings.prometheus_key_file)
        ca, certificate, key = (str(path) if path is not None else None for path in files)
        server = Server(settings.prometheus_url, Headers(settings), ca, certificate, key)
        pieces = QueryPlan(
            step_seconds=settings.query_step_seconds,
            rate_window=settings.cpu_rate_window,
            extra_matcher=settings.prometheus_matcher or "",
            names=parse_names(settings),
            max_concurrent_queries=settings.max_concurrent_queries,
        )
        log = self.replica.log
        warnings = DistinctWarnings(
            lambda warning: log.warning("prometheus.warned", warning=warning), clock.elapsed_seconds
        )
        return Prometheus(server, pieces, warnings)

    def _instant_source(self) -> Callable[[], Iterable[Series]]:
        client, log = self.replica.client, self.replica.log
        if self.settings.use_kubelets:
            return Kubelets(client, lambda trouble: log.warning("kubelet.silent", problem=trouble)).read_usage
        return lambda: read_metrics(client)

    def _recommendations(self) -> ContainerRecommendations | None:
        loop = self.loop
        return loop.recommendations if loop is not None else None


@dataclass(slots=True)
class Pauses:
    """A function that returns at once when it is first called, and waits at every later call."""

    wait: Callable[[], None]
    _first: bool = True

    def __call__(self) -> None:
        if not self._first:
            self.wait()
        self._first = False


class Headers(Mapping[str, str]):
    """The headers for Prometheus, with credentials and tenant. Files are read each time, because their content is
    renewed."""

    def __init__(self, settings: Settings) -> None:
        self._tenant = {"X-Scope-OrgID": settings.prometheus_tenant} if settings.prometheus_tenant else {}
        self._token, self._token_file = settings.prometheus_token, settings.prometheus_token_file
        self._header_file = settings.prometheus_header_file

    def __getitem__(self, name: str) -> str:
        return self._all()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())

    def _all(self) -> dict[str, str]:
        token = (
            self._token if self._token_file is None else _read_file(self._token_file, "the token of Prometheus").strip()
        )
        return {**self._tenant, **({"Authorization": f"Bearer {token}"} if token else {}), **self._file_headers()}

    def _file_headers(self) -> dict[str, str]:
        text = "" if self._header_file is None else _read_file(self._header_file, "the headers for Prometheus")
        pairs = (line.partition(":") for line in text.splitlines() if line.strip() and line[:1] != "#")
        return {name.strip(): value.strip() for name, _, value in pairs}


def _read_file(path: Path, description: str) -> str:
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeError) as error:
        raise UnreachableSource(f"{description}, {path}: {getattr(error, 'strerror', None) or 'no text'}") from None


_METRIC_SETTINGS = {"cpu": "cpu_metric", "cpu_recorded": "cpu_recording_rule", "memory": "memory_metric"}


def parse_names(settings: Settings) -> Names:
    """Returns the names of metrics and labels in the settings. Raises ValueError with the setting's name."""
    metric_names = {
        "cpu": settings.cpu_metric,
        "cpu_recorded": settings.cpu_recording_rule,
        "memory": settings.memory_metric,
    }
    try:
        renamed = parse_label_names(
            (settings.prometheus_label_names or "").split(",") if settings.prometheus_label_names else ()
        )
        Matchers.from_text(settings.prometheus_matcher or "")
    except NoMatcher as error:
        name = variable_name(Settings.process, "prometheus_matcher")
        raise ValueError(f"{name}: expected {error}, got {settings.prometheus_matcher!r}") from None
    except ValueError as error:
        name = variable_name(Settings.process, "prometheus_label_names")
        raise ValueError(f"{name}: expected {error}, got {settings.prometheus_label_names!r}") from None
    names = Names(**{name: text for name, text in metric_names.items() if text}, labels=renamed)
    for setting, expected in invalid_names(names):
        field = _METRIC_SETTINGS.get(setting, "prometheus_label_names")
        raise ValueError(f"{variable_name(Settings.process, field)}: expected {expected}")
    return names


def check_daily_history(settings: Settings) -> None:
    """Checks the settings for the daily history. Raises ValueError if there is no name for the cluster, and
    MissingExtra if a package is missing."""
    if settings.daily_history is None:
        return
    if not settings.cluster_name:
        history, name = (variable_name(Settings.process, field) for field in ("daily_history", "cluster_name"))
        raise ValueError(f"{name}: expected the name of this cluster, because {history} is set")
    import_arrow()


def _now() -> int:
    return int(clock.utc_now().timestamp())


def run(settings: Settings, log: Logger, *, once: bool = False) -> bool:
    """Runs one replica until a signal arrives, or for a single round. Raises RuntimeFault if it cannot start, and
    ValueError if settings contradict each other."""
    parse_names(settings)
    check_daily_history(settings)
    return run_worker(
        settings,
        log,
        lambda replica: Process(settings, replica, once),
        max_silence_seconds=max(MAX_SILENCE_SECONDS, 3 * settings.collect_interval_seconds),
        once=once,
    )
