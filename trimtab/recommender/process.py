"""All of it wired: one replica of the recommender, from its start to its end."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from prometheus_client import CollectorRegistry

from trimtab.histogram.batch_history import BatchHistory
from trimtab.histogram.live_history import LiveHistory
from trimtab.kube.leader_process import LOOK, LeaderProcess, opened
from trimtab.recommender import sharded_configmaps
from trimtab.recommender.checkpointer import Checkpointer
from trimtab.recommender.collector import InstantCollector, RangeCollector, Sampler, UsageSource
from trimtab.recommender.loop import Loop
from trimtab.recommender.metrics import Metrics
from trimtab.recommender.pod_watcher import PodWatcher
from trimtab.recommender.publisher import ContainerRecommendations, Publisher, page
from trimtab.recommender.settings import Settings
from trimtab.recommender.sharded_configmaps import StoreUnavailable
from trimtab.recommender.write_budget import WriteBudget
from trimtab.runtime import clock
from trimtab.runtime.environment import variable
from trimtab.runtime.log import Logger
from trimtab.usage import vpa_checkpoints as vpa
from trimtab.usage.cluster_label import Matchers, NoMatcher
from trimtab.usage.errors import UnreachableSource
from trimtab.usage.http_client import HttpApi as Server
from trimtab.usage.kubelet import Kubelets
from trimtab.usage.metrics_api import now
from trimtab.usage.prometheus import Prometheus, QueryPlan
from trimtab.usage.series import Names, Series, labels, mistakes

NAME = "recommender"
Wait = Callable[[], None]
"""Until it is time for a round, or there is none."""
HUNG = 1800.0
"""Seconds without a sign of life after which we say that we are not well: the first round reads two weeks."""


@dataclass(slots=True)
class Process:
    settings: Settings
    replica: LeaderProcess
    loop: Loop | None = None
    log: Logger = field(init=False)
    metrics: Metrics = field(init=False)

    def __post_init__(self) -> None:
        self.log = self.replica.log
        self.metrics = Metrics(CollectorRegistry(), self.replica.leading)

    def run(self, *, once: bool = False) -> bool:
        """Until asked to stop; leads while it may, waits otherwise. `once`: one round, and the end; False where that
        did not come to its end."""
        missing = lambda: (200, "application/json", page(self._verdicts()))  # noqa: E731
        with self.replica.standing(self.metrics.registry, {"/missing": missing}):
            if once:
                return self.replica.turn() and self.replica.term(lambda: self._lead(once=True))
            self.replica.work(lambda: self._lead(once=False))
        return True

    def _lead(self, *, once: bool) -> bool:
        """Everything is read anew: what we knew before may be another's past."""
        with PodWatcher(self.replica.client) as following, ExitStack() as stack:
            source, wait = self._source(stack, once=once)
            loop = self._loop(following, source)
            well = self._opened(loop, following) and self._rounds(loop, following, wait, once=once)
            if self.loop is loop and self.replica.leading():
                well = loop.end() and well
        self.loop = None
        return well

    def _opened(self, loop: Loop, following: PodWatcher) -> bool:
        """Is everything there to begin with? False where we lead no more."""
        while self.replica.may():
            try:
                if following.synced:
                    following.hear()
                    loop.open()
                    self.loop = loop
                    return True
            except StoreUnavailable as error:
                self.log.warning("state.not-read", error=str(error))
                self.replica.wait(self.settings.retry_period_seconds)
            self.replica.wait(LOOK)
        return False

    def _rounds(self, loop: Loop, following: PodWatcher, wait: Wait, *, once: bool) -> bool:
        others: Callable[[], BatchHistory] | None = self._of_vpas if self.settings.use_vpa_checkpoints else None
        while self.replica.may():
            wait()
            following.hear()
            loop.round(others, all_=once)
            others = None
            if once:
                return loop.faults == 0
        return not once

    def _of_vpas(self) -> BatchHistory:
        """What they wrote down; nothing where there are none."""
        book = BatchHistory(self.settings.history_days)
        vpa.listed(self.replica.client).pour(book)
        return book

    def _loop(self, following: PodWatcher, source: UsageSource) -> Loop:
        settings, writer = self.settings, self.replica.writer
        usage, told = (
            sharded_configmaps.usage(writer, settings.namespace),
            sharded_configmaps.recommendations(writer, settings.namespace),
        )
        days, diary, half = (
            sharded_configmaps.days(writer, settings.namespace),
            LiveHistory(settings.history_days),
            self._half,
        )
        ceiling = settings.max_stored_megabytes * 1_000_000
        self.metrics.max_stored_bytes.set(ceiling)
        checkpoints = Checkpointer(
            usage, days, diary, settings.checkpoint_interval_seconds, half(), clock.elapsed, max_stored_bytes=ceiling
        )
        return Loop(
            diary=diary, source=source, seen=following.seen, checkpoints=checkpoints,
            publishing=Publisher(told, diary, settings.publish_tolerance_percent / 100, half()), metrics=self.metrics,
            log=self.log,
            publish_every=settings.publish_interval_seconds, now=_now, elapsed=clock.elapsed, alive=self.replica.may,
        )  # fmt: skip

    def _half(self) -> WriteBudget:
        """Of what may be written."""
        return WriteBudget(self.settings.max_written_kilobytes * 500, clock.elapsed)

    def _source(self, stack: ExitStack, *, once: bool) -> tuple[UsageSource, Wait]:
        """Where usage comes from, and what waits for the next round."""
        if self.settings.prometheus_url is not None:
            return self._histories(), Pauses(lambda: self.replica.wait(self.settings.collect_interval_seconds))
        look = self._look()
        if once:
            return InstantCollector(lambda: [look()]), lambda: None
        sampler = Sampler(look, self.settings.collect_interval_seconds, clock.elapsed, self.metrics.missed.inc)
        stack.enter_context(sampler)
        return InstantCollector(sampler.looks), lambda: sampler.wait(self.replica.may)

    def _histories(self) -> RangeCollector:
        settings = self.settings
        assert settings.prometheus_url is not None
        files = (settings.prometheus_ca_file, settings.prometheus_certificate_file, settings.prometheus_key_file)
        ca, certificate, key = (str(path) if path is not None else None for path in files)
        server = Server(settings.prometheus_url, Headers(settings), ca, certificate, key)
        pieces = QueryPlan(
            step=settings.query_step_seconds,
            rate=settings.cpu_rate_window,
            extra=settings.prometheus_matcher or "",
            names=named(settings),
            at_once=settings.max_concurrent_queries,
        )
        return RangeCollector(Prometheus(server, pieces))

    def _look(self) -> Callable[[], Iterable[Series]]:
        client, log = self.replica.client, self.replica.log
        if self.settings.use_kubelets:
            return Kubelets(client, lambda trouble: log.warning("kubelet.silent", problem=trouble)).look
        return lambda: now(client)

    def _verdicts(self) -> ContainerRecommendations | None:
        loop = self.loop
        return loop.verdicts if loop is not None else None


@dataclass(slots=True)
class Pauses:
    """Waits each time but the first."""

    wait: Callable[[], None]
    _first: bool = True

    def __call__(self) -> None:
        if not self._first:
            self.wait()
        self._first = False


class Headers(Mapping[str, str]):
    """What logs in, and names a tenant; files are read each time they are needed, since what they hold is renewed."""

    def __init__(self, settings: Settings) -> None:
        self._tenant = {"X-Scope-OrgID": settings.prometheus_tenant} if settings.prometheus_tenant else {}
        self._token, self._token_file = settings.prometheus_token, settings.prometheus_token_file
        self._lines = settings.prometheus_header_file

    def __getitem__(self, name: str) -> str:
        return self._all()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())

    def _all(self) -> dict[str, str]:
        token = self._token if self._token_file is None else _read(self._token_file, "the token of Prometheus").strip()
        return {**self._tenant, **({"Authorization": f"Bearer {token}"} if token else {}), **self._written()}

    def _written(self) -> dict[str, str]:
        text = "" if self._lines is None else _read(self._lines, "the headers for Prometheus")
        pairs = (line.partition(":") for line in text.splitlines() if line.strip() and line[:1] != "#")
        return {name.strip(): value.strip() for name, _, value in pairs}


def _read(path: Path, what: str) -> str:
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeError) as error:
        raise UnreachableSource(f"{what}, {path}: {getattr(error, 'strerror', None) or 'no text'}") from None


_METRIC_SETTINGS = {"cpu": "cpu_metric", "cpu_recorded": "cpu_recording_rule", "memory": "memory_metric"}


def named(settings: Settings) -> Names:
    """What metrics and labels are called. Raises ValueError with the setting's name."""
    own = {"cpu": settings.cpu_metric, "cpu_recorded": settings.cpu_recording_rule, "memory": settings.memory_metric}
    try:
        renamed = labels((settings.prometheus_label_names or "").split(",") if settings.prometheus_label_names else ())
        Matchers.of(settings.prometheus_matcher or "")
    except NoMatcher as error:
        name = variable(NAME, "prometheus_matcher")
        raise ValueError(f"{name}: expected {error}, got {settings.prometheus_matcher!r}") from None
    except ValueError as error:
        name = variable(NAME, "prometheus_label_names")
        raise ValueError(f"{name}: expected {error}, got {settings.prometheus_label_names!r}") from None
    found = Names(**{name: text for name, text in own.items() if text}, labels=renamed)
    for what, expected in mistakes(found):
        field = _METRIC_SETTINGS.get(what, "prometheus_label_names")
        raise ValueError(f"{variable(NAME, field)}: expected {expected}")
    return found


def _now() -> int:
    return int(clock.utc().timestamp())


def run(settings: Settings, log: Logger, *, once: bool = False) -> bool:
    """One replica, until a signal, or once. Raises RuntimeFault where it cannot begin, and ValueError where settings
    make no sense together."""
    named(settings)
    with opened(NAME, settings, log, hung=max(HUNG, 3 * settings.collect_interval_seconds)) as replica:
        return Process(settings, replica).run(once=once)
