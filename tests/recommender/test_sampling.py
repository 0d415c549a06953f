"""Whoever looks waits for nobody, and what was seen is there when somebody asks."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable

import pytest

from tests.build import owner_key
from tests.recommender.played import World
from trimtab.histogram.live_history import LiveHistory
from trimtab.recommender import collector
from trimtab.recommender.collector import MAX_QUEUED_READINGS, InstantCollector, Sampler
from trimtab.usage.errors import UnreachableSource
from trimtab.usage.owners import OwnerIndex
from trimtab.usage.series import Series

WITHIN = 60.0


class Looked:
    """Pods that are looked at; each look is a minute later than the one before."""

    def __init__(self) -> None:
        self.looks = 0
        self.faults: set[int] = set()
        self._grown = threading.Condition()

    def __call__(self) -> Iterable[Series]:
        with self._grown:
            self.looks += 1
            self._grown.notify_all()
        if self.looks in self.faults:
            raise UnreachableSource("nobody answers")
        at = World().now + 60 * self.looks
        return [
            Series(
                namespace="shop",
                pod="web-0",
                container="app",
                resource="cpu",
                times=(at,),
                values=(0.1,),
                workload="Deployment/web",
            )
        ]

    def reach(self, looks: int) -> None:
        with self._grown:
            assert self._grown.wait_for(lambda: self.looks >= looks, WITHIN)


def sampler(look: Looked, interval: float = 0.01, missed: list[int] | None = None) -> Sampler:
    return Sampler(look, interval, time.monotonic, lambda: (missed if missed is not None else []).append(1))


def test_nothing_is_missed_while_nobody_takes_it_up() -> None:
    look, diary = Looked(), LiveHistory()
    with sampler(look) as line:
        look.reach(20)  # the round publishes meanwhile, and asks for nothing
    line.join_thread()
    owners, now = (OwnerIndex({}, {owner_key("Deployment/web", namespace="shop"): None}), World().now + 60 * look.looks)
    count = InstantCollector(line.take_readings).collect_usage(diary, owners, now, lambda: True)
    assert count == min(look.looks, MAX_QUEUED_READINGS) >= 20  # what the queue holds, however slow the machine is
    [container] = diary.list_containers()
    assert diary.get_window(container, "cpu").merge_days().total_count == count


def test_a_fault_is_raised_after_what_came_before_and_no_later_look_is_lost() -> None:
    look = Looked()
    look.faults = {2}
    with sampler(look) as line:
        look.reach(4)
    line.join_thread()
    assert len(list(line.take_readings())) == look.looks - 1
    look.faults = {look.looks + 2}
    line._enqueue(line._take_reading())
    line._enqueue(line._take_reading())
    series = line.take_readings()
    next(series)
    with pytest.raises(UnreachableSource):
        next(series)


def test_who_waits_hears_of_a_look_and_of_the_end() -> None:
    look = Looked()
    with sampler(look, interval=3600.0) as line:
        line.wait_for_reading(lambda: True)
        assert look.looks == 1
        list(line.take_readings())
        line.wait_for_reading(lambda: False)
    line.join_thread()


def test_what_nobody_takes_up_for_an_hour_is_counted_as_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collector, "MAX_QUEUED_READINGS", 3)
    look, missed = Looked(), list[int]()
    line = sampler(look, missed=missed)
    for _ in range(5):
        line._enqueue(line._take_reading())
    assert len(missed) == 2
    assert len(list(line.take_readings())) == 3


def test_a_look_that_takes_longer_than_the_interval_is_told() -> None:
    missed, times = list[int](), iter([0.0, 25.0, 25.0])
    done = threading.Event()

    def elapsed() -> float:
        return next(times, 30.0)

    def look() -> list[Series]:
        done.set()
        return []

    with Sampler(look, 10.0, elapsed, lambda: missed.append(1)) as line:
        assert done.wait(WITHIN)
        line.wait_for_reading(lambda: True)
    line.join_thread()
    assert missed == [1, 1]
