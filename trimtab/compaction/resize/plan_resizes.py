"""Determines which resizes make it possible to empty which nodes, by comparing a plan of the cluster as it is with a
plan in which pods are made smaller first.

The second plan is made for a cluster in which the pods are already resized, so it only holds if these resizes are made
first. Most proposed resizes make no difference to it. They are dropped as long as the receiving nodes have room without
them, and every step is checked again with the remaining ones. So a node of the plan is emptied by exactly the resizes
and the moves that the plan names.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import msgspec

from trimtab.cluster.cluster_state import Inventory
from trimtab.cluster.pod import PodInfo, SchedulingRequirements
from trimtab.cluster.pool import Pool
from trimtab.cluster.reason import Unreadable
from trimtab.cluster.resources import Amounts
from trimtab.compaction.candidates import PlanningContext
from trimtab.compaction.plan import make_plan
from trimtab.compaction.plan_types import DrainStep, Plan
from trimtab.compaction.recheck import holds_as_planned
from trimtab.compaction.resize.types import ResizeProposal
from trimtab.scheduling.cluster_model import Again, ClusterModel, build_cluster_model


@dataclass(frozen=True, slots=True, kw_only=True)
class ResizePlan:
    """A plan that makes pods smaller before it moves them, next to the plan without resizes."""

    without: Plan
    plan: Plan
    """The plan that holds if the resizes are made."""
    resizes: tuple[ResizeProposal, ...] = ()
    """The resizes that the plan needs, in the order of the nodes that need them first."""
    resizes_by_node: Mapping[str, tuple[ResizeProposal, ...]] = field(default_factory=dict)
    """Drained node → the resizes that its drain needs, except those that an earlier node needs already."""


def plan_with_resizes(
    inventory: Inventory,
    pools: Sequence[Pool],
    proposals: Sequence[ResizeProposal],
    context: PlanningContext = PlanningContext(),  # noqa: B008  a frozen value
    again: Again | None = None,
    effort: int | None = None,
    without: Plan | None = None,
) -> ResizePlan:
    """Returns the plan with resizes and the plan without. Only those `proposals` count that make a pod smaller.

    `again` returns what a pod would request if it were admitted again. `without` is the plan without resizes of the
    same inventory, if it has been made already."""
    if without is None:
        without = make_plan(build_cluster_model(inventory, again), pools, context, effort)
    shrinks = [proposal for proposal in proposals if proposal.is_shrink]
    if not shrinks:
        return ResizePlan(without=without, plan=without)
    # The plan of the resized cluster, and the proposals that it needs for its moves.
    model = build_cluster_model(with_resized_requests(inventory, shrinks), again)
    plan = make_plan(model, pools, context, effort)
    best, needed = plan, _needed_proposals(model, plan, shrinks)
    if len(needed) < len(shrinks):
        fewer = build_cluster_model(with_resized_requests(inventory, needed), again)
        if holds_as_planned(best, fewer, pools, context):
            shrinks = list(needed)
        elif (again_planned := make_plan(fewer, pools, context, effort)).total_savings >= best.total_savings:
            best, shrinks = again_planned, list(needed)
    if best.total_savings <= without.total_savings:
        return ResizePlan(without=without, plan=without)
    by_node = _assign_to_nodes(best, shrinks)
    return ResizePlan(
        without=without,
        plan=best,
        resizes=tuple(proposal for resizes in by_node.values() for proposal in resizes),
        resizes_by_node=by_node,
    )


def with_resized_requests(inventory: Inventory, proposals: Sequence[ResizeProposal]) -> Inventory:
    """Returns the inventory in which the pods of these proposals have their requests after the resize."""
    given_up = {proposal.uid: _given_up(proposal) for proposal in proposals}
    shared: dict[tuple[int, tuple[tuple[str, int], ...]], SchedulingRequirements] = {}
    likeness: dict[tuple[int, int], int] = {}
    first = max((pod.likeness for pod in inventory.pods), default=0) + 1
    pods = list[PodInfo]()
    for pod in inventory.pods:
        less, requests = given_up.get(pod.uid), pod.requirements.requests
        if not less or isinstance(requests, Unreadable):
            pods.append(pod)
            continue
        key = (id(pod.requirements), tuple(sorted(less.items())))
        if key not in shared:
            smaller = {name: max(0, amount - less.get(name, 0)) for name, amount in requests.items()}
            shared[key] = msgspec.structs.replace(pod.requirements, requests=smaller)
        requirements = shared[key]
        # Pods that were alike and shrink alike are still alike: the planner then judges them once.
        alike = -1
        if pod.likeness >= 0:
            alike = likeness.setdefault((pod.likeness, id(requirements)), first + len(likeness))
        pods.append(msgspec.structs.replace(pod, requirements=requirements, likeness=alike))
    return replace(inventory, pods=tuple(pods))


def _given_up(proposal: ResizeProposal) -> Amounts:
    """Returns resource → by how much the pod's request, as its node counts it, becomes smaller."""
    return {
        resource: proposal.given_up(resource) - proposal.still_counted.get(resource, 0)
        for resource in dict.fromkeys(change.resource for change in proposal.changes)
    }


# ── the resizes that a plan needs ────────────────────────────────────────
def _needed_proposals(
    model: ClusterModel, plan: Plan, proposals: Sequence[ResizeProposal]
) -> tuple[ResizeProposal, ...]:
    """Returns the proposals without which a receiving node would have too little room at the end of the plan.

    Receiving nodes only fill up, so they are fullest at the end. On each of them, the proposals that free the least are
    dropped first, as long as the node has room for the larger requests.
    """
    by_uid = {proposal.uid: proposal for proposal in proposals}
    free, candidates = _free_at_the_end(model, plan, by_uid)
    needed: set[str] = set()
    for node, of_node in candidates.items():
        room = free[node]
        for proposal in sorted(of_node, key=lambda each: (_size(model, node, each), each.uid)):
            amounts = _given_up(proposal)
            if all(amount <= room.get(name, 0) for name, amount in amounts.items()):
                for name, amount in amounts.items():
                    room[name] = room.get(name, 0) - amount
            else:
                needed.add(proposal.uid)
    return tuple(proposal for proposal in proposals if proposal.uid in needed)


def _free_at_the_end(
    model: ClusterModel, plan: Plan, by_uid: Mapping[str, ResizeProposal]
) -> tuple[dict[int, Amounts], dict[int, list[ResizeProposal]]]:
    """Returns receiving node → (what is free on it after all moves, the proposals for the pods that are then on it)."""
    numbers = {pod.uid: number for number, pod in enumerate(model.pods)}
    receivers = {model.node_numbers[move.target] for move in plan.all_moves}
    free = {node: _free_now(model, node) for node in receivers}
    candidates: dict[int, list[ResizeProposal]] = {node: [] for node in receivers}
    for node in receivers:
        candidates[node] += [by_uid[uid] for p in model.pods_on_node[node] if (uid := model.pods[p].uid) in by_uid]
    major, minor = model.main_resources
    for move in plan.all_moves:
        target, successor = model.node_numbers[move.target], model.successor_class_of[numbers[move.uid]]
        free[target][major] -= successor.major
        free[target][minor] -= successor.minor
        if move.uid in by_uid:
            candidates[target].append(by_uid[move.uid])
    return free, candidates


def _free_now(model: ClusterModel, node: int) -> Amounts:
    major, minor = model.main_resources
    grown = model.growth_by_node.get(node, (0, 0))
    return {major: model.major[node] - grown[0], minor: model.minor[node] - grown[1]}


def _size(model: ClusterModel, node: int, proposal: ResizeProposal) -> float:
    """Returns the part of the node's allocatable amount that the proposal frees; of several resources, the largest
    part."""
    return max(
        amount / max(1, model.allocatable_amount(node, resource)) for resource, amount in _given_up(proposal).items()
    )


def _assign_to_nodes(plan: Plan, proposals: Sequence[ResizeProposal]) -> dict[str, tuple[ResizeProposal, ...]]:
    """Returns drained node → the proposals for pods that are moved from it, and for pods on nodes that receive its
    pods. Each proposal is assigned to the first node that needs it."""
    remaining = {proposal.uid: proposal for proposal in proposals}
    by_place: dict[str, list[ResizeProposal]] = {}
    for proposal in proposals:
        by_place.setdefault(proposal.node, []).append(proposal)
    by_node: dict[str, tuple[ResizeProposal, ...]] = {}
    for step in plan.all_steps:
        chosen = _take_proposals(step, remaining, by_place)
        if chosen:
            by_node[step.node] = chosen
    return by_node


def _take_proposals(
    step: DrainStep, remaining: dict[str, ResizeProposal], by_place: Mapping[str, Sequence[ResizeProposal]]
) -> tuple[ResizeProposal, ...]:
    chosen = list[ResizeProposal]()
    for move in step.moves:
        for proposal in by_place.get(move.target, ()):
            if proposal.uid in remaining:
                chosen.append(remaining.pop(proposal.uid))
        if move.uid in remaining:
            chosen.append(remaining.pop(move.uid))
    return tuple(chosen)
