"""What is collected, when, and what requests are answered with: no threads, no sockets, a clock that is set."""

import io
import json
from collections.abc import Callable
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from trimtab.cluster.reason import Reason
from trimtab.metricsapi.api_request import DiscoveryRequest, MetricRequest, read_request
from trimtab.metricsapi.collector import Collector
from trimtab.metricsapi.exposition import ScrapedBody, SeriesFilter
from trimtab.metricsapi.metrics import Metrics
from trimtab.metricsapi.queries import QueryAnswer
from trimtab.metricsapi.reasons import QUERY_FAILED, SCRAPE_FAILED
from trimtab.metricsapi.rules import MetricKind, MetricRule, SampleSource
from trimtab.metricsapi.scraper import Scrape
from trimtab.metricsapi.settings import Settings
from trimtab.metricsapi.targets import RunningPod, ScrapeTarget
from trimtab.runtime import log

RATE = MetricRule(
    name="requests",
    source=SampleSource.SCRAPE,
    kind=MetricKind.RATE,
    namespaces=("shop",),
    pod_labels={"app": "web"},
    series="requests_total",
)
DEPTH = MetricRule(name="depth", source=SampleSource.QUERY, kind=MetricKind.GAUGE, query="depth")
API = "/apis/custom.metrics.k8s.io/v1beta2"


def pods(*names: str, namespace: str = "shop", app: str = "web") -> list[RunningPod]:
    return [RunningPod(namespace, name, f"uid-{name}", "10.0.0.1", {"app": app, "pod": name}) for name in names]


class InlineExecutor(Executor):
    """Runs everything at once, or only when it is told to."""

    def __init__(self) -> None:
        self.is_held = False
        self.waiting: list[Callable[[], Any]] = []

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.waiting.append(lambda: fn(*args, **kwargs))
        if not self.is_held:
            self.release()
        return Future()

    def release(self) -> None:
        while self.waiting:
            self.waiting.pop(0)()


@dataclass
class World:
    """A replica with played pods and a played Prometheus."""

    now: float = 1000.0
    values: dict[str, float] = field(default_factory=dict)
    """uid → counter."""
    started: dict[str, float] = field(default_factory=dict)
    problem: Reason | None = None
    answer: QueryAnswer | Reason = field(default_factory=lambda: QueryAnswer({}))
    scrapes: list[tuple[float, str]] = field(default_factory=list)
    executor: InlineExecutor = field(default_factory=InlineExecutor)
    logged: io.StringIO = field(default_factory=io.StringIO)
    settings: Settings = field(default_factory=Settings)

    def __post_init__(self) -> None:
        self.metrics = Metrics(CollectorRegistry())
        self.collector = Collector(
            self.settings,
            self.scrape,
            lambda rule: self.answer,
            self.executor,
            self.metrics,
            log.build_logger(stream=self.logged, style="json"),
            lambda: self.now,
            lambda: self.now + 1_700_000_000,
        )

    def scrape(self, target: ScrapeTarget, filters: tuple[SeriesFilter, ...]) -> Scrape:
        self.scrapes.append((self.now, target.uid))
        if self.problem is not None:
            return Scrape(self.now, self.problem)
        values = tuple({0: self.values.get(target.uid, 0.0)} for _ in filters)
        return Scrape(self.now, ScrapedBody(values, self.started.get(target.uid)))

    def live(self, seconds: float, rate: float = 0.0, step: float = 0.5) -> None:
        """Time passes, and the counters grow."""
        for _ in range(round(seconds / step)):
            self.now += step
            for uid in self.values:
                self.values[uid] += rate * step
            self.collector.run_step()

    def ask(self, path: str) -> tuple[int, dict[str, str]]:
        """Status, and pod → value."""
        path, _, query = path.partition("?")
        request = read_request("GET", f"{API}/namespaces/{path}".encode(), query.encode())
        assert isinstance(request, DiscoveryRequest | MetricRequest)
        reply = self.collector.answer_request(request)
        items = json.loads(reply.body).get("items", ())
        return reply.status, {item["describedObject"]["name"]: item["value"] for item in items}

    def counted(self, name: str) -> str:
        lines = generate_latest(self.metrics.registry).decode().splitlines()
        return next(line.rpartition(" ")[2] for line in lines if line.startswith(name))


def test_a_new_pod_has_a_rate_after_the_shortest_gap() -> None:
    world = World(values={"uid-a": 500.0})
    world.collector.replace_inputs([RATE], pods("a"))
    world.live(9)
    assert world.ask("shop/pods/*/requests") == (200, {})
    world.live(3, rate=5)
    status, values = world.ask("shop/pods/*/requests")
    assert status == 200
    assert list(values) == ["a"]


def test_each_pod_is_scraped_once_per_interval() -> None:
    world = World()
    world.collector.replace_inputs([RATE], pods(*(f"p{n}" for n in range(20))))
    world.live(60)
    world.scrapes.clear()
    world.live(600)
    counts = {uid: sum(uid == other for _, other in world.scrapes) for _, uid in world.scrapes}
    assert len(counts) == 20
    assert set(counts.values()) <= {9, 10, 11}


def test_a_container_restart_is_right_within_one_scrape() -> None:
    """The counter begins at 0: the next rate counts what came since, and the one after it is exact."""
    world = World(values={"uid-a": 100_000.0})
    world.collector.replace_inputs([RATE], pods("a"))
    world.live(150, rate=10)
    assert world.ask("shop/pods/*/requests") == (200, {"a": "10"})
    # Just after a scrape, so that only the requests of a moment are lost.
    before = len(world.scrapes)
    while len(world.scrapes) == before:
        world.live(0.5, rate=10)
    world.values["uid-a"] = 0.0
    while len(world.scrapes) == before + 1:
        world.live(0.5, rate=10)
    assert world.ask("shop/pods/*/requests") == (200, {"a": "10"})


@pytest.mark.parametrize("outage", [30.0, 120.0])
def test_an_outage_of_a_pod_is_no_zero(outage: float) -> None:
    """A value of before is served until it is too old, and then none."""
    world = World(values={"uid-a": 0.0})
    world.collector.replace_inputs([RATE], pods("a"))
    world.live(150, rate=10)
    world.problem = SCRAPE_FAILED("10.0.0.1:8080: no route")
    world.live(outage, rate=10)
    assert world.ask("shop/pods/*/requests")[1] in ({"a": "10"}, {})
    assert world.ask("shop/pods/*/requests")[1] == ({"a": "10"} if outage < 60 else {})
    world.problem = None
    world.live(60, rate=10)
    assert world.ask("shop/pods/*/requests")[1] == {"a": "10"}


def test_a_row_of_failures_is_logged_at_powers_of_two_and_its_end_once() -> None:
    world = World(problem=SCRAPE_FAILED("10.0.0.1:8080: no route"))
    world.collector.replace_inputs([RATE], pods("a"))
    world.live(600)
    world.problem = None
    world.live(120)
    world.problem = SCRAPE_FAILED("10.0.0.1:8080: no route")
    world.live(60)
    lines = [json.loads(line) for line in world.logged.getvalue().splitlines()]
    times = [line.get("times") for line in lines]
    assert times == [1, 2, 4, 8, None, 1]
    assert {line.get("code") for line in lines} == {"metric-scrape-failed", None}
    assert float(world.counted("trimtab_metrics_api_failures_total")) >= 8


def test_a_query_gives_values_to_running_pods_alone() -> None:
    world = World(answer=QueryAnswer({("shop", "a"): 1.5, ("shop", "gone"): 2.0, ("other", "a"): 3.0}))
    world.collector.replace_inputs([DEPTH], pods("a"))
    world.live(1)
    assert world.ask("shop/pods/*/depth") == (200, {"a": "1500m"})
    assert world.ask("other/pods/*/depth") == (200, {})


def test_a_query_that_fails_leaves_the_last_values_until_they_are_too_old() -> None:
    world = World(answer=QueryAnswer({("shop", "a"): 1.0}))
    world.collector.replace_inputs([DEPTH], pods("a"))
    world.live(1)
    world.answer = QUERY_FAILED("depth: timed out")
    world.live(60)
    assert world.ask("shop/pods/*/depth") == (200, {"a": "1"})
    world.live(60)
    assert world.ask("shop/pods/*/depth") == (200, {})


def test_selectors_names_and_namespaces_choose_the_pods() -> None:
    world = World(answer=QueryAnswer({("shop", name): 1.0 for name in "abc"}))
    world.collector.replace_inputs([DEPTH, RATE], pods("a", "b", "c"))
    world.live(1)
    assert list(world.ask("shop/pods/*/depth?labelSelector=pod+in+(a%2Cc)")[1]) == ["a", "c"]
    assert list(world.ask("shop/pods/b/depth")[1]) == ["b"]
    assert world.ask("shop/pods/none/depth")[0] == 404
    assert world.ask("shop/pods/*/unknown")[0] == 404
    assert world.ask("elsewhere/pods/*/requests") == (200, {})


def test_a_pod_of_the_same_name_is_another_pod() -> None:
    world = World(values={"uid-a": 100.0})
    world.collector.replace_inputs([RATE], pods("a"))
    world.live(150, rate=10)
    second_running_pod = RunningPod("shop", "a", "uid-new", "10.0.0.2", {"app": "web"})
    world.collector.replace_inputs([RATE], [second_running_pod])
    assert world.ask("shop/pods/*/requests") == (200, {})


def test_a_rule_that_is_gone_is_unknown_and_one_that_comes_is_asked_at_once() -> None:
    world = World(answer=QueryAnswer({("shop", "a"): 1.0}))
    world.collector.replace_inputs([DEPTH], pods("a"))
    world.live(1)
    world.collector.replace_inputs([RATE], pods("a"))
    assert world.ask("shop/pods/*/depth")[0] == 404
    world.collector.replace_inputs([DEPTH], pods("a"))
    world.live(0.5)
    assert world.ask("shop/pods/*/depth") == (200, {"a": "1"})


def test_a_replica_is_ready_when_every_pod_was_tried_twice() -> None:
    world = World(problem=SCRAPE_FAILED("10.0.0.1:8080: no route"))
    assert world.collector.readiness() == (False, "the process has not read the rules and the pods yet")
    world.collector.replace_inputs([RATE], pods("a", "b"))
    world.live(5)
    assert world.collector.readiness() == (False, "2 of 2 scrape targets have not been scraped twice yet")
    world.live(7)
    assert world.collector.readiness() == (True, "1 rule, 2 scrape targets")


def test_a_replica_does_not_wait_for_a_pod_that_hangs_and_stays_ready() -> None:
    world = World()
    world.executor.is_held = True
    world.collector.replace_inputs([RATE], pods("a"))
    world.live(121)
    assert world.collector.readiness()[0]
    world.collector.replace_inputs([RATE], pods("a", "b"))
    assert world.collector.readiness()[0]


def test_no_more_scrapes_run_at_once_than_allowed_and_none_twice() -> None:
    world = World(settings=Settings(max_concurrent_scrapes=4))
    world.executor.is_held = True
    world.collector.replace_inputs([RATE], pods(*(f"p{n}" for n in range(50))))
    world.live(600)
    under_way, world.executor.waiting = world.executor.waiting, []
    assert len(under_way) == 4
    for run in under_way:
        run()
    assert len({uid for _, uid in world.scrapes}) == 4
    # Each that ended made room for the next one at once.
    assert len(world.executor.waiting) == 4


def test_a_bug_with_one_pod_ends_nothing() -> None:
    world = World(values={"uid-a": 0.0})
    world.collector.replace_inputs([RATE], pods("a"))
    world.collector.run_scrape = lambda target, filters: 1 / 0  # type: ignore[assignment, return-value]
    world.live(30)
    world.collector.run_scrape = world.scrape
    world.live(130, rate=1)
    assert world.ask("shop/pods/*/requests") == (200, {"a": "1"})
    assert "ZeroDivisionError" in world.logged.getvalue()


def test_pods_with_and_without_a_value_are_counted() -> None:
    world = World(answer=QueryAnswer({("shop", "a"): 1.0}))
    world.collector.replace_inputs([DEPTH, RATE], pods("a", "b"))
    world.live(1)
    assert world.collector.count_values() == {"depth": (1, 0), "requests": (0, 2)}
