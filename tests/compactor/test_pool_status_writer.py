"""Pools as `kubectl get` shows them: written when they change, never read for a decision."""

import json
from io import StringIO
from typing import Any

from tests.cluster_of import NOW
from tests.compactor.five import five
from tests.compactor.played import Played, process, run
from trimtab.cluster.timestamps import format_timestamp
from trimtab.compactor.loop import Loop
from trimtab.compactor.pool_status_writer import HEARTBEAT_SECONDS, PoolStatusWriter, object_name
from trimtab.kube.errors import KubeFault, Unreachable, refusal_of_response
from trimtab.kube.objects import Writer
from trimtab.runtime import log


class Stored:
    """PoolStatuses as an API server stores them; every write is written down."""

    def __init__(self, error: KubeFault | None = None) -> None:
        self.items: dict[str, Any] = {}
        self.writes: list[str] = []
        self.error = error

    def get(self, path: str, *_: object, **__: object) -> bytes:
        if self.error is not None:
            raise self.error
        return json.dumps({"metadata": {}, "items": list(self.items.values())}).encode()

    def write(self, method: str, path: str, body: dict[str, Any], **_: object) -> bytes:
        name = path.rpartition("/")[2]
        self.writes.append(f"{method} {name}")
        if method == "DELETE":
            del self.items[name]
        else:
            self.items[name] = body
        return b'{"metadata": {}}'


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def led(played: Played | None = None) -> Loop:
    loop = process(played or five())
    loop.run_round()
    return loop


def writer(stored: Stored, clock: Clock, text: StringIO | None = None) -> PoolStatusWriter:
    logger = log.build_logger("info", "json", text or StringIO())
    return PoolStatusWriter(Writer(client=stored), "ours", logger, clock)  # type: ignore[arg-type]


def test_a_pool_is_written_once_and_again_when_it_changes() -> None:
    stored, clock, played = Stored(), Clock(), five()
    loop = led(played)
    statuses = writer(stored, clock)
    for clock.now in (0, 5, 20, 40):
        statuses.update(loop)
    assert stored.writes == ["PATCH all"]
    assert stored.items["all"]["status"]["mode"] == "act"
    assert stored.items["all"]["status"]["updated"] == format_timestamp(NOW)
    run(played, 5, loop)
    clock.now = 60
    statuses.update(loop)
    assert stored.writes == ["PATCH all"] * 2
    assert stored.items["all"]["status"]["draining"] > 0


def test_an_unchanged_status_is_written_again_so_that_its_age_says_that_a_compactor_works() -> None:
    stored, clock, loop = Stored(), Clock(), led()
    statuses = writer(stored, clock)
    statuses.update(loop)
    stored.items["all"]["status"]["updated"] = format_timestamp(NOW - HEARTBEAT_SECONDS)
    clock.now = 20
    statuses.update(loop)
    assert stored.writes == ["PATCH all"] * 2


def test_what_somebody_else_wrote_is_replaced_and_changes_no_decision() -> None:
    stored, clock, loop = Stored(), Clock(), led()
    statuses = writer(stored, clock)
    statuses.update(loop)
    before = dict(loop.pool_states.states)
    stored.items["all"] = {"metadata": {"name": "all"}, "pool": "all", "status": {"mode": "off", "next": "everything"}}
    stored.items["invented"] = {"metadata": {"name": "invented"}, "pool": 7, "status": [{"mode": {}}]}
    clock.now = 20
    statuses.update(loop)
    assert stored.writes[1:] == ["DELETE invented", "PATCH all"]
    assert stored.items["all"]["status"]["mode"] == "act"
    assert loop.pool_states.states == before


def test_a_date_in_the_future_does_not_keep_a_forged_status() -> None:
    stored, clock, loop = Stored(), Clock(), led()
    statuses = writer(stored, clock)
    statuses.update(loop)
    stored.items["all"]["status"]["updated"] = "2999-01-01T00:00:00Z"
    clock.now = 20
    statuses.update(loop)
    assert stored.items["all"]["status"]["updated"] == format_timestamp(NOW)


def test_the_status_of_a_pool_that_is_gone_is_deleted() -> None:
    stored, clock, played = Stored(), Clock(), five()
    loop = led(played)
    statuses = writer(stored, clock)
    statuses.update(loop)
    played.pools = ()
    loop.run_round()
    clock.now = 20
    statuses.update(loop)
    assert stored.items == {}


def test_without_the_definition_or_the_right_the_compactor_works_on_and_says_so_once() -> None:
    missing = refusal_of_response("list poolstatuses", 404, b"{}")
    for error, words in ((missing, "not installed"), (Unreachable("no answer"), "no answer")):
        text, clock, loop = StringIO(), Clock(), led()
        statuses = writer(Stored(error), clock, text)
        for clock.now in (0, 20, 40):
            statuses.update(loop)
        [line] = text.getvalue().splitlines()
        assert words in line
        assert loop.error_guard.error_count == 0


def test_a_pool_whose_name_no_object_may_have_gets_a_similar_one() -> None:
    assert object_name("web") == "web"
    assert object_name("Web_A").startswith("web-a-")
