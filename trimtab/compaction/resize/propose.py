"""Decides which running pods may be resized, and to what.

A pod is resized only if all of these hold:

- a policy with `running: resize` gives its pods another request today, from a recommendation (`WantedRequests`);
- it is Burstable and stays Burstable, runs, is ready, and is on a ready node of exactly one pool;
- its kubelet can resize, and no other resize of it is in progress;
- the change restarts no container, exceeds no limit, and is large enough;
- a request that shrinks stays above the policy's `min` and the measured usage; memory also above the largest recorded
  usage, with headroom;
- a request that grows finds room on the node, where every pod in verification counts with what a revert restores.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from trimtab.cluster import quantity
from trimtab.cluster.cluster_state import Inventory
from trimtab.cluster.node import NodeInfo
from trimtab.cluster.pool import KEEP_ANNOTATION, Pool, PoolIndex
from trimtab.cluster.reason import Reason, Unreadable
from trimtab.cluster.resizable_pod import RESIZED_RESOURCES, ResizablePod, ResizeAnswer, RunningContainer
from trimtab.cluster.resources import Amounts, QoS
from trimtab.cluster.timestamps import Seconds
from trimtab.cluster.wanted_requests import WantedRequest, WantedRequests
from trimtab.compaction.resize import reasons as r
from trimtab.compaction.resize.types import (
    DEFAULT_RESIZE_SETTINGS,
    NOT_MEASURED,
    MeasuredUse,
    ResizeAdvice,
    ResizeChange,
    ResizeProposal,
    ResizeRefusal,
    ResizeSettings,
)

Wanted = Callable[[ResizablePod], WantedRequests | Unreadable | None]
"""A function that returns what policies want for a running pod, or None if its owner is unknown or no policy asks for a
resize."""
OPT_OUT = "trimtab.dev/opt-out"
STEPS: Mapping[str, int] = {"cpu": 1, "memory": 1 << 20}
"""Resource → the step of which a resized request is a multiple: one millicore, one MiB."""
MIN_CHANGES: Mapping[str, int] = {"cpu": 5, "memory": 8 << 20}
"""Resource → the smallest absolute change of a request. A smaller change is not made, even if it is a large part of the
request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResizeContext:
    """What a proposal depends on, apart from the pods and what policies want for them."""

    now: Seconds | None = None
    """The time, or None in an offline plan; rules that need the time are then skipped."""
    top_owner: Callable[[ResizablePod], str] = lambda pod: f"{pod.namespace}/{pod.owner}"
    """A function that returns namespace/Kind/name of the pod's topmost owner."""
    open_uids: frozenset[str] = frozenset()
    """Uids of the pods with a resize in progress; nothing is proposed for them."""
    leaving_nodes: frozenset[str] = frozenset()
    """Nodes that are being drained."""
    use: MeasuredUse = NOT_MEASURED
    unsupported: Reason | None = None
    """Why the cluster cannot resize pods at all, or None if it can."""
    assumes_kubelets: bool = False
    """Whether kubelets that do not say whether they can resize are assumed to be able to, as in an offline plan."""


def propose_resizes(
    pods: Sequence[ResizablePod],
    wanted: Wanted,
    inventory: Inventory,
    pools: Sequence[Pool],
    settings: Mapping[str, ResizeSettings] | ResizeSettings = DEFAULT_RESIZE_SETTINGS,
    context: ResizeContext = ResizeContext(),
) -> ResizeAdvice:
    """Returns the proposals, the refusals, and the pods that are in no pool. Equal input gives equal advice.

    `inventory` must include what reverts may restore (`held.with_held_requests`). `settings` are those by pool, or
    those for all pools.
    """
    checker = _Checker(inventory, PoolIndex(pools), settings, context)
    for pod in sorted(pods, key=lambda each: (each.namespace, each.name)):
        what = wanted(pod) if pod.is_running and pod.uid not in context.open_uids else None
        if isinstance(what, Unreadable):
            checker.refuse(pod, r.UNREADABLE(str(what)))
        elif what is not None and not what.is_empty:
            checker.check_pod(pod, what)
    return checker.advice()


@dataclass(slots=True)
class _Checker:
    """Checks pods one after the other. The free capacity of nodes is given to growing pods in that order."""

    inventory: Inventory
    pools: PoolIndex
    settings: Mapping[str, ResizeSettings] | ResizeSettings
    context: ResizeContext
    shrinks: list[ResizeProposal] = field(default_factory=list)
    raises: list[ResizeProposal] = field(default_factory=list)
    refusals: list[ResizeRefusal] = field(default_factory=list)
    uncovered: list[str] = field(default_factory=list)
    _nodes: dict[str, NodeInfo] = field(init=False)
    _free: dict[str, Amounts] | None = None

    def __post_init__(self) -> None:
        self._nodes = {node.name: node for node in self.inventory.nodes}

    def advice(self) -> ResizeAdvice:
        return ResizeAdvice((*self.shrinks, *self.raises), tuple(self.refusals), tuple(self.uncovered))

    def refuse(self, pod: ResizablePod, reason: Reason) -> None:
        self.refusals.append(ResizeRefusal(pod.key, reason))

    def check_pod(self, pod: ResizablePod, wanted: WantedRequests) -> None:
        """Adds a proposal for the pod, or the reasons why there is none."""
        changes, reasons = self._changes(pod, wanted)
        if not changes:
            for reason in reasons:
                self.refuse(pod, reason)
            return
        node = self._nodes.get(pod.node)
        if node is None:
            return
        pool = self.pools.only_pool_of(node)
        if pool is None:
            self.uncovered.append(pod.key)
            self.refuse(
                pod, r.NO_POOL(f"pod {pod.key} is on node {node.name}, which is in no pool or in several pools")
            )
            return
        refusal = self.context.unsupported or self._refusal(pod, node, pool)
        if refusal is not None:
            self.refuse(pod, refusal)
            return
        # Downward first: a pod that shrinks in one resource and grows in another does it one after the other.
        shrinking = tuple(change for change in changes if change.given_up > 0)
        drained_node = self._drained_node(pool) if not shrinking else ""
        chosen = shrinking or (() if drained_node else self._fitting(pod, node, changes))
        if drained_node:
            sentence = (
                f"the requests of pod {pod.key} cannot grow yet, because the pods of node {drained_node}, which "
                "is being drained, need the room"
            )
            self.refuse(pod, r.NODE_FULL(sentence))
        elif not chosen:
            self.refuse(pod, r.NODE_FULL(f"node {node.name} has no room for the larger requests of pod {pod.key}"))
        elif not _stays_burstable(pod, chosen):
            self.refuse(pod, r.CLASS_STAYS(f"with the new requests pod {pod.key} would have the QoS class Guaranteed"))
        else:
            self._propose(pod, pool, wanted, chosen)

    def _propose(
        self, pod: ResizablePod, pool: Pool, wanted: WantedRequests, changes: tuple[ResizeChange, ...]
    ) -> None:
        code, chosen = (r.SHRINKS, self.shrinks) if changes[0].given_up > 0 else (r.GROWS, self.raises)
        sources = [wanted.requests[change.container, change.resource] for change in changes]
        sentence = f"pod {pod.key}: {', '.join(map(str, changes))} ({sources[0].reason})"
        proposal = ResizeProposal(
            pod=pod.key,
            uid=pod.uid,
            node=pod.node,
            pool=pool.name,
            owner=self.context.top_owner(pod),
            version=pod.version,
            changes=changes,
            policies=tuple(dict.fromkeys(source.policy for source in sources)),
            reason=code(sentence),
            still_counted=_still_counted(pod, changes),
        )
        chosen.append(proposal)

    # ── the pod as a whole ───────────────────────────────────────────────
    def _refusal(self, pod: ResizablePod, node: NodeInfo, pool: Pool) -> Reason | None:
        if pod.obstacle:
            return r.CANNOT(f"pod {pod.key} {pod.obstacle}")
        if pod.has_pod_level:
            return r.CANNOT(f"pod {pod.key} requests resources for the pod as a whole")
        if pod.qos is not QoS.BURSTABLE:
            return r.CLASS_STAYS(f"the QoS class of pod {pod.key} is {pod.qos}")
        marks = {**pod.labels, **pod.annotations}
        for key in (KEEP_ANNOTATION, OPT_OUT, *pool.keep_pods):
            if marks.get(key, "false").lower() not in ("false", "no", "off", "0"):
                return r.KEPT(f"pod {pod.key} has {key}: {marks[key]}")
        return self._node_refusal(pod, node) or self._time_refusal(pod, pool)

    def _node_refusal(self, pod: ResizablePod, node: NodeInfo) -> Reason | None:
        if not node.is_staying:
            return r.LEAVING(f"node {node.name} is cordoned, not ready, or being deleted")
        if node.name in self.context.leaving_nodes:
            return r.LEAVING(f"node {node.name} is being drained")
        if pod.answer is ResizeAnswer.UNSUPPORTED and not self.context.assumes_kubelets:
            return r.NODE_CANNOT(f"the kubelet of node {node.name} does not report the resources of pod {pod.key}")
        if pod.answer not in (ResizeAnswer.DONE, ResizeAnswer.UNSUPPORTED):
            return r.ANOTHER(f"another resize of pod {pod.key} is {pod.answer}")
        return None

    def _time_refusal(self, pod: ResizablePod, pool: Pool) -> Reason | None:
        if not pod.is_ready:
            return r.YOUNG(f"pod {pod.key} is not ready")
        now, settings = self.context.now, self._settings_of(pool)
        if now is not None and (pod.started is None or now - pod.started < settings.min_pod_seconds):
            return r.YOUNG(f"pod {pod.key} has run for less than {settings.min_pod_seconds} s")
        return None

    def _settings_of(self, pool: Pool | None) -> ResizeSettings:
        if isinstance(self.settings, ResizeSettings):
            return self.settings
        return self.settings.get(pool.name if pool is not None else "", DEFAULT_RESIZE_SETTINGS)

    # ── single requests ──────────────────────────────────────────────────
    def _changes(self, pod: ResizablePod, wanted: WantedRequests) -> tuple[list[ResizeChange], list[Reason]]:
        node = self._nodes.get(pod.node)
        settings = self._settings_of(self.pools.only_pool_of(node) if node is not None else None)
        names = {container.name for container in pod.containers}
        changes = list[ResizeChange]()
        reasons = [reason for (name, _), reason in sorted(wanted.refusals.items()) if name in names]
        for index, container in enumerate(pod.containers):
            for resource in RESIZED_RESOURCES:
                request = wanted.requests.get((container.name, resource))
                if request is None:
                    continue
                resize_change = self._change(pod, container, index, resource, request, settings)
                if isinstance(resize_change, ResizeChange):
                    changes.append(resize_change)
                elif resize_change is not None:
                    reasons.append(resize_change)
        return changes, reasons

    def _change(
        self,
        pod: ResizablePod,
        container: RunningContainer,
        index: int,
        resource: str,
        wanted: WantedRequest,
        settings: ResizeSettings,
    ) -> ResizeChange | Reason | None:
        """Returns the change of one request; a reason if it may not be changed; None if no change is needed."""
        where = f"container {container.name} of pod {pod.key}"
        now = container.request(resource)
        if now is None or now <= 0:
            return r.NO_REQUEST(f"{where} has no {resource} request")
        target = self._target(pod, container, resource, wanted, settings)
        if isinstance(target, Reason):
            return target
        if not _is_worth(resource, now, target, settings):
            # Memory that is used may be all that keeps a request from shrinking: that is worth a word.
            if _is_worth(resource, now, wanted.amount, settings) and wanted.amount < now <= target:
                return r.IN_USE(f"{where} uses nearly all of the {resource} that it requests")
            return None
        if resource in container.restarted_by:
            return r.RESTARTS(f"{where} would restart: its resizePolicy for {resource} is RestartContainer")
        if f"container {index}:" in pod.vpa_updates and f"{resource} request" in pod.vpa_updates:
            return r.ANOTHER(f"a VPA wrote the {resource} request of {where}")
        return ResizeChange(
            container=container.name,
            resource=resource,
            before=str(container.requests[resource]),
            after=quantity.format_quantity(resource, target),
        )

    def _target(
        self,
        pod: ResizablePod,
        container: RunningContainer,
        resource: str,
        wanted: WantedRequest,
        settings: ResizeSettings,
    ) -> int | Reason:
        """Returns the wanted request, raised to at least the floor and the usage, and lowered to at most the limit.
        Returns the reason if no request satisfies these bounds."""
        now, measured = container.request(resource) or 0, self.context.use.use_of(pod.uid, container.name, resource)
        step, least = STEPS[resource], max(wanted.floor, 1)
        if wanted.amount < now:
            if resource == "memory":
                if measured is None and wanted.used <= 0:
                    return r.USE_UNKNOWN(
                        f"the memory usage of container {container.name} of pod {pod.key} is not known"
                    )
                headroom = 100 + settings.memory_headroom_percent
                least = max(least, -(-max(wanted.used, measured or 0) * headroom // 100))
            elif measured is not None:
                least = max(least, measured)
        target = max(wanted.amount, least)
        target = -(-target // step) * step
        if wanted.amount < now:
            return min(target, now)
        limit = container.limit(resource)
        return target if limit is None else max(min(target, limit), now)

    def _drained_node(self, pool: Pool) -> str:
        """Returns a node of the pool that is being drained, or an empty string if there is none.

        The pods of a node that is being drained need the capacity of the other nodes.
        """
        nodes = (self._nodes.get(name) for name in sorted(self.context.leaving_nodes))
        return next((node.name for node in nodes if node is not None and pool.has_node(node)), "")

    # ── room ─────────────────────────────────────────────────────────────
    def _fitting(self, pod: ResizablePod, node: NodeInfo, changes: Iterable[ResizeChange]) -> tuple[ResizeChange, ...]:
        """Returns those changes to a larger request for which the node has room, and reserves that room."""
        if self._free is None:
            self._free = free_amounts(self.inventory)
        free = self._free.get(node.name, {})
        fitting = []
        for change in changes:
            more = -change.given_up
            if more <= free.get(change.resource, 0):
                free[change.resource] -= more
                fitting.append(change)
        return tuple(fitting)


def free_amounts(inventory: Inventory) -> dict[str, Amounts]:
    """Returns node → resource → what is not requested by any pod, at least zero. A node has no entry if it, or a pod on
    it, cannot be read."""
    free = {
        node.name: dict(node.allocatable) if not isinstance(node.allocatable, Unreadable) else {}
        for node in inventory.nodes
    }
    for pod in inventory.pods:
        if pod.node not in free or pod.is_finished:
            continue
        requests, amounts = pod.requirements.requests, free[pod.node]
        if isinstance(requests, Unreadable):
            amounts.clear()
            continue
        for name, amount in requests.items():
            if name in amounts:
                amounts[name] -= amount
    return {node: {name: max(0, amount) for name, amount in amounts.items()} for node, amounts in free.items()}


def _is_worth(resource: str, before: int, after: int, settings: ResizeSettings) -> bool:
    """Returns whether the change of a request is large enough to be made."""
    least = max(MIN_CHANGES[resource], before * settings.min_change_percent // 100)
    return abs(after - before) >= least


def _still_counted(pod: ResizablePod, changes: Sequence[ResizeChange]) -> Amounts:
    """Returns resource → the part of a reduction that frees nothing on the node, because an init container still
    requests that amount."""
    if not pod.ending:
        return {}
    counted: Amounts = {}
    for resource in {change.resource for change in changes if change.given_up > 0}:
        of_resource = [change for change in changes if change.resource == resource]
        before = {change.container: change.amount_before for change in of_resource}
        after = {change.container: change.amount_after for change in of_resource}
        free_amount = pod.total_request(resource, before) - pod.total_request(resource, after)
        counted[resource] = sum(change.given_up for change in of_resource) - free_amount
    return {resource: amount for resource, amount in counted.items() if amount > 0}


def _stays_burstable(pod: ResizablePod, changes: Iterable[ResizeChange]) -> bool:
    """Returns whether the pod is Burstable after the changes: a request remains, and at least one container has no
    limit that equals its request."""
    after = {(change.container, change.resource): change.amount_after for change in changes}
    requested, complete = False, True
    for container in pod.containers:
        for resource in RESIZED_RESOURCES:
            request = after.get((container.name, resource), container.request(resource))
            limit = container.limit(resource)
            requested = requested or bool(request) or bool(limit)
            # Without a request of its own a container requests its limit.
            complete = complete and limit is not None and limit > 0 and request in (None, limit)
    return requested and not complete
