"""A cluster that is played: nodes, workloads, budgets, a scheduler, kubelets, an autoscaler; and a door to it.

Every write goes through `_write`: there it can be made to fail, or the process to die right after it.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from io import StringIO
from typing import Any

from tests.build import owner_key
from tests.cluster_of import NOW, Item, budget, cluster, node, pod
from trimtab.cluster.cluster_autoscaler import Autoscaler
from trimtab.cluster.node import NodeInfo
from trimtab.cluster.pool import Headroom, Pool
from trimtab.cluster.reason import Unreadable
from trimtab.cluster.signature import SigningKeys
from trimtab.cluster.timestamps import format_timestamp
from trimtab.compaction.candidates import CORDONED_BY_US
from trimtab.compaction.drain import pool_state as memories
from trimtab.compaction.drain.annotation import DrainAnnotation, PodToEvict, read_annotations
from trimtab.compaction.drain.annotation import encode_annotation as note_text
from trimtab.compaction.drain.cluster_view import ClusterView
from trimtab.compaction.drain.pool_state import HistoryEntry, PoolState
from trimtab.compaction.drain.timeouts import DrainTimeouts
from trimtab.compactor.actuator import (
    ActuatorConflict,
    ActuatorForbidden,
    ActuatorNotFound,
    ActuatorUnavailable,
    DryRunActuator,
    EvictionResponse,
    EvictionResult,
)
from trimtab.compactor.drainer import Drainer
from trimtab.compactor.error_guard import ErrorGuard
from trimtab.compactor.loop import Loop
from trimtab.compactor.planner import CompactionPlanner
from trimtab.compactor.pool_state_store import PoolStates
from trimtab.compactor.soft_taint import SOFT_TAINTS, SoftTaints, count_soft_taints
from trimtab.compactor.step_runner import StepRunner
from trimtab.runtime import log
from trimtab.runtime.graceful_shutdown import GracefulShutdown
from trimtab.scheduling.cluster_model import FreeCapacity, build_cluster_model
from trimtab.scheduling.filters import fits_on_node

ACT = Pool(
    name="all",
    everything=True,
    min_nodes=0,
    dry_run=False,
    node_age=0,
    receiver_age=0,
    quiet=0,
    under_for=0,
    headroom=Headroom(),
    drains=3,
    evictions_per_hour=1000,
)
TERMS = DrainTimeouts(taken=600)
KEYS = SigningKeys(b"the key of a cluster that is played")
CORDON = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}


class Killed(BaseException):
    """The process is no more."""


class Played:
    """One cluster. `tick` lets time pass; everything else is asked of it by a process."""

    def __init__(self, *, ready_after: int = 4, ends_after: int = 2) -> None:
        self.now = NOW
        self.ready_after, self.ends_after = ready_after, ends_after
        self.nodes: dict[str, Item] = {}
        self.pods: dict[str, Item] = {}
        self.wanted: dict[str, int] = {}
        self.namespaces: defaultdict[str, str] = defaultdict(lambda: "default")
        """App → its namespace."""
        self.endless: tuple[str, ...] = ()
        """The apps whose pods never end: their finalizers are never removed."""
        self.budgets: dict[str, int] = {}
        """App → how many may be missing."""
        self.minimums: dict[str, int] = {}
        """App → the minAvailable of its budget, as a number."""
        self.pools: tuple[Pool, ...] = (ACT,)
        self.keys = KEYS
        self.paused = ""
        self.scaler: Autoscaler | None = None
        """It reports all the time."""
        self.takes_after: int | None = None
        """The autoscaler takes a node that is empty for so long; None: never."""
        self.buys_after: int | None = None
        """It adds a node of four cores for pods that have waited for so long; None: never."""
        self.successors: dict[str, str] = {}
        """App → cpu that a pod made from now on asks for: a VPA raised it."""
        self.stored: dict[str, str] = {}
        self.records: list[HistoryEntry] = []
        self.writes: list[str] = []
        self.faults: dict[int, str] = {}
        """Number of a write → killed, lost (done, nobody knows), failed, changed."""
        self.full = False
        """No state can be written any more."""
        self.denied: tuple[str, ...] = ()
        """Writes that begin so are refused, each time, by somebody in front of the API server."""
        self.refused = 0
        self.log = StringIO()
        """What is told of errors of ours."""
        self.short: list[str] = []
        """Budgets that were broken."""
        self._version = 0
        self._empty_since: dict[str, int] = {}
        self.bought: list[str] = []

    # ── a world in a few words ───────────────────────────────────────────────────────────────────────

    def with_nodes(self, *names: str, cpu: str = "4", **more: Any) -> "Played":
        for name in names:
            self.nodes[name] = node(name, cpu, **more)
            self._touch(self.nodes[name])
        return self

    def with_app(self, app: str, *on: str, cpu: str = "500m", allowed: int | None = None, **more: Any) -> "Played":
        """Replicas on these nodes; with a budget that lets so many be missing, or that wants a `minimum` of them."""
        if (minimum := more.pop("minimum", None)) is not None:
            self.minimums[app] = minimum
        self.wanted[app] = len(on)
        self.namespaces[app] = more.get("namespace", "default")
        for number, name in enumerate(on):
            self._make(app, name, cpu, ready=True, number=number, **more)
        if allowed is not None:
            self.budgets[app] = allowed
        return self

    def _make(self, app: str, on: str, cpu: str, *, ready: bool, number: int | None = None, **more: Any) -> Item:
        self._version += 1
        created_pod = pod(f"{app}-{self._version if number is None else number}", on, cpu, app=app, ready=ready, **more)
        created_pod["metadata"]["uid"] = f"u{self._version}"
        created_pod["like"] = (cpu, more)
        if number is None:
            created_pod["metadata"]["creationTimestamp"] = format_timestamp(self.now)
        self.pods[created_pod["metadata"]["uid"]] = created_pod
        return created_pod

    def _touch(self, item: Item) -> None:
        self._version += 1
        item["metadata"]["resourceVersion"] = str(self._version)

    # ── what a process sees ──────────────────────────────────────────────────────────────────────────

    def look(self) -> ClusterView:
        inventory = cluster(*deepcopy(self.items()))
        versions = {name: item["metadata"]["resourceVersion"] for name, item in self.nodes.items()}
        tops = {
            owner_key(f"ReplicaSet/{app}", self.namespaces[app]): owner_key(f"Deployment/{app}", self.namespaces[app])
            for app in self.wanted
        }
        return ClusterView(
            now=self.now,
            inventory=inventory,
            pools=self.pools,
            versions=versions,
            paused=self.paused,
            top_owners=tops,
            annotations=read_annotations(inventory.nodes, self.keys, ""),
            autoscaler=replace(self.scaler, updated=self.now) if self.scaler is not None else None,
        )

    def items(self) -> list[Item]:
        results = [*self.nodes.values(), *self.pods.values()]
        results += [
            budget(app, self.room(app), most=allowed, namespace=self.namespaces[app])
            for app, allowed in self.budgets.items()
        ]
        for app, minimum in self.minimums.items():
            asked = budget(app, self.room(app), namespace=self.namespaces[app], spec={"minAvailable": minimum})
            healthy = len(self.healthy(app))
            asked["status"] |= {"currentHealthy": healthy, "desiredHealthy": minimum, "expectedPods": len(self.of(app))}
            results.append(asked)
        for app, expected in self.wanted.items():
            owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": app, "uid": app, "controller": True}
            ready = len(self.healthy(app))
            for kind in ("ReplicaSet", "Deployment"):
                results.append(
                    {
                        "apiVersion": "apps/v1",
                        "kind": kind,
                        "metadata": {
                            "name": app,
                            "namespace": self.namespaces[app],
                            "ownerReferences": [owner] if kind == "ReplicaSet" else [],
                        },
                        "spec": {"replicas": expected},
                        "status": {
                            "replicas": len(self.of(app)),
                            "readyReplicas": ready,
                            "availableReplicas": ready,
                            "updatedReplicas": len(self.of(app)),
                        },
                    }
                )
        return results

    def of(self, app: str) -> list[Item]:
        """Pods that stay."""
        return [p for p in self.pods.values() if p["metadata"]["labels"]["app"] == app and not _ending(p)]

    def healthy(self, app: str) -> list[Item]:
        return [p for p in self.of(app) if _ready(p)]

    def room(self, app: str) -> int:
        if app in self.minimums:
            return max(0, len(self.healthy(app)) - self.minimums[app])
        return max(0, len(self.healthy(app)) - (self.wanted[app] - self.budgets[app]))

    # ── the door ─────────────────────────────────────────────────────────────────────────────────────

    @property
    def is_dry_run(self) -> bool:
        return False

    def _write(self, what: str) -> str:
        """What shall go wrong with this write; raises before it where it is not done."""
        fault = self.faults.pop(len(self.writes), "")
        self.writes.append(what)
        if what.startswith(self.denied):
            raise ActuatorForbidden(f"{what}: a webhook says no")
        if fault == "failed":
            raise ActuatorUnavailable(what)
        if fault == "changed":
            raise ActuatorConflict(what)
        return fault

    def _after(self, fault: str, what: str) -> None:
        if fault == "killed":
            raise Killed
        if fault == "lost":
            raise ActuatorUnavailable(what)

    def _node(self, name: str, version: str) -> Item:
        if name not in self.nodes:
            raise ActuatorNotFound(name)
        node = self.nodes[name]
        if node["metadata"]["resourceVersion"] != version:
            raise ActuatorConflict(name)
        return node

    def cordon_node(self, node: NodeInfo, version: str, note: DrainAnnotation) -> None:
        fault = self._write(f"cordon {node.name}")
        item = self._node(node.name, version)
        item["spec"]["unschedulable"] = True
        item["metadata"]["annotations"][CORDONED_BY_US] = note_text(note, node, self.keys)
        self._touch(item)
        self._after(fault, node.name)

    def release_node(self, node: str, version: str, *, uncordon: bool) -> None:
        fault = self._write(f"release {node}")
        item = self._node(node, version)
        if uncordon:
            assert CORDONED_BY_US in item["metadata"]["annotations"], "that cordon is not ours"
            item["spec"]["unschedulable"] = False
        item["metadata"]["annotations"].pop(CORDONED_BY_US, None)
        self._touch(item)
        self._after(fault, node)

    def evict_pod(self, move: PodToEvict) -> EvictionResponse:
        fault = self._write(f"evict {move.pod}")
        result = self.pods.get(move.uid)
        answer = EvictionResponse(became=EvictionResult.EVICTED)
        if result is not None and not _ending(result):
            app = result["metadata"]["labels"]["app"]
            has_budget = app in self.budgets or app in self.minimums
            if has_budget and result["status"]["phase"] != "Pending" and not self.room(app):
                self.refused += 1
                answer = EvictionResponse(became=EvictionResult.REFUSED, message="no room")
            else:
                result["metadata"]["deletionTimestamp"] = format_timestamp(self.now + 30)
                result["ends"] = self.now + (10**6 if app in self.endless else self.ends_after)
        self._after(fault, move.pod)
        return answer

    def try_eviction(self, move: PodToEvict) -> EvictionResponse:
        """A dry run is no write."""
        result = self.pods.get(move.uid)
        app = result["metadata"]["labels"]["app"] if result is not None and not _ending(result) else ""
        is_closed = (app in self.budgets or app in self.minimums) and not self.room(app)
        return EvictionResponse(became=EvictionResult.REFUSED if is_closed else EvictionResult.EVICTED)

    def scale_deployment(self, deployment: str, before: int, replicas: int) -> bool:
        fault = self._write(f"scale {deployment} {replicas}")
        app = deployment.partition("/")[2]
        done = self.wanted.get(app) == before
        if done:
            self.wanted[app] = replicas
        self._after(fault, deployment)
        return done

    def set_min_replicas(self, autoscaler: str, before: int, minimum: int) -> bool:
        raise ActuatorNotFound(autoscaler)

    def set_soft_taints(self, node: NodeInfo, version: str, keys: Sequence[str]) -> None:
        fault = self._write(f"taint {node.name} {' '.join(keys)}")
        item = self._node(node.name, version)
        taints = [taint for taint in item["spec"]["taints"] if taint["key"] not in SOFT_TAINTS]
        item["spec"]["taints"] = [*taints, *({"key": key, "effect": "PreferNoSchedule"} for key in keys)]
        self._touch(item)
        self._after(fault, node.name)

    def record_decision(self, record: HistoryEntry) -> None:
        self.records.append(record)

    # ── where books are kept ─────────────────────────────────────────────────────────────────────────

    def load_states(self) -> Mapping[str, PoolState | Unreadable]:
        return {pool: memories.decode_state(pool, {memories.STATE_KEY: text}) for pool, text in self.stored.items()}

    def save_state(self, pool: str, memory: PoolState, *, final: bool) -> None:
        fault = self._write(f"save {pool}")
        if self.full:
            raise ActuatorUnavailable(f"save {pool}")
        self.stored[pool] = memories.encode_state(memory)
        self._after(fault, pool)

    # ── time ─────────────────────────────────────────────────────────────────────────────────────────

    def tick(self, seconds: int = 2) -> None:
        """Kubelets end and start pods, workloads make theirs again, the scheduler binds, the autoscaler takes."""
        self.now += seconds
        self.pods = {uid: p for uid, p in self.pods.items() if p.get("ends", self.now + 1) > self.now}
        for app, expected in self.wanted.items():
            self._scale(app, expected)
        self._bind()
        self._buy()
        for result in self.pods.values():
            if (
                result["spec"]["nodeName"]
                and not _ready(result)
                and self.now >= result.get("bound", 0) + self.ready_after
            ):
                result["status"]["conditions"][0]["status"] = "True"
        self._take()
        for app, allowed in self.budgets.items():
            if len(self.healthy(app)) < self.wanted[app] - allowed:
                self.short.append(app)
        self.short += [app for app, minimum in self.minimums.items() if len(self.healthy(app)) < minimum]

    def _scale(self, app: str, expected: int) -> None:
        here = self.of(app)
        for _ in range(expected - len(here)):
            cpu, more = next(
                (p["like"] for p in self.pods.values() if p["metadata"]["labels"]["app"] == app), ("1m", {})
            )
            self._make(app, "", self.successors.get(app, cpu), ready=False, **more)
        # The youngest that is not ready goes first.
        for extra in sorted(here, key=lambda p: (_ready(p), -int(p["metadata"]["uid"][1:])))[
            : max(0, len(here) - expected)
        ]:
            del self.pods[extra["metadata"]["uid"]]

    def _bind(self) -> None:
        waiting = [p for p in self.pods.values() if not p["spec"]["nodeName"]]
        if not waiting:
            return
        world = build_cluster_model(cluster(*deepcopy(self.items())))
        room = FreeCapacity(world)
        for result, kind in world.pending_pods:
            fits = [n for n in range(len(world.nodes)) if fits_on_node(room, kind, n)]
            if fits:
                place = max(fits, key=lambda n: (-count_soft_taints(world.nodes[n], ""), room.major[n], -n))
                room.add_pod(kind, place)
                self.pods[result.uid]["spec"]["nodeName"] = world.nodes[place].name
                self.pods[result.uid]["bound"] = self.now
            conditions = self.pods[result.uid]["status"]["conditions"][:1]
            tried = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
            self.pods[result.uid]["status"]["conditions"] = conditions if fits else [*conditions, tried]

    def _buy(self) -> None:
        """One node for all that have waited for long enough: the next look shows whether that will do."""
        if self.buys_after is None:
            return
        late = format_timestamp(self.now - self.buys_after)
        waiting = [p for p in self.pods.values() if not p["spec"]["nodeName"]]
        if any(p["metadata"]["creationTimestamp"] <= late for p in waiting):
            self.bought.append(f"bought-{len(self.bought)}")
            self.with_nodes(self.bought[-1], created=format_timestamp(self.now))

    def _take(self) -> None:
        holding = {p["spec"]["nodeName"] for p in self.pods.values()}
        for name in [name for name in self.nodes if name not in holding]:
            since = self._empty_since.setdefault(name, self.now)
            if self.takes_after is not None and self.now - since >= self.takes_after:
                del self.nodes[name]
        self._empty_since = {name: at for name, at in self._empty_since.items() if name not in holding}

    # ── what stands now ──────────────────────────────────────────────────────────────────────────────

    @property
    def cordoned(self) -> list[str]:
        return sorted(name for name, item in self.nodes.items() if item["spec"]["unschedulable"])

    @property
    def noted(self) -> list[str]:
        return sorted(name for name, item in self.nodes.items() if CORDONED_BY_US in item["metadata"]["annotations"])

    def annotate(self, name: str, note: DrainAnnotation | str, keys: SigningKeys = KEYS) -> None:
        """A note that somebody wrote on the node: signed with these keys, or a text as it is."""
        item = self.nodes[name]
        [described_node] = [node for node in self.look().inventory.nodes if node.name == name]
        text = note if isinstance(note, str) else note_text(note, described_node, keys)
        item["metadata"]["annotations"][CORDONED_BY_US] = text
        self._touch(item)

    def on(self, name: str) -> list[str]:
        return sorted(p["metadata"]["name"] for p in self.pods.values() if p["spec"]["nodeName"] == name)

    def told(self, what: str) -> list[str]:
        return [record.code for record in self.records if record.what == what]


def _ending(item: Item) -> bool:
    return "deletionTimestamp" in item["metadata"]


def _ready(item: Item) -> bool:
    return bool(item["status"]["conditions"][0]["status"] == "True")


def process(played: Played, terms: DrainTimeouts = TERMS, *, settle: float = 2, interval: float = 10) -> Loop:
    """A fresh process: it knows nothing but what stands in the cluster."""
    books = PoolStates(played, (played.record_decision,))
    books.load_states(played.now)
    faults = ErrorGuard(log.build_logger("error", "json", played.log))
    return Loop(
        read_view=played.look,
        pool_states=books,
        drainer=Drainer(played, books, terms, StepRunner(faults, GracefulShutdown())),
        planner=CompactionPlanner(played, DryRunActuator(), books, terms, settle, faults),
        soft_taints=SoftTaints(played),
        log=log.build_logger("error"),
        interval=interval,
        tick=2,
        elapsed=lambda: float(played.now),
        has_state=lambda pool: pool in played.stored,
    )


def run(played: Played, rounds: int = 60, loop: Loop | None = None, terms: DrainTimeouts = TERMS) -> Loop:
    """So many rounds, time passing between them; a process that dies is followed by a fresh one."""
    loop = loop or process(played, terms)
    for _ in range(rounds):
        try:
            loop.run_round()
        except Killed:
            loop = process(played, terms)
        played.tick()
    return loop
