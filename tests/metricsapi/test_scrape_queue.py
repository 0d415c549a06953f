"""Which target is scraped next, as laws on a clock that is set: what one namespace does takes nothing from another."""

import heapq
from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.metricsapi.pacing import PaceLimits, ScrapePace
from trimtab.metricsapi.scrape_queue import SLOW_SECONDS, QueueLimits, ScrapeQueue

INTERVAL, TIMEOUT, TICK = 60.0, 10.0, 0.2
LIMITS = QueueLimits(slots=16, interval_seconds=INTERVAL, second_after_seconds=10.5)
Name = tuple[str, int]
"""The namespace of a pod, and its number there."""


@dataclass
class World:
    """A queue, and pods that take some seconds for each page."""

    seconds: Mapping[str, float]
    """Namespace → seconds that a scrape of its pods takes; from the time-out on, it ends without a value."""
    now: float = 0.0
    queue: ScrapeQueue[Name] = field(default_factory=lambda: ScrapeQueue(LIMITS))
    values_at: dict[Name, float] = field(default_factory=dict)
    """Pod → the time of its last value."""
    starts: list[tuple[float, Name]] = field(default_factory=list)
    pace: ScrapePace = field(init=False)
    under_way: list[tuple[float, Name]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.pace = ScrapePace(PaceLimits(min_per_second=0, max_per_second=100, max_debt=100, max_surplus=100), 0.0)

    def replace_pods(self, pods: Mapping[str, int]) -> None:
        """pods: namespace → number of pods."""
        targets = {(namespace, n): namespace for namespace, count in pods.items() for n in range(count)}
        self.queue.replace_targets(targets, self.now)
        self.pace.change_min_rate(len(targets) / INTERVAL)

    def live(self, seconds: float) -> None:
        end = self.now + seconds
        while self.now < end:
            self.now += TICK
            self.pace.advance_to(self.now)
            while self.under_way and self.under_way[0][0] <= self.now:
                _, pod = heapq.heappop(self.under_way)
                has_value = self.seconds[pod[0]] < TIMEOUT
                if has_value:
                    self.values_at[pod] = self.now
                self.queue.finish(pod, self.now, has_value=has_value)
            while self.queue.in_use < LIMITS.slots and (pod := self.queue.take_next(self.pace)) is not None:
                self.starts.append((self.now, pod))
                heapq.heappush(self.under_way, (self.now + min(TIMEOUT, self.seconds[pod[0]]), pod))

    def young_share(self, namespace: str, pods: int) -> float:
        """Returns the share of the namespace's pods whose last value is younger than two intervals."""
        ages = (self.now - self.values_at.get((namespace, n), float("-inf")) for n in range(pods))
        return sum(age < 2 * INTERVAL for age in ages) / pods


@pytest.mark.parametrize("namespaces", [1, 2, 40])
@pytest.mark.parametrize("hanging", [300, 1000])
def test_pods_that_never_respond_take_nothing_from_other_namespaces(namespaces: int, hanging: int) -> None:
    tenants = {f"tenant-{n}": hanging // namespaces for n in range(namespaces)}
    world = World({"shop": 0.02, "bank": 0.02, **dict.fromkeys(tenants, 60.0)})
    world.replace_pods({"shop": 100, "bank": 5, **tenants})
    world.live(2 * INTERVAL)
    shares = []
    for _ in range(60):
        world.live(INTERVAL / 6)
        shares += [world.young_share("shop", 100), world.young_share("bank", 5)]
    assert min(shares) == 1.0


@given(st.dictionaries(st.sampled_from("abcdefgh"), st.tuples(st.integers(1, 200), st.floats(0.1, 30)), min_size=1))
def test_pods_of_any_speed_leave_another_namespace_its_interval(tenants: dict[str, tuple[int, float]]) -> None:
    """Also pods that respond just in time: a slow value costs its namespace as much as none."""
    world = World({"shop": 0.02, **{name: seconds for name, (_, seconds) in tenants.items()}})
    world.replace_pods({"shop": 20, **{name: count for name, (count, _) in tenants.items()}})
    world.live(2 * INTERVAL)
    for _ in range(12):
        world.live(INTERVAL / 2)
        assert world.young_share("shop", 20) == 1.0


def test_new_pods_without_end_leave_another_namespace_its_interval() -> None:
    """A tenant replaces all of its pods, which hang, every five seconds."""
    world = World({"shop": 0.02, "tenant": 60.0})
    shares = []
    for step in range(200):
        targets = {("shop", n): "shop" for n in range(50)}
        world.queue.replace_targets(targets | {("tenant", step * 100 + n): "tenant" for n in range(100)}, world.now)
        world.pace.change_min_rate(150 / INTERVAL)
        world.live(5)
        if world.now > 2 * INTERVAL:
            shares.append(world.young_share("shop", 50))
    assert min(shares) == 1.0


def test_slow_targets_together_have_an_eighth_of_the_slots() -> None:
    world = World({"tenant": 60.0})
    world.replace_pods({"tenant": 16})
    world.live(3 * INTERVAL)
    assert world.queue.in_use == LIMITS.slow_slots == 2


def test_a_target_that_was_slow_once_is_an_ordinary_one_after_a_success() -> None:
    seconds = {"shop": 60.0, "tenant": 60.0}
    world = World(seconds)
    world.replace_pods({"shop": 4, "tenant": 300})
    world.live(2 * INTERVAL)
    seconds["shop"] = 0.02
    world.live(2 * INTERVAL)
    assert world.young_share("shop", 4) == 1.0
    begun = len(world.starts)
    world.live(2 * INTERVAL)
    assert sum(pod[0] == "shop" for _, pod in world.starts[begun:]) >= 7


def test_a_scrape_that_fails_at_once_is_not_slow() -> None:
    queue, pace = ScrapeQueue[str](LIMITS), World({}).pace
    queue.replace_targets({"pod": "shop"}, 0.0)
    assert queue.take_next(pace) == "pod"
    queue.finish("pod", SLOW_SECONDS / 2, has_value=False)
    assert queue.overdue_seconds(INTERVAL * 3) == (INTERVAL * 3 - 10.5 - 6.0, 0.0)


def test_every_target_is_scraped_once_per_interval_and_evenly() -> None:
    world = World({"shop": 0.02})
    world.replace_pods({"shop": 300})
    world.live(10 * INTERVAL)
    begun = world.now
    world.starts.clear()
    world.live(2 * INTERVAL)
    counts = [sum(pod == ("shop", n) for _, pod in world.starts) for n in range(300)]
    assert (min(counts), max(counts)) == (2, 2)
    by_second = [sum(int(at - begun) == second for at, _ in world.starts) for second in range(int(INTERVAL))]
    assert max(by_second) <= 7


def test_a_new_target_comes_first_and_once_more_for_its_rate() -> None:
    world = World({"shop": 0.02})
    world.replace_pods({"shop": 30})
    world.live(5 * INTERVAL)
    world.replace_pods({"shop": 31})
    begun = world.now
    world.live(15)
    assert [round(at - begun, 1) for at, pod in world.starts if pod == ("shop", 30)] == [0.2, 10.8]


def test_a_target_that_is_gone_is_not_scraped_and_one_that_comes_back_is_new() -> None:
    world = World({"shop": 0.02})
    world.replace_pods({"shop": 3})
    world.live(1)
    world.replace_pods({"shop": 2})
    world.live(2 * INTERVAL)
    assert sum(pod == ("shop", 2) for _, pod in world.starts) == 1
    world.replace_pods({"shop": 3})
    world.live(1)
    assert world.starts[-1][1] == ("shop", 2)


def test_a_target_that_leaves_and_comes_back_during_its_scrape_is_not_scraped_twice_at_once() -> None:
    queue, pace = ScrapeQueue[str](LIMITS), World({}).pace
    queue.replace_targets({"pod": "shop"}, 0.0)
    assert queue.take_next(pace) == "pod"
    queue.replace_targets({}, 0.0)
    queue.replace_targets({"pod": "shop"}, 0.0)
    assert queue.take_next(pace) is None
    queue.finish("pod", 0.0, has_value=True)
    assert queue.take_next(pace) == "pod"


def test_a_namespace_cannot_shed_its_load_by_removing_its_pods() -> None:
    world = World({"shop": 0.02, "tenant": 9.0})
    world.replace_pods({"tenant": 200})
    world.live(30)
    world.replace_pods({})
    world.live(1)
    world.replace_pods({"tenant": 200, "shop": 1})
    world.live(TIMEOUT + 1)
    assert ("shop", 0) in world.values_at


@given(st.lists(st.frozensets(st.tuples(st.sampled_from(["a", "b"]), st.integers(0, 5))), max_size=12))
def test_only_present_targets_are_scraped_and_never_two_at_once(steps: list[frozenset[Name]]) -> None:
    world = World({"a": 0.5, "b": 4.0})
    for present in steps:
        world.queue.replace_targets({pod: pod[0] for pod in present}, world.now)
        world.pace.change_min_rate(1)
        begun = len(world.starts)
        world.live(7)
        assert {pod for _, pod in world.starts[begun:]} <= present
        running = [pod for _, pod in world.under_way]
        assert len(running) == len(set(running)) == world.queue.in_use
