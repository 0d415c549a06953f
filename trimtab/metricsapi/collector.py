"""Collects the samples for all rules, and answers requests from them. Every replica collects all samples.

`Collector` has no threads or sockets of its own: `run_step` starts what is due, with functions that it was given, and
`answer_request` reads what has arrived. Its lock is held only for operations in memory.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Executor
from dataclasses import dataclass, field

from trimtab.cluster.format_count import format_count
from trimtab.cluster.reason import Reason
from trimtab.cluster.selectors import requirement_matches
from trimtab.metricsapi.api_request import DiscoveryRequest, MetricRequest
from trimtab.metricsapi.documents import (
    ApiReply,
    PodMetric,
    render_group,
    render_resources,
    render_unknown_metric,
    render_values,
)
from trimtab.metricsapi.exposition import ScrapedBody, SeriesFilter
from trimtab.metricsapi.metrics import Metrics
from trimtab.metricsapi.pacing import PaceLimits, ScrapePace
from trimtab.metricsapi.queries import QueryAnswer, RunQuery
from trimtab.metricsapi.rules import MetricRule, SampleSource
from trimtab.metricsapi.samples import MetricValue, Sample, SampleStore, is_power_of_two
from trimtab.metricsapi.scrape_queue import QueueLimits, ScrapeQueue
from trimtab.metricsapi.scraper import Scrape
from trimtab.metricsapi.settings import Settings
from trimtab.metricsapi.targets import RunningPod, ScrapeTarget, filters_of_target, find_targets
from trimtab.runtime.log import Logger

RunScrape = Callable[[ScrapeTarget, tuple[SeriesFilter, ...]], Scrape]
WARM_INTERVALS = 2.0
"""After this many scrape intervals a replica is ready even if a pod was never reached, so that it does not wait for the
slowest pod."""


@dataclass(slots=True)
class Collector:
    """The samples of one replica: how they are collected and read. Thread-safe."""

    settings: Settings
    run_scrape: RunScrape
    run_query: RunQuery
    executor: Executor
    metrics: Metrics
    log: Logger
    elapsed: Callable[[], float]
    wall_clock: Callable[[], float]
    """Returns the time in seconds since 1970."""
    _rules: dict[str, MetricRule] = field(default_factory=dict)
    _pods: dict[str, list[RunningPod]] = field(default_factory=dict)
    """Namespace → its running pods."""
    _uids: dict[tuple[str, str], str] = field(default_factory=dict)
    _queue: ScrapeQueue[ScrapeTarget] = field(init=False)
    _pace: ScrapePace = field(init=False)
    _store: SampleStore = field(init=False)
    _queries_under_way: set[str] = field(default_factory=set)
    _attempts: dict[ScrapeTarget, int] = field(default_factory=dict)
    _failures: dict[ScrapeTarget | str, int] = field(default_factory=dict)
    _next_query: dict[str, float] = field(default_factory=dict)
    _warm_since: float | None = None
    _is_warm: bool = False
    _is_filling: bool = False
    """Whether slots are being filled now: an executor may run a scrape at once, in the same thread."""
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def __post_init__(self) -> None:
        most = float(self.settings.max_scrapes_per_second)
        limits = PaceLimits(min_per_second=0.0, max_per_second=most, max_debt=most, max_surplus=most)
        self._pace = ScrapePace(limits, self.elapsed())
        self._queue = ScrapeQueue(
            QueueLimits(
                slots=self.settings.max_concurrent_scrapes,
                interval_seconds=max(self.settings.scrape_interval_seconds, 0.1),
                second_after_seconds=self.settings.min_sample_gap_seconds + 0.5,
            )
        )
        self._store = SampleStore(self.settings.min_sample_gap_seconds, self.settings.max_sample_gap_seconds)

    def replace_inputs(self, rules: Iterable[MetricRule], pods: Iterable[RunningPod]) -> frozenset[ScrapeTarget]:
        """Sets the rules and the running pods. Returns the scrape targets that follow from them."""
        with self._lock:
            self._rules = {rule.name: rule for rule in rules}
            self._pods, self._uids, scraped = {}, {}, list(pods)
            for pod in scraped:
                self._pods.setdefault(pod.namespace, []).append(pod)
                self._uids[pod.namespace, pod.name] = pod.uid
            self._store.register_pods(pod.uid for pod in scraped)
            now = self.elapsed()
            targets = frozenset(find_targets(self._rules.values(), scraped))
            # Frozen sets have no order: by address, every replica goes round in the same one.
            ordered = sorted(targets, key=lambda target: (target.ip, target.uid, target.metrics))
            self._queue.replace_targets({target: target.namespace for target in ordered}, now)
            self._pace.change_min_rate(len(targets) / max(self.settings.scrape_interval_seconds, 0.1))
            self._attempts = {target: self._attempts.get(target, 0) for target in targets}
            self._failures = {
                key: count for key, count in self._failures.items() if key in targets or key in self._rules
            }
            queried = [name for name, rule in self._rules.items() if rule.source is SampleSource.QUERY]
            self._next_query = {name: self._next_query.get(name, now) for name in queried}
            self._warm_since = now if self._warm_since is None else self._warm_since
            self.metrics.count_inputs(len(self._rules), len(targets))
            return targets

    def run_step(self) -> None:
        """Starts the scrapes and queries that are due now."""
        now = self.elapsed()
        with self._lock:
            for name, due in self._next_query.items():
                if due <= now and name not in self._queries_under_way:
                    self._next_query[name] = now + self.settings.query_interval_seconds
                    self._queries_under_way.add(name)
                    self.executor.submit(self._query, self._rules[name])
            self._fill_slots()

    def _fill_slots(self) -> None:
        """Starts the scrapes that are due, as long as there are slots and the pace allows it."""
        if self._is_filling:
            return
        self._is_filling = True
        try:
            self._pace.advance_to(self.elapsed())
            while self.slots_in_use < self.settings.max_concurrent_scrapes:
                target = self._queue.take_next(self._pace)
                if target is None:
                    break
                self.executor.submit(self._scrape, target, filters_of_target(target, self._rules))
        finally:
            self._is_filling = False

    def readiness(self) -> tuple[bool, str]:
        """Returns whether this replica is ready for requests, and why or why not. It is ready when every pod was tried
        twice, or when enough time has passed."""
        with self._lock:
            if self._warm_since is None:
                return False, "the process has not read the rules and the pods yet"
            waited = self.elapsed() - self._warm_since
            missing = sum(count < 2 for count in self._attempts.values())
            self._is_warm = (
                self._is_warm or not missing or waited > WARM_INTERVALS * self.settings.scrape_interval_seconds
            )
            if self._is_warm:
                return (
                    True,
                    f"{format_count(len(self._rules), 'rule')}, {format_count(len(self._attempts), 'scrape target')}",
                )
            return False, f"{missing} of {len(self._attempts)} scrape targets have not been scraped twice yet"

    def answer_request(self, request: DiscoveryRequest | MetricRequest) -> ApiReply:
        """Returns the response to an authorized request."""
        if isinstance(request, DiscoveryRequest):
            with self._lock:
                names = tuple(self._rules)
            return ApiReply(200, render_resources(names) if request.is_version else render_group())
        with self._lock:
            rule = self._rules.get(request.metric)
            values = [] if rule is None else self._values_of(rule, request)
        if rule is None:
            self.metrics.answers.labels("unknown").inc()
            return render_unknown_metric(request.metric)
        if request.is_single and not values:
            self.metrics.answers.labels("empty").inc()
            return render_unknown_metric(request.metric, request.name)
        self.metrics.answers.labels("values" if values else "empty").inc()
        return ApiReply(200, render_values(values))

    def count_values(self) -> dict[str, tuple[int, int]]:
        """Returns metric → (pods with a value, pods whose value is withheld)."""
        with self._lock:
            return self._store.count_values(self._rules, self.elapsed())

    @property
    def slots_in_use(self) -> int:
        """Returns the number of scrapes and queries that are under way."""
        return self._queue.in_use + len(self._queries_under_way)

    def overdue_seconds(self) -> dict[str, float]:
        """Returns for how long the most overdue targets have waited beyond their interval: `regular` ones, and `slow`
        ones, whose last scrape took long without a value."""
        with self._lock:
            regular, slow = self._queue.overdue_seconds(self.elapsed())
        return {"regular": regular, "slow": slow}

    def _values_of(self, rule: MetricRule, request: MetricRequest) -> list[PodMetric]:
        if not rule.covers_namespace(request.namespace):
            return []
        pods = self._pods.get(request.namespace, [])
        if request.is_single:
            pods = [pod for pod in pods if pod.name == request.name]
        for requirement in request.requirements:
            pods = [pod for pod in pods if requirement_matches(requirement, pod.labels)]
        now, offset = self.elapsed(), self.wall_clock() - self.elapsed()
        values = []
        for pod in pods:
            value = self._store.value_of(pod.uid, rule, now)
            if isinstance(value, MetricValue):
                values.append(
                    PodMetric(
                        namespace=pod.namespace,
                        name=pod.name,
                        uid=pod.uid,
                        metric=rule.name,
                        milli=value.milli,
                        timestamp=int(value.at + offset),
                        window_seconds=value.window_seconds,
                    )
                )
        return values

    def _scrape(self, target: ScrapeTarget, filters: tuple[SeriesFilter, ...]) -> None:
        has_value = False
        try:
            scrape = self.run_scrape(target, filters)
            has_value = isinstance(scrape.body, ScrapedBody)
            with self._lock:
                self._record_scrape(target, scrape)
        except Exception as error:  # noqa: BLE001  a bug with one pod must not end the scrapes of all
            self._record_fault("scrape", target, error)
        finally:
            with self._lock:
                self._queue.finish(target, self.elapsed(), has_value=has_value)
                if target in self._attempts:
                    self._attempts[target] += 1
                # At once: in a step of its own, a slot would be empty for longer than a scrape takes.
                self._fill_slots()

    def _record_scrape(self, target: ScrapeTarget, scrape: Scrape) -> None:
        outcomes = scrape.body.values if isinstance(scrape.body, ScrapedBody) else (scrape.body,)
        problems = [outcome for outcome in outcomes if isinstance(outcome, Reason)]
        self._count_outcome(target, target.ip, problems[0] if problems else None)
        if not isinstance(scrape.body, ScrapedBody):
            return
        for name, values in zip(target.metrics, scrape.body.values, strict=True):
            rule = self._rules.get(name)
            if rule is not None and not isinstance(values, Reason):
                self._store.add_sample(target.uid, rule, Sample(scrape.at, values, scrape.body.started))

    def _query(self, rule: MetricRule) -> None:
        try:
            at = self.elapsed()
            answer = self.run_query(rule)
            with self._lock:
                self._count_outcome(rule.name, rule.name, answer if isinstance(answer, Reason) else None)
                for key, value in answer.values.items() if isinstance(answer, QueryAnswer) else ():
                    if (uid := self._uids.get(key)) is not None:
                        self._store.add_sample(uid, rule, Sample(at, {0: value}))
        except Exception as error:  # noqa: BLE001  a bug with one rule must not end the queries of all
            self._record_fault("query", rule.name, error)
        finally:
            with self._lock:
                self._queries_under_way.discard(rule.name)

    def _count_outcome(self, key: ScrapeTarget | str, name: str, problem: Reason | None) -> None:
        """Counts a success, or a failure with its reason `problem`. A success ends a series of failures. In a series,
        the first, second, fourth, eighth and so on are logged."""
        if problem is None:
            self.metrics.samples.labels("query" if isinstance(key, str) else "scrape").inc()
            if self._failures.pop(key, 0):
                self.log.info("metrics are collected again", source=name)
            return
        self.metrics.failures.labels(problem.code.name).inc()
        self._failures[key] = count = self._failures.get(key, 0) + 1
        if is_power_of_two(count):
            self.log.warning(
                "metrics are not collected", source=name, times=count, code=problem.code.name, why=problem.sentence
            )

    def _record_fault(self, kind: str, source: ScrapeTarget | str, error: Exception) -> None:
        self.metrics.failures.labels("internal-error").inc()
        self.log.error(f"{kind} failed", source=str(source), error=f"{type(error).__name__}: {error}", exc_info=True)
