"""A migration that is played: an old pool that is emptied, a new one that grows, and the command beside the compactor.

Beside what `Played` has, placeholders of low priority give way to pods, nodes take time to boot, and the autoscaler
buys nodes of the new pool for pods that fit on no open node. The command reads the cluster, and acts seconds later.
"""

import random
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

from tests.cluster_of import Item, cluster, node
from tests.compactor.played import ACT, Played, process
from trimtab.cluster.cluster_autoscaler import Autoscaler
from trimtab.cluster.cluster_state import Inventory
from trimtab.cluster.node import NodeGroupStatus, NodeInfo
from trimtab.cluster.pool import Pool, pool_name
from trimtab.cluster.timestamps import format_timestamp
from trimtab.compaction.candidates import CORDONED_BY_US
from trimtab.compaction.drain.timeouts import DrainTimeouts
from trimtab.compaction.replace.legacy_pools import (
    PLACEHOLDER_LABEL,
    PlaceholderScope,
    choose_taint,
    find_missing_room,
    plan_placeholders,
    render_placeholders,
)
from trimtab.scheduling.cluster_model import FreeCapacity, build_cluster_model
from trimtab.scheduling.filters import fits_on_node

OLD, NEW = "old", "new"
SCOPE = PlaceholderScope(OLD, "trimtab")
POOL = replace(
    ACT,
    name=OLD,
    everything=False,
    labels={"nodepool": OLD},
    under={"cpu": 100, "memory": 100},
    single_replicas=False,
    drains=4,
)
TERMS = DrainTimeouts(taken=900)


@dataclass(frozen=True)
class Pace:
    """Seconds."""

    boot: int = 40
    """Until a node that was bought is ready."""
    follow: int = 30
    """Between two steps of the command."""
    lag: int = 4
    """From the command's reading of the cluster until it acts."""
    unneeded: int = 60
    """Until the autoscaler takes an empty node."""
    scheduler: float = 0.0
    """How often the scheduler does not come to its turn, from 0 to 1."""
    autoscaler: float = 0.6
    """How often the autoscaler does not look, from 0 to 1."""


class PlayedMigration(Played):
    """`apps` workloads of `replicas` pods on `nodes` old nodes, two pods on each."""

    def __init__(self, *, nodes: int = 30, apps: int = 10, pace: Pace = Pace(), seed: int = 0) -> None:
        super().__init__()
        self.pace, self.dice = pace, random.Random(seed)
        self.pools: tuple[Pool, ...] = (POOL,)
        self.waiting: dict[str, int] = {}
        """Pod → since when it has no node."""
        self.longest_wait = 0
        self.busy_until = 0
        self._planned: tuple[int, Inventory] | None = None
        self._next_step = self.now
        for number in range(nodes):
            self.with_nodes(f"old-{number:02}", cpu="4", memory="16Gi", labels=self._labels(OLD))
        self._add_new(ready=True)
        spec = {"nodeSelector": {"fleet": "web"}}
        for app in range(apps):
            places = [f"old-{number // 2:02}" for number in range(2 * nodes) if number % apps == app]
            self.with_app(f"web{app}", *places, cpu="1700m", memory="6Gi", allowed=1, spec=spec)

    @staticmethod
    def _labels(pool: str) -> dict[str, str]:
        return {"nodepool": pool, "fleet": "web"}

    def _add_new(self, *, ready: bool) -> None:
        name, created = f"new-{len(self.bought):02}", format_timestamp(self.now)
        self.bought.append(name)
        self.nodes[name] = node(name, cpu="8", memory="32Gi", labels=self._labels(NEW), ready=ready, created=created)
        self.nodes[name]["boots"] = self.now + (0 if ready else self.pace.boot)
        self._touch(self.nodes[name])

    def nodes_of(self, pool: str) -> list[Item]:
        return [item for item in self.nodes.values() if item["metadata"]["labels"]["nodepool"] == pool]

    # ── time ─────────────────────────────────────────────────────────────────────────────────────────

    def tick(self, seconds: int = 2) -> None:
        for item in self.nodes.values():
            if item.get("boots", 0) <= self.now:
                item["status"]["conditions"][0]["status"] = "True"
        self._report()
        super().tick(seconds)
        self._command()
        waits = {
            uid
            for uid, pod in self.pods.items()
            if not pod["spec"]["nodeName"] and PLACEHOLDER_LABEL not in pod["metadata"]["labels"]
        }
        self.waiting = {uid: self.waiting.get(uid, self.now) for uid in waits}
        self.longest_wait = max([self.longest_wait, *(self.now - since for since in self.waiting.values())])

    def _report(self) -> None:
        state = {OLD: "NoActivity", NEW: "InProgress" if self.now < self.busy_until else "NoActivity"}
        groups = tuple(
            NodeGroupStatus(
                name=f"gke-{pool}-grp",
                healthy=True,
                scale_up=state[pool],
                target=len(self.nodes_of(pool)),
                min_size=0,
                max_size=1000,
            )
            for pool in (OLD, NEW)
        )
        busy = "InProgress" if self.now < self.busy_until else "NoActivity"
        self.scaler = Autoscaler(
            healthy=True, scale_up=busy, scale_down=True, updated=self.now, groups=groups, flags={}
        )

    def _bind(self) -> None:
        waiting = [result for result in self.pods.values() if not result["spec"]["nodeName"]]
        if not waiting or self.dice.random() < self.pace.scheduler:
            return
        world = build_cluster_model(cluster(*deepcopy(self.items())))
        room = FreeCapacity(world)
        for actual_result, kind in sorted(
            world.pending_pods, key=lambda pair: PLACEHOLDER_LABEL in pair[0].requirements.labels
        ):
            item = self.pods[actual_result.uid]
            fits = [n for n in range(len(world.nodes)) if fits_on_node(room, kind, n)]
            if fits:
                place = max(fits, key=lambda n: (room.major[n], -n))
                room.add_pod(kind, place)
                item["spec"]["nodeName"], item["bound"] = world.nodes[place].name, self.now
            elif PLACEHOLDER_LABEL not in actual_result.requirements.labels:
                self._preempt()
            conditions = item["status"]["conditions"][:1]
            tried = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
            item["status"]["conditions"] = conditions if fits else [*conditions, tried]

    def _preempt(self) -> None:
        """One placeholder that runs gives way; the pod is bound at the next look."""
        for result in self.pods.values():
            if (
                PLACEHOLDER_LABEL in result["metadata"]["labels"]
                and result["spec"]["nodeName"]
                and "ends" not in result
            ):
                result["ends"] = self.now
                return

    def _buy(self) -> None:
        """In one look, nodes for all that fit on no open node and on none that boots."""
        waiting = [
            result
            for result in self.pods.values()
            if not result["spec"]["nodeName"] and "Unschedulable" in str(result["status"]["conditions"])
        ]
        if not waiting or self.dice.random() < self.pace.autoscaler:
            return
        booting = [item for item in self.nodes_of(NEW) if item.get("boots", 0) > self.now]
        room = 4 * len(booting) + self._free_places()
        while room < len(waiting):
            self._add_new(ready=False)
            self.busy_until = self.now + self.pace.boot
            room += 4

    def _free_places(self) -> int:
        used = dict.fromkeys(
            (item["metadata"]["name"] for item in self.nodes_of(NEW) if item.get("boots", 0) <= self.now), 0
        )
        for result in self.pods.values():
            if result["spec"]["nodeName"] in used:
                used[result["spec"]["nodeName"]] += 1
        return sum(4 - count for count in used.values())

    def _take(self) -> None:
        holding = {result["spec"]["nodeName"] for result in self.pods.values()}
        for item in [*self.nodes.values()]:
            name, pool = item["metadata"]["name"], item["metadata"]["labels"]["nodepool"]
            if name in holding or item.get("boots", 0) > self.now:
                self._empty_since.pop(name, None)
            elif self.now - self._empty_since.setdefault(name, self.now) < self.pace.unneeded:
                continue
            elif pool == OLD or len(self.nodes_of(NEW)) > 1:
                del self.nodes[name]

    # ── the command ──────────────────────────────────────────────────────────────────────────────────

    def _command(self) -> None:
        if self._planned is not None:
            at, observation = self._planned
            if self.now < at:
                return
            self._planned, self._next_step = None, self.now + self.pace.follow
            self._act(observation)
        elif self.now >= self._next_step:
            inventory = cluster(*deepcopy(self.items()))
            self._planned = (self.now + self.dice.randint(0, 2 * self.pace.lag), inventory)

    def _act(self, inventory: Inventory) -> None:
        legacy, target = ([one for one in inventory.nodes if pool_name(one) == pool] for pool in (OLD, NEW))
        taint = choose_taint(inventory, legacy, {}).taint
        for one in legacy:
            if one.name in self.nodes:
                self.nodes[one.name]["spec"]["taints"] = [{"key": taint.key, "value": "true", "effect": taint.effect}]
                self._touch(self.nodes[one.name])
        missing = find_missing_room(inventory, SCOPE, legacy, target, {}, 6)
        change = plan_placeholders(missing, SCOPE, inventory.pods, is_draining=_is_draining(inventory, legacy))
        for result in change.delete:
            self.pods.pop(result.uid, None)
        rendered: list[dict[str, Any]] = render_placeholders(change.create, SCOPE, {"nodepool": NEW}, "low", ())
        for manifest in rendered:
            self._version += 1
            uid = f"u{self._version}"
            meta = {**manifest["metadata"], "uid": uid, "creationTimestamp": format_timestamp(self.now)}
            meta["labels"] = {**meta["labels"], "app": "placeholder"}
            status = {"phase": "Pending", "conditions": [{"type": "Ready", "status": "False"}]}
            spec = {**manifest["spec"], "nodeName": ""}
            self.pods[uid] = {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec, "status": status}


def _is_draining(inventory: Inventory, legacy: list[NodeInfo]) -> bool:
    occupied = {pod.node for pod in inventory.pods}
    return any(one.is_cordoned and CORDONED_BY_US in one.annotations and one.name in occupied for one in legacy)


def migrate(played: PlayedMigration, hours: float = 3, terms: DrainTimeouts = TERMS) -> None:
    """Until no old node is left, or for so long."""
    loop = process(played, terms)
    end = played.now + hours * 3600
    while played.nodes_of(OLD) and played.now < end:
        loop.run_round()
        played.tick()


__all__ = ["OLD", "TERMS", "Pace", "PlayedMigration", "migrate"]
