"""Resizes carried out on a played cluster, with kubelets that answer, refuse and fail, and a process that dies."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from tests.cluster_of import cluster, node, pod
from tests.compaction.resize.running import api_pod, oom_killed, pending, wants
from tests.compactor.played import ACT, Killed
from trimtab.cluster.pool import Pool
from trimtab.cluster.reason import Reason, Unreadable
from trimtab.cluster.resizable_pod import ResizablePod, ResizablePodReader
from trimtab.cluster.timestamps import WeeklyWindow
from trimtab.cluster.wanted_requests import WantedRequests
from trimtab.compaction.drain import pool_state as memories
from trimtab.compaction.drain.annotation import PodToEvict
from trimtab.compaction.drain.cluster_view import ClusterView
from trimtab.compaction.drain.pool_state import HistoryEntry, PoolState
from trimtab.compaction.resize import reasons as r
from trimtab.compaction.resize.types import NOT_MEASURED, MeasuredUse, ResizeChange, ResizeSettings
from trimtab.compactor.actuator import ActuatorUnavailable, DryRunActuator, EvictionResponse, EvictionResult
from trimtab.compactor.error_guard import ErrorGuard
from trimtab.compactor.pool_state_store import PoolStates
from trimtab.compactor.resizer import Resizer
from trimtab.compactor.step_runner import StepRunner
from trimtab.kube.resize import ResizeOutcome, ResizeStatus
from trimtab.runtime import log
from trimtab.runtime.graceful_shutdown import GracefulShutdown

SETTINGS = ResizeSettings(
    canary_percent=50, verify_seconds=60, answer_seconds=30, deferred_seconds=40, min_pod_seconds=0, unready_seconds=20
)
START = 1_800_000_000


def replace_settings(**changes: int) -> ResizeSettings:
    return replace(SETTINGS, **changes)


CLOSED = WeeklyWindow(start=22 * 60, end=5 * 60)
"""It is 8 o'clock at the start."""


@dataclass
class Pod:
    cpu: int
    has: int = 0
    version: int = 1
    answer: str = ""
    """What the kubelet says next to a change: Deferred, Infeasible, silent; empty: it makes it."""
    killed_at: int = 0
    restarts: int = 0
    node: str = "a"
    is_ready: bool = True

    def __post_init__(self) -> None:
        self.has = self.has or self.cpu


@dataclass
class World(DryRunActuator):
    """Nodes, pods, kubelets, and the API server that a resizer writes to."""

    pods: dict[str, Pod]
    nodes: dict[str, int] = field(default_factory=lambda: {"a": 4000})
    pools: tuple[Pool, ...] = (replace(ACT, single_replicas=True),)
    target: int = 200
    namespaces: dict[str, str] = field(default_factory=dict)
    """Workload → the namespace of its topmost owner, where it is not `default`."""
    now: int = START
    paused: str = ""
    obstacle: Reason | None = None
    stored: dict[str, PoolState] = field(default_factory=dict)
    writes: list[str] = field(default_factory=list)
    records: list[HistoryEntry] = field(default_factory=list)
    dies_at: int | None = None
    down: bool = False
    outcome: ResizeStatus = ResizeStatus.RESIZED

    # ── what is read ─────────────────────────────────────────────────────
    def wanted_lookup(self) -> Any:
        return lambda result: wants(cpu=self.target) if self.target else WantedRequests()

    def top_owner_of(self, resizable_pod: ResizablePod) -> str:
        workload = resizable_pod.name.partition("-")[0]
        return f"{self.namespaces.get(workload, 'default')}/Deployment/{workload}"

    def read_pods(self) -> dict[str, ResizablePod]:
        reader, results = ResizablePodReader(), {}
        for name, one in self.pods.items():
            condition = (
                (pending(one.answer),) if one.answer in ("Deferred", "Infeasible") and one.cpu != one.has else ()
            )
            shape = api_pod(
                name,
                f"{one.cpu}m",
                "",
                node=one.node,
                version=str(one.version),
                has={"cpu": f"{one.has}m"},
                conditions=condition,
                restarts=one.restarts,
                started=START - 7200,
                ready_changed=START - 7200,
                ready=one.is_ready,
                owner=f"{name.partition('-')[0]}-5d4",
                last_state=oom_killed(one.killed_at) if one.killed_at else {},
            )
            results[shape.metadata.uid] = reader.read_pod(shape)
        return results

    def find_obstacle(self) -> Reason | None:
        return self.obstacle

    def note_missing_permission(self, message: str) -> Reason:
        self.obstacle = r.REJECTED(message)
        return self.obstacle

    def measure_use(self, pods: Any, nodes: Any) -> MeasuredUse:
        return NOT_MEASURED

    def stop(self) -> None:
        pass

    # ── what is written ──────────────────────────────────────────────────
    def _write(self, text: str) -> None:
        if self.down:
            raise ActuatorUnavailable(f"{text}: the API server is down")
        self.writes.append(text)
        if self.dies_at is not None and len(self.writes) >= self.dies_at:
            raise Killed

    def load_states(self) -> dict[str, PoolState | Unreadable]:
        return {
            name: memories.decode_state(name, {memories.STATE_KEY: memories.encode_state(state)})
            for name, state in self.stored.items()
        }

    def save_state(self, pool: str, memory: PoolState, *, final: bool) -> None:
        if self.down:
            raise ActuatorUnavailable("the API server is down")
        self.stored[pool] = memory
        self._write("save")

    def resize_pod(self, resizable_pod: ResizablePod, version: str, changes: Sequence[ResizeChange]) -> ResizeOutcome:
        if self.down:
            raise ActuatorUnavailable("the API server is down")
        one = self.pods[resizable_pod.name]
        if str(one.version) != version:
            return ResizeOutcome(ResizeStatus.CHANGED)
        if self.outcome is not ResizeStatus.RESIZED:
            return ResizeOutcome(self.outcome, "no")
        one.cpu, one.version = changes[0].amount_after, one.version + 1
        self._write(f"{resizable_pod.name} {changes[0].after}")
        return ResizeOutcome(ResizeStatus.RESIZED)

    def evict_pod(self, move: PodToEvict) -> EvictionResponse:
        self.pods.pop(move.pod.partition("/")[2])
        self._write(f"evict {move.pod}")
        return EvictionResponse(became=EvictionResult.EVICTED)

    # ── time ─────────────────────────────────────────────────────────────
    def tick(self, seconds: int = 5) -> None:
        self.now += seconds
        for one in self.pods.values():
            if one.cpu == one.has or one.answer:
                continue
            others = sum(other.has for other in self.pods.values() if other.node == one.node and other is not one)
            if one.cpu + others <= self.nodes[one.node]:
                one.has, one.version = one.cpu, one.version + 1

    def view(self) -> ClusterView:
        items = [node(name, f"{cpu}m") for name, cpu in self.nodes.items()]
        items += [
            pod(name, one.node, f"{max(one.cpu, one.has)}m", app=name.partition("-")[0])
            for name, one in self.pods.items()
        ]
        return ClusterView(now=self.now, inventory=cluster(*items), pools=self.pools, paused=self.paused)

    def told(self, what: str) -> list[str]:
        return [record.code for record in self.records if record.what == what]


def process(world: World, settings: ResizeSettings = SETTINGS) -> Resizer:
    states = PoolStates(world, (world.records.append,))
    states.load_states(world.now)
    return Resizer(
        world,
        world.resize_pod,
        world,
        states,
        lambda pool: settings,
        StepRunner(ErrorGuard(log.build_logger("error")), GracefulShutdown()),
        interval=0,
    )


def run(world: World, rounds: int, resizer: Resizer | None = None) -> Resizer:
    resizer = resizer or process(world)
    for _ in range(rounds):
        one_round(world, resizer)
        world.tick()
    return resizer


def one_round(world: World, resizer: Resizer, *leaving: str) -> None:
    try:
        resizer.run_round(resizer.hold(world.view()), frozenset(leaving), float(world.now))
        resizer.pool_states.save_states()
    except ActuatorUnavailable:
        pass


def replicas(count: int = 4, cpu: int = 500, **more: Any) -> dict[str, Pod]:
    return {f"web-{number}": Pod(cpu, **more) for number in range(1, count + 1)}


def sizes(world: World) -> list[int]:
    return [one.cpu for one in world.pods.values()]


def test_a_workload_is_resized_in_waves_that_are_verified() -> None:
    world = World(replicas())
    resizer = run(world, 3)
    assert sizes(world) == [200, 200, 500, 500]
    run(world, 40, resizer)
    assert sizes(world) == [200] * 4
    records = world.stored["all"].resizes
    assert (records.open, records.verified, records.freed) == ({}, 4, {"cpu": 1200})
    assert world.told("resized") == ["resize-shrinks"] * 4
    history = [entry.what for entry in world.stored["all"].ring]
    assert history == ["resized", "resize-verified", "resized", "resize-verified"], "one entry stands for a wave"


def test_what_was_there_before_is_saved_before_the_write() -> None:
    world = World(replicas(1), dies_at=1)
    with pytest.raises(Killed):
        run(world, 1)
    assert sizes(world) == [500]
    (record,) = world.stored["all"].resizes.open.values()
    assert [str(change) for change in record.changes] == ["app cpu 500m → 200m"]


def test_pods_in_verification_count_with_what_they_had() -> None:
    world = World(replicas(1))
    resizer = run(world, 4)
    (pod,) = resizer.hold(world.view()).inventory.pods
    assert pod.requirements.requests == {"cpu": 500}
    run(world, 20, resizer)
    (free,) = resizer.hold(world.view()).inventory.pods
    assert free.requirements.requests == {"cpu": 200}


def test_a_pod_that_runs_out_of_memory_is_reverted_and_its_workload_backs_off() -> None:
    world = World(replicas())
    resizer = run(world, 3)
    world.pods["web-1"].killed_at, world.pods["web-1"].restarts = world.now, 1
    run(world, 3, resizer)
    assert sizes(world) == [500] * 4
    assert world.told("resize-reverted") == ["resize-oom-kill", "resize-reverted-with-others"]
    run(world, 60, resizer)
    assert sizes(world) == [500] * 4
    records = world.stored["all"].resizes
    assert (records.reverted, list(records.failures)) == (2, ["default/Deployment/web"])
    assert records.refusals == {"resize-backs-off": 4}


@pytest.mark.parametrize(
    ("answer", "code"),
    [("Infeasible", "resize-infeasible"), ("Deferred", "resize-deferred"), ("silent", "resize-not-answered")],
)
def test_a_kubelet_that_does_not_resize_is_not_waited_for(answer: str, code: str) -> None:
    world = World(replicas(1, answer=answer))
    run(world, 15)
    world.pods["web-1"].answer = ""
    assert world.told("resize-reverted") == [code]
    assert sizes(world) == [500]


def test_a_revert_without_room_replaces_the_pod_within_its_budget() -> None:
    world = World({**replicas(1), "other-1": Pod(200)}, nodes={"a": 1000, "b": 4000})
    resizer = run(world, 3)
    world.pods["new-1"] = Pod(600)
    world.pods["web-1"].killed_at, world.pods["web-1"].restarts = world.now, 1
    one_round(world, resizer)
    assert world.told("resize-stopped") == ["resize-revert-without-room"]
    run(world, 3, resizer)
    assert "evict default/web-1" in world.writes
    assert world.stored["all"].resizes.replaced == 1
    assert world.stored["all"].resizes.stopped_at is not None


def test_a_pod_that_may_not_be_evicted_stays_and_is_reverted_when_there_is_room() -> None:
    world = World(replicas(1), nodes={"a": 1000}, pools=(replace(ACT, single_replicas=False),))
    resizer = run(world, 3)
    world.pods["new-1"] = Pod(700)
    world.pods["web-1"].killed_at, world.pods["web-1"].restarts = world.now, 1
    run(world, 5, resizer)
    assert world.pods["web-1"].cpu == 200
    del world.pods["new-1"]
    run(world, 5, resizer)
    assert world.pods["web-1"].cpu == 500
    assert not world.stored["all"].resizes.open


@pytest.mark.parametrize(
    "change",
    [
        {"paused": "the namespace says so"},
        {"pools": (replace(ACT, dry_run=True),)},
        {"pools": (replace(ACT, enabled=False),)},
        {"obstacle": r.NOT_SUPPORTED("the API server runs Kubernetes 1.32")},
        {"target": 0},
    ],
)
def test_nothing_is_resized_where_nothing_may_be(change: dict[str, Any]) -> None:
    world = World(replicas())
    for name, value in change.items():
        setattr(world, name, value)
    run(world, 10)
    assert sizes(world) == [500] * 4
    assert not [write for write in world.writes if write != "save"]


def test_a_node_that_leaves_after_the_search_keeps_its_pods_as_they_are() -> None:
    world = World({"web-1": Pod(500), "web-2": Pod(500, node="b")}, nodes={"a": 4000, "b": 4000})
    resizer = process(world)
    resizer.interval = 3600
    one_round(world, resizer)
    for _ in range(30):
        world.tick()
        one_round(world, resizer, "b")
    assert sizes(world) == [200, 500]
    world.tick()
    one_round(world, resizer)
    assert sizes(world) == [200, 200]


def test_a_pod_that_stops_being_ready_after_the_search_is_not_resized() -> None:
    world = World(replicas(2))
    resizer = process(world)
    resizer.interval = 3600
    one_round(world, resizer)
    world.pods["web-2"].is_ready = False
    for _ in range(30):
        world.tick()
        one_round(world, resizer)
    assert sizes(world) == [200, 500]


def test_a_pod_is_evicted_for_its_revert_only_in_a_window_of_its_pool() -> None:
    world = World({**replicas(1), "other-1": Pod(200)}, nodes={"a": 1000, "b": 4000})
    resizer = run(world, 3)
    (acting,) = world.pools
    world.pools = (replace(acting, windows=(CLOSED,)),)
    world.pods["new-1"] = Pod(600)
    world.pods["web-1"].killed_at, world.pods["web-1"].restarts = world.now, 1
    run(world, 5, resizer)
    assert "web-1" in world.pods
    world.pools = (acting,)
    run(world, 3, resizer)
    assert "web-1" not in world.pods


def test_a_pause_starts_nothing_and_still_reverts_what_is_harmed() -> None:
    world = World(replicas())
    resizer = run(world, 3)
    world.paused = "the namespace says so"
    world.pods["web-1"].killed_at, world.pods["web-1"].restarts = world.now, 1
    run(world, 40, resizer)
    assert sizes(world) == [500] * 4


def test_the_resizes_of_a_namespace_take_those_of_an_hour_from_no_other() -> None:
    """There may be four in an hour; a tenant has ten workloads that could shrink, and the shop has one."""
    tenants = {f"job{n}": "tenant" for n in range(10)}
    world = World({f"{name}-1": Pod(300) for name in tenants} | {"web-1": Pod(300)}, namespaces=tenants)
    run(world, 1, process(world, replace_settings(changes_per_hour=4)))
    assert (world.pods["web-1"].cpu, sum(size == 200 for size in sizes(world))) == (200, 4)


def test_pods_that_no_pool_covers_are_named() -> None:
    world = World(replicas(1), pools=(replace(ACT, everything=False, labels={"pool": "x"}),))
    run(world, 2)
    records = world.stored["all"].resizes
    assert (records.uncovered, records.uncovered_count) == (("default/web-1",), 1)
    assert sizes(world) == [500]


def test_a_rejected_resize_is_told_and_the_workload_backs_off() -> None:
    world = World(replicas(1), outcome=ResizeStatus.REJECTED)
    run(world, 10)
    assert world.told("resize-rejected") == ["resize-rejected"]
    assert not world.stored["all"].resizes.open


def test_a_missing_permission_is_told_once_and_stops_everything() -> None:
    world = World(replicas(4), outcome=ResizeStatus.NOT_PERMITTED)
    run(world, 10)
    assert world.told("resize-rejected") == ["resize-rejected"]
    assert not world.stored["all"].resizes.failures


def test_a_resize_of_a_pool_that_is_gone_is_followed_to_its_end() -> None:
    world = World(replicas(1))
    resizer = run(world, 3)
    world.pools = ()
    world.target = 0
    run(world, 150, resizer)
    assert not world.stored["all"].resizes.open


def test_an_outage_changes_nothing_in_the_end() -> None:
    world = World(replicas())
    resizer = process(world)
    for number in range(120):
        world.down = number % 7 in (2, 3, 4)
        one_round(world, resizer)
        world.tick()
    assert sizes(world) == [200] * 4
    assert not world.stored["all"].resizes.open


@pytest.mark.parametrize("harm", [False, True])
def test_a_process_may_die_at_every_write(harm: bool) -> None:
    """After each death another process goes on: nothing is lost, and nothing stays half done."""
    for dies_at in itertools.count(1):
        world = World(replicas(2), dies_at=dies_at)
        resizer, died = process(world), False
        for number in range(70):
            try:
                one_round(world, resizer)
            except Killed:
                died, world.dies_at = True, None
                resizer = process(world)
            if harm and number == 6:
                world.pods["web-1"].killed_at, world.pods["web-1"].restarts = world.now, 1
            open_pods = {record.pod for record in world.stored.get("all", PoolState()).resizes.open.values()}
            done = {f"default/{name}" for name, one in world.pods.items() if one.cpu == 500}
            verified = world.stored.get("all", PoolState()).resizes.verified
            assert len(open_pods | done) + verified >= 2, "what was there before a resize is always known"
            world.tick()
        assert not world.stored["all"].resizes.open
        assert sizes(world) in ([200, 200], [500, 500], [500, 200], [200, 500])
        if harm:
            assert world.pods["web-1"].cpu == 500 or world.stored["all"].resizes.verified
        if not died:
            break
    assert dies_at > 5
