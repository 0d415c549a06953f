"""A cluster in memory in which the events of a churn happen: controllers, a scheduler, kubelets, an eviction API.

Its time is advanced second by second where something happens. Every change is written to a history, as a watch would
show it. What empties nodes and what buys them acts from outside, by the methods under "what others do".
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from math import ceil

from trimtab.autoscaling.churn import churn_objects as objects
from trimtab.autoscaling.churn.churn_history import BudgetSeen, ChurnRecord, NodeGone, NodeSeen, PodGone, PodSeen
from trimtab.autoscaling.churn.churn_objects import NAMESPACE, ChurningWorkload
from trimtab.autoscaling.churn.churn_scheduler import ChurnScheduler
from trimtab.autoscaling.churn.churn_script import SPOT_NOTICE_SECONDS, Churn, ChurnEvent, ChurnKind
from trimtab.autoscaling.churn.pod_shapes import ChurnPodShape
from trimtab.cluster.api.meta import change
from trimtab.cluster.cluster_state import Inventory, ReplicaCounts
from trimtab.cluster.kinds import DEPLOYMENT, JOB, REPLICA_SET
from trimtab.cluster.node import NodeInfo
from trimtab.cluster.owner import OwnerKey
from trimtab.cluster.pdb import Pdb, PdbIndex
from trimtab.cluster.pod import PodInfo
from trimtab.cluster.reason import Unreadable
from trimtab.cluster.timestamps import Seconds

EPOCH = 1_772_409_600
"""The second, since 1970, at which a churn begins: Monday 2 March 2026, 00:00 UTC."""
SURGE_SHARE = 0.25
"""maxSurge and maxUnavailable of a Deployment, by default."""
BASE = Inventory(nodes=(), pods=(), owner_kinds=frozenset({DEPLOYMENT, REPLICA_SET, JOB}), namespaces={NAMESPACE: {}})


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterTimes:
    """How long things take, in seconds."""

    start_up: int = 30
    """From the binding of a pod until it is ready."""
    stop: int = 5
    """From the deletion of a pod until it is gone."""
    provision: int = 90
    """From the order of a machine until its node is ready."""


@dataclass(slots=True)
class ChurnCluster:
    """The cluster at one time."""

    churn: Churn
    times: ClusterTimes = field(default_factory=ClusterTimes)
    now: int = 0
    """Seconds since the beginning."""
    epoch: int = EPOCH
    """The second, since 1970, at which it begins."""
    naming: int = 0
    """Which names nodes get. Ties between nodes fall by their names, so another number gives another run."""
    nodes: dict[str, NodeInfo] = field(default_factory=dict)
    pods: dict[str, PodInfo] = field(default_factory=dict)
    workloads: dict[str, ChurningWorkload] = field(default_factory=dict)
    history: list[ChurnRecord] = field(default_factory=list)
    scheduler: ChurnScheduler = field(default_factory=ChurnScheduler)
    base: Inventory = BASE
    """What is neither node, pod nor budget."""
    templates: dict[str, NodeInfo] = field(init=False)
    """Group → a new node of it."""
    coming: list[str] = field(default_factory=list)
    """The groups of machines that were ordered and have no node yet."""
    version: int = 0
    """Grows with each change."""
    _waiting: dict[str, None] = field(default_factory=dict)
    _uids: list[str] = field(default_factory=list)
    """The uids of the pods, sorted."""
    _changed: dict[str, None] = field(default_factory=dict)
    """The uids of the pods that have changed since the inventory was read."""
    _changed_workloads: dict[str, None] = field(default_factory=dict)
    """The workloads that may have changed since they were counted."""
    _pods_on: dict[str, dict[str, None]] = field(default_factory=dict)
    _timers: list[tuple[int, int, Callable[[str], None], str]] = field(default_factory=list)
    _timer_count: int = 0
    _created: int = 0
    _ordered: int = 0
    _has_room: bool = False
    _next_event: int = 0
    _lost: set[str] = field(default_factory=set)
    _user_cordons: set[str] = field(default_factory=set)
    _inventory: tuple[int, Inventory] | None = None

    def __post_init__(self) -> None:
        self.templates = {
            one.group: objects.create_node(one, f"new-{one.group}", self.epoch) for one in self.churn.machines
        }
        for group in self.churn.nodes:
            self._add_node(group)
        for number, workload in enumerate(self.churn.workloads):
            requirements = objects.create_requirements(workload.name, workload.shape)
            name, limit = workload.name, workload.max_unavailable
            self.workloads[name] = ChurningWorkload(
                name, requirements, number, wanted=workload.replicas, max_unavailable=limit
            )
            self._reconcile(workload.name)
        self.settle()

    # ── time ─────────────────────────────────────────────────────────────────────────────────────────
    @property
    def timestamp(self) -> Seconds:
        """The present second, since 1970."""
        return self.epoch + self.now

    def advance_to(self, second: int) -> None:
        """Lets everything happen that is due until this second, and that second itself."""
        events = self.churn.events
        while True:
            due = [self._timers[0][0]] if self._timers else []
            due += [events[self._next_event].at] if self._next_event < len(events) else []
            following = min(due, default=second + 1)
            if following > second:
                break
            self.now = max(self.now, following)
            while self._timers and self._timers[0][0] <= self.now:
                _, _, act, subject = heappop(self._timers)
                act(subject)
            while self._next_event < len(events) and events[self._next_event].at <= self.now:
                self._happen(events[self._next_event])
                self._next_event += 1
            self.settle()
        self.now = second

    def _after(self, seconds: int, act: Callable[[str], None], subject: str) -> None:
        self._timer_count += 1
        heappush(self._timers, (self.now + max(1, seconds), self._timer_count, act, subject))

    def settle(self) -> None:
        """Lets the scheduler try the pods that wait, if there is a new one or new room."""
        if not self._waiting or not self._has_room:
            return
        self._has_room = False
        self.scheduler.refresh(self.nodes, self.pods.values())
        for uid in list(self._waiting):
            pod = self.pods[uid]
            node = self.scheduler.choose_node(pod)
            if node:
                self._pods_on[node][uid] = None
                del self._waiting[uid]
                self._set_pod(change(pod, node=node, phase="Running", is_unschedulable=False))
                self._after(self.times.start_up, self._make_ready, uid)
            elif not pod.is_unschedulable:
                self._set_pod(change(pod, is_unschedulable=True))

    # ── the script ───────────────────────────────────────────────────────────────────────────────────
    def _happen(self, event: ChurnEvent) -> None:
        workload = self.workloads.get(event.workload)
        match event.kind:
            case ChurnKind.JOB:
                self._start_job(event.workload, event.shape or ChurnPodShape(millicores=1, mebibytes=1, seconds=1))
            case ChurnKind.SPOT_LOSS | ChurnKind.NODE_DIES | ChurnKind.CORDON:
                self._happen_to_node(event)
            case _ if workload is None:
                return
            case ChurnKind.SCALE:
                workload.wanted = event.amount
                self._reconcile(workload.name)
            case ChurnKind.ROLLOUT:
                workload.generation += 1
                self._reconcile(workload.name)
            case ChurnKind.JOB_ENDS:
                workload.wanted = 0
                self._reconcile(workload.name)
            case ChurnKind.BUDGET:
                workload.max_unavailable = None if event.amount < 0 else event.amount
                self._see_budget(workload)

    def _start_job(self, name: str, shape: ChurnPodShape) -> None:
        requirements = objects.create_requirements(name, shape)
        self.workloads[name] = ChurningWorkload(name, requirements, len(self.workloads), wanted=1, is_job=True)
        self._reconcile(name)

    def _happen_to_node(self, event: ChurnEvent) -> None:
        name = self._choose_node(event)
        if not name:
            return
        if event.kind is ChurnKind.CORDON:
            self._user_cordons.add(name)
            self.set_node(replace(self.nodes[name], is_cordoned=True))
            self._after(event.amount, self._uncordon, name)
            return
        self._lost.add(name)
        if event.kind is ChurnKind.SPOT_LOSS:
            self.set_node(objects.with_taint(self.nodes[name], objects.SPOT_TAINT, present=True))
            self._after(SPOT_NOTICE_SECONDS, self.delete_node, name)
        else:
            self.set_node(self.nodes[name])
            self.delete_node(name)

    def _choose_node(self, event: ChurnEvent) -> str:
        """Returns the node to which it happens, or ""."""
        names = [name for name in sorted(self.nodes) if self.nodes[name].is_staying and name not in self._lost]
        return names[int(event.share * len(names))] if len(names) > 1 else ""

    def _uncordon(self, name: str) -> None:
        if name in self._user_cordons:
            self._user_cordons.discard(name)
            if name in self.nodes:
                self.set_node(replace(self.nodes[name], is_cordoned=False))

    # ── controllers ──────────────────────────────────────────────────────────────────────────────────
    def _reconcile(self, name: str) -> None:
        """Creates and deletes pods of the workload, as the Deployment and Job controllers do."""
        self._changed_workloads[name] = None
        workload = self.workloads.get(name)
        if workload is None:
            return
        old = [uid for uid, generation in workload.pods.items() if generation != workload.generation]
        new_count, surge = len(workload.pods) - len(old), 0
        if old:
            surge, unavailable = ceil(workload.wanted * SURGE_SHARE), int(workload.wanted * SURGE_SHARE)
            spare = workload.ready - (workload.wanted - unavailable)
            for uid in objects.order_deletions([self.pods[uid] for uid in old]):
                is_ready = self.pods[uid].is_ready
                if not is_ready or spare > 0:
                    spare -= is_ready
                    self._delete_pod(uid)
        missing = min(workload.wanted - new_count, workload.wanted + surge - len(workload.pods))
        for _ in range(missing):
            self._create_pod(workload)
        excess = len(workload.pods) - workload.wanted if not old else new_count - workload.wanted
        if excess > 0:
            new = [self.pods[uid] for uid, number in workload.pods.items() if number == workload.generation]
            for uid in objects.order_deletions(new)[:excess]:
                self._delete_pod(uid)
        self._see_budget(workload)
        if workload.is_job and not workload.wanted and not workload.pods:
            del self.workloads[name]

    def _create_pod(self, workload: ChurningWorkload) -> None:
        self._created += 1
        uid = f"{workload.name}-{self._created:06d}"
        owner = workload.owner(workload.generation)
        pod = objects.create_pod(uid, workload.requirements, owner, self.timestamp, workload.number)
        self.scheduler.know(pod)
        self._add_pod(workload, pod)

    def _add_pod(self, workload: ChurningWorkload, pod: PodInfo) -> None:
        workload.pods[pod.uid] = workload.generation
        if pod.node:
            self._pods_on[pod.node][pod.uid] = None
        else:
            self._waiting[pod.uid] = None
            self._has_room = True
        self._set_pod(pod)

    def _make_ready(self, uid: str) -> None:
        pod = self.pods.get(uid)
        if pod is not None and pod.deletion_requested_at is None:
            self._set_pod(change(pod, is_ready=True, started=self.timestamp))
            self._reconcile(self._workload_of(pod))

    def _delete_pod(self, uid: str, *, is_evicted: bool = False) -> None:
        """Asks the pod to go; its controller no longer counts it."""
        pod = self.pods[uid]
        name = self._workload_of(pod)
        if name in self.workloads:
            self.workloads[name].forget_pod(pod)
        self._set_pod(
            change(pod, deletion_requested_at=self.timestamp, is_ready=False, likeness=-1), is_evicted=is_evicted
        )
        if pod.node:
            self._after(self.times.stop, self._remove_pod, uid)
        else:
            self._remove_pod(uid)

    def _remove_pod(self, uid: str) -> None:
        pod = self.pods.pop(uid, None)
        if pod is None:
            return
        del self._uids[bisect_left(self._uids, uid)]
        self._changed[uid] = None
        self.version += 1
        self._waiting.pop(uid, None)
        if pod.node:
            self.scheduler.remove_pod(pod)
            self._pods_on.get(pod.node, {}).pop(uid, None)
            self._has_room = True
        name = self._workload_of(pod)
        self._changed_workloads[name] = None
        self.history.append(PodGone(self.now, uid))
        # A pod that was asked to go no longer counts; one that goes with its node does.
        if name in self.workloads and self.workloads[name].forget_pod(pod):
            self._reconcile(name)

    def _workload_of(self, pod: PodInfo) -> str:
        return pod.requirements.labels[objects.APP_LABEL]

    def _set_pod(self, pod: PodInfo, *, is_evicted: bool = False) -> None:
        self.version += 1
        name, was_ready = self._workload_of(pod), self._store_pod(pod)
        workload = self.workloads.get(name)
        self._changed_workloads[name] = None
        if workload is not None and pod.uid in workload.pods:
            workload.ready += pod.is_ready - was_ready
        self.history.append(
            PodSeen(
                self.now,
                pod.uid,
                name,
                node=pod.node,
                is_ready=pod.is_ready,
                is_evicted=is_evicted,
                is_leaving=pod.deletion_requested_at is not None,
            )
        )

    def _store_pod(self, pod: PodInfo) -> bool:
        """Replaces the pod of this uid, and returns whether that one was ready."""
        before = self.pods.get(pod.uid)
        if before is None:
            insort(self._uids, pod.uid)
        self.pods[pod.uid] = pod
        self._changed[pod.uid] = None
        return before is not None and before.is_ready

    def _see_budget(self, workload: ChurningWorkload) -> None:
        if not workload.is_job:
            desired = 0 if workload.max_unavailable is None else max(0, workload.wanted - workload.max_unavailable)
            self.version += 1
            self.history.append(BudgetSeen(self.now, workload.name, desired))

    # ── what others do ───────────────────────────────────────────────────────────────────────────────
    def set_node(self, node: NodeInfo) -> None:
        """Replaces a node of the same name."""
        self.version += 1
        self.scheduler.replace_node(self.nodes.get(node.name), node)
        self.nodes[node.name] = node
        self._has_room = True
        self.history.append(
            NodeSeen(
                self.now,
                node.name,
                0 if isinstance(node.allocatable, Unreadable) else node.allocatable.get("cpu", 0),
                self._price_of(node),
                is_cordoned=node.is_cordoned,
                is_cordoned_by_user=node.name in self._user_cordons,
                is_lost=node.name in self._lost,
            )
        )

    def _price_of(self, node: NodeInfo) -> int:
        return int(node.labels["trimtab.dev/price"])

    def order_node(self, group: str) -> None:
        """Buys a machine; its node is there and ready after a while."""
        self.coming.append(group)
        self._after(self.times.provision, self._register_node, group)

    def _register_node(self, group: str) -> None:
        self.coming.remove(group)
        self._add_node(group)

    def _add_node(self, group: str) -> None:
        machine = next(one for one in self.churn.machines if one.group == group)
        self._ordered += 1
        node = objects.create_node(machine, objects.name_node(group, self._ordered, self.naming), self.timestamp)
        self._pods_on[node.name] = {}
        self.set_node(node)

    def delete_node(self, name: str) -> None:
        """Deletes a node; its pods go with it."""
        if name not in self.nodes:
            return
        del self.nodes[name]
        self.version += 1
        self.scheduler.is_outdated = True
        self._user_cordons.discard(name)
        self.history.append(NodeGone(self.now, name))
        for uid in list(self._pods_on.pop(name)):
            self._remove_pod(uid)

    def scale_workload(self, deployment: str, before: int, replicas: int) -> bool:
        """Gives the Deployment (namespace/name) this number of replicas; returns False if its present number is not
        `before`."""
        workload = self.workloads.get(deployment.partition("/")[2])
        if workload is None or workload.wanted != before:
            return False
        workload.wanted = replicas
        self._reconcile(workload.name)
        self.settle()
        return True

    def evict_pod(self, uid: str) -> bool:
        """Evicts the pod as the eviction API does; returns False if a budget refuses it."""
        pod = self.pods.get(uid)
        if pod is None or pod.deletion_requested_at is not None:
            return True
        name = self._workload_of(pod)
        if not self._allows_eviction(pod, name):
            return False
        self._delete_pod(uid, is_evicted=True)
        self._reconcile(name)
        self.settle()
        return True

    def _allows_eviction(self, pod: PodInfo, workload: str) -> bool:
        budget = self._budget_of(self.workloads[workload])
        return budget is None or budget.allows_eviction(pod_is_ready=pod.is_ready)

    # ── what others see ──────────────────────────────────────────────────────────────────────────────
    def _budget_of(self, workload: ChurningWorkload) -> Pdb | None:
        if workload.max_unavailable is None or workload.is_job:
            return None
        return objects.create_budget(
            workload.name,
            wanted=workload.wanted,
            ready=workload.ready,
            max_unavailable=workload.max_unavailable,
        )

    @property
    def budgets(self) -> tuple[Pdb, ...]:
        """The budgets in the order of their names."""
        return self.budget_index.pdbs

    @property
    def budget_index(self) -> PdbIndex:
        """The budgets by what they select."""
        present = map(self._budget_of, (self.workloads[name] for name in sorted(self.workloads)))
        return PdbIndex.from_pdbs(budget for budget in present if budget is not None)

    def pods_on(self, node: str) -> list[PodInfo]:
        """Returns the pods on the node."""
        return [self.pods[uid] for uid in self._pods_on.get(node, ())]

    @property
    def waiting(self) -> list[PodInfo]:
        """The pods that the scheduler called unschedulable, the oldest first."""
        return [pod for uid in self._waiting if (pod := self.pods[uid]).is_unschedulable]

    def read_inventory(self) -> Inventory:
        """Returns the cluster as a planner reads it."""
        if self._inventory is None or self._inventory[0] != self.version:
            budgets, before = self.budget_index, self._inventory
            inventory = replace(
                self.base,
                nodes=tuple(self.nodes[name] for name in sorted(self.nodes)),
                pods=tuple([self.pods[uid] for uid in self._uids]),
                pdbs=budgets.pdbs,
                owners={**self.base.owners, **self._count_replicas()},
            )
            changes, self._changed = {uid: self.pods.get(uid) for uid in self._changed}, {}
            pods = None if before is None else before[1].pod_index.with_changes(changes)
            self._inventory = self.version, inventory.with_indexes(pods, budgets)
        return self._inventory[1]

    def _count_replicas(self) -> dict[OwnerKey, ReplicaCounts]:
        owners: dict[OwnerKey, ReplicaCounts] = {}
        for workload in self.workloads.values():
            counts = ReplicaCounts(
                wanted=None if workload.is_job else workload.wanted,
                have=len(workload.pods),
                ready=workload.ready,
            )
            if not workload.is_job:
                owners[OwnerKey(NAMESPACE, DEPLOYMENT, workload.name)] = counts
            owners |= workload.count_replica_sets(counts, self.pods)
        return owners

    @property
    def top_owners(self) -> Mapping[OwnerKey, OwnerKey]:
        """ReplicaSet → Deployment."""
        return {
            workload.owner(generation): OwnerKey(NAMESPACE, DEPLOYMENT, workload.name)
            for workload in self.workloads.values()
            if not workload.is_job
            for generation in {workload.generation, *workload.pods.values()}
        }
