"""One write that is refused each time, by a webhook or for a right that is missing, is that write's trouble alone."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import pytest

from tests.compactor.five import begun, five
from tests.compactor.played import ACT, Played, process, run
from trimtab.compaction.drain.annotation import PodToEvict
from trimtab.compactor.actuator import ActuatorForbidden, ActuatorUnavailable, EvictionResponse
from trimtab.compactor.kube_actuator import KubeActuator
from trimtab.compactor.loop import Loop
from trimtab.kube.errors import refusal_of_response
from trimtab.kube.objects import Writer


def two() -> tuple[Played, Loop, str, str]:
    """Two drains under way, of pods that end slowly; the older one first."""
    played = Played(ends_after=20).with_nodes("n1", "n2").with_nodes("n3", cpu="16")
    played.with_app("one", "n1").with_app("web", "n2", "n3", "n3", "n3", "n3", allowed=1)
    played.with_app("big", "n3", "n3", cpu="2")
    played.pools = (replace(ACT, single_replicas=True),)
    loop, _ = begun(played)
    return played, loop, "n1", "n2"


def test_a_second_replica_that_cannot_be_taken_back_keeps_no_node_closed() -> None:
    played, loop, node, other = two()
    assert played.cordoned == [node, other]
    while played.wanted["one"] == 1:
        loop.run_round()
        played.tick()
    played.denied = ("scale",)
    played.paused = "so that all is given back"
    run(played, 3, loop)
    assert played.cordoned == []
    played.denied = ()
    run(played, 60, loop)
    assert played.wanted["one"] == 1


def test_an_eviction_that_is_refused_holds_up_no_other_drain() -> None:
    played, loop, _, other = two()
    played.denied = ("evict default/one", "scale")
    run(played, 40, loop)
    assert played.on(other) == []
    assert "default/web-0" in played.writes[-1:] or played.told("emptied")


def test_a_process_that_stops_gives_back_what_it_may() -> None:
    played, loop, node, other = two()
    played.denied = (f"release {node}",)
    loop.shut_down()
    assert played.cordoned == [node]
    assert other not in played.noted


def test_a_node_that_may_not_be_cordoned_keeps_no_other_from_being_emptied() -> None:
    played = five()
    played.pools = (replace(ACT, drains=1),)
    first = process(played)
    first.run_round()
    assert first.planner.pending_steps is not None
    [step] = first.planner.pending_steps.steps
    played.denied = (f"cordon {step.node}",)
    run(played, 40, process(played))
    assert played.told("emptied"), "another one"


@pytest.mark.parametrize(
    ("status", "alone"),
    [(400, True), (403, True), (422, True), (500, True), (401, False), (429, False), (503, False), (504, False)],
)
def test_a_no_to_one_write_is_told_from_a_server_that_has_no_time(status: int, alone: bool) -> None:
    with pytest.raises(ActuatorUnavailable) as result:
        KubeActuator(Refusing(client=None, status=status), None, None).release_node("n1", "7", uncordon=True)  # type: ignore[arg-type]
    assert isinstance(result.value, ActuatorForbidden) is alone


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusing(Writer):
    """Every write is answered so."""

    status: int

    def write(self, method: str, path: str, body: Mapping[str, Any], **more: Any) -> bytes:
        raise refusal_of_response(more["doing"], self.status, b"")


def test_where_each_write_takes_long_no_pod_is_evicted_on_an_old_look() -> None:
    """Else a person's pause waits until all of them have gone."""
    played = Played(ends_after=20).with_nodes("n1").with_nodes("n2", cpu="16")
    for app in ("a", "b", "c", "d", "e"):
        played.with_app(app, "n1", "n2", "n2")
    played.with_app("big", "n2", "n2", cpu="2")
    loop, _ = begun(played)
    clock = [0.0]
    loop.elapsed = loop.drainer.steps.elapsed = lambda: clock[0]
    evict = played.evict_pod

    def slowly(move: PodToEvict) -> EvictionResponse:
        clock[0] += 10
        return evict(move)

    played.evict_pod = slowly  # type: ignore[method-assign]
    loop.run_round()
    assert len([write for write in played.writes if write.startswith("evict")]) == 2
