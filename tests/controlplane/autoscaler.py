"""A stand-in for the cluster autoscaler: it reports, takes what it does not need, and adds what is missing.

Its status has the format of 1.30 and later; what it takes is told in `scale_down`. In one scan it adds a node for every
pod that the scheduler calls unschedulable and that fits on no node that takes pods, cordoned ones not counted. A group
that cannot have a node is in Backoff for a while, the cluster is not. At first it is `Initializing`, without a word on
anything. `Times` has the real one's defaults; `scaled` runs them on a faster clock.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from types import TracebackType

from tests.controlplane.api import Api, ApiError, Object, Unreachable
from tests.controlplane.cluster import Cluster
from tests.controlplane.scale_down import ScaleDown, Sight, asked, fits, free, is_ready

UPDATED = "cluster-autoscaler.kubernetes.io/last-updated"
ADDING = 5.0
"""Seconds for which it tells of an addition."""


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds, as the real one's flags have them."""

    scan: float = 10
    unneeded: float = 600
    delay_after_add: float = 600
    backoff: float = 300

    def scaled(self, by: float) -> Times:
        """On a clock that is so many times as fast; it looks once a second at most."""
        return Times(max(1.0, self.scan / by), self.unneeded / by, self.delay_after_add / by, self.backoff / by)

    @property
    def flags(self) -> str:
        """As whoever runs beside it should be told."""
        return (
            f"--scale-down-unneeded-time={self.unneeded:.0f}s --scale-down-delay-after-add={self.delay_after_add:.0f}s"
        )


class CannotAdd(Exception):
    """The cloud has no such machine now; the message is the group."""


def status(
    groups: Mapping[str, int],
    *,
    health: str = "Healthy",
    scale_up: str = "NoActivity",
    ago: int = 0,
    least: int = 1,
    states: Mapping[str, str] | None = None,
    candidates: Mapping[str, int] | None = None,
    minimums: Mapping[str, int] | None = None,
) -> Object:
    """Its status ConfigMap; group → nodes it has. `states` are scale-ups of single groups."""
    text = f"autoscalerStatus: Running\nclusterWide:\n  health: {{status: {health}}}\n"
    text += f"  scaleUp: {{status: {scale_up}}}\nnodeGroups:\n"
    for group, size in groups.items():
        count = (candidates or {}).get(group, 0)
        text += (
            f"- name: gke-{group}-grp\n  health: {{status: {health}, nodeCounts: {{registered: {{total: {size}}}}}, "
            f"cloudProviderTarget: {size}, minSize: {(minimums or {}).get(group, least)}, maxSize: 1000}}\n"
            f"  scaleUp: {{status: {(states or {}).get(group, scale_up)}}}\n"
            f"  scaleDown: {{status: {'CandidatesPresent' if count else 'NoCandidates'}, candidates: {count}}}\n"
        )
    return _written(text, ago)


def _written(message: str, ago: int = 0) -> Object:
    when = (datetime.now(UTC) - timedelta(seconds=ago)).strftime("%Y-%m-%d %H:%M:%S.%f123 +0000 UTC")
    meta = {"name": "cluster-autoscaler-status", "namespace": "kube-system", "annotations": {UPDATED: when}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"status": f"time: {when}\n{message}"}}


@dataclass
class Autoscaler:
    cluster: Cluster
    group_of: Callable[[Object], str]
    """A node's group; empty where it is nobody's."""
    add: Callable[[Object], str] = lambda pod: ""
    """Makes a node for this pod; its group, empty where none would do. Raises CannotAdd."""
    unneeded: float = 5.0
    every: float = 1.0
    least: int = 1
    minimums: Mapping[str, int] = field(default_factory=dict)
    """Group → the nodes that it keeps, where these are not `least`."""
    reports: bool = True
    tells_groups: bool = False
    """Whether only the group that gets a node is InProgress, as with the real one; else all of them are."""
    threshold: float = 0.0
    """Share of a node's requests under which it empties the node itself; 0: it takes only what is empty."""
    delay_after_add: float = 0.0
    backoff: float = 300.0
    starting: float = 0.0
    """Seconds for which it is Initializing."""
    added: list[str] = field(default_factory=list)
    """Group of every node that was added."""
    refused: dict[str, float] = field(default_factory=dict)
    """Group that is in Backoff → until when."""
    looks: int = 0
    """Scans that have ended."""
    faults: list[str] = field(default_factory=list)
    """Looks that ended early: what the API server refused."""
    down: ScaleDown = field(init=False)
    _last: float = float("-inf")
    _stop: threading.Event = field(default_factory=threading.Event)

    @classmethod
    def real(
        cls, cluster: Cluster, group_of: Callable[[Object], str], add: Callable[[Object], str], times: Times
    ) -> Autoscaler:
        """As the real one is by default: it empties nodes under half of their requests itself."""
        return cls(
            cluster,
            group_of,
            add,
            unneeded=times.unneeded,
            every=times.scan,
            threshold=0.5,
            delay_after_add=times.delay_after_add,
            backoff=times.backoff,
            starting=times.scan,
        )

    def __post_init__(self) -> None:
        self.down = ScaleDown(self.cluster, self.unneeded, self.threshold, self.least, self.minimums, self._scanned)

    def _scanned(self) -> float:
        """Seconds by its scans: on a machine on which each takes long, nobody else has been idle meanwhile either."""
        return self.looks * self.every

    @property
    def removed(self) -> list[str]:
        return self.down.removed

    def __enter__(self) -> Autoscaler:
        self._api = Api(self.cluster.kubeconfig)
        self._began = time.monotonic()
        self._look()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join(10)
        if self.reports:
            self.cluster.delete("ConfigMap", "cluster-autoscaler-status", "kube-system")

    def _run(self) -> None:
        while not self._stop.wait(self.every):
            try:
                self._look()
                self.looks += 1
            except (ApiError, Unreachable) as error:
                self.faults.append(str(error))

    def _look(self) -> None:
        if time.monotonic() - self._began < self.starting:
            self._report("autoscalerStatus: Initializing\nclusterWide: {}\n")
            return
        sight = self._sight()
        self._add_for(sight)
        self.down.look(sight, may_remove=time.monotonic() - self._last >= self.delay_after_add)
        if self.reports:
            now = time.monotonic()
            busy = "InProgress" if now - self._last < ADDING else "NoActivity"
            refused = {group: "Backoff" for group, until in self.refused.items() if now < until}
            if self.tells_groups and busy == "InProgress":
                others = {*sight.groups.values()} - {*self.added[-1:]}
                refused = {**dict.fromkeys(others, "NoActivity"), **refused}
            ripe = Counter(sight.groups[name] for name in self.down.candidates if name in sight.groups)
            sizes = Counter(sight.groups.values())
            self.cluster.apply(
                status(sizes, scale_up=busy, least=self.least, states=refused, candidates=ripe, minimums=self.minimums)
            )

    def _report(self, message: str) -> None:
        if self.reports:
            self.cluster.apply(_written(message))

    def _sight(self) -> Sight:
        nodes = {node["metadata"]["name"]: node for node in self._items("Node")}
        groups = {name: group for name, node in nodes.items() if (group := self.group_of(node))}
        pods = [pod for pod in self._items("Pod") if pod["status"].get("phase") not in ("Succeeded", "Failed")]
        budgets = self._items("PodDisruptionBudget") if self.threshold else []
        return Sight(nodes, pods, budgets, groups)

    def _items(self, kind: str) -> list[Object]:
        return list(self._api.items(self._api.kind(kind), None))

    def _add_for(self, sight: Sight) -> None:
        """Nodes for all that wait, in one scan; those added and not ready yet count as there."""
        waiting = [pod for pod in sight.pods if _is_unschedulable(pod)]
        if not waiting:
            return
        room, nodes = sight.open_nodes(), dict(sight.nodes)
        room |= {name: free(node, ()) for name, node in nodes.items() if sight.groups.get(name) and not is_ready(node)}
        for pod in waiting:
            place = next((name for name, left in room.items() if fits(pod, nodes[name], left)), None)
            if place is None:
                if not self._added_for(pod):
                    continue
                self._last = time.monotonic()
                for node in self._items("Node"):
                    name = node["metadata"]["name"]
                    if name not in nodes:
                        place, nodes[name], room[name] = name, node, free(node, ())
            for resource, amount in asked(pod).items() if place else ():
                room[place or ""][resource] -= amount

    def _added_for(self, pod: Object) -> bool:
        if any(time.monotonic() < until for until in self.refused.values()):
            return False
        try:
            group = self.add(pod)
        except CannotAdd as error:
            self.refused[str(error)] = time.monotonic() + self.backoff
            return False
        if group:
            self.added.append(group)
        return bool(group)


def _is_unschedulable(pod: Object) -> bool:
    conditions = pod["status"].get("conditions", ())
    waits = any(c["type"] == "PodScheduled" and c.get("reason") == "Unschedulable" for c in conditions)
    return waits and not pod["spec"].get("nodeName") and "deletionTimestamp" not in pod["metadata"]
