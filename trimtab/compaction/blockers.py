"""Decides whether a pod may be evicted.

A pod is evictable; or it is ignored (static pods, DaemonSet pods); or it is blocked, and then its node cannot be
drained. The rules are checked in order, and the first one that blocks is the reason. A pod that the cluster autoscaler
refuses to evict is blocked here too, because the autoscaler would not remove its node.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from trimtab.cluster.autoscaler_evictions import EvictionRules
from trimtab.cluster.cluster_autoscaler import Autoscaler
from trimtab.cluster.cluster_state import Inventory, ReplicaCounts
from trimtab.cluster.format_count import format_count
from trimtab.cluster.kinds import DEPLOYMENT, JOB, REPLICA_SET
from trimtab.cluster.owner import TEMPLATE_HASH, OwnerKey
from trimtab.cluster.pdb import Pdb, PdbIndex
from trimtab.cluster.pod import CRITICAL_PRIORITY, NODE_CRITICAL_PRIORITY, PodInfo
from trimtab.cluster.pod_groups import PodGroup, find_groups, join_by_labels
from trimtab.cluster.pool import KEEP_ANNOTATION, RENAMED_KEEP, Pool, PoolIndex, ProtectCritical, ProtectUnready
from trimtab.cluster.pool_values import GroupMode
from trimtab.cluster.processes import PROCESSES
from trimtab.cluster.reason import Reason
from trimtab.cluster.timestamps import Seconds
from trimtab.compaction import reasons as r
from trimtab.compaction.candidates import keep_reason, unreadable_reason
from trimtab.compaction.do_not_disrupt import do_not_disrupt_reason
from trimtab.compaction.long_graces import grace_reason
from trimtab.compaction.rules_of_nodes import RulesOfNodes
from trimtab.compaction.second_replica import second_replica_reason
from trimtab.compaction.surge.find_surge import Surge, find_surge
from trimtab.compaction.terms.term_ledger import EMPTY_LEDGER, TermLedger
from trimtab.compaction.terms.term_obstacles import find_term_obstacle
from trimtab.compaction.unknown_owners import describe_unknown_owner

SAFE = "cluster-autoscaler.kubernetes.io/safe-to-evict"
SAFE_VOLUMES = "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes"
NO_EVICTION = "descheduler.alpha.kubernetes.io/prefer-no-eviction"
EVICTABLE_OWNERS = frozenset({"ReplicaSet", "ReplicationController", "StatefulSet", "Job"})
NEEDED_PROCESSES = tuple((process.name, process.labels.items()) for process in PROCESSES if process.is_needed_by_pods)
"""(name, labels of its pods) for each process of Trimtab that must be ready when pods are created."""
HOUR_SECONDS = 3600
LONG_UNREADY_SECONDS = 600
"""An unready replica that was created more than this many seconds ago is not explained by a rollout or a node
failure."""
MIN_TOLERATING_REPLICAS = 3
"""The smallest number of replicas for which one replica that is not ready is tolerated."""
DELETION_SLACK_SECONDS = 30
"""A terminating pod no longer counts once its grace period ended this many seconds ago (the cluster autoscaler's own
rule)."""


@dataclass(frozen=True, slots=True)
class Blocked:
    """The pod must not be evicted, so its node cannot be drained."""

    reason: Reason


@dataclass(frozen=True, slots=True)
class Evictable:
    """The pod may be evicted. `budget` is the position in `inventory.pdbs` of the PodDisruptionBudget that selects the
    pod, or None if no budget selects it."""

    budget: int | None
    surge: Surge | None = None
    """What the pod's Deployment must be given first, so that the budget allows the eviction; None if the budget allows
    it now."""


class Ignored:
    """The pod is not moved and does not prevent the drain of its node."""


IGNORED = Ignored()
UNRESTRICTED = Evictable(None)
Verdict = Blocked | Evictable | Ignored


@dataclass(slots=True)
class EvictionChecker:
    """Decides for each pod of one inventory whether it may be evicted; created once per plan."""

    inventory: Inventory
    pdb_index: PdbIndex
    now: Seconds | None
    rules: RulesOfNodes
    """The rules of the cluster autoscaler, which would not remove a node that it does not empty itself."""
    term_ledger: TermLedger = EMPTY_LEDGER
    pools: Sequence[Pool] = ()
    """The pools whose labels make further groups of pods."""
    _replica_counts: dict[OwnerKey, int] = field(default_factory=dict)
    """Owner → the number of its pods without a deletion timestamp; computed when it is first needed."""
    _unready_by_owner: dict[OwnerKey, list[PodInfo]] | None = None
    """Owner → its pods that are not ready; computed when it is first needed."""
    _groups: dict[int, PodGroup] | None = None
    """Id of a pod → its group; computed when it is first needed. Pods without a group are not in the mapping."""
    _nodes_by_group: dict[PodGroup, set[str]] = field(default_factory=dict)
    """Group → the nodes of its pods."""
    _verdicts: dict[tuple[int, EvictionRules], dict[int, Verdict]] = field(default_factory=dict)

    @classmethod
    def for_inventory(
        cls,
        inventory: Inventory,
        now: Seconds | None,
        autoscaler: Autoscaler | None = None,
        ledger: TermLedger = EMPTY_LEDGER,
        pools: Sequence[Pool] = (),
    ) -> "EvictionChecker":
        """Returns the checker for an inventory. `now` is None if the time is unknown; rules that need the time are then
        skipped."""
        rules = RulesOfNodes(inventory.nodes, autoscaler)
        return cls(inventory, inventory.pdb_index, now, rules, ledger, pools)

    def count_replicas(self, pod: PodInfo) -> int:
        """Returns the number of existing pods of the pod's owner. It is used for owners that are not in the
        snapshot."""
        if not self._replica_counts:
            for other in self.inventory.pods:
                if other.owner is not None and other.deletion_requested_at is None and not other.is_finished:
                    self._replica_counts[other.owner] = self._replica_counts.get(other.owner, 0) + 1
        return self._replica_counts.get(pod.owner, 0) if pod.owner else 0

    def judge_pod(self, pod: PodInfo, pool: Pool) -> Verdict:
        """Returns whether the pod may be evicted.

        The verdict for a pod is cached for all pods that are alike (`cached_verdicts`), unless it depends on the age of
        the pod. A verdict that blocks is not cached, because its reason names the pod.
        """
        verdict = self._judge(pod, pool)
        ageless = verdict is IGNORED or (pod.namespace != "kube-system" and not pool.min_pod_age)
        if pod.likeness >= 0 and ageless and not isinstance(verdict, Blocked) and id(pod) not in self._pod_groups():
            self.cached_verdicts(pool, pod.node)[pod.likeness] = verdict
        return verdict

    def cached_verdicts(self, pool: Pool, node: str) -> dict[int, Verdict]:
        """Returns `PodInfo.likeness` → verdict, for the nodes of a pool on which the same rules hold as on this one."""
        return self._verdicts.setdefault((id(pool), self.rules.on_node(node, pool)), {})

    def _judge(self, pod: PodInfo, pool: Pool) -> Verdict:
        # As kubectl drain: the kubelet owns a static pod, and an eviction deletes only its mirror in the API.
        if pod.is_finished or pod.is_static or self._is_past_deletion(pod):
            return IGNORED
        budgets = self.pdb_index.matching_numbers(pod.namespace, pod.requirements.labels)
        if pod.is_daemon:
            return self._daemon_verdict(pod, pool, budgets)
        if pod.deletion_requested_at is not None:
            return Blocked(r.GOING(f"pod {pod.key} is being deleted"))
        reason = (
            self._system_reason(pod, pool, budgets)
            # Before the owner: whoever made the pods of a group, they stay for one reason.
            or self._group_reason(pod, pool)
            or self._owner_reason(pod, pool, budgets)
            or self._annotation_reason(pod, pool)
            or self._term_reason(pod, pool)
            or self._local_data_reason(pod, pool)
            or self._age_reason(pod, pool)
            or grace_reason(pod, pool)
        )
        if reason is not None:
            return Blocked(reason)
        return self._budget_verdict(pod, pool, budgets)

    def block_moved(self, pod: PodInfo, verdict: Verdict) -> Verdict:
        """Returns `verdict`, or, if the pod was moved recently, a verdict that blocks it, so that no pod moves twice in
        a short time."""
        if isinstance(verdict, Evictable):
            return Blocked(r.MOVED_BEFORE(f"pod {pod.key} was moved recently"))
        return verdict

    def forbidding_annotation(self, pod: PodInfo, pool: Pool) -> Reason | None:
        """Returns the reason if an annotation forbids the eviction, otherwise None. It is checked again just before the
        eviction."""
        return self._annotation_reason(pod, pool)

    def unsettled_owners(self, moved: Collection[str]) -> frozenset[OwnerKey]:
        """Returns the owners of pods that were moved recently and are not ready."""
        if not moved:
            return frozenset()
        return frozenset(
            pod.owner
            for pod in self.inventory.pods
            if pod.owner is not None and not pod.is_ready and pod.deletion_requested_at is None and pod.key in moved
        )

    def block_unsettled(self, pod: PodInfo, verdict: Verdict, unsettled: frozenset[OwnerKey]) -> Verdict:
        """Returns `verdict`, or one that blocks the pod while another pod of its workload was moved and is not ready
        yet.

        `unsettled`: the owners of such pods (`unsettled_owners`). The rule applies to workloads whose pods move one at
        a time."""
        owner = pod.owner
        if isinstance(verdict, Evictable) and owner and owner in unsettled:
            return Blocked(r.UNSETTLED(f"a pod of {owner.described} was moved, and its successor is not ready yet"))
        return verdict

    def _is_past_deletion(self, pod: PodInfo) -> bool:
        """Returns whether the pod's grace period ended more than `DELETION_SLACK_SECONDS` ago, so that nothing waits
        for the pod any more.

        The deletion timestamp is the end of the grace period, even if the grace period was extended (apimachinery
        ObjectMeta).
        """
        return (
            pod.deletion_requested_at is not None
            and self.now is not None
            and self.now > pod.deletion_requested_at + DELETION_SLACK_SECONDS
        )

    def _daemon_verdict(self, pod: PodInfo, pool: Pool, budgets: tuple[int, ...]) -> Verdict:
        """Returns the verdict for a DaemonSet pod: it blocks only through an annotation or a budget."""
        reason = self._annotation_reason(pod, pool)
        if reason is not None:
            return Blocked(reason)
        for number in budgets if pod.deletion_requested_at is None else ():
            budget = self.inventory.pdbs[number]
            if budget.allowed < 1:
                return Blocked(r.BUDGET_SPENT(f"budget {budget.key} allows no disruption of DaemonSet pod {pod.key}"))
        return IGNORED

    # ── the owner ────────────────────────────────────────────────────────
    def _owner_reason(self, pod: PodInfo, pool: Pool, over: tuple[int, ...]) -> Reason | None:
        safe = pod.annotations.get(SAFE) == "true"
        if pod.owner is None:
            return None if safe else r.NO_OWNER(f"pod {pod.key} has no controller that would recreate it")
        owner = pod.owner
        if owner.kind not in EVICTABLE_OWNERS and safe:
            return None
        if owner.kind not in EVICTABLE_OWNERS and self.rules.on_node(pod.node, pool).custom_controllers_block:
            return r.STRANGE_OWNER(describe_unknown_owner(pod.key, owner))
        if owner.kind == JOB and not pool.jobs and not safe:
            return r.JOB(f"pod {pod.key} belongs to Job {owner.name}")
        return self._owner_state_reason(pod, pool, owner, over)

    def _owner_state_reason(self, pod: PodInfo, pool: Pool, owner: OwnerKey, over: tuple[int, ...]) -> Reason | None:
        scale = self.inventory.owners.get(owner)
        if scale is None and owner.kind in self.inventory.owner_kinds:
            return r.OWNER_GONE(f"{owner.described}, the owner of pod {pod.key}, was not found")
        if owner.kind == JOB:
            return None
        if scale is not None and scale.wanted is not None and scale.ready < scale.wanted:
            by_budget = bool(over) and pool.unready is ProtectUnready.BUDGET
            if not by_budget and not self._tolerates_unready_replica(pod, pool, scale):
                return r.OWNER_SHORT(
                    f"{owner.described} has {scale.ready} of {format_count(scale.wanted, 'pod')} ready"
                )
        wanted = scale.wanted if scale is not None and scale.wanted is not None else None
        count = wanted if wanted is not None else self.count_replicas(pod)
        if count < 2 and not pool.single_replicas:
            return r.SINGLE(f"pod {pod.key} is the only replica of {owner.kind} {owner.name}")
        # A single replica of a ReplicaSet is moved by a surge: the compactor scales its workload to two first.
        if count < 2 and owner.kind == REPLICA_SET:
            return second_replica_reason(pod, pool, self.inventory.quotas.get(pod.namespace, ()))
        return None

    def _tolerates_unready_replica(self, pod: PodInfo, pool: Pool, scale: ReplicaCounts) -> bool:
        """Returns whether the owner lacks only one replica, and that replica has been unready for a long time.

        This is the case if all of these hold:

        - the pool does not protect such workloads;
        - the owner wants at least three pods, and all but one are ready;
        - the unready pod exists, and was created more than ten minutes ago (or the time is unknown).
        """
        if pool.unready is not ProtectUnready.BUDGET or scale.wanted is None:
            return False
        if scale.wanted < MIN_TOLERATING_REPLICAS or scale.ready != scale.wanted - 1:
            return False
        unready = self._unready_replicas(pod)
        return len(unready) == 1 and (self.now is None or all(self._is_old(replica) for replica in unready))

    def _is_old(self, pod: PodInfo) -> bool:
        return self.now is not None and pod.created is not None and self.now - pod.created > LONG_UNREADY_SECONDS

    def _unready_replicas(self, pod: PodInfo) -> list[PodInfo]:
        """Returns the existing pods of the pod's owner that are not ready."""
        if self._unready_by_owner is None:
            self._unready_by_owner = {}
            for other in self.inventory.pods:
                if (
                    other.owner is not None
                    and not other.is_ready
                    and other.deletion_requested_at is None
                    and not other.is_finished
                ):
                    self._unready_by_owner.setdefault(other.owner, []).append(other)
        return self._unready_by_owner.get(pod.owner, []) if pod.owner else []

    def _rollout_reason(self, pod: PodInfo, pool: Pool) -> Reason | None:
        """Returns the reason if the pod's Deployment lacks ready pods although the pod's ReplicaSet does not, as during
        a rollout; otherwise None. It is checked for pods without a budget.

        The name of a ReplicaSet is its Deployment's name and the hash label of its pods (pkg/controller/deployment).
        """
        suffix = f"-{pod.requirements.labels.get(TEMPLATE_HASH, '')}"
        if pod.owner is None or pod.owner.kind != REPLICA_SET or suffix == "-":
            return None
        if not pod.owner.name.endswith(suffix):
            return None
        name = pod.owner.name.removesuffix(suffix)
        scale = self.inventory.owners.get(OwnerKey(pod.namespace, DEPLOYMENT, name))
        if scale is None or scale.wanted is None or scale.ready >= scale.wanted:
            return None
        own = self.inventory.owners.get(pod.owner)
        is_same_shortage = own is not None and own.wanted == scale.wanted and own.ready == scale.ready
        if is_same_shortage and self._tolerates_unready_replica(pod, pool, scale):
            return None
        return r.OWNER_SHORT(
            f"Deployment {pod.namespace}/{name} has {scale.ready} of {format_count(scale.wanted, 'pod')} ready"
        )

    # ── annotations ──────────────────────────────────────────────────────
    def _annotation_reason(self, pod: PodInfo, pool: Pool) -> Reason | None:
        annotations = pod.annotations
        if not annotations:
            return None
        subject = f"pod {pod.key}"
        for key in (KEEP_ANNOTATION, RENAMED_KEEP, *pool.keep_pods):
            if (reason := keep_reason(subject, key, annotations.get(key), r.UNSAFE)) is not None:
                return reason
        if annotations.get(SAFE) in ("false", "on-completion"):
            return r.UNSAFE(f"{subject} has the annotation {SAFE}: {annotations[SAFE]}")
        if annotations.get(SAFE, "true") != "true":
            return unreadable_reason(subject, SAFE, annotations[SAFE])
        if NO_EVICTION in annotations and annotations[NO_EVICTION] != "false":
            return r.UNSAFE(f"{subject} has the annotation {NO_EVICTION}")
        return do_not_disrupt_reason(pod, self.now)

    def _term_reason(self, pod: PodInfo, pool: Pool) -> Reason | None:
        return find_term_obstacle(pod, pool, self.term_ledger, self.now) if pod.annotations else None

    # ── pod groups ───────────────────────────────────────────────────────
    def group_on_several_nodes(self, pod: PodInfo) -> PodGroup | None:
        """Returns the pod's group if it has pods on other nodes or pending pods, otherwise None."""
        group = self._pod_groups().get(id(pod))
        return group if group is not None and len(self._nodes_by_group[group]) > 1 else None

    def _group_reason(self, pod: PodInfo, pool: Pool) -> Reason | None:
        """Returns the reason if an eviction of the pod would stop pods on other nodes too, otherwise None. In a pool
        that moves groups, whole groups are judged later (`group_moves`)."""
        group = self.group_on_several_nodes(pod)
        if group is None or pool.groups is GroupMode.MOVE:
            return None
        nodes = self._nodes_by_group[group]
        return r.GROUP(
            f"pod {pod.key} runs only together with pods of group {group.name} on {len(nodes) - 1} other"
            f" node{'' if len(nodes) == 2 else 's'}"
        )

    def _pod_groups(self) -> Mapping[int, PodGroup]:
        if self._groups is None:
            pods = [p for p in self.inventory.pods if p.deletion_requested_at is None and not p.is_finished]
            self._groups = find_groups(pods, self.inventory.leaders)
            if any(pool.group_labels for pool in self.pools):
                labels = PoolIndex(self.pools).labels_of_groups(self.inventory.nodes)
                self._groups = join_by_labels(pods, self._groups, labels)
            for pod in pods:
                if (group := self._groups.get(id(pod))) is not None:
                    self._nodes_by_group.setdefault(group, set()).add(pod.node)
        return self._groups

    # ── local data ───────────────────────────────────────────────────────
    def _local_data_reason(self, pod: PodInfo, pool: Pool) -> Reason | None:
        for name, claim in zip(pod.claims, self.inventory.claims_of(pod), strict=True):
            if claim is not None and claim.is_local:
                return r.LOCAL_VOLUME(f"volume {claim.volume} of pod {pod.key} exists only on its node (claim {name})")
        if not pod.local_volumes or pod.annotations.get(SAFE) == "true":
            return None
        if not self.rules.on_node(pod.node, pool).local_storage_blocks:
            return None
        scratch_volumes = pod.annotations.get(SAFE_VOLUMES, "").split(",")
        for volume in pod.local_volumes:
            if not volume.in_memory and volume.name not in scratch_volumes:
                return r.LOCAL_DATA(f"pod {pod.key} {volume.use} (volume {volume.name})")
        return None

    # ── system pods ──────────────────────────────────────────────────────
    def _system_reason(self, pod: PodInfo, pool: Pool, over: tuple[int, ...]) -> Reason | None:
        # Without a ready webhook the API server admits pods unchanged, or rejects them with failurePolicy Fail.
        if process := self._last_replica_of(pod):
            return r.OUR_WEBHOOK(f"pod {pod.key} is the last ready replica of Trimtab's {process}")
        if pod.priority >= CRITICAL_PRIORITY and (obstacle := self._critical_obstacle(pod, pool, over)):
            return r.CRITICAL(obstacle)
        if pod.namespace != "kube-system" or over or pod.annotations.get(SAFE) == "true":
            return None
        seconds = self.rules.on_node(pod.node, pool).system_pod_seconds
        if self.now is not None and pod.created is not None and self.now < pod.created + seconds:
            return r.SYSTEM_YOUNG(
                f"pod {pod.key} is a system pod without a PodDisruptionBudget, and it is younger than "
                f"{'an hour' if seconds == HOUR_SECONDS else f'{seconds} s'}"
            )
        return None

    def _critical_obstacle(self, pod: PodInfo, pool: Pool, over: tuple[int, ...]) -> str:
        """Returns a sentence about what prevents the eviction of a pod with a system priority, apart from its budget;
        an empty string if nothing does. `over`: the PodDisruptionBudgets that select the pod.

        A pod with system-cluster-critical may be evicted if the pool does not protect all such pods, and if the pod has
        an owner and, with a budget, a second ready replica. Without a budget, the pool must allow safe-to-evict, and
        the pod must have that annotation.
        """
        priority = f"pod {pod.key} has the priority {pod.priority}"
        if pod.priority >= NODE_CRITICAL_PRIORITY or pool.critical_pods is ProtectCritical.ALWAYS:
            return f"{priority}, and pods of this priority are never evicted"
        if pod.owner is None:
            return f"{priority} but no controller that would recreate it"
        if over:
            return "" if self._ready_replicas(pod) > 1 else f"{priority} but no second ready replica"
        is_safe = pool.critical_pods is ProtectCritical.UNLESS_SAFE and pod.annotations.get(SAFE) == "true"
        return "" if is_safe else f"{priority} but no PodDisruptionBudget"

    def _ready_replicas(self, pod: PodInfo) -> int:
        """Returns the number of ready pods of the pod's owner: from the owner's status, or counted if the owner is not
        in the snapshot."""
        assert pod.owner is not None
        scale = self.inventory.owners.get(pod.owner)
        return scale.ready if scale is not None else self.count_replicas(pod) - len(self._unready_replicas(pod))

    def _last_replica_of(self, pod: PodInfo) -> str:
        """Returns the name of the process of Trimtab of which the pod is the last ready replica, if the creation of
        pods needs that process; otherwise an empty string."""
        if pod.owner is None or not pod.is_ready:
            return ""
        labels = pod.requirements.labels.items()
        for name, needed_labels in NEEDED_PROCESSES:
            if needed_labels <= labels and self._ready_replicas(pod) < 2:
                return name
        return ""

    def _age_reason(self, pod: PodInfo, pool: Pool) -> Reason | None:
        if not pool.min_pod_age or self.now is None or pod.created is None:
            return None
        age = self.now - pod.created
        if age < pool.min_pod_age:
            return r.YOUNG_POD(f"pod {pod.key} is {age} s old, but the pool requires an age of {pool.min_pod_age} s")
        return None

    # ── budgets ──────────────────────────────────────────────────────────
    def _budget_verdict(self, pod: PodInfo, pool: Pool, over: tuple[int, ...]) -> Verdict:
        """Returns the verdict for a pod according to the PodDisruptionBudgets that select it (`over`).

        The eviction of a pod that is not ready uses no allowed disruption if enough other pods are healthy
        (IfHealthyBudget), or in any case (AlwaysAllow).
        """
        if len(over) > 1:
            names = " and ".join(self.inventory.pdbs[n].key for n in over)
            return Blocked(r.TWO_BUDGETS(f"{len(over)} PodDisruptionBudgets select pod {pod.key} ({names})"))
        if not over and (reason := self._rollout_reason(pod, pool)) is not None:
            return Blocked(reason)
        if not over:
            return (
                UNRESTRICTED
                if pod.is_ready or pool.not_ready
                else Blocked(r.NOT_READY_POD(f"pod {pod.key} is not ready"))
            )
        budget = self.inventory.pdbs[over[0]]
        if (reason := self._budget_problem(budget)) is not None:
            return Blocked(reason)
        # As the eviction API (registry/core/pod/storage/eviction.go): such a pod is evicted without spending a
        # disruption.
        if not pod.is_ready and (budget.always_evictable or budget.is_healthy):
            return UNRESTRICTED
        if not pod.is_ready and not budget.allowed:
            return Blocked(
                r.NOT_READY_POD(f"pod {pod.key} is not ready, and budget {budget.key} has too few healthy pods")
            )
        if budget.allowed:
            return Evictable(over[0])
        unready = self._unready_replicas(pod)
        is_short_for_long = bool(unready) and all(self._is_old(replica) for replica in unready)
        surge = find_surge(pod, budget, pool, self.inventory, is_short_for_long=is_short_for_long)
        return Evictable(over[0], surge) if isinstance(surge, Surge) else Blocked(surge)

    def _budget_problem(self, budget: Pdb) -> Reason | None:
        if budget.selector_problem:
            return r.BUDGET_BROKEN(f"the selector of budget {budget.key} is invalid: {budget.selector_problem}")
        if budget.is_stale:
            return r.BUDGET_STALE(f"the status of budget {budget.key} is older than the budget")
        return None
