"""Compares failures of pods with and without a policy's change, and judges whether the policy harms pods.

A failure is attributed to a policy only if all of these hold:

- the policy changed fields of the pods that can cause it (a label causes none);
- at least `least_pods` pods have the policy's change, and `least_troubled` of them failed within the window;
- at least `least_pods` known pods match the policy and do not have its change, because they are older or were missed;
- the share of failed pods rose by at least `rise`, and to at least `factor` times the share before;
- pods that the policy does not match fail less often than that; otherwise the cause is the cluster.

The policy is braked only if failures of one namespace alone cannot cause that, because the brake takes the policy from
all: without the pods of the namespace with the most failures, the share has risen too, or the policy matches pods of
one namespace only. A policy with a `required` action is never braked: its pods' authors could switch it off by pods
that fail.

A deleted pod counts with its state at deletion, so that the comparison is still possible after a rollout has replaced
every pod. A pod that an earlier version of the policy has changed counts as a pod from before.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from trimtab.admission.audit import reasons
from trimtab.admission.audit.causes import Moment
from trimtab.admission.audit.drift import AuditResult
from trimtab.admission.audit.original_pod import AuditedPod, FailureKind, PodTemplateKey
from trimtab.cluster.format_count import format_count
from trimtab.cluster.reason import NotYet, Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class HarmTerms:
    """The thresholds above which a rise of failures counts as harm."""

    window: float = 3600.0
    """The window in seconds, before now or before a pod's deletion, in which failures count. The default is an hour. A
    shorter window could miss memory that grows slowly; with a longer one, a policy would be blamed for yesterday's
    failures."""
    memory: float = 86400.0
    """The number of seconds for which deleted pods without the change are remembered. The default is a day, so that the
    comparison is possible after a rollout has replaced every pod."""
    unschedulable_after: float = 300.0
    """The number of seconds for which a pod may be unschedulable before it counts as failed. The default is five
    minutes, because an autoscaler adds a node in two to four minutes."""
    least_pods: int = 5
    """The minimum number of pods with the change, and of pods without it. With fewer than five, a single failed pod
    would be more than 20%."""
    least_troubled: int = 3
    """The minimum number of failed pods. Two may be a coincidence, or one bad release."""
    rise: float = 0.05
    """The minimum rise of the share of failed pods: with 0.05, one pod in twenty more than before."""
    factor: float = 2.0
    """The minimum ratio to the share before. With two, workloads that fail from time to time anyway do not count."""


DEFAULT_HARM_TERMS = HarmTerms()


@dataclass(frozen=True, slots=True)
class Count:
    """A number of pods, and how many of them failed."""

    pods: int = 0
    hit: int = 0

    def __add__(self, other: "Count") -> "Count":
        return Count(self.pods + other.pods, self.hit + other.hit)

    @property
    def failed_share(self) -> float:
        return self.hit / self.pods if self.pods else 0.0

    def __str__(self) -> str:
        return f"{self.hit} of {format_count(self.pods, 'pod')}"


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureComparison:
    """The pods that one policy may have affected, and the pods to compare them with, for one kind of failure."""

    before: Count = Count()
    """The pods that the policy matches and that do not have its change."""
    after: Count = Count()
    """The pods that have a change of the policy which can cause this failure."""
    elsewhere: Count = Count()
    """The pods that the policy does not match."""
    after_in_others: Count | None = None
    """`after` without the pods of the namespace with the most failures. None if the policy matches pods of one
    namespace only."""


@dataclass(frozen=True, slots=True)
class HarmEvidence:
    """The evidence that a policy harms pods."""

    reason: Reason
    trouble: FailureKind
    compared: FailureComparison
    is_brake_allowed: bool = True
    """Whether the policy may be set to `warn`. Otherwise the harm is only reported."""


Verdict = HarmEvidence | NotYet | Reason
"""Evidence of harm, too little data, or the reason why there is no harm."""


def judge_harm(
    policy: str,
    counts: Mapping[FailureKind, FailureComparison],
    terms: HarmTerms = DEFAULT_HARM_TERMS,
    *,
    has_required_action: bool = False,
) -> Verdict:
    """Returns the verdict on the policy over all kinds of failure.

    If any kind shows harm, the verdict is harm. Otherwise, if the data of any kind is too little, the verdict says so.
    Otherwise, there is no harm."""
    verdicts = [
        _judge_failure(policy, kind, compared, terms, has_required_action=has_required_action)
        for kind, compared in sorted(counts.items())
    ]
    evidence = [verdict for verdict in verdicts if isinstance(verdict, HarmEvidence)]
    if evidence:
        return next((harm for harm in evidence if harm.is_brake_allowed), evidence[0])
    too_few = next((verdict for verdict in verdicts if isinstance(verdict, NotYet)), None)
    if too_few is not None:
        return too_few
    quiet = reasons.QUIET(f"pods that policy {policy} changed do not fail more often than other pods")
    return next((verdict for verdict in verdicts if isinstance(verdict, Reason)), quiet)


def _judge_failure(
    policy: str, kind: FailureKind, compared: FailureComparison, terms: HarmTerms, *, has_required_action: bool
) -> Verdict | None:
    """Returns the verdict on the policy for one kind of failure, or None if no pod failed in this way."""
    if compared.after.hit < terms.least_troubled:
        return _too_few(compared, terms) if compared.after.hit else None
    if compared.after.pods < terms.least_pods or compared.before.pods < terms.least_pods:
        return _too_few(compared, terms)
    if not _has_risen(compared.before, compared.after, terms):
        return None
    comparison_text = (
        f"{kind}: {compared.after} with a change of policy {policy}, but {compared.before} that the policy "
        "matches and did not change"
    )
    if (
        compared.elsewhere.pods >= terms.least_pods
        and compared.elsewhere.failed_share * terms.factor >= compared.after.failed_share
    ):
        return reasons.EVERYWHERE(f"{comparison_text}; and {compared.elsewhere} that the policy does not match")
    if has_required_action:
        reason = reasons.HARM_WITH_REQUIRED_ACTION(f"{comparison_text}; an action of the policy is `required`")
        return HarmEvidence(reason, kind, compared, is_brake_allowed=False)
    others = compared.after_in_others
    if others is not None and not (others.hit and _has_risen(compared.before, others, terms)):
        reason = reasons.HARM_IN_ONE_NAMESPACE(f"{comparison_text}; without one namespace it is {others}")
        return HarmEvidence(reason, kind, compared, is_brake_allowed=False)
    return HarmEvidence(reasons.HARMFUL(comparison_text), kind, compared)


def _has_risen(before: Count, after: Count, terms: HarmTerms) -> bool:
    """Returns whether the share of failed pods rose clearly: by `rise`, and to at least `factor` times the share
    before."""
    rise = after.failed_share - before.failed_share
    return rise >= terms.rise and after.failed_share >= terms.factor * before.failed_share


def _too_few(compared: FailureComparison, terms: HarmTerms) -> NotYet:
    return NotYet(
        reason=reasons.TOO_FEW("there are too few pods to distinguish harm from chance"),
        have=f"{compared.after} changed, {compared.before} not changed",
        need=f"at least {format_count(terms.least_troubled, 'failed pod')}, and at least "
        f"{format_count(terms.least_pods, 'pod')} with and "
        f"{format_count(terms.least_pods, 'pod')} without the change",
    )


_SIZES = (".requests.", ".limits.", "runtimeClassName", "overhead")
_PLACES = ("nodeSelector", "nodeAffinity", "topologySpread", "priorityClassName")
MAY_CAUSE: dict[FailureKind, tuple[str, ...]] = {
    FailureKind.OOM_KILLED: (".requests.memory", ".limits.memory", "runtimeClassName", "overhead"),
    FailureKind.EVICTED: (*_SIZES, "priorityClassName"),
    FailureKind.UNSCHEDULABLE: (*_SIZES, *_PLACES),
}
"""Kind of failure → parts of field names. A change to a field whose name contains one of these parts can cause the
failure."""


class Cohort(StrEnum):
    """For which side of the comparison a pod counts: with the policy's change, without it, or not matched by the
    policy."""

    BEFORE = "before"
    AFTER = "after"


Counts = dict[FailureKind, FailureComparison]


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """A policy in force that is checked for harm."""

    name: str
    since: Moment | None
    """When the policy's spec was last written. None: it is unknown, and every pod with the policy's change counts."""
    has_required_action: bool = False


def cohort_of(watched: Watched, pod: AuditedPod, result: AuditResult | None) -> Cohort | None:
    """Returns for which side of the comparison the pod counts. None if the policy does not match the pod, or if it is
    not known whether it does."""
    has_change = pod.alike.marker is not None and watched.name in pod.alike.marker.by
    if has_change and (watched.since is None or pod.created is None or pod.created >= watched.since):
        return Cohort.AFTER
    return Cohort.BEFORE if has_change or (result is not None and watched.name in result.meant) else None


def recent_failures(pod: AuditedPod, end: Moment, terms: HarmTerms) -> frozenset[FailureKind]:
    """Returns the kinds of failures of a pod within the window before `end`, which is now or the time of its
    deletion."""
    if not pod.incidents:
        return _NO_FAILURES
    return frozenset(
        failure.trouble
        for failure in pod.incidents
        if (failure.trouble is FailureKind.UNSCHEDULABLE and end - failure.at >= terms.unschedulable_after)
        or (failure.trouble is not FailureKind.UNSCHEDULABLE and end - failure.at <= terms.window)
    )


_NO_FAILURES: frozenset[FailureKind] = frozenset()


def may_cause(template_key: PodTemplateKey, policy: str, kind: FailureKind) -> bool:
    """Returns whether the policy changed a field of these pods that can cause the failure."""
    fields = template_key.marker.by.get(policy, {}) if template_key.marker else {}
    return any(part in name for name in fields for part in MAY_CAUSE[kind])


_HistoryKey = tuple[str, Moment | None, Cohort, FailureKind, str]
"""(policy, its version, side of the comparison, kind of failure, namespace of the pods)."""


@dataclass(slots=True)
class FailureHistory:
    """The counts of deleted pods, by the hour of deletion. Only one thread may use it."""

    terms: HarmTerms = field(default_factory=HarmTerms)
    _restored_counts: dict[tuple[str, Moment | None], dict[FailureKind, Count]] = field(default_factory=dict)
    _counts_by_hour: dict[int, dict[_HistoryKey, Count]] = field(default_factory=dict)

    def record_deleted(
        self, pod: AuditedPod, result: AuditResult | None, policies: Iterable[Watched], now: Moment
    ) -> None:
        """Counts a pod that was just deleted, for each policy."""
        failures = recent_failures(pod, now, self.terms)
        for policy in policies:
            cohort = cohort_of(policy, pod, result)
            if cohort is None:
                continue
            for kind in FailureKind:
                if cohort is Cohort.BEFORE or may_cause(pod.alike, policy.name, kind):
                    key = (policy.name, policy.since, cohort, kind, pod.alike.namespace)
                    counts = self._counts_by_hour.setdefault(_hour_of(now), {})
                    counts[key] = counts.get(key, Count()) + Count(1, kind in failures)

    def restore_counts(self, watched: Watched, before: Mapping[FailureKind, Count]) -> None:
        """Restores the counts of pods from before this version of the policy, which an earlier leader has stored. They
        are used as long as they contain more pods than are otherwise known."""
        if before:
            self._restored_counts[watched.name, watched.since] = dict(before)

    def drop_old_counts(self, now: Moment) -> None:
        """Drops the counts of hours that are too long ago (`HarmTerms.memory`)."""
        oldest_hour = _hour_of(now - self.terms.memory)
        self._counts_by_hour = {hour: counts for hour, counts in self._counts_by_hour.items() if hour >= oldest_hour}

    def count_deleted(self, watched: Watched, cohort: Cohort, kind: FailureKind, now: Moment) -> Count:
        """Returns the count of deleted pods on one side (`cohort`): for AFTER, those within the window; for BEFORE,
        those that are still remembered. Pods that an earlier version of the policy has changed count as BEFORE."""
        return sum(self.count_deleted_by_namespace(watched, cohort, kind, now).values(), Count())

    def count_deleted_by_namespace(
        self, watched: Watched, where: Cohort, trouble: FailureKind, now: Moment
    ) -> dict[str, Count]:
        """Returns namespace → what `count_deleted` counts of it."""
        oldest_hour = _hour_of(now - (self.terms.window if where is Cohort.AFTER else self.terms.memory))
        totals: dict[str, Count] = {}
        for hour, counts in self._counts_by_hour.items():
            for (name, since, recorded_cohort, kind, space), count in counts.items() if hour >= oldest_hour else ():
                cohort = recorded_cohort if since == watched.since else Cohort.BEFORE
                if (name, cohort, kind) == (watched.name, where, trouble):
                    totals[space] = totals.get(space, Count()) + count
        return totals

    def count_before(self, watched: Watched, kind: FailureKind, existing: Count, now: Moment) -> Count:
        """Returns the count of pods without the change, existing and deleted; or the restored count if it has more
        pods."""
        observed = existing + self.count_deleted(watched, Cohort.BEFORE, kind, now)
        restored = self._restored_counts.get((watched.name, watched.since), {}).get(kind, Count())
        return restored if restored.pods > observed.pods else observed


def _hour_of(time: Moment) -> int:
    return int(time // 3600)


def compare_failures(
    pods: Iterable[AuditedPod],
    results: Mapping[PodTemplateKey, AuditResult],
    policies: Iterable[Watched],
    history: FailureHistory,
    now: Moment,
) -> dict[str, Counts]:
    """Returns policy → kind of failure → the pods on every side, including deleted ones."""
    groups = _group_recent_pods(pods, now, history.terms)
    return {policy.name: _compare_policy(policy, groups, results, history, now) for policy in policies}


_PodWithFailures = tuple[AuditedPod, frozenset[FailureKind]]


@dataclass(slots=True)
class _FailureCounter:
    """A count of pods and failures on one side, while it is computed."""

    pods: int = 0
    hit: Counter[FailureKind] = field(default_factory=Counter)

    def add_pod(self, hit: frozenset[FailureKind]) -> None:
        self.pods += 1
        if hit:
            self.hit.update(hit)

    def add_counter(self, other: "_FailureCounter") -> None:
        self.pods += other.pods
        if other.hit:
            self.hit.update(other.hit)

    def count_of(self, kind: FailureKind) -> Count:
        return Count(self.pods, self.hit[kind])


@dataclass(frozen=True, slots=True)
class _TemplatePods:
    """The pods of one template, grouped for the comparison of failures."""

    pods: list[_PodWithFailures]
    all: _FailureCounter
    young: _FailureCounter
    """The pods that were created within the window."""


def _group_recent_pods(
    pods: Iterable[AuditedPod], now: Moment, terms: HarmTerms
) -> dict[PodTemplateKey, _TemplatePods]:
    """Returns template → its pods that are running, or that were created or failed within the window."""
    oldest, groups = now - terms.window, dict[PodTemplateKey, _TemplatePods]()
    for pod in pods:
        failures = recent_failures(pod, now, terms)
        is_young = pod.created is not None and pod.created >= oldest
        if pod.running or failures or is_young:
            group = groups.get(pod.alike)
            if group is None:
                group = groups[pod.alike] = _TemplatePods([], _FailureCounter(), _FailureCounter())
            group.pods.append((pod, failures))
            group.all.add_pod(failures)
            if is_young:
                group.young.add_pod(failures)
    return groups


def _compare_policy(
    watched: Watched,
    groups: Mapping[PodTemplateKey, _TemplatePods],
    results: Mapping[PodTemplateKey, AuditResult],
    history: FailureHistory,
    now: Moment,
) -> Counts:
    before, elsewhere, young = _FailureCounter(), _FailureCounter(), _FailureCounter()
    after: _CountersByNamespace = {trouble: {} for trouble in FailureKind}
    namespaces: set[str] = set()
    for alike, group in groups.items():
        result = results.get(alike)
        if alike.marker is not None and watched.name in alike.marker.by:
            namespaces.add(alike.namespace)
            _count_carriers(watched, alike, group, before, after)
        elif result is not None and watched.name in result.meant:
            namespaces.add(alike.namespace)
            before.add_counter(group.all)
        else:
            elsewhere.add_counter(group.all)
            young.add_counter(group.young)
    counts: Counts = {}
    for trouble in FailureKind:
        by_namespace = history.count_deleted_by_namespace(watched, Cohort.AFTER, trouble, now)
        for namespace, counter in after[trouble].items():
            by_namespace[namespace] = by_namespace.get(namespace, Count()) + counter.count_of(trouble)
        counts[trouble] = FailureComparison(
            before=history.count_before(watched, trouble, before.count_of(trouble), now),
            after=sum(by_namespace.values(), Count()),
            # Only pods of the same age show whether nodes have room now, so older pods are no comparison here.
            elsewhere=(young if trouble is FailureKind.UNSCHEDULABLE else elsewhere).count_of(trouble),
            after_in_others=_count_in_others(by_namespace) if len(namespaces | by_namespace.keys()) > 1 else None,
        )
    return counts


def _count_in_others(by_namespace: Mapping[str, Count]) -> Count:
    """Returns the count without the namespace with the most failures."""
    worst = max(by_namespace, key=lambda namespace: (by_namespace[namespace].hit, namespace), default="")
    return sum((count for namespace, count in by_namespace.items() if namespace != worst), Count())


_CountersByNamespace = dict[FailureKind, dict[str, _FailureCounter]]


def _count_carriers(
    watched: Watched,
    template_key: PodTemplateKey,
    group: _TemplatePods,
    before: _FailureCounter,
    after: _CountersByNamespace,
) -> None:
    """Adds the pods with a change of the policy to the counts: to `after` if the policy's current version made the
    change, otherwise to `before`."""
    counters = [
        by_namespace.setdefault(template_key.namespace, _FailureCounter())
        for trouble, by_namespace in after.items()
        if may_cause(template_key, watched.name, trouble)
    ]
    for pod, failures in group.pods:
        for counter in counters if cohort_of(watched, pod, None) is Cohort.AFTER else (before,):
            counter.add_pod(failures)
