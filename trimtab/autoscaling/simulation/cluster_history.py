"""Makes the history on which the cluster autoscaler is replayed, from snapshots and the lifetimes of pods.

Nodes have the same shape if they have the same allocatable amounts, type, price and taints, and the same value of every
label by which some pod selects nodes. Pods are alike if they have the same topmost owner; the largest requests among
them are used. A pod that can run on one node only (it selects a hostname, or its volume is local) keeps its node.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from trimtab.autoscaling.simulation.replay_nodes import NodeHistory, ReplayShape, ReplayWorkload
from trimtab.cluster.api.pod import NodeSelector
from trimtab.cluster.autoscaler_evictions import DEFAULT_RULES, EvictionRules
from trimtab.cluster.cluster_state import Inventory
from trimtab.cluster.format_count import format_count
from trimtab.cluster.node import AUTOSCALER_TAINTS, HOSTNAME_LABEL, INSTANCE_TYPE_LABEL, NodeInfo
from trimtab.cluster.node_groups import NodeGroups
from trimtab.cluster.owner import OwnerKey, controller_by_hash
from trimtab.cluster.pdb import PdbIndex
from trimtab.cluster.pod import PodInfo
from trimtab.cluster.reason import Unreadable
from trimtab.cluster.timestamps import Seconds
from trimtab.machines.prices import price_of
from trimtab.scheduling.node_filters import REJECTING_EFFECTS, label_keys_read, node_rejection_reason

SAFE_TO_EVICT = "cluster-autoscaler.kubernetes.io/safe-to-evict"
UNMATCHED_GROUP = "?"
"""The name for the nodes whose node group is not known, while a group with a minimum may have them."""
NO_GROUPS = NodeGroups()
_TRANSIENT_TAINTS = ("node.kubernetes.io/", *AUTOSCALER_TAINTS)

Lives = Mapping[str, Sequence[tuple[Seconds, Seconds]]]
"""Workload → (first second, last second) of the lifetime of each of its pods."""


@dataclass(frozen=True, slots=True)
class HistoryReading:
    """The history, and a description of what had to be left out of it."""

    history: NodeHistory
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Shapes:
    """The shapes of nodes, with an example node of each."""

    by_name: dict[str, ReplayShape]
    example: dict[str, NodeInfo]
    of_node: dict[str, str]


def build_history(
    inventory: Inventory,
    moments: Iterable[tuple[Seconds, Mapping[str, int]]],
    min_nodes: int = 0,
    rules: EvictionRules = DEFAULT_RULES,
    groups: NodeGroups = NO_GROUPS,
) -> HistoryReading:
    """Returns the history that begins with the nodes and pods of `inventory`.

    `moments`: second → number of pods by workload; seconds are counted from the first moment. `min_nodes`: for each
    shape, the number of nodes that always stay. `rules`: which pods keep the autoscaler from removing their node.
    `groups`: the node groups of the nodes, whose minimums hold.
    """
    moments = sorted(moments, key=lambda moment: moment[0])
    shapes, unreadable = _group_nodes(inventory, groups)
    notes = (
        [
            f"{format_count(unreadable, 'node is', 'nodes are')} left out, because the allocatable amounts cannot "
            "be read."
        ]
        if unreadable
        else []
    )
    workloads: dict[str, ReplayWorkload] = {}
    placed: dict[str, Counter[str]] = {name: Counter() for name in shapes.of_node}
    reader = _WorkloadReader(inventory, shapes, PdbIndex.from_pdbs(inventory.pdbs), rules)
    for pod in inventory.pods:
        if pod.node not in placed or pod.is_finished or pod.is_daemon or pod.is_static:
            continue
        owner = workload_name(pod)
        name = owner or f"pod {pod.key}"
        workload = reader.read_workload(name, pod, is_owned=bool(owner))
        if workload is None:
            notes.append(f"The requests of pod {pod.key} cannot be read, so the pod is left out.")
            continue
        workloads[name] = _merge_workloads(workloads.get(name), workload)
        placed[pod.node][name] += 1
    began = moments[0][0] if moments else 0
    unknown = {name for _, pods in moments for name in pods if name not in workloads}
    if unknown:
        notes.append(
            f"{format_count(len(unknown), 'workload of the history is', 'workloads of the history are')} left "
            "out, because the first snapshot has no such pod."
        )
    history = NodeHistory(
        shapes=shapes.by_name,
        workloads=workloads,
        nodes=[(shapes.of_node[node], pods) for node, pods in placed.items()],
        moments=[
            (second - began, {name: count for name, count in pods.items() if name in workloads})
            for second, pods in moments
        ],
        min_nodes=dict.fromkeys(shapes.by_name, min_nodes),
        group_minimums={**groups.minimums, UNMATCHED_GROUP: groups.unmatched_minimum},
    )
    return HistoryReading(history, tuple(notes))


def recreating_owner(pod: PodInfo) -> OwnerKey | None:
    """Returns the workload that recreates the pod (for a ReplicaSet its Deployment, by the hash in its name), or None
    if nothing recreates it."""
    return pod.owner and (controller_by_hash(pod.requirements.labels, pod.owner) or pod.owner)


def workload_name(pod: PodInfo) -> str:
    """Returns NAMESPACE/KIND/NAME of the workload that recreates the pod; "" if nothing recreates it."""
    owner = recreating_owner(pod)
    return f"{owner.namespace}/{owner}" if owner is not None else ""


def count_lives(lives: Lives, step_seconds: int) -> list[tuple[Seconds, dict[str, int]]]:
    """Returns, for each step from the first second to the last, the number of pods of each workload that existed."""
    ends = [second for pods in lives.values() for life in pods for second in life]
    if not ends:
        return []
    steps = range(min(ends), max(ends) + 1, step_seconds)
    return [
        (at, {name: sum(begin <= at <= end for begin, end in pods) for name, pods in lives.items()}) for at in steps
    ]


def hold_moments(
    moments: Sequence[tuple[Seconds, Mapping[str, int]]], step_seconds: int
) -> list[tuple[Seconds, Mapping[str, int]]]:
    """Returns the moments, with further moments added between them every `step_seconds`. At an added moment the number
    of pods stays the same, but the autoscaler may act."""
    held: list[tuple[Seconds, Mapping[str, int]]] = []
    for (at, pods), (until, _) in zip(moments, [*moments[1:], (0, {})], strict=True):
        held.append((at, pods))
        held += [(step, {}) for step in range(at + step_seconds, until, step_seconds)]
    return held


def count_pods(inventory: Inventory) -> dict[str, int]:
    """Returns workload → number of its pods that have not finished, whether they are on a node or wait for one."""
    names = (
        workload_name(pod)
        for pod in inventory.pods
        if not (pod.is_finished or pod.is_daemon or pod.is_static) and pod.deletion_requested_at is None
    )
    return dict(Counter(name for name in names if name))


def _limited_group(node: str, groups: NodeGroups) -> str:
    """Returns the group of the node if it has a minimum, or `UNMATCHED_GROUP` if it is not known whether it has one."""
    group = groups.by_node.get(node)
    if group is not None:
        return group.name if group.min_size else ""
    return UNMATCHED_GROUP if node in groups.unmatched_nodes else ""


def _group_nodes(inventory: Inventory, groups: NodeGroups) -> tuple[_Shapes, int]:
    keys = {
        key for pod in inventory.pods for key in label_keys_read(pod.requirements, ()) if key and key != HOSTNAME_LABEL
    }
    daemons = _sum_daemons(inventory.pods)
    names: dict[object, str] = {}
    shapes = _Shapes({}, {}, {})
    unreadable = 0
    for node in inventory.machines:
        if isinstance(node.allocatable, Unreadable):
            unreadable += 1
            continue
        known_price = price_of(node, {})
        cpu, memory, slots = (node.allocatable.get(name, 0) for name in ("cpu", "memory", "pods"))
        kind = node.labels.get(INSTANCE_TYPE_LABEL, "")
        labels = frozenset((key, node.labels.get(key)) for key in keys)
        group = _limited_group(node.name, groups)
        price = known_price if isinstance(known_price, int) else None
        key = (kind, cpu, memory, slots, price, labels, _lasting_taints(node), group)
        if key not in names:
            base = kind or f"{cpu / 1000:g} cpu, {memory / (1 << 30):.0f} GiB"
            number = sum(name == base or name.startswith(f"{base} (") for name in shapes.by_name)
            names[key] = f"{base} ({number + 1})" if number else base
            daemon_cpu, daemon_memory, daemon_pods = daemons.get(node.name, (0, 0, 0))
            shapes.by_name[names[key]] = ReplayShape(
                name=names[key],
                cpu=max(0, cpu - daemon_cpu),
                memory=max(0, memory - daemon_memory),
                pods=max(0, slots - daemon_pods),
                daemon_cpu=daemon_cpu,
                daemon_memory=daemon_memory,
                price=price,
                group=group,
            )
            shapes.example[names[key]] = node
        shapes.of_node[node.name] = names[key]
    return shapes, unreadable


def _sum_daemons(pods: Iterable[PodInfo]) -> dict[str, tuple[int, int, int]]:
    """Returns node → (cpu, memory, number) of the pods on it that run once per node."""
    sums: dict[str, tuple[int, int, int]] = defaultdict(lambda: (0, 0, 0))
    for pod in pods:
        requests = pod.requirements.requests
        if (pod.is_daemon or pod.is_static) and not pod.is_finished and not isinstance(requests, Unreadable):
            cpu, memory, count = sums[pod.node]
            sums[pod.node] = (cpu + requests.get("cpu", 0), memory + requests.get("memory", 0), count + 1)
    return sums


def _lasting_taints(node: NodeInfo) -> frozenset[tuple[str, str, str]]:
    return frozenset(
        (taint.key, taint.value, taint.effect)
        for taint in node.taints
        if taint.effect in REJECTING_EFFECTS and not taint.key.startswith(_TRANSIENT_TAINTS)
    )


@dataclass(slots=True)
class _WorkloadReader:
    """Reads the workloads of one inventory. Pods that are alike are read once."""

    inventory: Inventory
    shapes: _Shapes
    budgets: PdbIndex
    rules: EvictionRules
    _known: dict[tuple[str, int], frozenset[str]] = field(default_factory=dict)
    """(shape of the pod's node, id of the pod's scheduling requirements) → the shapes of nodes on which pods with these
    requirements can run."""

    def read_workload(self, name: str, pod: PodInfo, *, is_owned: bool) -> ReplayWorkload | None:
        """Returns the workload of one pod that is on a node, or None if its requests cannot be read."""
        requests = pod.requirements.requests
        if isinstance(requests, Unreadable):
            return None
        claims = self.inventory.known_claims_of((pod,))
        volumes = [claim.nodes for claim in claims if claim.nodes is not None]
        is_pinned = HOSTNAME_LABEL in set(label_keys_read(pod.requirements, volumes))
        has_budget = bool(self.budgets.matching_numbers(pod.namespace, pod.requirements.labels))
        return ReplayWorkload(
            name=name,
            cpu=requests.get("cpu", 0),
            memory=requests.get("memory", 0),
            shapes=self._admitting_shapes(pod, volumes),
            blocks=is_pinned or blocks_scale_down(pod, self.rules, is_owned=is_owned, has_budget=has_budget),
        )

    def _admitting_shapes(self, pod: PodInfo, volumes: Sequence[NodeSelector]) -> frozenset[str]:
        own = self.shapes.of_node[pod.node]
        key = (own, id(pod.requirements))
        if volumes or key not in self._known:
            admitting = frozenset(
                shape
                for shape, node in self.shapes.example.items()
                if shape == own or node_rejection_reason(pod.requirements, volumes, node) is None
            )
            if volumes:
                return admitting
            self._known[key] = admitting
        return self._known[key]


def blocks_scale_down(pod: PodInfo, rules: EvictionRules, *, is_owned: bool, has_budget: bool) -> bool:
    """Returns whether the pod keeps a cluster autoscaler with these rules from removing its node.

    If the pod has the annotation safe-to-evict, the annotation decides. Otherwise the pod blocks the removal if any of
    these holds (simulator/drainability/rules, 1.36):

    - no controller would create the pod again;
    - it is in kube-system, and no PodDisruptionBudget selects it (--skip-nodes-with-system-pods);
    - it has a hostPath or an emptyDir that is not in memory (--skip-nodes-with-local-storage).
    """
    written = pod.annotations.get(SAFE_TO_EVICT)
    if written in ("true", "false"):
        return written == "false"
    return (
        not is_owned
        or (rules.system_pod_seconds > 0 and pod.namespace == "kube-system" and not has_budget)
        or (rules.local_storage_blocks and any(not volume.in_memory for volume in pod.local_volumes))
    )


def _merge_workloads(first: ReplayWorkload | None, other: ReplayWorkload) -> ReplayWorkload:
    """Returns one workload for two. It has the larger requests of the two, can run only on nodes on which both can run,
    and blocks scale-down if either blocks it."""
    if first is None:
        return other
    return ReplayWorkload(
        name=first.name,
        cpu=max(first.cpu, other.cpu),
        memory=max(first.memory, other.memory),
        shapes=first.shapes & other.shapes or first.shapes,
        blocks=first.blocks or other.blocks,
    )
