"""What a run of an order does with the answers of an API server, which is played: denials, silence, interruptions."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.compactor.ordered import OrderedDrain
from tests.compactor.test_order_rounds import world
from trimtab.cluster.reason import NotYet
from trimtab.compaction.order.order_round import OrderPhase, OrderRound
from trimtab.compaction.order.record import ORDER_MANAGER
from trimtab.compactor.order.order_reader import OrderView
from trimtab.compactor.order.order_runner import OrderRunner
from trimtab.compactor.order.order_steps import OrderEvent
from trimtab.compactor.reasons import STALE
from trimtab.kube.client import Deadlines
from trimtab.kube.errors import refusal_of_response
from trimtab.kube.objects import Writer

FORBIDDEN = (403, b'{"message": "pods is forbidden: User cannot create resource pods/eviction"}')
ENDING = (403, b'{"message": "unable to create new content in namespace default because it is being terminated"}')
HOOK = (400, b'{"message": "admission webhook hands-off denied the request"}')
NO_HOOK = (500, b'{"message": "failed calling webhook hands-off: connection refused"}')
TWO = (500, b'{"message": "This pod has more than one PodDisruptionBudget"}')


@dataclass
class Scene:
    """An order, its cluster and the API server in front of it."""

    drain: OrderedDrain = field(default_factory=lambda: OrderedDrain.of(world(), "a", "b"))
    denies: Callable[[], tuple[int, bytes] | None] = lambda: None
    headers: str | None = None
    may_evict: bool = True
    is_silent: bool = False
    interrupts_at: int | None = None
    """The number of a PATCH in which the user interrupts the second time."""
    time: float = 0.0
    attempts: list[float] = field(default_factory=list)
    events: list[OrderEvent] = field(default_factory=list)
    patches: int = 0
    deadlines: Deadlines = field(default_factory=Deadlines)

    # ── a client ─────────────────────────────────────────────────────────
    def request(self, method: str, path: str, **_: Any) -> bytes:
        name = path.rpartition("/")[2]
        uids = [uid for uid, pod in self.drain.played.pods.items() if pod["metadata"]["name"] == name]
        if not uids:
            raise refusal_of_response("get", 404, b"")
        return json.dumps({"metadata": {"uid": uids[0]}}).encode()

    def write(self, method: str, path: str, body: Any, *, doing: str, **_: Any) -> bytes:
        if "selfsubjectaccessreviews" in path:
            return json.dumps({"status": {"allowed": self.may_evict}}).encode()
        if path.endswith("/eviction"):
            self.attempts.append(self.time)
            if (denial := self.denies()) is not None:
                raise refusal_of_response(doing, *denial, self.headers)
            [move] = [m for r in self.drain.records().values() if r.drain for m in r.drain.moves if m.pod in doing]
            self.drain.played.evict_pod(move)
            return b"{}"
        self.patches += 1
        item = self.drain.played.nodes[path.rpartition("/")[2]]
        item["metadata"]["annotations"].update(body["metadata"]["annotations"])
        item["spec"].update(body.get("spec", {}))
        self.drain.played._touch(item)
        if self.patches == self.interrupts_at:
            raise KeyboardInterrupt
        return json.dumps({"metadata": item["metadata"]}).encode()

    # ── a reader ─────────────────────────────────────────────────────────
    def now(self) -> int:
        return self.drain.played.now

    def read_view(self, order: str, evicted_uids: frozenset[str] = frozenset()) -> OrderView | NotYet:
        if self.is_silent:
            return NotYet(reason=STALE("no answer"), have="nothing", need="objects")
        return OrderView(self.drain.look(), self.drain.records())

    def wait(self, seconds: float) -> None:
        self.time += 2
        self.drain.played.tick()
        assert self.time < 2000, self.events

    def runner(self, **more: Any) -> OrderRunner:
        return OrderRunner(
            order=self.drain.order,
            reader=self,  # type: ignore[arg-type]
            writer=Writer(client=self, manager=ORDER_MANAGER),  # type: ignore[arg-type]
            timeouts=self.drain.times,
            report=self.events.append,
            wait=self.wait,
            elapsed=lambda: self.time,
            **more,
        )

    def run(self) -> OrderRound:
        return self.runner().run()


def codes(result: OrderRound) -> set[str]:
    return {reason.code.name for reason in result.failures.values()}


def test_an_order_is_carried_out() -> None:
    assert Scene().run().is_done


def test_an_eviction_that_the_login_may_not_make_fails_its_node_at_once() -> None:
    scene = Scene(denies=lambda: FORBIDDEN, may_evict=False)
    result = scene.run()
    assert codes(result) == {"order-eviction-not-permitted"}
    assert len(scene.attempts) <= 2
    assert not result.is_done


@pytest.mark.parametrize("denial", [HOOK, NO_HOOK, ENDING])
def test_a_denial_that_does_not_end_fails_its_node_after_the_time_for_pods(denial: tuple[int, bytes]) -> None:
    scene = Scene(denies=lambda: denial)
    result = scene.run()
    assert codes(result) == {"order-eviction-denied"}
    assert scene.drain.times.end < scene.time < 2 * scene.drain.times.end


@pytest.mark.parametrize("denial", [HOOK, NO_HOOK])
def test_a_denial_that_ends_is_waited_for(denial: tuple[int, bytes]) -> None:
    scene = Scene()
    scene.denies = lambda: denial if scene.time < 30 else None
    assert scene.run().is_done


def test_attempts_keep_a_distance_whatever_the_answer_is() -> None:
    scene = Scene(denies=lambda: NO_HOOK)
    scene.run()
    assert len(scene.attempts) <= 2 * (scene.time / 5 + 1)


def test_two_budgets_that_only_the_server_knows_fail_the_node_at_once() -> None:
    scene = Scene(denies=lambda: TWO)
    assert codes(scene.run()) == {"order-eviction-denied"}
    assert len(scene.attempts) <= 2


@pytest.mark.parametrize("seconds", [None, "1", "0", "36000"])
def test_too_many_requests_are_tried_again_within_a_minute(seconds: str | None) -> None:
    scene = Scene(headers=seconds)
    scene.denies = lambda: (429, b'{"message": "no room"}') if scene.time < 100 else None
    assert scene.run().is_done
    assert scene.time < 400
    assert any(event.what == "refused" for event in scene.events)


def test_an_order_whose_cluster_is_silent_is_never_done() -> None:
    scene = Scene(is_silent=True)
    result = scene.runner(is_stopping=lambda: True).run()
    assert not result.is_done
    assert result.phases == {"a": OrderPhase.WAITING, "b": OrderPhase.WAITING}


def test_the_timeout_counts_while_the_cluster_is_silent() -> None:
    drain = OrderedDrain.of(world(), "a", "b", deadline=world().now + 60)
    result = Scene(drain, is_silent=True).run()
    assert not result.is_done


def test_an_interrupt_between_two_cordons_names_the_first() -> None:
    scene = Scene(interrupts_at=1)
    runner = scene.runner()
    with pytest.raises(KeyboardInterrupt):
        runner.run()
    assert list(runner.cordoned) == scene.drain.played.cordoned == ["a"]
