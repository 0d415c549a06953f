"""Who has been silent longest, and when their time is over."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from trimtab.runtime.connections import Silent, Unread


@dataclass
class Loop:
    """An event loop whose time is told."""

    now: float = 0.0
    timers: list[tuple[float, Any, tuple[Any, ...]]] = field(default_factory=list)

    def time(self) -> float:
        return self.now

    def call_later(self, seconds: float, call: Any, *given: Any) -> object:
        self.timers.append((self.now + seconds, call, given))
        return object()

    def until(self, moment: float) -> None:
        """Let time pass, and timers with it."""
        while due := [timer for timer in self.timers if timer[0] <= moment]:
            first = min(due, key=lambda timer: timer[0])
            self.timers.remove(first)
            self.now = first[0]
            first[1](*first[2])
        self.now = moment


class Connection:
    """As much of gunicorn's as is asked."""

    def __init__(self, loop: Loop, requests: int = 2, *, awaiting: bool = True) -> None:
        self.worker, self._keepalive = self, 10
        self.loop, self.req_count, self._awaiting_request = loop, requests, awaiting
        self.over: float | None = None

    def _keepalive_timeout(self) -> None:
        self.over = self.loop.now


@pytest.fixture
def loop() -> Loop:
    return Loop()


def test_each_ends_when_it_was_silent_for_its_time_and_one_timer_is_enough(loop: Loop) -> None:
    silent, (first, second, busy) = Silent(), [Connection(loop) for _ in range(3)]
    for moment, connection in ((0, first), (3, second), (4, busy)):
        loop.until(moment)
        silent.began(connection)
        assert len(loop.timers) == 1
    loop.until(5)
    silent.ended(busy)
    loop.until(30)
    assert (first.over, second.over, busy.over) == (10, 13, None)
    assert not loop.timers


def test_one_that_asked_again_has_its_whole_time_again(loop: Loop) -> None:
    silent, connection = Silent(), Connection(loop)
    silent.began(connection)
    loop.until(9)
    silent.ended(connection)
    loop.until(9.5)
    silent.began(connection)
    loop.until(19)
    assert connection.over is None
    loop.until(20)
    assert connection.over == 19.5


def test_where_nothing_is_kept_nothing_is_timed(loop: Loop) -> None:
    connection = Connection(loop)
    connection._keepalive = 0
    Silent().began(connection)
    assert not loop.timers


def test_missed_least_is_who_never_asked_and_then_who_was_silent_longest(loop: Loop) -> None:
    silent, old, young, new = Silent(), Connection(loop), Connection(loop), Connection(loop, requests=1)
    busy = Connection(loop, requests=1, awaiting=False)
    for moment, connection in enumerate((busy, old, young, new)):
        loop.until(moment)
        silent.began(connection)
    assert silent.least() is new
    silent.ended(new)
    assert silent.least() is old
    silent.ended(old)
    silent.ended(young)
    assert silent.least() is None


def test_whose_answers_have_lain_longest_is_missed_before_all_others_but_not_at_once(loop: Loop) -> None:
    unread, (first, second) = Unread(), [Connection(loop, awaiting=False) for _ in range(2)]
    assert unread.longest() is None
    unread.began(first)
    loop.until(0.5)
    unread.began(second)
    assert unread.longest() is None
    loop.until(2)
    assert unread.longest() is first
    unread.ended(first)
    assert unread.longest() is second
    unread.ended(second)
    assert unread.longest() is None
