"""Builds the result of an audit: the pods that lack changes, and the number of pods for each policy and state."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from trimtab.admission.audit import stale_overhead
from trimtab.admission.audit.causes import ChangeTimes, explain_unpatched
from trimtab.admission.audit.drift import AuditInputs, AuditResult, AuditState
from trimtab.admission.audit.original_pod import AuditedPod, PodTemplateKey
from trimtab.admission.audit.reasons import DECIDED_OTHERWISE, ONLY_WATCHING
from trimtab.admission.audit.stale_overhead import OverheadExample
from trimtab.cluster.api.meta import value_or
from trimtab.cluster.owner import OwnerKey
from trimtab.cluster.reason import NotYet, Reason
from trimtab.policy.changed_annotation import ChangedAnnotation
from trimtab.policy.compiled_annotation import COMPILED_PREFIX
from trimtab.policy.pod_changes import FieldChange, Value


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditFinding:
    """One way in which pods of one template differ from the policies."""

    alike: PodTemplateKey
    owners: tuple[OwnerKey, ...]
    """The owners of the pods, the direct one first; empty for pods without an owner."""
    pods: tuple[AuditedPod, ...]
    policy: str
    """The name of the policy; empty for the overhead of a RuntimeClass, which belongs to no policy."""
    reason: Reason
    """The reason why the pods differ, determined for the youngest of them."""
    changes: tuple[FieldChange, ...] = ()
    """The changes that the policy would make."""


@dataclass(slots=True, kw_only=True)
class PolicyTally:
    """The number of pods in each state, for one policy."""

    matched: int = 0
    """The number of pods that the policy's `match` and its rollout select."""
    changed: int = 0
    """The number of pods that the policy changed on admission, according to their annotation."""
    unpatched: int = 0
    """The number of pods that the policy would change and has not changed."""
    would: int = 0
    """The number of pods that the policy would change if its mode were not warn or audit."""
    skipped: int = 0
    """The number of pods that the policy's `match` selects but that are left out: opted out, not in the rollout, or
    paused."""
    overruled: int = 0
    """The number of pods for which a policy with a higher priority decided a field that this policy would have set to
    another value."""
    failure: str = ""
    """The error of an action that failed; empty if none did."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """The complete result of one audit."""

    unpatched: tuple[AuditFinding, ...] = ()
    watching: tuple[AuditFinding, ...] = ()
    """The changes that policies in the modes warn and audit would make."""
    left_out: tuple[AuditFinding, ...] = ()
    withheld: tuple[AuditFinding, ...] = ()
    """The changes that the webhook drops, because no node or no quota has room for the changed pods. The pods do not
    lack these changes."""
    overhead: tuple[AuditFinding, ...] = ()
    refused: tuple[AuditFinding, ...] = ()
    """Running pods that would be refused if they were created now, so that a restart would not bring them back."""
    tallies: dict[str, PolicyTally] = field(default_factory=dict)
    """Policy → the number of its pods in each state, for every policy."""
    filled_by: OverheadExample | NotYet
    setting: Reason | None = None
    """Why the setting `overhead` is wrong; None if it is right, or if there is no pod from which this can be seen."""


def build_findings(state: AuditState, inputs: AuditInputs, change_times: ChangeTimes) -> Findings:
    """Returns the complete result for the state that an Auditor has returned."""
    tallies = {policy.name: PolicyTally() for policy in inputs.policies.all}
    for alike, result in state.results.items():
        _add_to_tallies(tallies, result, len(state.groups[alike]))
    classes = inputs.facts.runtime_classes
    filled_by = stale_overhead.detect_overhead_writer(_youngest_pods(state), classes, change_times.classes)
    lacking = tuple(_unpatched_findings(state, inputs, change_times))
    for finding in lacking:
        tallies[finding.policy].unpatched += len(finding.pods)
    return Findings(
        unpatched=lacking,
        watching=tuple(_watching_findings(state, inputs)),
        left_out=tuple(_reasons_findings(state, inputs, lambda result: result.left_out)),
        withheld=tuple(_reasons_findings(state, inputs, lambda result: result.withheld)),
        overhead=tuple(_overhead_findings(state, inputs, change_times)),
        refused=tuple(
            _build_finding(alike, inputs, state.groups[alike], "", result.denied)
            for alike, result in state.results.items()
            if result.denied is not None
        ),
        tallies=tallies,
        filled_by=filled_by,
        setting=stale_overhead.check_overhead_setting(inputs.terms.overhead, filled_by),
    )


def _add_to_tallies(tallies: dict[str, PolicyTally], result: AuditResult, pods: int) -> None:
    for field_name, names in (
        ("matched", result.meant),
        ("changed", result.carried),
        ("would", result.would),
        ("skipped", result.left_out),
        ("overruled", result.overruled),
    ):
        for name in names:
            if name in tallies:
                setattr(tallies[name], field_name, getattr(tallies[name], field_name) + pods)
    for name, error in result.failed.items():
        if name in tallies:
            tallies[name].failure = error


def _unpatched_findings(state: AuditState, inputs: AuditInputs, change_times: ChangeTimes) -> Iterator[AuditFinding]:
    """Yields the changes that pods lack, with the cause. Pods of one template may have different ages and thus
    different causes; those with the same cause form one finding."""
    for alike, result in state.results.items():
        # What the annotation says about existing policies. It may be forged, because everyone who may patch pods can
        # write it.
        annotation = (
            alike.marker.for_policies({policy.name for policy in inputs.policies.all})
            if alike.marker
            else ChangedAnnotation()
        )
        for policy, changes in result.lacks.items():
            signs = _Signs(
                is_marked=bool(annotation.by),
                is_compiled=COMPILED_PREFIX + policy in value_or(alike.pod.metadata.annotations, {}),
            )
            for pods in _by_cause(policy, state.groups[alike], change_times, signs):
                reason = _cause_of(policy, max(pods, key=_creation_time), change_times, signs)
                reported = (
                    changes if reason.code is not DECIDED_OTHERWISE else _drop_earlier_values(annotation, changes)
                )
                if reported:
                    yield _build_finding(alike, inputs, pods, policy, reason, reported)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Signs:
    """What the pods' annotations say about one policy."""

    is_marked: bool
    """Whether the webhook has changed the pods."""
    is_compiled: bool
    """Whether the API server has changed the pods with the compiled policy."""


def _by_cause(
    policy: str, pods: Iterable[AuditedPod], change_times: ChangeTimes, signs: _Signs
) -> Iterable[list[AuditedPod]]:
    causes: dict[str, list[AuditedPod]] = {}
    for pod in pods:
        causes.setdefault(_cause_of(policy, pod, change_times, signs).code.name, []).append(pod)
    return causes.values()


def _cause_of(policy: str, pod: AuditedPod, change_times: ChangeTimes, signs: _Signs) -> Reason:
    return explain_unpatched(policy, pod.created, signs.is_marked, change_times, is_compiled=signs.is_compiled)


def _creation_time(pod: AuditedPod) -> float:
    return pod.created or 0.0


def _drop_earlier_values(annotation: ChangedAnnotation, changes: tuple[FieldChange, ...]) -> tuple[FieldChange, ...]:
    """Returns the changes, except changes to values that Trimtab itself has set earlier and would set differently now.

    Recommendations change every day, so such a difference is not a missing change. A change is only left out if the pod
    still has the value that the annotation names.
    """
    recorded = {name: value for name, (_, value) in annotation.decider_by_field.items()}
    return tuple(c for c in changes if c.field not in recorded or recorded[c.field] != _value_text(c.before))


def _value_text(value: Value) -> str | None:
    return None if value is None else str(value)


def _watching_findings(state: AuditState, inputs: AuditInputs) -> Iterator[AuditFinding]:
    modes = {policy.name: policy.spec.mode for policy in inputs.policies.all}
    for alike, result in state.results.items():
        for policy, changes in result.would.items():
            reason = ONLY_WATCHING(f"the policy {policy} is in mode {modes[policy]}")
            yield _build_finding(alike, inputs, state.groups[alike], policy, reason, changes)


def _reasons_findings(
    state: AuditState, inputs: AuditInputs, reasons_of: Callable[[AuditResult], Mapping[str, Reason]]
) -> Iterator[AuditFinding]:
    for alike, result in state.results.items():
        for policy, reason in reasons_of(result).items():
            yield _build_finding(alike, inputs, state.groups[alike], policy, reason)


def _overhead_findings(state: AuditState, inputs: AuditInputs, change_times: ChangeTimes) -> Iterator[AuditFinding]:
    for alike, pods in state.groups.items():
        name = value_or(alike.pod.spec.runtime_class_name, "")
        runtime_class = inputs.facts.runtime_classes.get(name) if name else None
        causes: dict[str, tuple[Reason, list[AuditedPod]]] = {}
        for pod in pods if runtime_class else ():
            reason = stale_overhead.explain_overhead(alike, pod.created, runtime_class, change_times.classes.get(name))
            if reason is not None:
                causes.setdefault(reason.code.name, (reason, []))[1].append(pod)
        for reason, wrong in causes.values():
            yield _build_finding(alike, inputs, wrong, "", reason)


def _build_finding(
    template_key: PodTemplateKey,
    inputs: AuditInputs,
    pods: list[AuditedPod] | tuple[AuditedPod, ...],
    policy: str,
    reason: Reason,
    changes: tuple[FieldChange, ...] = (),
) -> AuditFinding:
    owners = inputs.facts.owner_chain(template_key.pod, template_key.namespace)
    return AuditFinding(
        alike=template_key, owners=owners, pods=tuple(pods), policy=policy, reason=reason, changes=changes
    )


def _youngest_pods(state: AuditState) -> Iterator[stale_overhead.Named]:
    for alike, pods in state.groups.items():
        if value_or(alike.pod.spec.runtime_class_name, ""):
            pod = max(pods, key=_creation_time)
            yield alike, pod.name, pod.created
