"""The cluster in memory of a replay: the recorded nodes and pods at its beginning, and then the recorded demand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import ceil
from zlib import crc32

from trimtab.autoscaling.churn.churn_cluster import ChurnCluster
from trimtab.autoscaling.churn.churn_history import PodSeen
from trimtab.autoscaling.churn.churn_objects import ChurningWorkload
from trimtab.autoscaling.churn.churn_script import ChurnEvent, ChurnKind
from trimtab.autoscaling.churn.stand_in_view import GROUP_LABEL
from trimtab.autoscaling.replay.demand import order_initial_pods
from trimtab.autoscaling.replay.recorded_marks import list_marks
from trimtab.autoscaling.replay.recorded_pods import SLOT_PART
from trimtab.autoscaling.replay.recording import NodeLife, Stretch, is_of_autoscaler
from trimtab.autoscaling.replay.replica_sums import ReplicaSum, ReplicaSums, SumKey
from trimtab.cluster.api.meta import change, value_or
from trimtab.cluster.cluster_state import ReplicaCounts
from trimtab.cluster.kinds import DEPLOYMENT, JOB
from trimtab.cluster.node import AUTOSCALER_TAINTS, HOSTNAME_LABEL, NodeInfo
from trimtab.cluster.owner import OwnerKey
from trimtab.cluster.pdb import Pdb, PdbIndex
from trimtab.cluster.pod import PodInfo, SchedulingRequirements
from trimtab.cluster.reason import Unreadable
from trimtab.cluster.scalable_deployments import ScalableDeployments
from trimtab.cluster.timestamps import Seconds

NO_PODS = ReplicaSum()
STARTED_SECONDS = 600
"""From this age on, in seconds, a node has no taint any more that agents, such as those of a network, remove."""


@dataclass(frozen=True, slots=True)
class Rollout:
    """A rollout of a Deployment in progress."""

    counted_for: tuple[SumKey, ...] = ()
    """The Deployment, and the budgets that select its pods."""
    excess: int = 0
    """How many pods its ReplicaSets want beyond what the Deployment does."""


NO_ROLLOUT = Rollout()


@dataclass(slots=True)
class ReplayCluster(ChurnCluster):
    """The cluster at one time of the replay. Its demand is that of a recorded stretch, whatever its nodes are."""

    stretch: Stretch = field(default_factory=lambda: Stretch(0, 0))
    recorded_top_owners: Mapping[OwnerKey, OwnerKey] = field(default_factory=dict)
    prices: Mapping[str, int] = field(default_factory=dict)
    """Group → micro-dollars an hour of a node of it; 0 for a group without a known price."""
    group_of_node: dict[str, str] = field(default_factory=dict)
    """Each machine that there ever was → its group."""
    _slots: dict[str, str] = field(default_factory=dict)
    """Uid → slot."""
    _rules: dict[str, Pdb] = field(default_factory=dict)
    _rule_index: PdbIndex = field(default_factory=lambda: PdbIndex.from_pdbs(()))
    _budgets_of: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Slot → the budgets that select its pods."""
    _next_budget: int = 0
    _next_count: int = 0
    _counts: dict[OwnerKey, int] = field(default_factory=dict)
    """Deployment → how many pods the recording says that it wants now."""
    _changed_counts: dict[OwnerKey, None] = field(default_factory=dict)
    """The Deployments of which that has changed since it was last counted."""
    _slots_of: dict[OwnerKey, list[str]] = field(default_factory=dict)
    """Deployment → its slots."""
    _sums: ReplicaSums = field(init=False)
    _rollouts: dict[OwnerKey, Rollout] = field(default_factory=dict)
    _excess: Counter[SumKey] = field(default_factory=Counter)
    """How many pods less than its workloads an owner or a budget wants, because of rollouts."""
    _counted_budgets: dict[str, Pdb] = field(default_factory=dict)
    """Key → the budget with its status."""
    _counted_owners: dict[OwnerKey, ReplicaCounts] = field(default_factory=dict)
    _budgets: PdbIndex | None = None
    """All budgets with their statuses; None if one has changed since."""
    _known_workloads: int = 0
    """How many workloads there were: two of them never share a number, because pods with equal ones count as alike."""
    _daemon_requirements: dict[OwnerKey | str, SchedulingRequirements] = field(default_factory=dict)
    _group_daemons: dict[str, tuple[PodInfo, ...]] = field(default_factory=dict)
    _recorded_names: dict[str, list[str]] = field(default_factory=dict)
    """Group → the names of its recorded nodes."""

    def __post_init__(self) -> None:
        stretch = self.stretch
        self._sums = ReplicaSums(self._keys_of)
        for slot in stretch.samples:
            deployment = self._deployment_of(slot)
            if deployment is not None:
                self._slots_of.setdefault(deployment, []).append(slot)
        self.templates = make_templates(stretch)
        for life in stretch.nodes:
            if life.is_initial and life.node.name not in self.nodes:
                self._pods_on[life.node.name] = {}
                if life.node.nature.is_machine:
                    self.group_of_node[life.node.name] = life.group
                found = _as_found(life.settled, life.group)
                self.set_node(replace(found, taints=(*found.taints, *list_marks(life))))
        names = {life.node.name: life.group for life in stretch.nodes}
        for name in sorted(names):
            self._recorded_names.setdefault(names[name], []).append(name)
        for node, daemons in stretch.daemons.items():
            group = names.get(node, "")
            if len(daemons) > len(self._group_daemons.get(group, ())):
                self._group_daemons[group] = daemons
        for node in list(self.nodes):
            self._add_daemons(node, stretch.daemons.get(node, ()))
        self._take_budgets()
        for pod in order_initial_pods(stretch, self.naming):
            self._create_pod(self._workload(pod.slot), pod.node if pod.node in self.nodes else "")
        for workload in self.workloads.values():
            workload.wanted = len(workload.pods)
        self._changed_workloads.update(dict.fromkeys(self.workloads))
        # Nodes that users had cordoned before take no pod that waits now.
        self.advance_to(0)
        self.settle()

    # ── the demand ───────────────────────────────────────────────────────────────────────────────────
    def _happen(self, event: ChurnEvent) -> None:
        self._take_budgets()
        if event.kind is ChurnKind.SCALE:
            workload = self._workload(event.workload)
            workload.wanted = event.amount
            self._reconcile(workload.name)
            if not workload.wanted and not workload.pods:
                self.workloads.pop(workload.name, None)
        else:
            self._happen_to_node(event)

    def _choose_node(self, event: ChurnEvent) -> str:
        """Returns the node to which it happens: the recorded one, or another one of its group that takes pods. A node
        that another one empties is not cordoned: the end of that cordon would give it back."""
        recorded = self.nodes.get(event.workload)
        is_emptied = recorded is not None and (recorded.is_cordoned or recorded.removal_taint is not None)
        if recorded is not None and not (is_emptied and event.kind is ChurnKind.CORDON):
            return event.workload
        group = next((life.group for life in self.stretch.nodes if life.node.name == event.workload), "")
        alike = [
            name
            for name, node in sorted(self.nodes.items())
            if node.is_staying and node.labels.get(GROUP_LABEL) == group
        ]
        return alike[int(event.share * len(alike))] if alike else ""

    def _workload(self, slot: str) -> ChurningWorkload:
        workload = self.workloads.get(slot)
        if workload is None:
            # A former workload of the slot counted for the budgets of its time.
            self._count_changes()
            sample = self.stretch.samples[slot]
            is_job = sample.owner is not None and sample.owner.kind == JOB
            workload = self.workloads[slot] = ChurningWorkload(
                slot, sample.requirements, self._known_workloads, wanted=0, is_job=is_job
            )
            self._known_workloads += 1
            self._budgets_of[slot] = _find_budgets(self._rule_index, sample)
        return workload

    def _create_pod(self, workload: ChurningWorkload, node: str = "") -> None:
        self._created += 1
        sample = self.stretch.samples[workload.name]
        uid = f"{sample.namespace}/{workload.name.rpartition('/')[2].partition(SLOT_PART)[0]}-{self._created}"
        created = self.timestamp
        pod = change(
            sample,
            name=uid.partition("/")[2],
            uid=uid,
            node=node,
            created=created,
            started=created if node else None,
            deletion_requested_at=None,
            phase="Running" if node else "Pending",
            is_ready=bool(node),
            likeness=workload.number if sample.likeness >= 0 else -1,
            is_unschedulable=False,
            nominated_node="",
        )
        self._slots[uid] = workload.name
        self.scheduler.know(pod)
        self._add_pod(workload, pod)

    def _workload_of(self, pod: PodInfo) -> str:
        return self._slots.get(pod.uid, "")

    def _remove_pod(self, uid: str) -> None:
        ChurnCluster._remove_pod(self, uid)
        self._slots.pop(uid, None)

    # ── nodes ────────────────────────────────────────────────────────────────────────────────────────
    def _add_node(self, group: str) -> None:
        self._ordered += 1
        name = self._name_node(group)
        template = self.templates[group]
        node = replace(
            template,
            name=name,
            uid=name,
            labels={**template.labels, HOSTNAME_LABEL: name},
            created=self.timestamp,
            provider_id="",
        )
        self._pods_on[name] = {}
        self.group_of_node[name] = group
        self.set_node(node)
        self._add_daemons(name, self._group_daemons.get(group, ()))

    def _name_node(self, group: str) -> str:
        """Returns a name that follows that of a recorded node of the group, so that ties between nodes fall as they do
        among recorded ones."""
        names = self._recorded_names.get(group, [group])
        number = crc32(f"{self.naming} {group} {self._ordered}".encode()) % len(names)
        return f"{names[number]}-{self._ordered}"

    def _add_daemons(self, node: str, daemons: tuple[PodInfo, ...]) -> None:
        for number, daemon in enumerate(daemons):
            uid = f"daemon {number} of {node}"
            # The pods of a DaemonSet differ only in the node that their affinity names.
            plain = change(daemon.requirements, node_affinity=None)
            requirements = self._daemon_requirements.setdefault(daemon.owner or daemon.key, plain)
            pod = change(daemon, name=f"{daemon.name}-{node}-{number}", uid=uid, node=node, requirements=requirements)
            self._store_pod(pod)
            self._pods_on[node][uid] = None
            self.scheduler.know(pod)
        self.scheduler.is_outdated = True

    def _price_of(self, node: NodeInfo) -> int:
        return node.price or self.prices.get(node.labels.get(GROUP_LABEL, ""), 0)

    # ── budgets ──────────────────────────────────────────────────────────────────────────────────────
    def _take_budgets(self) -> None:
        """Takes over what budgets said until now."""
        counts = self.stretch.counts
        while self._next_count < len(counts) and counts[self._next_count][0] <= self.timestamp:
            _, deployment, count = counts[self._next_count]
            self._counts[deployment] = count
            self._changed_counts[deployment] = None
            self._next_count += 1
        changes, changed = self.stretch.budgets, dict[str, Pdb | None]()
        while self._next_budget < len(changes) and changes[self._next_budget][0] <= self.timestamp:
            _, key, changed[key] = changes[self._next_budget]
            self._next_budget += 1
        if changed:
            self.version += 1
            self._count_changes()
            self._change_rules(changed)

    def _change_rules(self, changed: Mapping[str, Pdb | None]) -> None:
        """Takes over new rules, key → budget, or None for one that is gone."""
        rules = {key: rule for key, rule in {**self._rules, **changed}.items() if rule is not None}
        self._rules = {key: rules[key] for key in sorted(rules)}
        self._rule_index, self._budgets = PdbIndex.from_pdbs(self._rules.values()), None
        new = PdbIndex.from_pdbs([rule for rule in changed.values() if rule is not None])
        for slot in self.workloads:
            before = self._budgets_of[slot]
            others = [key for key in before if key not in changed]
            present = (*others, *_find_budgets(new, self.stretch.samples[slot]))
            if present != before:
                self._sums.forget_workload(slot)
                self._budgets_of[slot] = present
                self._changed_workloads[slot] = None
        for key, rule in changed.items():
            self._counted_budgets.pop(key, None)
            if rule is not None:
                self._count_budget(key, rule)

    def _see_budget(self, workload: ChurningWorkload) -> None:
        pass

    @property
    def budget_index(self) -> PdbIndex:
        """The budgets, with what they select."""
        self._count_changes()
        if self._budgets is None:
            present = self._counted_budgets
            pdbs = tuple([present[budget.key] for budget in self._rule_index.pdbs])
            self._budgets = self._rule_index.with_statuses(pdbs)
        return self._budgets

    def _allows_eviction(self, pod: PodInfo, workload: str) -> bool:
        keys = self._budgets_of.get(workload, ())
        if len(keys) > 1:
            # The eviction API answers 500 for a pod of several budgets.
            return False
        self._count_changes()
        return all(self._counted_budgets[key].allows_eviction(pod_is_ready=pod.is_ready) for key in keys)

    def _count_changes(self) -> None:
        """Brings the counts of owners and budgets up to date."""
        changed = self._sums.count_changes(self.workloads, self._changed_workloads)
        deployments = dict(self._changed_counts)
        for slot in self._changed_workloads:
            if (deployment := self._deployment_of(slot)) is not None:
                deployments[deployment] = None
        for deployment in deployments:
            changed.update(self._count_rollout(deployment))
        for key in changed:
            if isinstance(key, OwnerKey):
                self._count_owner(key)
            elif key in self._rules:
                self._count_budget(key, self._rules[key])
                self._budgets = None
        self._changed_workloads.clear()
        self._changed_counts.clear()

    def _count_owner(self, key: OwnerKey) -> None:
        one = self._sums.sums.get(key)
        if one is None:
            self._counted_owners.pop(key, None)
            return
        wanted = None if key.kind == JOB else one.wanted - self._excess[key]
        self._counted_owners[key] = ReplicaCounts(wanted=wanted, have=one.have, ready=one.ready)

    def _count_budget(self, key: str, rule: Pdb) -> None:
        one = self._sums.sums.get(key, NO_PODS)
        self._counted_budgets[key] = with_counts(rule, expected=one.wanted - self._excess[key], ready=one.ready)

    def _count_rollout(self, deployment: OwnerKey) -> Iterable[SumKey]:
        """Returns the keys whose counts change because a rollout of the Deployment began, went on or ended. The
        disruption controller counts what a Deployment wants; its ReplicaSets want more while a rollout adds pods."""
        present = [self.workloads[slot] for slot in self._slots_of.get(deployment, ()) if slot in self.workloads]
        own = sorted((one for one in present if one.wanted), key=lambda one: one.number)
        excess = sum(one.wanted for one in own) - self._counts.get(deployment, 0)
        before, rollout = self._rollouts.pop(deployment, NO_ROLLOUT), NO_ROLLOUT
        if len(own) > 1 and excess > 0 and deployment in self._counts:
            rollout = self._rollouts[deployment] = Rollout((deployment, *self._budgets_of[own[0].name]), excess)
        if rollout == before:
            return ()
        for one, sign in ((before, -1), (rollout, 1)):
            for key in one.counted_for:
                self._excess[key] += sign * one.excess
        return (*before.counted_for, *rollout.counted_for)

    def _keys_of(self, slot: str) -> Iterator[SumKey]:
        """Yields the owners and the budgets for which the pods of the slot count."""
        yield from self._budgets_of[slot]
        owner = self.stretch.samples[slot].owner
        if owner is not None:
            yield owner
            if owner in self.recorded_top_owners:
                yield self.recorded_top_owners[owner]

    def scale_workload(self, deployment: str, before: int, replicas: int) -> bool:
        """Gives the Deployment (namespace/name) this number of replicas until the recording gives it another one;
        returns False if its present number is not `before`. The number of its largest ReplicaSet changes."""
        namespace, _, name = deployment.partition("/")
        key = OwnerKey(namespace, DEPLOYMENT, name)
        slots = [workload for slot, workload in self.workloads.items() if self._deployment_of(slot) == key]
        largest = max(slots, key=lambda workload: (workload.wanted, workload.number), default=None)
        if largest is None or self._count_replicas()[key].wanted != before:
            return False
        largest.wanted = max(0, largest.wanted + replicas - before)
        self._reconcile(largest.name)
        self.settle()
        return True

    def _deployment_of(self, slot: str) -> OwnerKey | None:
        """Returns the Deployment that the slot, a ReplicaSet, belongs to; None if it belongs to none."""
        sample = self.stretch.samples.get(slot)
        top = self.recorded_top_owners.get(sample.owner) if sample is not None and sample.owner is not None else None
        return top if top is not None and top.kind == DEPLOYMENT else None

    # ── what others see ──────────────────────────────────────────────────────────────────────────────
    def _count_replicas(self) -> dict[OwnerKey, ReplicaCounts]:
        self._count_changes()
        return self._counted_owners

    @property
    def top_owners(self) -> Mapping[OwnerKey, OwnerKey]:
        """ReplicaSet → Deployment."""
        return self.recorded_top_owners

    def count_evictions(self) -> Counter[str]:
        """Returns workload → how many of its pods were evicted. A ReplicaSet counts for its Deployment."""
        evicted: Counter[str] = Counter()
        seen: set[str] = set()
        for record in self.history:
            if isinstance(record, PodSeen) and record.is_evicted and record.uid not in seen:
                seen.add(record.uid)
                evicted[describe_slot(self.stretch, record.workload, self.recorded_top_owners)] += 1
        return evicted


def _find_budgets(index: PdbIndex, sample: PodInfo) -> tuple[str, ...]:
    return tuple(index.pdbs[n].key for n in index.matching_numbers(sample.namespace, sample.requirements.labels))


def describe_slot(stretch: Stretch, slot: str, top_owners: Mapping[OwnerKey, OwnerKey]) -> str:
    """Returns the workload to which the slot belongs, as text: the topmost owner that is known."""
    sample = stretch.samples.get(slot)
    if sample is None or sample.owner is None:
        return slot.partition(SLOT_PART)[0]
    return top_owners.get(sample.owner, sample.owner).described


def with_counts(budget: Pdb, *, expected: int, ready: int) -> Pdb:
    """Returns the budget as the disruption controller would keep it for so many pods."""
    if budget.max_unavailable is not None:
        desired = max(0, expected - _share_of(budget.max_unavailable, expected))
    else:
        desired = _share_of(budget.min_available if budget.min_available is not None else 0, expected)
    return replace(
        budget,
        allowed=max(0, ready - desired),
        max_allowed=max(0, expected - desired),
        is_healthy=ready >= desired > 0,
        is_stale=False,
        expected=expected,
        healthy=ready,
    )


def _share_of(amount: int | str, whole: int) -> int:
    """Returns a number or a percentage of the whole, rounded up as by the disruption controller."""
    if isinstance(amount, int):
        return amount
    percent = amount.removesuffix("%")
    return ceil(int(percent) * whole / 100) if percent.isdecimal() else whole


def make_templates(stretch: Stretch) -> dict[str, NodeInfo]:
    """Returns group → a new node of it: like the latest one that had started, without what it got later."""

    def order_of(life: NodeLife) -> tuple[bool, Seconds]:
        end = stretch.end if life.end is None else life.end
        return end - life.begin >= STARTED_SECONDS, life.begin

    lives = sorted(stretch.nodes, key=order_of)
    return {life.group: _as_new(life.settled, life.group) for life in lives if is_of_autoscaler(life.settled)}


def settle_deployments(deployments: ScalableDeployments) -> ScalableDeployments:
    """Returns the Deployments between two rollouts, and without autoscalers.

    They are known as they were last, which says nothing about an earlier time. The recording says when an autoscaler
    changed a count; while the replay gives a Deployment a second pod, none answers, so the count itself is raised.
    """
    settled = []
    for shape in deployments.deployments:
        wanted = value_or(shape.spec.replicas, 1)
        status = change(
            shape.status,
            replicas=wanted,
            updated_replicas=wanted,
            available_replicas=wanted,
            observed_generation=shape.metadata.generation,
        )
        settled.append(change(shape, status=status))
    return replace(deployments, deployments=settled, autoscalers=())


def _as_found(node: NodeInfo, group: str) -> NodeInfo:
    """Returns the node as the replay finds it: without what recorded autoscalers had in mind for it."""
    taints = tuple(taint for taint in node.taints if taint.key not in AUTOSCALER_TAINTS)
    labels = {key: text for key, text in node.labels.items() if key != GROUP_LABEL}
    labels |= {GROUP_LABEL: node.labels.get(GROUP_LABEL, group)} if is_of_autoscaler(node) else {}
    return replace(node, taints=taints, labels=labels, is_cordoned=False)


def _as_new(node: NodeInfo, group: str) -> NodeInfo:
    taints = tuple(taint for taint in node.taints if not taint.key.startswith("node.kubernetes.io/"))
    found = _as_found(replace(node, taints=taints), group)
    return replace(found, is_ready=not isinstance(node.allocatable, Unreadable), annotations={}, lifecycle=())
