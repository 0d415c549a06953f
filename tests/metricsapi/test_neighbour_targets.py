"""Whatever targets a namespace has, adds, flips and removes: another namespace has its values in time.

The clock is set, and a property test makes the neighbour up.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.metricsapi.test_scrape_queue import INTERVAL, Name, World


@dataclass(frozen=True)
class Neighbour:
    """A namespace whose targets change, and how long each of their pages takes."""

    pods: int
    flip_every: int = 0
    """The seconds after which each target leaves or comes back; 0: never."""
    new_each_second: float = 0.0
    life: int = 20
    """The seconds for which a pod exists that is new."""
    seconds: tuple[float, float] = (0.02, 0.02)
    """The shortest and the longest time of a page. From ten seconds on, there is none."""
    slow_every: int = 0
    """The seconds between phases of pages that take the longest time and of those that take the shortest; 0: any time
    between them, by chance."""

    def targets_at(self, second: int) -> list[int]:
        """Returns the numbers of the pods that are targets in a second."""
        stable = range(self.pods)
        flipped = [n for n in stable if not self.flip_every or (n + second // self.flip_every) % 2 == 0]
        first, end = (int(self.new_each_second * at) for at in (max(0, second - self.life), second))
        return [*flipped, *range(self.pods + first, self.pods + end)]


class PageSeconds(dict[str, float]):
    """How long a page of each namespace takes, in a world whose time is read from it."""

    def __init__(self, neighbours: Mapping[str, Neighbour]) -> None:
        super().__init__()
        self.neighbours, self.world, self.random = neighbours, World({}), Random(1)

    def __missing__(self, namespace: str) -> float:
        neighbour = self.neighbours.get(namespace)
        if neighbour is None:
            return 0.02
        if neighbour.slow_every:
            return neighbour.seconds[int(self.world.now / neighbour.slow_every) % 2]
        return self.random.uniform(*neighbour.seconds)


def least_share(neighbours: Mapping[str, Neighbour], *, pods: int = 30, seconds: int = 400) -> float:
    """Returns the least share of the pods of `shop` whose value was younger than two intervals, over all seconds after
    the first two intervals."""
    times = PageSeconds(neighbours)
    world = times.world = World(times)
    shares = []
    for second in range(seconds):
        targets: dict[Name, str] = {("shop", n): "shop" for n in range(pods)}
        for name, neighbour in neighbours.items():
            targets |= {(name, n): name for n in neighbour.targets_at(second)}
        world.queue.replace_targets(targets, world.now)
        world.pace.change_min_rate(len(targets) / INTERVAL)
        world.live(1)
        if world.now > 2 * INTERVAL:
            shares.append(world.young_share("shop", pods))
    return min(shares)


@pytest.mark.parametrize(
    "neighbour",
    [
        Neighbour(0, new_each_second=2, seconds=(0.1, 2)),
        Neighbour(0, new_each_second=40, seconds=(5, 60)),
        Neighbour(60, flip_every=1, seconds=(0.1, 0.9)),
        Neighbour(300, flip_every=1),
        Neighbour(300, slow_every=7, seconds=(0.02, 60)),
    ],
    ids=str,
)
def test_a_neighbour_whose_targets_change_takes_no_value_from_another_namespace(neighbour: Neighbour) -> None:
    assert least_share({"tenant": neighbour}, seconds=300) == 1.0


NEIGHBOURS = st.builds(
    Neighbour,
    pods=st.sampled_from([0, 1, 20, 100, 200]),
    flip_every=st.sampled_from([0, 1, 2, 7, 20, 59]),
    new_each_second=st.sampled_from([0, 0.1, 1, 5, 40]),
    life=st.sampled_from([1, 5, 20]),
    seconds=st.sampled_from([(0.01, 0.02), (0.1, 2.0), (0.02, 60.0), (1.4, 1.6), (9.0, 11.0), (60.0, 60.0)]),
    slow_every=st.sampled_from([0, 1, 13, 60]),
)


@settings(max_examples=25)
@given(st.lists(NEIGHBOURS, min_size=1, max_size=3))
def test_neighbours_of_any_kind_take_no_value_from_another_namespace(neighbours: list[Neighbour]) -> None:
    assert least_share({f"tenant-{n}": neighbour for n, neighbour in enumerate(neighbours)}, seconds=240) == 1.0
