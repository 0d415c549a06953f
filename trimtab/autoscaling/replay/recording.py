"""What a series of captures shows: the lives of pods and nodes, in stretches of time without a gap.

Times are seconds since 1970. A pod's creation is known to the second; the end of a pod or a node lies between two
rounds, and counts in the middle of them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

import msgspec

from trimtab.autoscaling.churn.stand_in_view import GROUP_LABEL
from trimtab.autoscaling.replay.recorded_pods import SLOT_PART, bound_at, is_demand, slot_of, without_own_labels
from trimtab.cluster.api.core import Node as NodeShape
from trimtab.cluster.api.meta import ApiObject, value_or
from trimtab.cluster.api.pod import MountingPod
from trimtab.cluster.api.workload import PodDisruptionBudget, Workload
from trimtab.cluster.capture_series import ClusterChange, ObjectKey
from trimtab.cluster.kinds import DEPLOYMENT, REPLICA_SET
from trimtab.cluster.node import INSTANCE_TYPE_LABEL, NodeInfo, node_from_api
from trimtab.cluster.node_nature import NodeKind
from trimtab.cluster.owner import OwnerKey, controller_key
from trimtab.cluster.pdb import Pdb, pdb_from_api
from trimtab.cluster.pod import PodInfo, PodReader
from trimtab.cluster.pool import pool_name
from trimtab.cluster.reason import Unreadable
from trimtab.cluster.snapshot import UNREADABLE_FIELD
from trimtab.cluster.timestamps import Seconds

NO_GROUP = "nodes"
"""The group of nodes that name neither a pool nor an instance type."""


S = TypeVar("S", bound=ApiObject)
_PODS, _NODES = msgspec.json.Decoder(MountingPod), msgspec.json.Decoder(NodeShape)
_BUDGETS, _OWNERS = msgspec.json.Decoder(PodDisruptionBudget), msgspec.json.Decoder(Workload)


class _UnreadableItem(msgspec.Struct, frozen=True):
    """What a capture has of an object that it could not decode, beside its kind and its name."""

    unreadable: str = ""


_ITEMS, _MARK = msgspec.json.Decoder(_UnreadableItem), f'"{UNREADABLE_FIELD}":'.encode()


class PodLife(msgspec.Struct, gc=False, kw_only=True):
    """One pod from its creation to its end, within a stretch."""

    slot: str
    """The workload whose number of pods it counts for; a Job's pod, a pod of a StatefulSet and a pod without an owner
    are workloads of their own, and so are pods of a workload that request something else than its first ones."""
    begin: Seconds
    begin_round: int
    """The number of the round, within the stretch, in which it was first seen; here and below."""
    node: str = ""
    bound: Seconds | None = None
    """When it had a node, or when that was first seen; None if it never had one."""
    end: Seconds | None = None
    """When it was asked to go, had finished or was gone; None if it was still there at the end."""
    end_round: int = 0
    is_end_known: bool = False
    """Whether a capture shows when it was asked to go; otherwise, its end is the middle between two captures."""
    is_initial: bool = False
    """Whether it was there in the first round."""
    was_evicted: bool = False
    """Whether its end was seen as an eviction (the condition DisruptionTarget)."""


class NodeLife(msgspec.Struct, kw_only=True):
    """One node from its creation to its end, within a stretch."""

    node: NodeInfo
    """The node as it was seen last."""
    first: NodeInfo
    """The node as it was seen first in the stretch: later, it may have the taint of its end."""
    group: str
    begin: Seconds
    end: Seconds | None = None
    is_initial: bool = False
    is_lost: bool = False
    """Whether it went with pods on it that no autoscaler had moved: a spot machine, or one that died."""
    cordons: list[tuple[Seconds, Seconds]] = []
    """(begin, end) of each time for which a user had cordoned it."""
    cordoned_since: Seconds | None = None

    @property
    def settled(self) -> NodeInfo:
        """The node between its start and its end: with the labels that it had last, the taints that it had all the
        time, and what it could hold once it had started."""
        first, last = self.first, self.node
        marks = {(taint.key, taint.value, taint.effect) for taint in last.taints}
        return replace(
            first,
            labels=last.labels,
            taints=tuple(taint for taint in first.taints if (taint.key, taint.value, taint.effect) in marks),
            is_ready=first.is_ready or last.is_ready,
            allocatable=first.allocatable if isinstance(last.allocatable, Unreadable) else last.allocatable,
            capacity=first.capacity if isinstance(last.capacity, Unreadable) else last.capacity,
        )


@dataclass(slots=True)
class Stretch:
    """A time without gaps."""

    begin: Seconds
    end: Seconds
    rounds: int = 0
    pods: list[PodLife] = field(default_factory=list)
    nodes: list[NodeLife] = field(default_factory=list)
    budgets: list[tuple[Seconds, str, Pdb | None]] = field(default_factory=list)
    """(since when, namespace/name, the budget; None: it is gone)."""
    samples: dict[str, PodInfo] = field(default_factory=dict)
    """Slot → one of its pods, on no node."""
    daemons: dict[str, tuple[PodInfo, ...]] = field(default_factory=dict)
    """Node → its pods that every node has, or that its kubelet runs by itself."""
    counts: list[tuple[Seconds, OwnerKey, int]] = field(default_factory=list)
    """(since when, Deployment, how many pods it wants)."""


@dataclass(slots=True)
class RecordedPod:
    """A pod that is there now."""

    uid: str
    life: PodLife | None
    """None for a pod that is no demand: of a DaemonSet, static, finished, or waiting at a gate."""
    info: PodInfo


@dataclass(slots=True)
class SeriesRecorder:
    """Reads changes in their order, and makes stretches of them."""

    own_cordon: str = ""
    """The annotation of nodes that Trimtab has cordoned."""
    stretches: list[Stretch] = field(default_factory=list)
    objects: dict[ObjectKey, bytes] = field(default_factory=dict)
    """The last text of each object that is neither a pod nor a node."""
    top_owners: dict[OwnerKey, OwnerKey] = field(default_factory=dict)
    """ReplicaSet → Deployment."""
    renamed: dict[tuple[str, str], int] = field(default_factory=dict)
    """(former group, new group) → how many nodes changed from one to the other."""
    unreadable: dict[str, str] = field(default_factory=dict)
    """Object → why it could not be decoded."""
    own_drains: set[str] = field(default_factory=set)
    """The nodes that Trimtab had cordoned in some round."""
    pod_count: int = 0
    """How many states of pods were read."""
    changed_daemons: set[str] = field(default_factory=set)
    """The DaemonSets that began or ended to have pods on nodes that were there before and after."""
    clock_skew: Seconds = 0
    """By how much the clock of the API server is ahead of that of the captures at least; negative: behind."""
    _reader: PodReader = field(default_factory=PodReader)
    _pods: dict[ObjectKey, RecordedPod] = field(default_factory=dict)
    _nodes: dict[str, NodeLife] = field(default_factory=dict)
    _budgets: dict[str, Pdb] = field(default_factory=dict)
    _counts: dict[OwnerKey, int] = field(default_factory=dict)
    _movable: dict[str, set[ObjectKey]] = field(default_factory=lambda: defaultdict(set))
    """Node → the pods on it that can move."""
    _now: Seconds = 0
    _before: Seconds = 0
    """The time of the round before."""
    _is_open: bool = False

    @property
    def _stretch(self) -> Stretch:
        return self.stretches[-1]

    def apply_change(self, one: ClusterChange) -> None:
        """Takes what changed with a round."""
        is_first = not self._is_open
        if is_first:
            self.stretches.append(Stretch(one.at, one.at))
        self._before, self._now = (one.at if is_first else self._stretch.end), one.at
        self._stretch.end = one.at
        middle = (self._before + one.at) // 2
        # Nodes first: whether a node was lost depends on the pods that were on it until now.
        for key in one.gone:
            if key[0] == "Node":
                self._lose_node(key[2], middle)
        for key, text in one.changed.items():
            if key[0] == "Node":
                self._see_node(key[2], text, middle)
        for key in one.gone:
            if key[0] == "Pod":
                self._lose_pod(key, middle)
            elif key[0] != "Node":
                self._lose_object(key)
        for key, text in one.changed.items():
            match key[0]:
                case "Pod":
                    self._see_pod(key, text, middle)
                case "Node":
                    pass
                case _:
                    self._see_object(key, text)
        if is_first:
            self._open_stretch()
        self._stretch.rounds += 1

    def end_stretch(self) -> None:
        """Ends the stretch: what follows is after a gap."""
        if not self._is_open:
            return
        self._is_open = False
        self._compare_daemons(self._stretch.daemons, daemons := self._daemons_by_node())
        self._stretch.daemons |= daemons
        for life in self._nodes.values():
            if life.cordoned_since is not None:
                life.cordons.append((life.cordoned_since, self._stretch.end))
                life.cordoned_since = None
        for pod in self._pods.values():
            pod.life = None

    def _open_stretch(self) -> None:
        """Begins the lives, in this stretch, of what was there before it."""
        self._is_open = True
        stretch = self._stretch
        for pod in self._pods.values():
            pod.life = self._begin_life(pod.info, stretch.begin, is_initial=True) if is_demand(pod.info) else None
        for name, life in self._nodes.items():
            self._nodes[name] = NodeLife(
                node=life.node, first=life.node, group=life.group, begin=stretch.begin, is_initial=True
            )
        stretch.nodes += self._nodes.values()
        for life in stretch.nodes:
            self._follow_cordon(life)
        stretch.budgets += [(stretch.begin, key, budget) for key, budget in self._budgets.items()]
        stretch.counts += [(stretch.begin, key, count) for key, count in self._counts.items()]
        stretch.daemons = self._daemons_by_node()

    def _daemons_by_node(self) -> dict[str, tuple[PodInfo, ...]]:
        daemons: dict[str, list[PodInfo]] = defaultdict(list)
        for pod in self._pods.values():
            info = pod.info
            if (info.is_daemon or info.is_static) and info.node and not info.is_finished:
                daemons[info.node].append(info)
        return {node: tuple(infos) for node, infos in daemons.items()}

    def _compare_daemons(
        self, before: Mapping[str, tuple[PodInfo, ...]], after: Mapping[str, tuple[PodInfo, ...]]
    ) -> None:
        # Of all such nodes together: on one of them, a pod may just be replaced by the next one.
        nodes = [name for name, life in self._nodes.items() if life.is_initial]
        owners = (
            {pod.owner.described for name in nodes for pod in daemons.get(name, ()) if pod.is_daemon and pod.owner}
            for daemons in (before, after)
        )
        self.changed_daemons |= next(owners) ^ next(owners)

    # ── pods ─────────────────────────────────────────────────────────────────────────────────────────
    def _see_pod(self, key: ObjectKey, text: bytes, middle: Seconds) -> None:
        shape = self._decode(key, text, _PODS)
        if shape is None:
            return
        self.pod_count += 1
        info = self._reader.read_pod(without_own_labels(shape))
        pod = self._pods.get(key)
        if pod is not None and pod.uid != info.uid:
            self._lose_pod(key, middle)
            pod = None
        if pod is None:
            pod = self._pods[key] = RecordedPod(info.uid, None, info)
            if self._is_open and info.created is not None:
                # A pod that is new was created since the round before.
                skew = info.created - min(max(info.created, self._before), self._now)
                self.clock_skew = max(self.clock_skew, skew, key=abs)
            if self._is_open and is_demand(info):
                pod.life = self._begin_life(info, self._now if info.created is None else info.created)
        else:
            self._forget_movable(key, pod.info)
            before, pod.info = pod.info, info
            is_resized = info.requirements.requests != before.requirements.requests
            if is_demand(info) and self._is_open and (pod.life is None or is_resized):
                # Since the round before, it left its gate, or requests something else.
                if pod.life is not None:
                    self._end_life(pod, max(pod.life.begin, middle))
                pod.life = self._begin_life(info, min(middle, bound_at(shape) or middle) if not is_resized else middle)
        self._note_movable(key, info)
        life = pod.life
        if life is None:
            return
        if info.node and life.bound is None:
            bound = bound_at(shape) or info.started or self._now
            life.node, life.bound = info.node, min(self._now, max(life.begin, bound))
        if info.deletion_requested_at is not None or info.is_finished:
            deletion = info.deletion_requested_at
            # The API server's deletion timestamp is the end of the grace period.
            at = middle if deletion is None else min(self._now, max(life.begin, deletion - info.grace_seconds))
            life.is_end_known = deletion is not None
            life.was_evicted = any(
                one.type == "DisruptionTarget" and one.reason == "EvictionByEvictionAPI"
                for one in shape.status.conditions
            )
            self._end_life(pod, at)

    def _begin_life(self, info: PodInfo, since: Seconds, *, is_initial: bool = False) -> PodLife:
        stretch = self._stretch
        life = PodLife(
            slot=self._choose_slot(info),
            begin=min(self._now, max(stretch.begin, since)),
            begin_round=stretch.rounds,
            node=info.node if is_initial else "",
            bound=stretch.begin if is_initial and info.node else None,
            is_initial=is_initial,
        )
        stretch.pods.append(life)
        stretch.samples[life.slot] = info
        return life

    def _choose_slot(self, info: PodInfo) -> str:
        workload, samples, number = slot_of(info), self._stretch.samples, 1
        slot = workload
        while slot in samples and samples[slot].requirements.requests != info.requirements.requests:
            number += 1
            slot = f"{workload}{SLOT_PART}{number}"
        return slot

    def _lose_pod(self, key: ObjectKey, middle: Seconds) -> None:
        pod = self._pods.pop(key, None)
        if pod is None:
            return
        self._forget_movable(key, pod.info)
        if pod.life is not None:
            self._end_life(pod, max(pod.life.begin, middle))

    def _end_life(self, pod: RecordedPod, at: Seconds) -> None:
        assert pod.life is not None
        pod.life.end, pod.life.end_round = at, self._stretch.rounds
        pod.life = None

    def _note_movable(self, key: ObjectKey, info: PodInfo) -> None:
        if info.node and not (info.is_daemon or info.is_static or info.is_finished):
            self._movable[info.node].add(key)

    def _forget_movable(self, key: ObjectKey, info: PodInfo) -> None:
        if info.node in self._movable:
            self._movable[info.node].discard(key)

    # ── nodes and the rest ───────────────────────────────────────────────────────────────────────────
    def _see_node(self, name: str, text: bytes, middle: Seconds) -> None:
        shape = self._decode(("Node", "", name), text, _NODES)
        if shape is None:
            return
        node = node_from_api(shape, None)
        if self.own_cordon in node.annotations:
            self.own_drains.add(name)
        group, present = group_of(node), self._nodes.get(name)
        created = self._now if node.created is None else node.created
        if present is not None and present.node.uid != node.uid:
            # Until the round before, the other node had the name.
            created = max(self._before, created)
            self._lose_node(name, min(middle, created))
            present = None
        if present is not None:
            if present.group != group:
                change_of = present.group, group
                self.renamed[change_of] = self.renamed.get(change_of, 0) + 1
            present.node, present.group = node, group
            if self._is_open:
                self._follow_cordon(present)
            return
        begin = min(self._now, max(self._stretch.begin, created))
        life = self._nodes[name] = NodeLife(node=node, first=node, group=group, begin=begin)
        if self._is_open:
            self._stretch.nodes.append(life)
            self._follow_cordon(life)

    def _follow_cordon(self, life: NodeLife) -> None:
        node = life.node
        is_cordoned = node.is_cordoned and node.removal_taint is None and self.own_cordon not in node.annotations
        if is_cordoned and life.cordoned_since is None:
            life.cordoned_since = self._now
        elif not is_cordoned and life.cordoned_since is not None:
            life.cordons.append((life.cordoned_since, self._now))
            life.cordoned_since = None

    def _lose_node(self, name: str, at: Seconds) -> None:
        life, pods = self._nodes.pop(name, None), self._movable.pop(name, ())
        # What went during a gap has no end in the stretch before it.
        if life is None or not self._is_open:
            return
        if life.cordoned_since is not None:
            life.cordons.append((life.cordoned_since, at))
        node = life.node
        was_leaving = node.is_cordoned or node.removal_taint is not None or node.autoscaler_candidate
        life.end, life.is_lost = max(life.begin, at), bool(pods) and not was_leaving

    def _see_object(self, key: ObjectKey, text: bytes) -> None:
        if problem := _find_problem(text):
            # What it was before is known better than what it is now.
            self._note_unreadable(key, problem)
            return
        self.objects[key] = text
        if key[0] == "PodDisruptionBudget":
            shape = self._decode(key, text, _BUDGETS)
            if shape is not None:
                budget = pdb_from_api(shape)
                previous = self._budgets.get(budget.key)
                self._budgets[budget.key] = budget
                if self._is_open and (previous is None or _rule_of(previous) != _rule_of(budget)):
                    self._stretch.budgets.append((self._now, budget.key, budget))
        elif key[0] == DEPLOYMENT:
            deployment, owner_key = self._decode(key, text, _OWNERS), OwnerKey(key[1], DEPLOYMENT, key[2])
            count = value_or(deployment.spec.replicas, 1) if deployment is not None else None
            if count is not None and self._counts.get(owner_key) != count:
                self._counts[owner_key] = count
                if self._is_open:
                    self._stretch.counts.append((self._now, owner_key, count))
        elif key[0] == REPLICA_SET:
            owner_shape = self._decode(key, text, _OWNERS)
            if owner_shape is not None:
                meta = owner_shape.metadata
                top = controller_key(meta, meta.namespace) if meta.owner_references else None
                if top is not None:
                    self.top_owners[OwnerKey(meta.namespace, REPLICA_SET, meta.name)] = top

    def _lose_object(self, key: ObjectKey) -> None:
        self.objects.pop(key, None)
        if key[0] == DEPLOYMENT:
            self._counts.pop(OwnerKey(key[1], DEPLOYMENT, key[2]), None)
        if key[0] == "PodDisruptionBudget":
            name = f"{key[1]}/{key[2]}"
            if self._budgets.pop(name, None) is not None and self._is_open:
                self._stretch.budgets.append((self._now, name, None))

    def _decode(self, key: ObjectKey, text: bytes, decoder: msgspec.json.Decoder[S]) -> S | None:
        problem = _find_problem(text)
        try:
            if not problem:
                return decoder.decode(text)
        except (msgspec.DecodeError, UnicodeError) as error:
            problem = str(error)
        self._note_unreadable(key, problem)
        return None

    def _note_unreadable(self, key: ObjectKey, problem: str) -> None:
        self.unreadable[f"{key[0]} {key[1]}/{key[2]}".replace(" /", " ")] = problem


def _find_problem(text: bytes) -> str:
    """Returns why a capture has only the name of the object; empty if it has all of it."""
    try:
        return _ITEMS.decode(text).unreadable if _MARK in text else ""
    except (msgspec.DecodeError, UnicodeError):
        return ""


def group_of(node: NodeInfo) -> str:
    """Returns the pool that the node names; without one, its instance type."""
    return node.labels.get(GROUP_LABEL, "") or pool_name(node) or node.labels.get(INSTANCE_TYPE_LABEL, "") or NO_GROUP


def is_of_autoscaler(node: NodeInfo) -> bool:
    """Returns whether the node may be one that an autoscaler adds and removes. False if it is one of these:

    - a machine of the control plane, or one outside of the cloud;
    - no machine, but a platform that runs single pods."""
    foreign = (NodeKind.CONTROL_PLANE, NodeKind.EDGE, NodeKind.SERVERLESS)
    return not any(node.nature.sign_of(kind) for kind in foreign)


def _rule_of(budget: Pdb) -> tuple[object, ...]:
    selector = budget.selector
    return (
        budget.min_available,
        budget.max_unavailable,
        budget.always_evictable,
        None if selector is None else (tuple(sorted(selector.match_labels.items())), selector.match_expressions),
    )
