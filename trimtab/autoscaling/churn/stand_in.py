"""The stand-in for the cluster autoscaler: one scan as a function of values. `stand_in_rules` says for what it stands.

`scan_cluster` takes what the stand-in remembers and what it sees, and returns what it remembers next and what is to be
done. A simulation and a live run carry the same actions out.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from trimtab.autoscaling.churn.scale_up import choose_new_nodes
from trimtab.autoscaling.churn.stand_in_rules import StandInFlags
from trimtab.autoscaling.churn.stand_in_view import (
    GROUP_LABEL,
    AddNodes,
    BeginRemoval,
    DeleteNode,
    EvictFrom,
    GiveBack,
    MarkCandidate,
    StandInAction,
    StandInState,
    StandInView,
)
from trimtab.autoscaling.simulation.cluster_history import blocks_scale_down
from trimtab.cluster.autoscaler_evictions import DEFAULT_RULES
from trimtab.cluster.node import NodeInfo
from trimtab.cluster.pod import PodInfo
from trimtab.cluster.reason import Unreadable
from trimtab.scheduling.filters import fits_on_node
from trimtab.scheduling.pod_class import PodClass


@dataclass(frozen=True, slots=True)
class StandInScan:
    """The result of one scan."""

    state: StandInState
    actions: tuple[StandInAction, ...]


def scan_cluster(
    state: StandInState, view: StandInView, flags: StandInFlags, templates: Mapping[str, NodeInfo]
) -> StandInScan:
    """Returns what one scan does. `templates`: node group → a new node of it."""
    names = {node.name for node in view.nodes}
    state = replace(
        state,
        draining={name: since for name, since in state.draining.items() if name in names},
        unremovable={name: until for name, until in state.unremovable.items() if name in names and until > view.now},
        marked=state.marked & names,
    )
    evictions, state = _continue_drains(state, view, flags)
    added = choose_new_nodes(view, flags, templates)
    if added:
        new = tuple(AddNodes(group, count) for group, count in added.items())
        return StandInScan(replace(state, added_at=view.now), (*evictions, *new))
    unneeded, unremovable = _Removals(view, flags, state).find_unneeded()
    state = replace(state, unneeded=unneeded, unremovable=unremovable)
    if state.added_at is not None and view.now - state.added_at < flags.delay_after_add_seconds:
        return StandInScan(state, tuple(evictions))
    begun, state = _begin_removals(state, view, flags)
    if begun:
        return StandInScan(state, (*evictions, *begun))
    marks, state = _mark_candidates(state, flags)
    return StandInScan(state, (*evictions, *marks))


def _continue_drains(
    state: StandInState, view: StandInView, flags: StandInFlags
) -> tuple[list[StandInAction], StandInState]:
    """Evicts what is still on nodes that are being drained. Deletes a node that has no pods any more, and gives one
    back whose pods have not left in time."""
    actions: list[StandInAction] = []
    draining = dict(state.draining)
    for name, since in state.draining.items():
        pods = view.movable_pods(name)
        if not pods:
            actions.append(DeleteNode(name))
        elif view.now - since > flags.max_eviction_seconds and any(pod.deletion_requested_at is None for pod in pods):
            actions.append(GiveBack(name))
        else:
            actions += [EvictFrom(name, pod.uid) for pod in pods if pod.deletion_requested_at is None]
            continue
        del draining[name]
    return actions, replace(state, draining=draining)


@dataclass(slots=True)
class _Removals:
    """Finds the unneeded nodes of one scan."""

    view: StandInView
    flags: StandInFlags
    state: StandInState
    destinations: list[int] = field(init=False)
    allowed: list[int] = field(init=False)
    arrivals: dict[str, list[PodInfo]] = field(default_factory=dict)
    """Node → pods of unneeded nodes that would move there. They count as its own."""

    def __post_init__(self) -> None:
        closed = self.view.capacity.closed_nodes
        self.destinations = [number for number in range(len(self.view.nodes)) if not closed[number]]
        self.allowed = [budget.allowed for budget in self.view.pdbs.pdbs]

    def find_unneeded(self) -> tuple[dict[str, float], dict[str, float]]:
        """Returns (node → since when it is unneeded, node → until when it is not examined)."""
        view, state = self.view, self.state
        unneeded: dict[str, float] = {}
        unremovable = dict(state.unremovable)
        saved = view.capacity.save_state()
        for node in sorted(view.nodes, key=self._rank):
            if not self._is_candidate(node) or node.name in unremovable:
                continue
            if self._move_pods(node, [*view.movable_pods(node.name), *self.arrivals.get(node.name, ())]):
                unneeded[node.name] = state.unneeded.get(node.name, view.now)
                number = view.numbers[node.name]
                if number in self.destinations:
                    self.destinations.remove(number)
            else:
                unremovable[node.name] = view.now + self.flags.recheck_seconds
        view.capacity.restore_state(saved)
        return unneeded, unremovable

    def _rank(self, node: NodeInfo) -> tuple[bool, bool, str]:
        """Those that were unneeded before come first, then empty nodes; the autoscaler leaves the others in the order
        of its list."""
        return node.name not in self.state.unneeded, bool(self.view.movable_pods(node.name)), node.name

    def _is_candidate(self, node: NodeInfo) -> bool:
        if not node.labels.get(GROUP_LABEL) or node.removal_taint is not None or node.name in self.state.draining:
            return False
        return node.is_ready and utilization_of(node, self.view.pods_on.get(node.name, ())) < self.flags.threshold

    def _move_pods(self, node: NodeInfo, pods: Sequence[PodInfo]) -> bool:
        """Places the pods on other nodes, and returns whether all may move and found a place. If not, changes
        nothing."""
        view = self.view
        spent: Counter[int] = Counter()
        for pod in pods:
            budgets = view.pdbs.matching_numbers(pod.namespace, pod.requirements.labels)
            has_budget, is_owned = bool(budgets), pod.owner is not None
            if blocks_scale_down(pod, DEFAULT_RULES, is_owned=is_owned, has_budget=has_budget):
                return False
            spent.update(budgets)
        if any(self.allowed[number] < count for number, count in spent.items()):
            return False
        own = view.numbers[node.name]
        placed: list[tuple[PodClass, int]] = []
        for pod in pods:
            pod_class = view.class_of(pod)
            target = next(
                (n for n in self.destinations if n != own and fits_on_node(view.capacity, pod_class, n)), None
            )
            if target is None:
                for other_class, other in placed:
                    view.capacity.remove_pod(other_class, other)
                return False
            view.capacity.add_pod(pod_class, target)
            placed.append((pod_class, target))
        for number, count in spent.items():
            self.allowed[number] -= count
        for pod, (_, target) in zip(pods, placed, strict=True):
            self.arrivals.setdefault(view.nodes[target].name, []).append(pod)
        return True


def utilization_of(node: NodeInfo, pods: Sequence[PodInfo]) -> float:
    """Returns the larger of the requested shares of cpu and memory, DaemonSets included; 1.0 if the node or a pod
    cannot be read."""
    allocatable = node.allocatable
    if isinstance(allocatable, Unreadable) or not (allocatable.get("cpu") and allocatable.get("memory")):
        return 1.0
    cpu = memory = 0
    for pod in pods:
        requests = pod.requirements.requests
        if isinstance(requests, Unreadable):
            return 1.0
        cpu += requests.get("cpu", 0)
        memory += requests.get("memory", 0)
    return max(cpu / allocatable["cpu"], memory / allocatable["memory"])


def _begin_removals(
    state: StandInState, view: StandInView, flags: StandInFlags
) -> tuple[list[StandInAction], StandInState]:
    """Begins to remove the nodes that have been unneeded for long enough: empty ones at once, others one at a time."""
    due = [name for name, since in state.unneeded.items() if view.now - since > flags.unneeded_seconds]
    sizes, draining = view.sizes, dict(state.draining)
    left = flags.max_removals - len(draining)
    actions: list[StandInAction] = []
    groups = {node.name: node.labels.get(GROUP_LABEL, "") for node in view.nodes}
    for name in sorted(due, key=lambda name: bool(view.movable_pods(name))):
        pods, group = view.movable_pods(name), groups[name]
        if left <= 0 or sizes[group] <= flags.min_size or (pods and len(draining) >= flags.max_drains):
            continue
        left -= 1
        sizes[group] -= 1
        actions.append(BeginRemoval(name))
        if pods:
            draining[name] = view.now
            actions += [EvictFrom(name, pod.uid) for pod in pods]
        else:
            actions.append(DeleteNode(name))
    removed = {action.node for action in actions if isinstance(action, BeginRemoval)}
    unneeded = {name: since for name, since in state.unneeded.items() if name not in removed}
    return actions, replace(state, draining=draining, unneeded=unneeded, marked=state.marked - removed)


def _mark_candidates(state: StandInState, flags: StandInFlags) -> tuple[list[StandInAction], StandInState]:
    wanted = frozenset(state.unneeded)
    changes = [MarkCandidate(name, is_candidate=True) for name in sorted(wanted - state.marked)]
    changes += [MarkCandidate(name, is_candidate=False) for name in sorted(state.marked - wanted)]
    changes = changes[: flags.max_soft_taints]
    gained = {one.node for one in changes if one.is_candidate}
    lost = {one.node for one in changes if not one.is_candidate}
    return [*changes], replace(state, marked=(state.marked | gained) - lost)
