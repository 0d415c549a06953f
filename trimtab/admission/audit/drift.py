"""Decides running pods again, as submitted, with the current policies and facts, and reports which changes they lack.

A pod that was changed on admission has an annotation that lists the changes. Because of it, the second decision does
not make these changes again; each change that it still makes is one that the pod lacks. As on admission, a change is
dropped if no node could run the pod with it, or if a quota has no room for it (`pod_decision`).

Pods of one template are decided once, and again only if a policy or a fact that the decision read has changed. One step
makes a limited number of decisions. The other templates keep their last result, or have none yet, and are counted as
behind.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from trimtab.admission.audit.original_pod import NOT_HELD, AuditedPod, PodTemplateKey
from trimtab.admission.pod_decision import withhold_harmful_actions
from trimtab.admission.reasons import NO_NODE, QUOTA_WITHHELD
from trimtab.cluster.api.meta import UNSET, change, value_or
from trimtab.cluster.api.pod import Pod
from trimtab.cluster.reason import Reason
from trimtab.policy import reasons
from trimtab.policy.actions import overhead
from trimtab.policy.applicable_policies import ApplicablePolicies, find_applicable_policies, find_candidate_policies
from trimtab.policy.changed_annotation import ChangedAnnotation, read_trusted_annotation
from trimtab.policy.cluster_facts import ClusterFacts
from trimtab.policy.decide import Decision, decide_with_policies
from trimtab.policy.decision_reads import FactDependencies, Freshness, track_dependencies
from trimtab.policy.match import always_left_alone
from trimtab.policy.pod_changes import FieldChange
from trimtab.policy.pod_context import DEFAULT_SETTINGS, AdmissionSettings, PodContext, Withheld
from trimtab.policy.pod_size_limits import find_template_excess
from trimtab.policy.podpolicy import Policies


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditResult:
    """The result for the pods of one template, by policy. Policies that do not match them are left out."""

    meant: frozenset[str] = frozenset()
    """The names of the policies whose `match` selects the pods, in any mode."""
    carried: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Policy → the fields that it changed on admission, according to the pods' annotation."""
    lacks: Mapping[str, tuple[FieldChange, ...]] = field(default_factory=dict)
    """Policy in mode apply → the changes that it would make now."""
    would: Mapping[str, tuple[FieldChange, ...]] = field(default_factory=dict)
    """Policy in mode warn or audit → the changes that it would make now."""
    left_out: Mapping[str, Reason] = field(default_factory=dict)
    """Policy whose `match` selects the pods → why the policy does not change them at all: opted out, not in the
    rollout, paused."""
    withheld: Mapping[str, Reason] = field(default_factory=dict)
    """Policy in mode apply → why the webhook drops changes of the policy: no node could run the pods with them, or a
    quota has no room. The pods do not lack these changes."""
    is_outcome_checked: bool = False
    """Whether policies would change the pods. If so, the result also depends on the nodes and on the usage of
    quotas."""
    overruled: frozenset[str] = frozenset()
    failed: Mapping[str, str] = field(default_factory=dict)
    """Policy → the error of its action that failed, which is a bug of Trimtab."""
    denied: Reason | None = None
    """Why the pods would be refused if they were created now, or None if they would not be."""


def audit_template(
    template_key: PodTemplateKey, policies: Policies, facts: ClusterFacts, settings: AdmissionSettings
) -> AuditResult:
    """Returns the result for the pods of one template. Raises nothing, whatever a pod or policy contains."""
    pod = with_current_overhead(template_key.pod, facts)
    subject = PodContext(pod=pod, namespace=template_key.namespace, facts=facts, settings=settings)
    # The annotation is not verified here, so what it says of policies that do not exist is ignored.
    annotation = (
        template_key.marker.for_policies({policy.name for policy in policies.all}) if template_key.marker else None
    )
    carried = {name: frozenset(fields) for name, fields in annotation.by.items() if name} if annotation else {}
    skipped = always_left_alone(subject)
    if skipped is not None:
        left_out = dict.fromkeys(
            (compiled.name for compiled in find_applicable_policies(policies, subject).matching), skipped
        )
        return AuditResult(carried=carried, left_out=left_out)
    size_excess = find_template_excess(pod)
    if size_excess is not None:
        reason = reasons.TOO_LARGE(str(size_excess))
        return AuditResult(
            carried=carried, left_out={compiled.name: reason for compiled in find_candidate_policies(policies, subject)}
        )
    decision, is_outcome_checked = _decide_with_outcome(subject, policies, annotation)
    # Policy → error, from the decision's failures, whose form is "policy: action: error".
    parts = (failure.partition(": ") for failure in decision.failures)
    # The policies that were overruled. A policy also counts as overruled if a field already has the value of another
    # policy's earlier change.
    deciders = annotation.decider_by_field if annotation else {}
    # Policy → why a change of the policy was dropped, for policies in mode apply.
    return AuditResult(
        meant=frozenset(matched.policy for matched in decision.matched),
        carried=carried,
        lacks=_by_policy(decision.changes, decision.mode_by_policy),
        would=_by_policy(decision.would, decision.mode_by_policy),
        left_out={
            omission.policy: omission.reason
            for omission in find_applicable_policies(policies, subject).policies_left_out
        },
        withheld={
            kept_field.policy: kept_field.reason
            for kept_field in decision.fields_kept
            if kept_field.reason.code in _WITHHELD_CODES and kept_field.policy
        },
        is_outcome_checked=is_outcome_checked,
        overruled=frozenset(
            kept_field.policy
            for kept_field in decision.fields_kept
            if kept_field.reason.code is reasons.OVERRULED
            or (
                kept_field.reason.code is reasons.ALREADY_SET
                and deciders.get(kept_field.field, (kept_field.policy,))[0] != kept_field.policy
            )
        ),
        failed={policy: error for policy, _, error in parts},
        denied=decision.denied,
    )


def _decide_with_outcome(
    pod_context: PodContext, policies: Policies, annotation: ChangedAnnotation | None
) -> tuple[Decision, bool]:
    """Returns the decision without the changes that the webhook would drop, and whether there was any change to
    check."""
    marked = annotation or read_trusted_annotation(pod_context.pod, pod_context.namespace, pod_context.settings.signer)
    decision, applicable = decide_with_policies(pod_context, policies, marked=marked, is_marker_read=True)
    if not decision.changes or decision.denied is not None:
        return decision, False

    def decide_without(actions: Withheld, watching: bool) -> tuple[Decision, ApplicablePolicies | None]:
        return decide_with_policies(
            pod_context.with_withheld(actions), policies, watching=watching, marked=marked, is_marker_read=True
        )

    return withhold_harmful_actions(pod_context, decision, applicable, decide_without)[0], True


_WITHHELD_CODES = QUOTA_WITHHELD | {NO_NODE}


def with_current_overhead(pod: Pod, facts: ClusterFacts) -> Pod:
    """Returns the pod with the overhead that its RuntimeClass defines now, because an outdated overhead is reported
    separately.

    Overhead without a class, or whose class was deleted, belongs to the pod and is kept.
    """
    runtime_class = facts.runtime_classes.get(value_or(pod.spec.runtime_class_name, ""))
    stored = value_or(pod.spec.overhead, {})
    if runtime_class is None or not stored or stored == runtime_class.overhead.pod_fixed:
        return pod
    current = dict(runtime_class.overhead.pod_fixed)
    return change(pod, spec=change(pod.spec, overhead=current or UNSET))


def _by_policy(changes: tuple[FieldChange, ...], modes: Mapping[str, str]) -> dict[str, tuple[FieldChange, ...]]:
    """Returns policy → its changes. Changes that belong to no policy are left out, because the overhead of a class is
    reported separately; so are changes to annotation values that Trimtab does not keep."""
    by_policy: dict[str, list[FieldChange]] = {}
    for field_change in changes:
        if field_change.policy in modes and field_change.before != NOT_HELD and field_change.field != overhead.FIELD:
            by_policy.setdefault(field_change.policy, []).append(field_change)
    return {policy: tuple(of_policy) for policy, of_policy in by_policy.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditInputs:
    """The inputs of the decisions that an audit makes."""

    policies: Policies
    facts: ClusterFacts
    terms: AdmissionSettings = DEFAULT_SETTINGS


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditState:
    """What is known about all pods after one step."""

    groups: Mapping[PodTemplateKey, tuple[AuditedPod, ...]]
    """Template → its pods. Finished pods are left out."""
    results: Mapping[PodTemplateKey, AuditResult]
    """Template → its result. Templates that were not decided yet are not in the mapping."""
    decided: int = 0
    """The number of templates that were decided in this step."""
    behind: int = 0
    """The number of templates left for the next step: they have no result yet, or one that is older than the last
    change."""

    @property
    def pod_count(self) -> int:
        return sum(map(len, self.groups.values()))


@dataclass(slots=True)
class _CachedResult:
    result: AuditResult
    reads: FactDependencies | None
    """The facts that the decision has read, or None if the result must be decided again."""
    facts: ClusterFacts
    """The newest facts in which everything that was read is unchanged."""


@dataclass(slots=True)
class Auditor:
    """Audits all pods in steps, and keeps the results between the steps. Only one thread may use it."""

    most: int = 1000
    """The maximum number of decisions in one step. One decision takes about 100 to 300 µs."""
    _results: dict[PodTemplateKey, _CachedResult] = field(default_factory=dict)
    _last_inputs: tuple[Policies, AdmissionSettings] | None = None

    def audit_pods(self, pods: Iterable[AuditedPod], inputs: AuditInputs) -> AuditState:
        """Audits all existing pods in one step with a limited number of decisions, and returns what is known about
        them."""
        groups = _group_by_template(pods)
        self._results = {alike: cached for alike, cached in self._results.items() if alike in groups}
        if self._last_inputs != (inputs.policies, inputs.terms):
            self._invalidate_all()
            self._last_inputs = (inputs.policies, inputs.terms)
        # The templates that must be decided; those without a result come first.
        new = [alike for alike in groups if alike not in self._results]
        changed = [alike for alike, cached in self._results.items() if not _is_still_valid(cached, inputs.facts)]
        outdated = new + changed
        for alike in outdated[: self.most]:
            recorded_facts, reads = track_dependencies(inputs.facts)
            self._results[alike] = _CachedResult(
                audit_template(alike, inputs.policies, recorded_facts, inputs.terms), reads, inputs.facts
            )
        decided_count = min(len(outdated), self.most)
        results = {alike: cached.result for alike, cached in self._results.items()}
        return AuditState(groups=groups, results=results, decided=decided_count, behind=len(outdated) - decided_count)

    def result_of(self, template_key: PodTemplateKey) -> AuditResult | None:
        """Returns the last result for a template, or None if it was not decided yet or has no pods any more."""
        cached = self._results.get(template_key)
        return cached.result if cached else None

    def _invalidate_all(self) -> None:
        """Marks every result as one that must be decided again."""
        for cached in self._results.values():
            cached.reads = None


def _is_still_valid(cached: _CachedResult, facts: ClusterFacts) -> bool:
    """Returns whether the result would be the same with these facts."""
    if cached.reads is None:
        return False
    if cached.facts is not facts:
        freshness = cached.reads.check_freshness(facts)
        if freshness is Freshness.OTHER:
            return False
        # Nodes and the use of quotas are read only by the check of the outcome.
        if cached.result.is_outcome_checked and (
            freshness is Freshness.NODES or (freshness is Freshness.USED and cached.reads.reads_quotas)
        ):
            return False
        cached.facts = facts
    return True


def _group_by_template(pods: Iterable[AuditedPod]) -> dict[PodTemplateKey, tuple[AuditedPod, ...]]:
    groups: dict[PodTemplateKey, list[AuditedPod]] = {}
    for pod in pods:
        if pod.running:
            groups.setdefault(pod.alike, []).append(pod)
    return {alike: tuple(of_template) for alike, of_template in groups.items()}
