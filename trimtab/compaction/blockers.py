"""May this pod move?

It moves, it does not matter (mirrors, DaemonSet pods), or it must stay, and then its node stays too. Rules in the
order they are asked; the first that says no is the reason. What the cluster autoscaler would refuse to evict is
refused here too, for a pod left behind pins the node.

What does an annotation that means "leave it" say?

`true` says so, `false` says the contrary. What is neither is not understood, and what we don't understand keeps a pod
where it is: somebody meant something by it. (Karpenter takes a malformed `do-not-disrupt` for none, and the cluster
autoscaler only knows `true`. A wrong guess costs them a restart, too; here it is no guess.)
"""

from collections.abc import Collection
from dataclasses import dataclass, field

from trimtab.cluster.cluster_state import Inventory, ReplicaCounts
from trimtab.cluster.pdb import Pdb, PdbIndex
from trimtab.cluster.pod import CRITICAL as CRITICAL_PRIORITY
from trimtab.cluster.pod import NODE_CRITICAL, PodInfo
from trimtab.cluster.pool import KEEP, RENAMED_KEEP, Pool, ProtectCritical, ProtectUnready
from trimtab.cluster.reason import Code, Reason
from trimtab.cluster.timestamps import Seconds, seconds_of
from trimtab.compaction import reasons as r
from trimtab.compaction.reasons import MISREAD


def leave(whose: str, key: str, value: str | None, code: Code) -> Reason | None:
    """Why it is left alone; None where nothing is said, or `false`."""
    if value is None or value == "false":
        return None
    if key == RENAMED_KEEP:
        return MISREAD(f"{whose} says {key}, which was renamed: use {KEEP}")
    if value == "true":
        return code(f"{whose} says {key}: {value}")
    return misread(whose, key, value)


def misread(whose: str, key: str, value: str) -> Reason:
    return MISREAD(f"{whose} says {key}: {value[:40]!r}, which we do not understand")


SAFE = "cluster-autoscaler.kubernetes.io/safe-to-evict"
SAFE_VOLUMES = "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes"
DO_NOT_DISRUPT = "karpenter.sh/do-not-disrupt"
NO_EVICTION = "descheduler.alpha.kubernetes.io/prefer-no-eviction"
OWNERS = frozenset({"ReplicaSet", "ReplicationController", "StatefulSet", "Job"})
TEMPLATE_HASH = "pod-template-hash"
OUR_WEBHOOK = {"app.kubernetes.io/name": "trimtab", "app.kubernetes.io/component": "webhook"}
HOUR = 3600
LONG_UNREADY = 600
"""Seconds after which one replica that is not ready no longer looks like a rollout or a node that has just died."""
TOLERATED_OF = 3
"""As many replicas a workload needs for one of them to be left out of account."""
SLACK = 30
"""Seconds past its grace after which a terminating pod no longer counts (the autoscaler's own rule)."""


Owner = tuple[str, str, str]
"""(namespace, kind, name)."""


@dataclass(frozen=True, slots=True)
class Blocked:
    reason: Reason


@dataclass(frozen=True, slots=True)
class Evictable:
    """`budget` is the number of the one budget that has a say; None when none has."""

    budget: int | None


class Ignored:
    """Neither moves nor keeps the node."""


SKIPPED = Ignored()
FREE = Evictable(None)
Verdict = Blocked | Evictable | Ignored


@dataclass(slots=True)
class EvictionChecker:
    """Judges pods of one inventory; made once per plan."""

    inventory: Inventory
    guard: PdbIndex
    now: Seconds | None
    _replicas: dict[tuple[str, str, str], int] = field(default_factory=dict)
    """(namespace, kind, name) of an owner → pods of it that are there and not on their way out; once asked."""
    _unready: dict[Owner, list[PodInfo]] | None = None
    """Owner → pods of it that are there and not ready; once asked."""
    _groups: dict[tuple[str, str], set[str]] | None = None
    """(namespace, group) → nodes that its pods are on; once asked."""
    _known: dict[int, dict[int, Verdict]] = field(default_factory=dict)

    @classmethod
    def of(cls, inventory: Inventory, now: Seconds | None) -> "EvictionChecker":
        return cls(inventory, PdbIndex.of(inventory.budgets), now)

    def replicas(self, pod: PodInfo) -> int:
        """How many pods of its owner are there, where the owner itself is not in the snapshot."""
        if not self._replicas:
            for other in self.inventory.pods:
                if other.owner is not None and other.deleted is None and not other.finished:
                    name = (other.namespace, other.owner.kind, other.owner.name)
                    self._replicas[name] = self._replicas.get(name, 0) + 1
        return self._replicas.get((pod.namespace, pod.owner.kind, pod.owner.name), 0) if pod.owner else 0

    def verdict(self, pod: PodInfo, pool: Pool) -> Verdict:
        """Of pods alike one is judged, and the verdict kept in `known`, unless age could change it; but one that stays
        says so by its own name."""
        found = self._verdict(pod, pool)
        ageless = found is SKIPPED or (pod.namespace != "kube-system" and not pool.min_pod_age)
        if pod.alike >= 0 and ageless and not isinstance(found, Blocked):
            self.known(pool)[pod.alike] = found
        return found

    def known(self, pool: Pool) -> dict[int, Verdict]:
        """`PodInfo.alike` → verdict, for one pool."""
        return self._known.setdefault(id(pool), {})

    def _verdict(self, pod: PodInfo, pool: Pool) -> Verdict:
        if pod.finished or pod.static or self._long_gone(pod):
            return SKIPPED
        over = self.guard.over(pod.namespace, pod.ask.labels)
        if pod.daemon:
            return self._daemon(pod, pool, over)
        if pod.deleted is not None:
            return Blocked(r.GOING(f"pod {pod.key} is on its way out"))
        found = self._system(pod, pool, over) or self._owner(pod, pool, over) or self._annotated(pod, pool)
        found = found or (self._grouped(pod) if pod.group else None) or self._data(pod) or self._age(pod, pool)
        if found is not None:
            return Blocked(found)
        return self._budgeted(pod, pool, over)

    def moved(self, pod: PodInfo, verdict: Verdict) -> Verdict:
        """The same pod is not moved twice in a short time."""
        if isinstance(verdict, Evictable):
            return Blocked(r.MOVED_BEFORE(f"pod {pod.key} was moved not long ago"))
        return verdict

    def forbidden(self, pod: PodInfo, pool: Pool) -> Reason | None:
        """What people wrote on it that forbids its eviction; asked again at the last moment."""
        return self._annotated(pod, pool)

    def unsettled(self, moved: Collection[str]) -> frozenset[Owner]:
        """Owners of pods that were moved not long ago and are not ready."""
        if not moved:
            return frozenset()
        return frozenset(
            (pod.namespace, pod.owner.kind, pod.owner.name)
            for pod in self.inventory.pods
            if pod.owner is not None and not pod.ready and pod.deleted is None and pod.key in moved
        )

    def patient(self, pod: PodInfo, verdict: Verdict, unsettled: frozenset[Owner]) -> Verdict:
        """One pod of a workload after the other: the next goes when the one before is ready where it went."""
        owner = pod.owner
        if isinstance(verdict, Evictable) and owner and (pod.namespace, owner.kind, owner.name) in unsettled:
            return Blocked(
                r.UNSETTLED(f"a pod of {owner.kind} {pod.namespace}/{owner.name} was moved and is not ready yet")
            )
        return verdict

    def _long_gone(self, pod: PodInfo) -> bool:
        """Asked to go longer ago than its grace and half a minute: nobody waits for it any more.

        The deletion timestamp is when the grace ends (apimachinery ObjectMeta), so an extended grace is in it.
        """
        return pod.deleted is not None and self.now is not None and self.now > pod.deleted + SLACK

    def _daemon(self, pod: PodInfo, pool: Pool, over: tuple[int, ...]) -> Verdict:
        """A DaemonSet pod keeps its node only when somebody said so."""
        found = self._annotated(pod, pool)
        if found is not None:
            return Blocked(found)
        for number in over if pod.deleted is None else ():
            budget = self.inventory.budgets[number]
            if budget.allowed < 1:
                return Blocked(r.BUDGET_SPENT(f"budget {budget.key} allows no disruption of DaemonSet pod {pod.key}"))
        return SKIPPED

    # ── who would make it again ──────────────────────────────────────────
    def _owner(self, pod: PodInfo, pool: Pool, over: tuple[int, ...]) -> Reason | None:
        safe = pod.annotations.get(SAFE) == "true"
        if pod.owner is None:
            return None if safe else r.NO_OWNER(f"pod {pod.key} has no controller: nobody would make it again")
        kind, name = pod.owner.kind, pod.owner.name
        if kind not in OWNERS:
            return None if safe else r.STRANGE_OWNER(f"pod {pod.key} belongs to {kind}/{name}, a kind unknown to us")
        if kind == "Job" and not pool.jobs and not safe:
            return r.JOB(f"pod {pod.key} works for Job {name}")
        return self._whole(pod, pool, kind, name, over)

    def _whole(self, pod: PodInfo, pool: Pool, kind: str, name: str, over: tuple[int, ...]) -> Reason | None:
        scale = self.inventory.owners.get((pod.namespace, kind, name))
        if scale is None and kind in self.inventory.owner_kinds:
            return r.OWNER_GONE(f"{kind} {pod.namespace}/{name}, which pod {pod.key} names, is not there")
        if kind == "Job":
            return None
        if scale is not None and scale.wanted is not None and scale.ready < scale.wanted:
            by_budget = bool(over) and pool.unready is ProtectUnready.BUDGET
            if not by_budget and not self._tolerates(pod, pool, scale):
                return r.OWNER_SHORT(f"{kind} {pod.namespace}/{name} has {scale.ready} of {scale.wanted} pods ready")
        wanted = scale.wanted if scale is not None and scale.wanted is not None else None
        count = wanted if wanted is not None else self.replicas(pod)
        if count < 2 and not pool.single_replicas:
            return r.SINGLE(f"pod {pod.key} is the only replica of {kind} {name}")
        if count < 2 and kind == "ReplicaSet" and not _may_scale(pool, pod.namespace):
            told = f"pod {pod.key} is the only replica of {kind} {name}, and"
            return r.NO_RIGHT_TO_SCALE(f"{told} TRIMTAB_COMPACTOR_SCALE_NAMESPACES does not name {pod.namespace}")
        return None

    def _tolerates(self, pod: PodInfo, pool: Pool, scale: ReplicaCounts) -> bool:
        """Is all that the owner lacks one replica, of three or more, that has not been ready for long?

        - the pool does not protect such workloads;
        - the owner wants at least three pods, and all but one are ready;
        - that one is there, and was created more than ten minutes ago (or nobody knows the time).
        """
        if pool.unready is not ProtectUnready.BUDGET or scale.wanted is None:
            return False
        if scale.wanted < TOLERATED_OF or scale.ready != scale.wanted - 1:
            return False
        unready = self._unready_of(pod)
        return len(unready) == 1 and (self.now is None or all(self._is_old(one) for one in unready))

    def _is_old(self, pod: PodInfo) -> bool:
        return self.now is not None and pod.created is not None and self.now - pod.created > LONG_UNREADY

    def _unready_of(self, pod: PodInfo) -> list[PodInfo]:
        """Pods of its owner that are there and not ready."""
        if self._unready is None:
            self._unready = {}
            for one in self.inventory.pods:
                if one.owner is not None and not one.ready and one.deleted is None and not one.finished:
                    self._unready.setdefault((one.namespace, one.owner.kind, one.owner.name), []).append(one)
        return self._unready.get((pod.namespace, pod.owner.kind, pod.owner.name), []) if pod.owner else []

    def _rolling(self, pod: PodInfo, pool: Pool) -> Reason | None:
        """Is its Deployment short of pods, be its own ReplicaSet whole? Asked where no budget answers that.

        A ReplicaSet is called like its Deployment and the hash its pods carry (pkg/controller/deployment).
        """
        tail = f"-{pod.ask.labels.get(TEMPLATE_HASH, '')}"
        if pod.owner is None or tail == "-" or not pod.owner.name.endswith(tail):
            return None
        name = pod.owner.name.removesuffix(tail)
        scale = self.inventory.owners.get((pod.namespace, "Deployment", name))
        if scale is None or scale.wanted is None or scale.ready >= scale.wanted:
            return None
        own = self.inventory.owners.get((pod.namespace, pod.owner.kind, pod.owner.name))
        is_own_lack = own is not None and own.wanted == scale.wanted and own.ready == scale.ready
        if is_own_lack and self._tolerates(pod, pool, scale):
            return None
        return r.OWNER_SHORT(f"Deployment {pod.namespace}/{name} has {scale.ready} of {scale.wanted} pods ready")

    # ── what people wrote on it ──────────────────────────────────────────
    def _annotated(self, pod: PodInfo, pool: Pool) -> Reason | None:
        notes = pod.annotations
        if not notes:
            return None
        whose = f"pod {pod.key}"
        for key in (KEEP, RENAMED_KEEP, *pool.keep_pods):
            if (found := leave(whose, key, notes.get(key), r.UNSAFE)) is not None:
                return found
        if notes.get(SAFE) in ("false", "on-completion"):
            return r.UNSAFE(f"{whose} says {SAFE}: {notes[SAFE]}")
        if notes.get(SAFE, "true") != "true":
            return misread(whose, SAFE, notes[SAFE])
        if NO_EVICTION in notes and notes[NO_EVICTION] != "false":
            return r.UNSAFE(f"{whose} says {NO_EVICTION}")
        return self._undisturbed(pod, notes.get(DO_NOT_DISRUPT))

    def _undisturbed(self, pod: PodInfo, said: str | None) -> Reason | None:
        """`true`, or a Go duration from its start."""
        lasts = seconds_of(said) if said is not None else None
        if said is None or lasts is None:
            return leave(f"pod {pod.key}", DO_NOT_DISRUPT, said, r.UNSAFE)
        started = pod.started if pod.started is not None else pod.created
        if self.now is None or started is None or self.now < started + lasts:
            return r.UNSAFE(f"pod {pod.key} says {DO_NOT_DISRUPT}: {said}")
        return None

    # ── who runs with it ─────────────────────────────────────────────────
    def _grouped(self, pod: PodInfo) -> Reason | None:
        """A group of which other pods are on other nodes, or wait, would stop with it."""
        if self._groups is None:
            self._groups = {}
            for one in self.inventory.pods:
                if one.group and one.deleted is None and not one.finished:
                    self._groups.setdefault((one.namespace, one.group), set()).add(one.node)
        nodes = self._groups.get((pod.namespace, pod.group), set())
        if len(nodes) < 2:
            return None
        return r.GROUP(
            f"pod {pod.key} runs with pods of group {pod.group} on {len(nodes) - 1} other nodes, all or none"
        )

    # ── what it would lose ───────────────────────────────────────────────
    def _data(self, pod: PodInfo) -> Reason | None:
        for name in pod.claims:
            claim = self.inventory.claims.get((pod.namespace, name))
            if claim is not None and claim.local:
                return r.LOCAL_VOLUME(f"volume {claim.volume} of pod {pod.key} lives on its node only (claim {name})")
        if not pod.local or pod.annotations.get(SAFE) == "true":
            return None
        scratch = pod.annotations.get(SAFE_VOLUMES, "").split(",")
        for volume in pod.local:
            if not volume.memory and volume.name not in scratch:
                return r.LOCAL_DATA(f"pod {pod.key} keeps data on its node (volume {volume.name})")
        return None

    # ── the system's own ─────────────────────────────────────────────────
    def _system(self, pod: PodInfo, pool: Pool, over: tuple[int, ...]) -> Reason | None:
        if self._is_last_webhook(pod):
            return r.OUR_WEBHOOK(f"pod {pod.key} is the last ready replica of Trimtab's own webhook")
        if pod.priority >= CRITICAL_PRIORITY and (why := self._critical(pod, pool, over)):
            return r.CRITICAL(f"pod {pod.key} has priority {pod.priority}{why}")
        if pod.namespace != "kube-system" or over or pod.annotations.get(SAFE) == "true":
            return None
        if self.now is not None and pod.created is not None and self.now < pod.created + HOUR:
            return r.SYSTEM_YOUNG(f"pod {pod.key} is a system pod without budget, younger than an hour")
        return None

    def _critical(self, pod: PodInfo, pool: Pool, over: tuple[int, ...]) -> str:
        """What keeps a pod of the system, beside its budget; empty when it may go.

        One goes whose priority is system-cluster-critical, where the pool does not protect them all, that has an owner
        and, with a budget, a second ready replica. Without a budget it goes where the pool believes safe-to-evict.
        """
        if pod.priority >= NODE_CRITICAL or pool.critical_pods is ProtectCritical.ALWAYS:
            return ": it stays where it is"
        if pod.owner is None:
            return " and no controller"
        if over:
            return "" if self._ready_replicas(pod) > 1 else " and no second ready replica"
        is_safe = pool.critical_pods is ProtectCritical.UNLESS_SAFE and pod.annotations.get(SAFE) == "true"
        return "" if is_safe else " and no budget"

    def _ready_replicas(self, pod: PodInfo) -> int:
        """Of its owner, by the owner's own word, else by the pods that are there."""
        assert pod.owner is not None
        scale = self.inventory.owners.get((pod.namespace, pod.owner.kind, pod.owner.name))
        return scale.ready if scale is not None else self.replicas(pod) - len(self._unready_of(pod))

    def _is_last_webhook(self, pod: PodInfo) -> bool:
        if pod.owner is None or not OUR_WEBHOOK.items() <= pod.ask.labels.items():
            return False
        return pod.ready and self._ready_replicas(pod) < 2

    def _age(self, pod: PodInfo, pool: Pool) -> Reason | None:
        if not pool.min_pod_age or self.now is None or pod.created is None:
            return None
        age = self.now - pod.created
        if age < pool.min_pod_age:
            return r.YOUNG_POD(f"pod {pod.key} is {age} s old; the pool wants {pool.min_pod_age} s")
        return None

    # ── budgets ──────────────────────────────────────────────────────────
    def _budgeted(self, pod: PodInfo, pool: Pool, over: tuple[int, ...]) -> Verdict:
        """An unready pod goes uncounted while enough others are healthy (IfHealthyBudget), or ever (AlwaysAllow)."""
        if len(over) > 1:
            names = " and ".join(self.inventory.budgets[n].key for n in over)
            return Blocked(r.TWO_BUDGETS(f"pod {pod.key} is under {len(over)} budgets ({names})"))
        if not over and (found := self._rolling(pod, pool)) is not None:
            return Blocked(found)
        if not over:
            return FREE if pod.ready or pool.not_ready else Blocked(r.NOT_READY_POD(f"pod {pod.key} is not ready"))
        budget = self.inventory.budgets[over[0]]
        if (found := self._doubt(budget)) is not None:
            return Blocked(found)
        if not pod.ready and (budget.always or budget.whole):
            return FREE
        if not pod.ready and not budget.allowed:
            return Blocked(r.NOT_READY_POD(f"pod {pod.key} is not ready and budget {budget.key} lacks healthy pods"))
        return Evictable(over[0]) if budget.allowed else Blocked(self._closed(pod, budget))

    def _doubt(self, budget: Pdb) -> Reason | None:
        if budget.broken:
            return r.BUDGET_BROKEN(f"budget {budget.key}: {budget.broken}")
        if budget.stale:
            return r.BUDGET_STALE(f"the status of budget {budget.key} is older than the budget")
        return None

    def _closed(self, pod: PodInfo, budget: Pdb) -> Reason:
        if budget.most < 1:
            return r.BUDGET_NEVER(f"budget {budget.key} never allows a disruption of pod {pod.key}")
        return r.BUDGET_SPENT(f"budget {budget.key} allows no disruption of pod {pod.key} now")


def _may_scale(pool: Pool, namespace: str) -> bool:
    return pool.scale_namespaces is None or namespace in pool.scale_namespaces
