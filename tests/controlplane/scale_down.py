"""Which nodes does the stand-in for the cluster autoscaler remove? As the real one was seen to (1.36).

A node is unneeded while its requests are under the threshold and its pods would fit on nodes that take pods; it then
carries the taint `DeletionCandidateOfClusterAutoscaler`, and loses it with the first look that finds it needed.
Unneeded for long enough it is tainted `ToBeDeletedByClusterAutoscaler` and cordoned, its pods are evicted, and the node
is deleted: empty nodes at once, of the others one at a time. Where the pods do not leave it gives the node back.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from tests.controlplane.api import ApiError
from tests.controlplane.cluster import Cluster
from tests.controlplane.objects import Object
from trimtab.cluster import quantity

DELETED = {"key": "ToBeDeletedByClusterAutoscaler", "value": "1", "effect": "NoSchedule"}
CANDIDATE = {"key": "DeletionCandidateOfClusterAutoscaler", "value": "1", "effect": "PreferNoSchedule"}
OURS = {DELETED["key"], CANDIDATE["key"]}
SAFE = "cluster-autoscaler.kubernetes.io/safe-to-evict"
RESOURCES = ("cpu", "memory")
PATIENCE = 60.0
"""Seconds for the pods of a node to leave."""


@dataclass(frozen=True, slots=True)
class Sight:
    """What one look shows: nodes by name, pods that are not finished, budgets. Deleted nodes are taken out of it."""

    nodes: dict[str, Object]
    pods: list[Object]
    budgets: list[Object]
    groups: dict[str, str]
    """Node → group; only nodes of groups are removed."""
    by_node: dict[str, list[Object]] = field(default_factory=lambda: defaultdict(list))

    def __post_init__(self) -> None:
        for pod in self.pods:
            self.by_node[pod["spec"].get("nodeName", "")].append(pod)

    def on(self, node: str) -> list[Object]:
        return self.by_node.get(node, [])

    def open_nodes(self) -> dict[str, dict[str, int]]:
        """Node → what is free, of the nodes that take pods."""
        return {
            name: free(node, self.on(name))
            for name, node in self.nodes.items()
            if is_ready(node) and not node["spec"].get("unschedulable") and not _tainted(node, DELETED["key"])
        }


def free(node: Object, pods: Iterable[Object]) -> dict[str, int]:
    """Allocatable without what the pods ask for, in the scheduler's numbers."""
    have = node["status"]["allocatable"]
    left = {name: quantity.scheduler_value(name, have[name]) for name in (*RESOURCES, "pods")}
    for pod in pods:
        for name, amount in asked(pod).items():
            left[name] -= amount
    return left


def asked(pod: Object) -> dict[str, int]:
    result = dict.fromkeys(RESOURCES, 0) | {"pods": 1}
    for container in pod["spec"]["containers"]:
        for name, written in container.get("resources", {}).get("requests", {}).items():
            if name in result:
                result[name] += quantity.scheduler_value(name, written)
    return result


def fits(pod: Object, node: Object, left: Mapping[str, int]) -> bool:
    labels = node["metadata"]["labels"]
    chosen = all(labels.get(key) == value for key, value in pod["spec"].get("nodeSelector", {}).items())
    return chosen and all(amount <= left[name] for name, amount in asked(pod).items())


def is_ready(node: Object) -> bool:
    return any(c["type"] == "Ready" and c["status"] == "True" for c in node["status"].get("conditions", ()))


def is_daemon(pod: Object) -> bool:
    return any(owner["kind"] == "DaemonSet" for owner in pod["metadata"].get("ownerReferences", ()))


@dataclass
class ScaleDown:
    """`threshold` 0 takes only what is empty. A group keeps `least` nodes, or as many as `minimums` says."""

    cluster: Cluster
    unneeded: float
    threshold: float
    least: int
    minimums: Mapping[str, int] = field(default_factory=dict)
    clock: Callable[[], float] = time.monotonic
    """Seconds; by it a node is unneeded, and pods take long to leave."""
    candidates: dict[str, float] = field(default_factory=dict)
    """Node → since when it is unneeded."""
    removed: list[str] = field(default_factory=list)
    drained: dict[str, float] = field(default_factory=dict)
    """Node whose pods it began to evict → when, in seconds since 1970; the last time."""
    evicted: list[tuple[str, str]] = field(default_factory=list)
    """(node, namespace/name) of the pods that it evicted."""
    given_back: list[str] = field(default_factory=list)
    """Nodes whose pods did not leave in time."""
    _leaving: dict[str, float] = field(default_factory=dict)

    def look(self, sight: Sight, *, may_remove: bool) -> None:
        for name, since in list(self._leaving.items()):
            self._go_on(sight, name, since)
        now, unneeded_nodes = self.clock(), self._unneeded(sight)
        for name in self.candidates.keys() - unneeded_nodes:
            if name in sight.nodes and name not in self._leaving:
                self._taint(sight.nodes[name], None)
        for name in unneeded_nodes - self.candidates.keys():
            self._taint(sight.nodes[name], CANDIDATE)
        self.candidates = {name: self.candidates.get(name, now) for name in unneeded_nodes}
        if may_remove:
            self._remove(sight, [name for name, since in self.candidates.items() if now - since >= self.unneeded])

    def _remove(self, sight: Sight, ripe: list[str]) -> None:
        sizes = Counter(group for name, group in sight.groups.items() if name not in self._leaving)
        for name in sorted(ripe, key=lambda name: (len(_movable(sight.on(name))), name)):
            is_empty, group = not _movable(sight.on(name)), sight.groups[name]
            if sizes[group] <= self.minimums.get(group, self.least) or (self._leaving and not is_empty):
                continue
            sizes[group] -= 1
            self._taint(sight.nodes[name], DELETED)
            if is_empty:
                self._delete(sight, name)
            else:
                self._leaving[name] = self.clock()
                self.drained[name] = time.time()
                self._go_on(sight, name, self._leaving[name])

    def _go_on(self, sight: Sight, name: str, since: float) -> None:
        """Evicts what is still there; deletes the node once nothing is, or gives it back when that takes too long."""
        left = _movable(sight.on(name))
        if name not in sight.nodes or not left:
            self._leaving.pop(name)
            if name in sight.nodes:
                self._delete(sight, name)
        elif self.clock() - since > PATIENCE:
            self._leaving.pop(name)
            self.given_back.append(name)
            self._taint(sight.nodes[name], None)
        else:
            for pod in left:
                self._evict(name, pod)

    def _evict(self, node: str, pod: Object) -> None:
        meta = pod["metadata"]
        if "deletionTimestamp" in meta:
            return
        try:
            self.cluster.evict(meta["name"], meta["namespace"])
        except ApiError as error:
            if error.status not in (404, 429):
                raise
        else:
            self.evicted.append((node, f"{meta['namespace']}/{meta['name']}"))

    def _delete(self, sight: Sight, name: str) -> None:
        self.cluster.delete("Node", name)
        self.removed.append(name)
        del sight.nodes[name], sight.groups[name]

    def _taint(self, node: Object, taint: Object | None) -> None:
        """With this taint of ours and no other; cordoned when it is to be deleted, opened when it is given back."""
        name, had = node["metadata"]["name"], _tainted(node, DELETED["key"])
        others = [one for one in self.cluster.get("Node", name)["spec"].get("taints", ()) if one["key"] not in OURS]
        changes: Object = {"taints": [*others, taint] if taint else others}
        if taint is DELETED or had:
            changes["unschedulable"] = taint is DELETED
        self.cluster.patch("Node", name, {"spec": changes})

    # ── which nodes are unneeded ─────────────────────────────────────────
    def _unneeded(self, sight: Sight) -> set[str]:
        """Those it had found before come first; of the others the emptiest."""
        if not self.threshold:
            return {name for name in sight.groups if not _movable(sight.on(name)) and name not in self._leaving}
        room, result, receivers = sight.open_nodes(), set[str](), set[str]()
        allowed = {
            (budget["metadata"]["namespace"], budget["metadata"]["name"]): budget["status"].get("disruptionsAllowed", 0)
            for budget in sight.budgets
        }
        used = {name: _share(sight.nodes[name], sight.on(name)) for name in sight.groups}
        order = sorted(used, key=lambda name: (self.candidates.get(name, float("inf")), used[name], name))
        for name in order:
            pods = _movable(sight.on(name))
            if name in receivers or name in self._leaving or (pods and used[name] >= self.threshold):
                continue
            places = self._places(sight, name, pods, room, result, allowed)
            if places is not None:
                result.add(name)
                receivers.update(places)
        return result

    def _places(
        self,
        sight: Sight,
        name: str,
        pods: list[Object],
        room: dict[str, dict[str, int]],
        result: set[str],
        allowed: dict[tuple[str, str], int],
    ) -> list[str] | None:
        """Where the node's pods would go; None where one must stay or finds no place."""
        trial = {node: left.copy() for node, left in room.items() if node != name and node not in result}
        spent, places = dict(allowed), []
        for pod in sorted(pods, key=lambda pod: -asked(pod)["cpu"]):
            budget = _budget(pod, sight.budgets)
            if not _may_move(pod) or (budget is not None and spent[budget] < 1):
                return None
            if budget is not None:
                spent[budget] -= 1
            place = next((node for node in trial if fits(pod, sight.nodes[node], trial[node])), None)
            if place is None:
                return None
            for resource, amount in asked(pod).items():
                trial[place][resource] -= amount
            places.append(place)
        room |= trial
        allowed |= spent
        return places


def _movable(pods: Iterable[Object]) -> list[Object]:
    """All but DaemonSet pods."""
    return [pod for pod in pods if not is_daemon(pod)]


def _may_move(pod: Object) -> bool:
    meta = pod["metadata"]
    return bool(meta.get("ownerReferences")) and meta.get("annotations", {}).get(SAFE) != "false"


def _budget(pod: Object, budgets: Iterable[Object]) -> tuple[str, str] | None:
    labels = pod["metadata"].get("labels", {}).items()
    for budget in budgets:
        meta = budget["metadata"]
        chosen = budget["spec"]["selector"].get("matchLabels", {}).items()
        if meta["namespace"] == pod["metadata"]["namespace"] and chosen <= labels:
            return meta["namespace"], meta["name"]
    return None


def _share(node: Object, pods: Iterable[Object]) -> float:
    """Requested of allocatable, of cpu or of memory, whichever is more."""
    left, have = free(node, pods), node["status"]["allocatable"]
    return max(1 - left[name] / quantity.scheduler_value(name, have[name]) for name in RESOURCES)


def _tainted(node: Object, key: str) -> bool:
    return any(taint["key"] == key for taint in node["spec"].get("taints", ()))
