"""Who has been silent longest, and when their time is over."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from trimtab.runtime.connection_limits import ConnectionSlots, IdleConnections, StalledConnections


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
    """As much of gunicorn's as is asked, and of its transport."""

    def __init__(self, loop: Loop, requests: int = 2, *, awaiting: bool = True) -> None:
        self.worker, self._keepalive = self, 10
        self.loop, self.req_count, self._awaiting_request = loop, requests, awaiting
        self.over: float | None = None
        self.transport, self.aborted = self, False

    def abort(self) -> None:
        self.aborted = True

    def _keepalive_timeout(self) -> None:
        self.over = self.loop.now


@pytest.fixture
def loop() -> Loop:
    return Loop()


def test_each_ends_when_it_was_silent_for_its_time_and_one_timer_is_enough(loop: Loop) -> None:
    silent, (first, second, busy) = IdleConnections(), [Connection(loop) for _ in range(3)]
    for moment, connection in ((0, first), (3, second), (4, busy)):
        loop.until(moment)
        silent.add_connection(connection)
        assert len(loop.timers) == 1
    loop.until(5)
    silent.remove_connection(busy)
    loop.until(30)
    assert (first.over, second.over, busy.over) == (10, 13, None)
    assert not loop.timers


def test_one_that_asked_again_has_its_whole_time_again(loop: Loop) -> None:
    silent, connection = IdleConnections(), Connection(loop)
    silent.add_connection(connection)
    loop.until(9)
    silent.remove_connection(connection)
    loop.until(9.5)
    silent.add_connection(connection)
    loop.until(19)
    assert connection.over is None
    loop.until(20)
    assert connection.over == 19.5


def test_where_nothing_is_kept_nothing_is_timed(loop: Loop) -> None:
    connection = Connection(loop)
    connection._keepalive = 0
    IdleConnections().add_connection(connection)
    assert not loop.timers


def test_missed_least_is_who_never_asked_and_then_who_was_silent_longest(loop: Loop) -> None:
    silent, old, young, new = IdleConnections(), Connection(loop), Connection(loop), Connection(loop, requests=1)
    busy = Connection(loop, requests=1, awaiting=False)
    for moment, connection in enumerate((busy, old, young, new)):
        loop.until(moment)
        silent.add_connection(connection)
    assert silent.least_useful() is new
    silent.remove_connection(new)
    assert silent.least_useful() is old
    silent.remove_connection(old)
    silent.remove_connection(young)
    assert silent.least_useful() is None


def test_whose_answers_have_lain_longest_is_missed_before_all_others_but_not_at_once(loop: Loop) -> None:
    unread, (first, second) = StalledConnections(), [Connection(loop, awaiting=False) for _ in range(2)]
    assert unread.longest_stalled() is None
    unread.add_connection(first)
    loop.until(0.5)
    unread.add_connection(second)
    assert unread.longest_stalled() is None
    loop.until(2)
    assert unread.longest_stalled() is first
    unread.remove_connection(first)
    assert unread.longest_stalled() is second
    unread.remove_connection(second)
    assert unread.longest_stalled() is None


def crowd(loop: Loop, places: ConnectionSlots, address: str, count: int, *, greeted: bool = True) -> list[Connection]:
    """New connections from an address, their handshakes over or not."""
    connections = []
    for _ in range(count):
        connection = Connection(loop, requests=1)
        places.add_connection(connection, address, connection)
        if greeted:
            places.record_handshake(connection)
        connections.append(connection)
    return connections


def test_one_over_the_share_of_its_address_costs_that_address_a_place(loop: Loop) -> None:
    places = ConnectionSlots(100, 3)
    other = crowd(loop, places, "10.0.0.2", 3)
    connections = crowd(loop, places, "10.0.0.1", 5)
    assert [connection.aborted for connection in connections] == [True, True, False, False, False]
    assert not any(connection.aborted for connection in other)


def test_one_over_all_costs_the_address_that_has_most_a_place(loop: Loop) -> None:
    places = ConnectionSlots(6, 5)
    many = crowd(loop, places, "10.0.0.1", 5)
    few = crowd(loop, places, "10.0.0.2", 3)
    assert [connection.aborted for connection in many] == [True, True, False, False, False]
    assert not any(connection.aborted for connection in few)


def test_an_unfinished_handshake_is_missed_before_who_has_finished_one(loop: Loop) -> None:
    places = ConnectionSlots(100, 3)
    finished = crowd(loop, places, "10.0.0.1", 2)
    unfinished = crowd(loop, places, "10.0.0.1", 3, greeted=False)
    assert not any(connection.aborted for connection in finished)
    assert [connection.aborted for connection in unfinished] == [True, True, False]


def test_who_only_waits_for_a_farewell_is_missed_first(loop: Loop) -> None:
    places = ConnectionSlots(100, 2)
    old, parting = crowd(loop, places, "10.0.0.1", 2)
    places.record_closing(parting)
    crowd(loop, places, "10.0.0.1", 1)
    assert (old.aborted, parting.aborted) == (False, True)


def test_a_newcomer_goes_where_everybody_else_is_being_answered(loop: Loop) -> None:
    places, busy = ConnectionSlots(1, 1), Connection(loop, awaiting=False)
    assert places.add_connection(busy, "10.0.0.1", busy)
    places.record_handshake(busy)
    places.idle_connections(busy).remove_connection(busy)
    newcomer = Connection(loop, requests=1)
    assert not places.add_connection(newcomer, "10.0.0.1", newcomer)
    assert (busy.aborted, newcomer.aborted) == (False, True)
    places.remove_connection(busy)
    assert places.add_connection(newcomer, "10.0.0.1", newcomer)


def test_who_has_left_is_forgotten(loop: Loop) -> None:
    places = ConnectionSlots(4, 2)
    for _ in range(3):
        for connection in crowd(loop, places, "10.0.0.1", 2):
            places.remove_connection(connection)
            places.remove_connection(connection)
            assert not connection.aborted
    places.idle_connections(connection).add_connection(connection)
    assert places.stalled_connections(connection).longest_stalled() is None
