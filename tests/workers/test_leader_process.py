"""One replica from its start to its end, whatever the work does. The clock goes on when somebody waits."""

from __future__ import annotations

import io
import json
import threading
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, Gauge

from trimtab.kube.errors import NotLeading
from trimtab.runtime import log
from trimtab.runtime.files import CannotServe
from trimtab.runtime.graceful_shutdown import GracefulShutdown
from trimtab.runtime.http_pages import Page
from trimtab.runtime.settings import ListenAddress
from trimtab.workers.leader_process import LeaderProcess, LeaderProcessSettings
from trimtab.workers.worker import run_replica


@dataclass
class Votes:
    """An election that is won and lost when the test says so."""

    won: bool = True
    last_error: str = ""
    happened: list[str] = field(default_factory=list)

    @property
    def is_leading(self) -> bool:
        return self.won

    def check_leading(self, doing: str) -> None:
        if not self.won:
            raise NotLeading(doing)

    def run(self, stop: threading.Event) -> None:
        self.happened.append("stands")
        assert stop.wait(60)
        self.happened.append("lease let go")


class Time(GracefulShutdown):
    """Waiting makes it later, and takes no time."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 100.0
        self.at: dict[float, Callable[[], None]] = {}

    def wait_for_stop(self, seconds: float) -> bool:
        self.now += seconds
        for moment in [moment for moment in self.at if moment <= self.now]:
            self.at.pop(moment)()
        return self.is_requested


@dataclass
class World:
    settings: LeaderProcessSettings = field(
        default_factory=lambda: LeaderProcessSettings(listen=ListenAddress("127.0.0.1", 0))
    )
    votes: Votes = field(default_factory=Votes)
    time: Time = field(default_factory=Time)
    said: io.StringIO = field(default_factory=io.StringIO)

    def replica(self) -> LeaderProcess:
        return LeaderProcess(
            name="tester",
            settings=self.settings,
            log=log.build_logger("info", "json", self.said),
            client=None,  # type: ignore[arg-type]
            election=self.votes,
            identity="me",
            max_silence_seconds=60.0,
            shutdown=self.time,
            elapsed=lambda: self.time.now,
        )

    def lines(self) -> list[str]:
        return [json.loads(line)["event"].removeprefix("tester.") for line in self.said.getvalue().splitlines()]

    def lived(self, lead: Callable[[LeaderProcess], object]) -> None:
        """One whole life that stops once the lead returns, unless it raises."""
        replica = self.replica()

        def once() -> None:
            lead(replica)
            replica.shutdown.request_stop()

        with replica.serve_and_elect(CollectorRegistry()):
            replica.lead_until_stopped(once)


def raising(error: BaseException) -> Callable[[LeaderProcess], object]:
    def lead(_: LeaderProcess) -> None:
        raise error

    return lead


@pytest.mark.parametrize(
    ("lead", "raised"),
    [
        (lambda _: None, None),
        (raising(RuntimeError("a bug")), RuntimeError),
        (raising(NotLeading("not any more")), NotLeading),
        (raising(KeyboardInterrupt()), KeyboardInterrupt),
        (raising(SystemExit(3)), SystemExit),
    ],
)
def test_however_the_work_ends_the_lease_is_let_go(
    lead: Callable[[LeaderProcess], object], raised: type[BaseException] | None
) -> None:
    world = World()
    if raised is None:
        world.lived(lead)
    else:
        with pytest.raises(raised):
            world.lived(lead)
    assert world.votes.happened == ["stands", "lease let go"]
    assert world.lines() == ["ready", "leads", "leads-no-more", "ended"]


def test_a_taken_address_or_an_unwritable_ready_file_ends_it_before_it_stands(tmp_path: Path) -> None:
    world = World()
    with world.replica().serve_and_elect(CollectorRegistry()):
        port = int(url_of(world).rpartition(":")[2])
        cluster_world = World(settings=LeaderProcessSettings(listen=ListenAddress("127.0.0.1", port)))
        with pytest.raises(CannotServe):
            cluster_world.lived(lambda _: None)
    nowhere = World(
        settings=LeaderProcessSettings(listen=ListenAddress("127.0.0.1", 0), ready_file=tmp_path / "no" / "file")
    )
    with pytest.raises(FileNotFoundError):
        nowhere.lived(lambda _: None)
    assert (cluster_world.votes.happened, nowhere.votes.happened) == ([], [])


def test_who_does_not_lead_waits_and_leads_when_it_may() -> None:
    world = World(votes=Votes(won=False))
    world.time.at[130.0] = lambda: setattr(world.votes, "won", True)
    led: list[float] = []
    world.lived(lambda _: led.append(world.time.now))
    assert led == [pytest.approx(130, abs=0.5)]


@pytest.mark.parametrize("ends", ["lost", "asked to stop"])
def test_nobody_sleeps_longer_than_the_work_may_go_on(ends: str) -> None:
    world = World()
    replica = world.replica()
    world.time.at[110.0] = (
        replica.shutdown.request_stop if ends == "asked to stop" else lambda: setattr(world.votes, "won", False)
    )
    replica.wait_while_leading(3600)
    assert world.time.now == pytest.approx(110, abs=1)


def test_a_wait_is_as_long_as_it_says() -> None:
    world = World()
    world.replica().wait_while_leading(3.5)
    assert world.time.now == pytest.approx(103.5)


def test_a_turn_is_waited_for_as_long_as_a_dead_leader_keeps_the_lease() -> None:
    world = World(votes=Votes(won=False, last_error="who knows"))
    assert not world.replica().wait_for_leadership()
    assert world.time.now - 100 == pytest.approx(30 + 2 * 3 + 2 * 10, abs=0.5)
    assert world.lines() == ["not-our-turn"]
    world.votes.won = True
    assert world.replica().wait_for_leadership()


def test_writes_are_fenced_by_the_election_and_carry_the_processs_name() -> None:
    world = World(votes=Votes(won=False))
    writer = world.replica().fenced_writer
    with pytest.raises(NotLeading):
        writer.fence("evict")
    assert writer.manager == "trimtab-tester"


def test_pages_tell_how_it_is() -> None:
    world, registry = World(), CollectorRegistry()
    Gauge("weight", "Of nothing.", registry=registry).set(7)
    replica = world.replica()
    with replica.serve_and_elect(registry, {"/more": lambda: (200, "text/plain", b"more")}):
        url = url_of(world)
        assert (page(url, "/healthz"), page(url, "/readyz"), page(url, "/more")) == (
            (200, "ok\n"),
            (200, "ok\n"),
            (200, "more"),
        )
        assert "weight 7.0" in page(url, "/metrics")[1]
        world.time.now += 61
        assert page(url, "/healthz")[0] == 500, "nothing was heard of it for longer than it may hang"
        replica.may_continue()
        assert page(url, "/healthz")[0] == 200
        replica.shutdown.request_stop()
        assert page(url, "/readyz") == (503, "stopping\n")


def url_of(world: World) -> str:
    document: dict[str, Any] = json.loads(world.said.getvalue().splitlines()[0])
    return str(document["url"])


def page(url: str, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(url + path, timeout=30) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def test_an_attempt_is_repeated_until_it_succeeds_or_the_turn_is_over() -> None:
    world = World()
    attempts = iter([False, False, True])
    assert world.replica().retry_while_leading(lambda: next(attempts), 3)
    assert world.time.now == pytest.approx(106)
    world.time.at[120.0] = lambda: setattr(world.votes, "won", False)
    assert not world.replica().retry_while_leading(lambda: False, 3)
    assert world.time.now == pytest.approx(121, abs=2)


def test_rounds_follow_each_other_until_they_are_over_or_the_turn_is() -> None:
    world, rounds = World(), list[float]()

    def run_round() -> float:
        rounds.append(world.time.now)
        return 5

    world.replica().run_rounds(run_round, lambda: len(rounds) == 3)
    assert rounds == [pytest.approx(100), pytest.approx(105), pytest.approx(110)]
    world.votes.won = False
    world.replica().run_rounds(run_round)
    assert len(rounds) == 3


@dataclass
class Work:
    """A worker whose turn ends at once."""

    replica: LeaderProcess
    succeeds: bool = True
    registry: CollectorRegistry = field(default_factory=CollectorRegistry)
    turns: int = 0

    @property
    def pages(self) -> dict[str, Page]:
        return {"/turns": lambda: (200, "text/plain", str(self.turns).encode())}

    def lead(self) -> bool:
        self.turns += 1
        self.replica.shutdown.request_stop()
        return self.succeeds


@pytest.mark.parametrize("once", [True, False])
@pytest.mark.parametrize("succeeds", [True, False])
def test_a_worker_leads_and_only_a_single_round_can_fail(once: bool, succeeds: bool) -> None:
    world = World()
    work = Work(world.replica(), succeeds)
    assert run_replica(work.replica, work, once=once) is (succeeds or not once)
    assert work.turns == 1
    assert world.lines() == ["ready", "leads", "leads-no-more", "ended"]
    assert world.votes.happened == ["stands", "lease let go"]
