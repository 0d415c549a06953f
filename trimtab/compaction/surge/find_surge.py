"""Whether a pod whose budget allows no eviction can move after its Deployment was given more pods for a while."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from trimtab.cluster.api.meta import value_or
from trimtab.cluster.cluster_state import Inventory
from trimtab.cluster.format_count import format_count
from trimtab.cluster.kinds import REPLICA_SET
from trimtab.cluster.node import HOSTNAME_LABEL
from trimtab.cluster.owner import OwnerKey
from trimtab.cluster.pdb import Pdb
from trimtab.cluster.pod import EMPTY_DIR_USE, PodInfo
from trimtab.cluster.pool import MAX_SURGE, Pool
from trimtab.cluster.reason import Reason, Unreadable
from trimtab.cluster.resource_quotas import quota_without_room
from trimtab.cluster.scalable_deployments import ScalableDeployment
from trimtab.compaction import reasons as r
from trimtab.compaction.surge import reasons as s
from trimtab.compaction.surge.disruptions import needed_extra


@dataclass(frozen=True, slots=True)
class Surge:
    """More pods of one Deployment for a while, so that a budget allows an eviction."""

    deployment: OwnerKey
    before: int
    """The number of pods that the Deployment wants, and wants again afterwards."""
    extra: int
    """The number of additional pods."""
    autoscaler: str = ""
    """The HorizontalPodAutoscaler whose `minReplicas` is raised, as namespace/name; empty: the Deployment is scaled."""


def find_surge(
    pod: PodInfo, budget: Pdb, pool: Pool, inventory: Inventory, *, is_short_for_long: bool
) -> Surge | Reason:
    """Returns the surge with which the budget, which allows no eviction now, allows one of this ready pod; or why there
    is none.

    is_short_for_long: the pods that the pod's ReplicaSet lacks have been missing for a long time, so that the budget
    will not allow an eviction by itself soon.
    """
    extra = needed_extra(budget)
    usual = _usual_reason(pod, budget)
    # A budget that allows evictions when its pods are ready will do so again: no surge for the seconds in between.
    if extra is None or extra < 1 or (budget.max_allowed and not is_short_for_long):
        return usual
    state = inventory.deployments.deployment_of(pod.owner)
    obstacle = _obstacle(pod, inventory, state, extra, pool)
    if not pool.surge:
        if obstacle is not None:
            return usual
        return usual.code(
            f"{usual.sentence}; with surge.extraPods: {extra} in the pool, the compactor would add "
            f"{format_count(extra, 'pod')} for a while and then evict it"
        )
    if obstacle is not None:
        return obstacle
    assert state is not None
    return Surge(state.key, state.wanted, extra, state.autoscaler.key if state.autoscaler is not None else "")


def _usual_reason(pod: PodInfo, budget: Pdb) -> Reason:
    if budget.max_allowed < 1:
        return r.BUDGET_NEVER(
            f"budget {budget.key} never allows a disruption of pod {pod.key}{_what_to_change(budget)}"
        )
    return r.BUDGET_SPENT(f"at present budget {budget.key} allows no disruption of pod {pod.key}")


def _what_to_change(budget: Pdb) -> str:
    """Returns what to change in a budget that allows nothing with any number of pods; empty for any other budget."""
    if needed_extra(budget) is not None:
        return ""
    if budget.max_unavailable is not None:
        return f": maxUnavailable is {budget.max_unavailable}, set it to 1"
    if budget.min_available is not None:
        return f": minAvailable is {budget.min_available}, set maxUnavailable: 1 instead"
    return ""


def _obstacle(
    pod: PodInfo, inventory: Inventory, state: ScalableDeployment | None, extra: int, pool: Pool
) -> Reason | None:
    """Returns why the pod's Deployment cannot be given so many more pods, or None if nothing prevents it."""
    subject = f"pod {pod.key}"
    if pod.owner is None or (pod.owner.kind != REPLICA_SET):
        return s.OTHER_OWNER(f"{subject} belongs to {pod.owner.described if pod.owner else 'no controller'}")
    if state is None:
        if pod.owner in inventory.owners and inventory.deployments.controller_of(pod.owner) is None:
            return s.OTHER_OWNER(f"{subject} belongs to {pod.owner.described}, which no Deployment controls")
        return s.UNKNOWN_DEPLOYMENT(f"the Deployment of {subject} was not read")
    if state.key in inventory.deployments.surging:
        return s.IN_PROGRESS(f"a drain in progress already gives more pods to {state.key.described}")
    if state.key in inventory.deployments.reverted:
        return s.REVERTED(f"another client took back the additional pods that {state.key.described} was given")
    return (
        next(_reasons_of_deployment(state), None)
        or autoscaler_reason(state, extra)
        or _tied_reason(pod, inventory)
        or _size_reason(pod, state, extra, pool.surge or MAX_SURGE)
        or _quota_reason(pod, inventory, extra)
        or _right_reason(pod, pool)
    )


def _reasons_of_deployment(state: ScalableDeployment) -> Iterator[Reason]:
    name = f"Deployment {state.key.namespace}/{state.key.name}"
    if state.is_paused:
        yield s.PAUSED(f"the rollout of {name} is paused")
    if state.is_rolling:
        yield s.ROLLING(f"a rollout of {name} is in progress")
    if state.recreates:
        yield s.RECREATES(f"{name} has the strategy Recreate")
    elif state.has_no_surge:
        yield s.NO_SURGE(f"{name} has maxSurge: 0")
    if state.controller is not None:
        yield s.CONTROLLED(f"{state.controller.described} controls {name}")


def autoscaler_reason(state: ScalableDeployment, extra: int) -> Reason | None:
    """Returns why `minReplicas` of the HorizontalPodAutoscaler of a Deployment cannot be raised so that it gives the
    Deployment so many more pods; None if nothing prevents it, or if no HorizontalPodAutoscaler writes the count.

    Its controller sets a count below `minReplicas` to `minReplicas`, whatever its metrics and its behavior say
    (pkg/controller/podautoscaler, reconcileAutoscaler). So the raised value is the present count and `extra`, and not
    more than `maxReplicas`.
    """
    if not state.autoscalers:
        return None
    one, deployment = state.autoscaler, f"Deployment {state.key.namespace}/{state.key.name}"
    if one is None:
        names = " and ".join(each.key for each in state.autoscalers)
        return s.AUTOSCALED(f"several HorizontalPodAutoscalers ({names}) write the count of {deployment}")
    name = f"HorizontalPodAutoscaler {one.key}"
    if one.keeper:
        return s.AUTOSCALER_MANAGED(f"{name} writes the count of {deployment}, and {one.keeper}")
    if not one.is_writer_known:
        return s.AUTOSCALER_UNKNOWN(f"who writes {name} of {deployment} is not known without its managedFields")
    if one.min_replicas < 1:
        return s.AUTOSCALED(f"{name} scales {deployment} to zero")
    if not one.min_replicas <= one.current == one.desired == state.wanted:
        return s.AUTOSCALER_MOVING(
            f"{name} is scaling {deployment}: its status says {one.current} and {one.desired}, the Deployment wants "
            f"{state.wanted}"
        )
    if state.wanted + extra > one.max_replicas:
        return s.AUTOSCALER_FULL(
            f"{name} permits {format_count(one.max_replicas, 'replica')}, and {deployment} would need "
            f"{format_count(state.wanted + extra, 'replica')} for a while"
        )
    return None


def _tied_reason(pod: PodInfo, inventory: Inventory) -> Reason | None:
    """Returns the reason if no second pod of this kind can run beside this one on another node, otherwise None."""
    for name, claim in zip(pod.claims, inventory.claims_of(pod), strict=True):
        # A claim that was not read may be of any kind.
        if claim is None or not claim.is_shared:
            return s.ONE_NODE_CLAIM(f"pod {pod.key} uses claim {name}")
    if pod.has_device_claims:
        return s.TIED(f"pod {pod.key} uses a ResourceClaim")
    for volume in pod.local_volumes:
        if not volume.in_memory and volume.use != EMPTY_DIR_USE:
            return s.TIED(f"pod {pod.key} {volume.use} (volume {volume.name})")
    if HOSTNAME_LABEL in _keys_that_choose_nodes(pod):
        return s.TIED(f"pod {pod.key} names its node")
    return None


def _keys_that_choose_nodes(pod: PodInfo) -> Iterable[str]:
    """Yields the labels and fields of nodes by which the pod chooses its node; a field counts as the hostname."""
    yield from pod.requirements.node_selector
    affinity = pod.requirements.node_affinity
    for term in affinity.node_selector_terms if affinity is not None else ():
        yield from (HOSTNAME_LABEL for _ in value_or(term.match_fields, ()))
        yield from (each.key for each in value_or(term.match_expressions, ()) if each.operator != "NotIn")


def _size_reason(pod: PodInfo, state: ScalableDeployment, extra: int, permitted: int) -> Reason | None:
    if extra <= permitted:
        return None
    return s.TOO_MANY(
        f"the budget of pod {pod.key} would allow an eviction only with {format_count(extra, 'additional pod')} of "
        f"Deployment {state.key.namespace}/{state.key.name}, but at most {permitted} are permitted"
    )


def _quota_reason(pod: PodInfo, inventory: Inventory, extra: int) -> Reason | None:
    requests = pod.requirements.requests
    if isinstance(requests, Unreadable):
        return s.NO_QUOTA(f"the requests of pod {pod.key} cannot be read")
    name = quota_without_room(inventory.quotas.get(pod.namespace, ()), [requests] * extra)
    if name is None:
        return None
    return s.NO_QUOTA(
        f"ResourceQuota {pod.namespace}/{name} has no room for {format_count(extra, 'more pod')} like {pod.key}"
    )


def _right_reason(pod: PodInfo, pool: Pool) -> Reason | None:
    if pool.scale_namespaces is None or pod.namespace in pool.scale_namespaces:
        return None
    return s.NO_RIGHT(
        f"TRIMTAB_COMPACTOR_SCALE_NAMESPACES does not list {pod.namespace}, the namespace of pod {pod.key}"
    )
