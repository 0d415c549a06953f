"""May this pod move?

It moves, it does not matter (mirrors, DaemonSet pods), or it must stay, and then its node stays too. Rules in the
order they are asked; the first that says no is the reason. What the cluster autoscaler would refuse to evict is
refused here too, for a pod left behind pins the node.
"""

from collections.abc import Collection
from dataclasses import dataclass, field

from trimtab.cluster.budget import Budget, Guard
from trimtab.cluster.inventory import Inventory
from trimtab.cluster.moment import Seconds
from trimtab.cluster.pod import CRITICAL as CRITICAL_PRIORITY
from trimtab.cluster.pod import Pod
from trimtab.cluster.pool import KEEP, Pool
from trimtab.cluster.reason import Reason
from trimtab.cluster.span import seconds_of
from trimtab.compaction import reasons as r
from trimtab.compaction.said import leave, misread

SAFE = "cluster-autoscaler.kubernetes.io/safe-to-evict"
SAFE_VOLUMES = "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes"
DO_NOT_DISRUPT = "karpenter.sh/do-not-disrupt"
NO_EVICTION = "descheduler.alpha.kubernetes.io/prefer-no-eviction"
OWNERS = frozenset({"ReplicaSet", "ReplicationController", "StatefulSet", "Job"})
TEMPLATE_HASH = "pod-template-hash"
HOUR = 3600
SLACK = 30
"""Seconds past its grace after which a terminating pod no longer counts (the autoscaler's own rule)."""


Owner = tuple[str, str, str]
"""(namespace, kind, name)."""


@dataclass(frozen=True, slots=True)
class Stays:
    reason: Reason


@dataclass(frozen=True, slots=True)
class Moves:
    """`budget` is the number of the one budget that has a say; None when none has."""

    budget: int | None


class Skipped:
    """Neither moves nor keeps the node."""


SKIPPED = Skipped()
FREE = Moves(None)
Verdict = Stays | Moves | Skipped


@dataclass(slots=True)
class Judge:
    """Judges pods of one inventory; made once per plan."""

    inventory: Inventory
    guard: Guard
    now: Seconds | None
    _replicas: dict[tuple[str, str, str], int] = field(default_factory=dict)
    """(namespace, kind, name) of an owner → pods of it that are there and not on their way out; once asked."""
    _known: dict[int, dict[int, Verdict]] = field(default_factory=dict)

    @classmethod
    def of(cls, inventory: Inventory, now: Seconds | None) -> "Judge":
        return cls(inventory, Guard.of(inventory.budgets), now)

    def replicas(self, pod: Pod) -> int:
        """How many pods of its owner are there, where the owner itself is not in the snapshot."""
        if not self._replicas:
            for other in self.inventory.pods:
                if other.owner is not None and other.deleted is None and not other.finished:
                    name = (other.namespace, other.owner.kind, other.owner.name)
                    self._replicas[name] = self._replicas.get(name, 0) + 1
        return self._replicas.get((pod.namespace, pod.owner.kind, pod.owner.name), 0) if pod.owner else 0

    def verdict(self, pod: Pod, pool: Pool) -> Verdict:
        """Of pods alike one is judged, and the verdict kept in `known`, unless age could change it; but one that stays
        says so by its own name."""
        found = self._verdict(pod, pool)
        ageless = found is SKIPPED or (pod.namespace != "kube-system" and not pool.min_pod_age)
        if pod.alike >= 0 and ageless and not isinstance(found, Stays):
            self.known(pool)[pod.alike] = found
        return found

    def known(self, pool: Pool) -> dict[int, Verdict]:
        """`Pod.alike` → verdict, for one pool."""
        return self._known.setdefault(id(pool), {})

    def _verdict(self, pod: Pod, pool: Pool) -> Verdict:
        if pod.finished or pod.static or self._long_gone(pod):
            return SKIPPED
        over = self.guard.over(pod.namespace, pod.ask.labels)
        if pod.daemon:
            return self._daemon(pod, pool, over)
        if pod.deleted is not None:
            return Stays(r.GOING(f"pod {pod.key} is on its way out"))
        found = self._system(pod, over) or self._owner(pod, pool) or self._annotated(pod, pool)
        found = found or self._data(pod) or self._age(pod, pool)
        if found is not None:
            return Stays(found)
        return self._budgeted(pod, pool, over)

    def moved(self, pod: Pod, verdict: Verdict) -> Verdict:
        """The same pod is not moved twice in a short time."""
        if isinstance(verdict, Moves):
            return Stays(r.MOVED_BEFORE(f"pod {pod.key} was moved not long ago"))
        return verdict

    def forbidden(self, pod: Pod, pool: Pool) -> Reason | None:
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

    def patient(self, pod: Pod, verdict: Verdict, unsettled: frozenset[Owner]) -> Verdict:
        """One pod of a workload after the other: the next goes when the one before is ready where it went."""
        owner = pod.owner
        if isinstance(verdict, Moves) and owner and (pod.namespace, owner.kind, owner.name) in unsettled:
            return Stays(
                r.UNSETTLED(f"a pod of {owner.kind} {pod.namespace}/{owner.name} was moved and is not ready yet")
            )
        return verdict

    def _long_gone(self, pod: Pod) -> bool:
        """Asked to go longer ago than its grace and half a minute: nobody waits for it any more.

        The deletion timestamp is when the grace ends (apimachinery ObjectMeta), so an extended grace is in it.
        """
        return pod.deleted is not None and self.now is not None and self.now > pod.deleted + SLACK

    def _daemon(self, pod: Pod, pool: Pool, over: tuple[int, ...]) -> Verdict:
        """A DaemonSet pod keeps its node only when somebody said so."""
        found = self._annotated(pod, pool)
        if found is not None:
            return Stays(found)
        for number in over if pod.deleted is None else ():
            budget = self.inventory.budgets[number]
            if budget.allowed < 1:
                return Stays(r.BUDGET_SPENT(f"budget {budget.key} allows no disruption of DaemonSet pod {pod.key}"))
        return SKIPPED

    # ── who would make it again ──────────────────────────────────────────
    def _owner(self, pod: Pod, pool: Pool) -> Reason | None:
        safe = pod.annotations.get(SAFE) == "true"
        if pod.owner is None:
            return None if safe else r.NO_OWNER(f"pod {pod.key} has no controller: nobody would make it again")
        kind, name = pod.owner.kind, pod.owner.name
        if kind not in OWNERS:
            return None if safe else r.STRANGE_OWNER(f"pod {pod.key} belongs to {kind}/{name}, a kind unknown to us")
        if kind == "Job" and not pool.jobs and not safe:
            return r.JOB(f"pod {pod.key} works for Job {name}")
        return self._whole(pod, pool, kind, name)

    def _whole(self, pod: Pod, pool: Pool, kind: str, name: str) -> Reason | None:
        scale = self.inventory.owners.get((pod.namespace, kind, name))
        if scale is None and kind in self.inventory.owner_kinds:
            return r.OWNER_GONE(f"{kind} {pod.namespace}/{name}, which pod {pod.key} names, is not there")
        if kind == "Job":
            return None
        if scale is not None and scale.wanted is not None and scale.ready < scale.wanted:
            return r.OWNER_SHORT(f"{kind} {pod.namespace}/{name} has {scale.ready} of {scale.wanted} pods ready")
        wanted = scale.wanted if scale is not None and scale.wanted is not None else None
        count = wanted if wanted is not None else self.replicas(pod)
        if count < 2 and not pool.single_replicas:
            return r.SINGLE(f"pod {pod.key} is the only replica of {kind} {name}")
        return None

    def _rolling(self, pod: Pod) -> Reason | None:
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
        return r.OWNER_SHORT(f"Deployment {pod.namespace}/{name} has {scale.ready} of {scale.wanted} pods ready")

    # ── what people wrote on it ──────────────────────────────────────────
    def _annotated(self, pod: Pod, pool: Pool) -> Reason | None:
        notes = pod.annotations
        if not notes:
            return None
        whose = f"pod {pod.key}"
        for key in (KEEP, *pool.keep_pods):
            if (found := leave(whose, key, notes.get(key), r.UNSAFE)) is not None:
                return found
        if notes.get(SAFE) in ("false", "on-completion"):
            return r.UNSAFE(f"{whose} says {SAFE}: {notes[SAFE]}")
        if notes.get(SAFE, "true") != "true":
            return misread(whose, SAFE, notes[SAFE])
        if NO_EVICTION in notes and notes[NO_EVICTION] != "false":
            return r.UNSAFE(f"{whose} says {NO_EVICTION}")
        return self._undisturbed(pod, notes.get(DO_NOT_DISRUPT))

    def _undisturbed(self, pod: Pod, said: str | None) -> Reason | None:
        """`true`, or a Go duration from its start."""
        lasts = seconds_of(said) if said is not None else None
        if said is None or lasts is None:
            return leave(f"pod {pod.key}", DO_NOT_DISRUPT, said, r.UNSAFE)
        started = pod.started if pod.started is not None else pod.created
        if self.now is None or started is None or self.now < started + lasts:
            return r.UNSAFE(f"pod {pod.key} says {DO_NOT_DISRUPT}: {said}")
        return None

    # ── what it would lose ───────────────────────────────────────────────
    def _data(self, pod: Pod) -> Reason | None:
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
    def _system(self, pod: Pod, over: tuple[int, ...]) -> Reason | None:
        if pod.priority >= CRITICAL_PRIORITY:
            return r.CRITICAL(f"pod {pod.key} has priority {pod.priority}")
        if pod.namespace != "kube-system" or over or pod.annotations.get(SAFE) == "true":
            return None
        if self.now is not None and pod.created is not None and self.now < pod.created + HOUR:
            return r.SYSTEM_YOUNG(f"pod {pod.key} is a system pod without budget, younger than an hour")
        return None

    def _age(self, pod: Pod, pool: Pool) -> Reason | None:
        if not pool.min_pod_age or self.now is None or pod.created is None:
            return None
        age = self.now - pod.created
        if age < pool.min_pod_age:
            return r.YOUNG_POD(f"pod {pod.key} is {age} s old; the pool wants {pool.min_pod_age} s")
        return None

    # ── budgets ──────────────────────────────────────────────────────────
    def _budgeted(self, pod: Pod, pool: Pool, over: tuple[int, ...]) -> Verdict:
        """An unready pod goes uncounted while enough others are healthy (IfHealthyBudget), or ever (AlwaysAllow)."""
        if len(over) > 1:
            names = " and ".join(self.inventory.budgets[n].key for n in over)
            return Stays(r.TWO_BUDGETS(f"pod {pod.key} is under {len(over)} budgets ({names})"))
        if not over and (found := self._rolling(pod)) is not None:
            return Stays(found)
        if not over:
            return FREE if pod.ready or pool.not_ready else Stays(r.NOT_READY_POD(f"pod {pod.key} is not ready"))
        budget = self.inventory.budgets[over[0]]
        if (found := self._doubt(budget)) is not None:
            return Stays(found)
        if not pod.ready and (budget.always or budget.whole):
            return FREE
        if not pod.ready and not budget.allowed:
            return Stays(r.NOT_READY_POD(f"pod {pod.key} is not ready and budget {budget.key} lacks healthy pods"))
        return Moves(over[0]) if budget.allowed else Stays(self._closed(pod, budget))

    def _doubt(self, budget: Budget) -> Reason | None:
        if budget.broken:
            return r.BUDGET_BROKEN(f"budget {budget.key}: {budget.broken}")
        if budget.stale:
            return r.BUDGET_STALE(f"the status of budget {budget.key} is older than the budget")
        return None

    def _closed(self, pod: Pod, budget: Budget) -> Reason:
        if budget.most < 1:
            return r.BUDGET_NEVER(f"budget {budget.key} never allows a disruption of pod {pod.key}")
        return r.BUDGET_SPENT(f"budget {budget.key} allows no disruption of pod {pod.key} now")
