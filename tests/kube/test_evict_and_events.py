"""What becomes of an eviction and of an Event when something happens in between?"""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest

from trimtab.compaction.drain.annotation import PodToEvict
from trimtab.compactor.actuator import EvictionResult
from trimtab.compactor.kube_actuator import KubeActuator
from trimtab.kube.client import Deadlines
from trimtab.kube.errors import ApiStatus, Conflict, NotFound, refusal_of_response
from trimtab.kube.events import About, Recorder
from trimtab.kube.evict import EvictionStatus, evict
from trimtab.kube.objects import Writer


class Answers:
    """A client to whom the API server says what is played."""

    def __init__(self, uids: list[str], refusals: list[type[Exception] | Exception | None]) -> None:
        self.deadlines = Deadlines()
        self.uids, self.refusals = uids, refusals
        self.written: list[str] = []
        self.bodies: list[Any] = []

    def request(self, method: str, path: str, *, deadline: float, doing: str) -> bytes:
        if not (uid := self.uids.pop(0)):
            raise NotFound(doing, 404, ApiStatus())
        return json.dumps({"metadata": {"uid": uid}}).encode()

    def write(self, method: str, path: str, body: Any, *, doing: str, **_: Any) -> bytes:
        self.written.append(method)
        self.bodies.append(body)
        refusal = self.refusals.pop(0) if self.refusals else None
        if isinstance(refusal, Exception):
            raise refusal
        if refusal is Conflict:
            raise Conflict(doing, 409, ApiStatus(message="the object has been modified"))
        if refusal is NotFound:
            raise NotFound(doing, 404, ApiStatus())
        return b"{}"


@pytest.mark.parametrize(
    ("after", "became", "done"),
    [("u1", EvictionStatus.WAIT, False), ("u2", EvictionStatus.ANOTHER, True), ("", EvictionStatus.GONE, True)],
)
def test_a_conflict_is_another_pod_only_where_another_pod_is_there(
    after: str, became: EvictionStatus, done: bool
) -> None:
    writer = Writer(client=Answers(["u1", after], [Conflict]))  # type: ignore[arg-type]
    result = evict(writer, "shop", "web", "u1")
    assert (result.eviction_status, result.is_done) == (became, done)


@pytest.mark.parametrize("status", [400, 403, 422])
def test_who_denies_this_eviction_says_nothing_of_others(status: int) -> None:
    """A webhook's no, or a namespace that is being deleted: an answer about one pod, and not trouble at the door."""
    request_refused = refusal_of_response("evict Pod shop/web", status, b'{"message": "denied the request: hands off"}')
    result = evict(Writer(client=Answers(["u1"], [request_refused])), "shop", "web", "u1")  # type: ignore[arg-type]
    assert (result.eviction_status, result.is_done, result.message) == (
        EvictionStatus.DENIED,
        False,
        "denied the request: hands off",
    )


def test_a_dry_run_is_the_same_request_that_changes_nothing() -> None:
    client = Answers(["u1", "u1"], [])
    actuator = KubeActuator(Writer(client=client), None, None)  # type: ignore[arg-type]
    move = PodToEvict(pod="shop/web", uid="u1")
    assert [actuator.try_eviction(move).became, actuator.evict_pod(move).became] == [EvictionResult.EVICTED] * 2
    options = {"preconditions": {"uid": "u1"}}
    assert [body["deleteOptions"] for body in client.bodies] == [{**options, "dryRun": ["All"]}, options]


def test_an_event_the_server_has_forgotten_is_told_anew() -> None:
    """What happens once in two hours is heard of each time."""
    client, time = Answers([], [None, NotFound, None, NotFound, None]), [0.0]
    recorder = Recorder(writer=Writer(client=client), controller="c", instance="i", elapsed=lambda: time[0])  # type: ignore[arg-type]
    record_events = []
    for _ in range(3):
        record_events.append(recorder.record_event(About(kind="Node", name="n"), "Kept", "note", action="Plan"))
        time[0] += 7200
    assert record_events == [True, True, True]
    assert client.written == ["POST", "PATCH", "POST", "PATCH", "POST"]
    assert recorder.lost_events == 0


def test_what_many_threads_tell_is_one_event_that_counts_them_all() -> None:
    client = Answers([], [])
    recorder = Recorder(writer=Writer(client=client), controller="c", instance="i", quiet_seconds=1e9)  # type: ignore[arg-type]
    together = threading.Barrier(8)

    def tell() -> None:
        together.wait()
        for _ in range(50):
            recorder.record_event(About(kind="Node", name="n"), "Kept", "note", action="Plan")

    threads = [threading.Thread(target=tell) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert client.written == ["POST", "PATCH"]
    [series] = recorder._series_by_name.entries()
    assert series.count == 400
