"""Decides whether a pod may be evicted because a user ordered the drain of its node.

The judgement is that of the compactor (`blockers.EvictionChecker`), without the rules that only say whether a drain is
worth it, or whether a cluster autoscaler would remove the node. What a user can permit is blocked with a reason that
names the option.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from trimtab.cluster.cluster_state import Inventory
from trimtab.cluster.kinds import JOB
from trimtab.cluster.pod import EMPTY_DIR_USE, PodInfo
from trimtab.cluster.pod_groups import PodGroup
from trimtab.cluster.pool import MAX_SURGE, Pool
from trimtab.cluster.reason import Reason
from trimtab.cluster.timestamps import Seconds
from trimtab.compaction import reasons as r
from trimtab.compaction.blockers import (
    EVICTABLE_OWNERS,
    IGNORED,
    UNRESTRICTED,
    Blocked,
    Evictable,
    EvictionChecker,
    Verdict,
)
from trimtab.compaction.long_graces import LONG_GRACE_SECONDS
from trimtab.compaction.order import reasons as o
from trimtab.compaction.order.order_rules import OrderRules
from trimtab.compaction.unknown_owners import describe_unknown_owner

ORDER_POOL = Pool(name="order", everything=True, min_nodes=0, single_replicas=True, jobs=True)
"""The settings with which the compactor's rules are asked: they permit what an order permits."""
_WAYS_OUT = {
    r.BUDGET_NEVER: "raise its maxUnavailable, or run one replica more",
    r.TWO_BUDGETS: "delete all but one of them, or narrow their selectors",
    r.BUDGET_BROKEN: "correct the selector",
}


@dataclass(slots=True)
class OrderedEvictionChecker(EvictionChecker):
    """Decides for the pods of one inventory whether an order may evict them."""

    order_rules: OrderRules = field(default_factory=OrderRules)
    _group_sizes: Counter[PodGroup] = field(default_factory=Counter)
    """Group → the number of its pods; counted when it is first needed."""

    @classmethod
    def for_order(
        cls, inventory: Inventory, now: Seconds | None, rules: OrderRules, pools: Sequence[Pool] = ()
    ) -> "OrderedEvictionChecker":
        """Returns the checker for an order. `now` is None if the time is unknown."""
        checker = cls.for_inventory(inventory, now, pools=pools)
        assert isinstance(checker, cls)
        checker.order_rules = rules
        return checker

    def judge_ordered(self, pod: PodInfo) -> Verdict:
        """Returns whether the pod may be evicted for the order. Pods of DaemonSets, static pods, and pods that are
        being deleted are ignored: the first two stay, and the others leave by themselves."""
        return IGNORED if pod.deletion_requested_at is not None else self._judge(pod, ORDER_POOL)

    def is_in_group(self, pod: PodInfo) -> bool:
        """Returns whether the pod runs only together with other pods, on its node or on others."""
        groups = self._pod_groups()
        if groups and not self._group_sizes:
            self._group_sizes.update(groups.values())
        group = groups.get(id(pod))
        return group is not None and self._group_sizes[group] > 1

    def list_warnings(self, pod: PodInfo) -> Iterator[Reason]:
        """Yields what the owner of a pod that moves should know about the move."""
        owner = pod.owner
        if owner is not None and owner.kind == JOB:
            yield o.JOB_RESTARTS(
                f"pod {pod.key} belongs to {owner.described}, which starts again from the beginning; the eviction "
                "counts against its backoffLimit, unless its podFailurePolicy ignores DisruptionTarget"
            )
        elif owner is not None and owner.kind not in EVICTABLE_OWNERS:
            yield o.UNKNOWN_OWNER(describe_unknown_owner(pod.key, owner))
        elif owner is not None and self._wanted_replicas(pod) < 2:
            yield o.OUTAGE(
                f"pod {pod.key} is the only replica of {owner.described}, which is not available until the successor "
                "is ready"
            )
        if (terms := EvictionChecker._term_reason(self, pod, ORDER_POOL)) is not None:
            yield o.TERMS_OVERRIDDEN(f"the order evicts pod {pod.key} against its own terms: {terms}")
        if pod.grace_seconds > LONG_GRACE_SECONDS:
            yield o.LONG_GRACE(f"pod {pod.key} may take {pod.grace_seconds} s to stop")
        numbers = self.pdb_index.matching_numbers(pod.namespace, pod.requirements.labels)
        for number in () if pod.is_outside_budgets else numbers:
            budget = self.inventory.pdbs[number]
            if not budget.allows_eviction(pod_is_ready=pod.is_ready):
                cause = "its status is out of date" if budget.is_stale else "it allows 0 disruptions"
                yield o.BUDGET_WAITS(f"pod {pod.key} waits for budget {budget.key}: at present {cause}")

    def _stays_unready(self, pod: PodInfo) -> bool:
        """Returns whether the pod is not ready, and not because it was created a short time ago."""
        return not pod.is_ready and (self.now is None or self._is_old(pod))

    def _wanted_replicas(self, pod: PodInfo) -> int:
        scale = self.inventory.owners.get(pod.owner) if pod.owner is not None else None
        return scale.wanted if scale is not None and scale.wanted is not None else self.count_replicas(pod)

    def _daemon_verdict(self, pod: PodInfo, pool: Pool, budgets: tuple[int, ...]) -> Verdict:
        return IGNORED

    def _system_reason(self, pod: PodInfo, pool: Pool, over: tuple[int, ...]) -> Reason | None:
        process = self._last_replica_of(pod)
        return r.OUR_WEBHOOK(f"pod {pod.key} is the last ready replica of Trimtab's {process}") if process else None

    def _group_reason(self, pod: PodInfo, pool: Pool) -> Reason | None:
        reason = None if self.order_rules.overrides_protection else EvictionChecker._group_reason(self, pod, pool)
        option = self.order_rules.words.overrides_protection
        return o.PROTECTED_GROUP(f"{reason} ({option} evicts it)") if reason is not None else None

    def _owner_reason(self, pod: PodInfo, pool: Pool, over: tuple[int, ...]) -> Reason | None:
        if self.order_rules.evicts_bare_pods:
            return None
        option = self.order_rules.words.evicts_bare_pods
        if pod.owner is None:
            return o.BARE_POD(f"pod {pod.key} has no controller that would recreate it ({option} evicts it)")
        if pod.owner not in self.inventory.owners and pod.owner.kind in self.inventory.owner_kinds:
            return o.BARE_POD(
                f"{pod.owner.described}, the owner of pod {pod.key}, was not found, so nothing would recreate the pod "
                f"({option} evicts it)"
            )
        return None

    def _annotation_reason(self, pod: PodInfo, pool: Pool) -> Reason | None:
        reason = None if self.order_rules.overrides_protection else EvictionChecker._annotation_reason(self, pod, pool)
        option = self.order_rules.words.overrides_protection
        return o.PROTECTED_POD(f"{reason} ({option} evicts it)") if reason is not None else None

    def _term_reason(self, pod: PodInfo, pool: Pool) -> Reason | None:
        reason = None if self.order_rules.overrides_protection else EvictionChecker._term_reason(self, pod, pool)
        return (
            o.PROTECTED_POD(f"{reason} ({self.order_rules.words.overrides_protection} evicts it)")
            if reason is not None
            else None
        )

    def _local_data_reason(self, pod: PodInfo, pool: Pool) -> Reason | None:
        for name, claim in zip(pod.claims, self.inventory.claims_of(pod), strict=True):
            if claim is not None and claim.is_local:
                return r.LOCAL_VOLUME(f"volume {claim.volume} of pod {pod.key} exists only on its node (claim {name})")
        # As kubectl drain, but a volume in memory holds nothing that a pod expects to find again.
        volume = next((each for each in pod.local_volumes if each.use == EMPTY_DIR_USE and not each.in_memory), None)
        if volume is None or self.order_rules.deletes_local_data:
            return None
        option = self.order_rules.words.deletes_local_data
        return o.LOCAL_DATA(f"pod {pod.key} {volume.use} (volume {volume.name}; {option} evicts it)")

    def _budget_verdict(self, pod: PodInfo, pool: Pool, over: tuple[int, ...]) -> Verdict:
        """Returns the verdict by the budgets of the pod. A budget that allows none at present is waited for; one that
        never allows an eviction blocks. A pod that has not started needs none."""
        if not over or pod.is_outside_budgets:
            return UNRESTRICTED
        budget = self.inventory.pdbs[over[0]]
        if len(over) == 1 and not budget.selector_problem:
            if budget.is_stale:
                return Evictable(over[0])
            if not budget.allows_eviction(pod_is_ready=pod.is_ready) and self._stays_unready(pod):
                return Blocked(
                    o.UNHEALTHY_POD(
                        f"pod {pod.key} is not ready, and budget {budget.key} has too few healthy pods, so the API "
                        "server rejects the eviction: repair or delete the pod, or set unhealthyPodEvictionPolicy: "
                        "AlwaysAllow in the budget"
                    )
                )
            if budget.max_allowed > 0:
                return Evictable(over[0])
        permitted = self.order_rules.surge_pods
        verdict = EvictionChecker._budget_verdict(self, pod, replace(pool, surge=MAX_SURGE), over)
        if isinstance(verdict, Evictable) and verdict.surge is not None and verdict.surge.extra > permitted:
            option = self.order_rules.words.surge_pods
            surge = f"{option} {verdict.surge.extra} gives its Deployment more pods for a while, or " if option else ""
            return Blocked(
                r.BUDGET_NEVER(
                    f"budget {budget.key} allows no disruption of pod {pod.key}: {surge}{_WAYS_OUT[r.BUDGET_NEVER]}"
                )
            )
        if isinstance(verdict, Blocked) and not permitted:
            verdict = EvictionChecker._budget_verdict(self, pod, replace(pool, surge=0), over)
        if isinstance(verdict, Blocked) and (way_out := _WAYS_OUT.get(verdict.reason.code)) is not None:
            return Blocked(verdict.reason.code(f"{verdict.reason}: {way_out}"))
        return verdict
