"""Previews admission: sends a pod, or the next pod of an owner, through the API server's two passes with the webhook in
the chain, and rewrites manifests accordingly.

At the points where the server calls the webhook, `preview_admission` calls the same `decide_pod` that answers reviews.

`write_changes` writes the decided changes into a manifest, without the values that the API server fills in and without
the annotation of changes, so that admitting the result again changes nothing. The mapping is edited in place, which
keeps the order of its keys, and its comments if the reader keeps them.
"""

from collections.abc import Callable, MutableMapping, MutableSequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from trimtab.admission.admission_context import AdmissionContext
from trimtab.admission.admission_result import AdmissionOutcome, PodDecision
from trimtab.admission.apiserver.admission_chain import run_admission_chain
from trimtab.admission.apiserver.outcome import PodAdmitted, PodRejected
from trimtab.admission.json_patch import Operation, to_plain_json
from trimtab.admission.pod_decision import decide_pod
from trimtab.cluster.api.meta import ResourceList, change
from trimtab.cluster.api.pod import Container, Pod
from trimtab.cluster.api.workload import PodTemplateSpec
from trimtab.cluster.kinds import STATEFUL_SET
from trimtab.cluster.owner import OwnerKey, reference_to
from trimtab.cluster.reason import Reason, Unreadable
from trimtab.cluster.resources import limits_of, requests_of
from trimtab.cluster.yaml_parser import Path
from trimtab.policy.changed_annotation import ANNOTATION, ChangedAnnotation, annotation_text, read_claimed_annotation
from trimtab.policy.pod_changes import FieldChange, FieldKept
from trimtab.policy.pod_context import PodContext
from trimtab.policy.pod_size_limits import find_template_excess
from trimtab.policy.reasons import TOO_LARGE


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """The states of one pod during its admission."""

    sent: Pod
    """The pod as it was submitted."""
    unaided: PodAdmitted | PodRejected
    """What the API server does with the pod without the webhook."""
    result: PodAdmitted | PodRejected
    """What the API server does with the pod with the webhook."""
    calls: tuple[PodDecision, ...]
    """The decision of each call of the webhook; empty if the server rejected the pod before the first call."""
    received_pods: tuple[Pod, ...] = ()
    """The pod that each call of the webhook received."""

    @property
    def outcome(self) -> AdmissionOutcome | None:
        """The outcome of the first call, or None if there was none."""
        return self.calls[0].outcome if self.calls else None

    @property
    def denied(self) -> Reason | None:
        """Why a policy refuses the pod, or None if none does."""
        return next((call.decision.denied for call in self.calls if call.decision.denied is not None), None)

    @property
    def final_pod(self) -> Pod:
        """The pod as it is stored, or as it was after the webhook's last call if the API server rejects it."""
        if isinstance(self.result, PodAdmitted):
            return self.result.pod
        return self.calls[-1].apply_to(self.received_pods[-1]) if self.calls else self.sent

    @property
    def patch_operations(self) -> tuple[Operation, ...]:
        """The patch of the first call, as the webhook would send it."""
        return self.calls[0].operations if self.calls else ()

    @property
    def all_changes(self) -> tuple[FieldChange, ...]:
        """The changes of all calls."""
        return tuple(
            c for call in self.calls if call.outcome is AdmissionOutcome.CHANGED for c in call.decision.changes
        )

    @property
    def kept_fields(self) -> tuple[FieldKept, ...]:
        """The fields that the first call did not change, with reasons, and those that only a later call has reported
        (such as missing overhead)."""
        first_call = dict.fromkeys(self.calls[0].decision.fields_kept) if self.calls else {}
        later = {
            kept_field: None for call in self.calls[1:] for kept_field in call.decision.fields_kept if kept_field.loud
        }
        return tuple({**first_call, **later})


@dataclass(slots=True)
class _RecordingWebhook:
    """The webhook as the simulated chain calls it. It records the pod and the decision of each call."""

    judge: Callable[[Pod, ChangedAnnotation | None], PodDecision]
    namespace: str
    calls: list[PodDecision] = field(default_factory=list)
    received_pods: list[Pod] = field(default_factory=list)

    def __call__(self, pod: Pod) -> Pod:
        # No key is needed to trust the annotation that the first call wrote: its pod is recorded here.
        text, last = annotation_text(pod), self.calls[-1].decision.pod if self.calls else None
        is_own_annotation = last is not None and text is not None and text == annotation_text(last)
        decision = self.judge(pod, read_claimed_annotation(pod, self.namespace) if is_own_annotation else None)
        self.received_pods.append(pod)
        self.calls.append(decision)
        return decision.apply_to(pod)


def preview_admission(pod: Pod, namespace: str, context: AdmissionContext) -> Preview:
    """Returns what happens to the pod in both passes. A pod that a policy refuses is rejected with the webhook's
    message."""
    facts, settings = context.facts, context.settings

    def judge(submitted: Pod, annotation: ChangedAnnotation | None) -> PodDecision:
        subject = PodContext(pod=submitted, namespace=namespace, facts=facts, settings=settings)
        return decide_pod(subject, context.policies, annotation)

    webhook = _RecordingWebhook(judge, namespace)
    runtime_class_admission = settings.overhead == "server"
    unaided = run_admission_chain(
        pod, facts, namespace, lambda submitted: submitted, runtime_class_admission=runtime_class_admission
    )
    result = run_admission_chain(pod, facts, namespace, webhook, runtime_class_admission=runtime_class_admission)
    for call in webhook.calls:
        if call.decision.denied is not None:
            result = PodRejected(403, "trimtab", f"trimtab: {call.decision.denied}")
    return Preview(
        sent=pod, unaided=unaided, result=result, calls=tuple(webhook.calls), received_pods=tuple(webhook.received_pods)
    )


def preview_next_pod(template: PodTemplateSpec, owner: OwnerKey, context: AdmissionContext) -> Preview | Unreadable:
    """Returns what happens to the pod that the owner would create now; Unreadable, with the reason, if it is too large
    for the webhook to decide, or if a policy would refuse it."""
    sent = submitted_pod(template, owner)
    size_excess = find_template_excess(sent)
    if size_excess is not None:
        return Unreadable(describe_next_pod(owner), f"{size_excess} [{TOO_LARGE.name}]")
    preview = preview_admission(sent, owner.namespace, context)
    if preview.denied is not None:
        return Unreadable(describe_next_pod(owner), f"a policy would deny the pod: {preview.denied}")
    return preview


def describe_next_pod(owner: OwnerKey) -> str:
    """Returns what messages call the pod that the owner would create now."""
    return f"the next pod of {owner.described}"


def submitted_pod(template: PodTemplateSpec, owner: OwnerKey) -> Pod:
    """Returns the pod as the controller sends it. The pod of a StatefulSet has a fixed name, all others a generated
    one."""
    meta, controller = template.metadata, reference_to(owner)
    metadata = change(
        meta,
        name=f"{owner.name}-0" if owner.kind == STATEFUL_SET else "",
        generate_name=f"{owner.name}-",
        namespace=owner.namespace,
        owner_references=(controller,),
    )
    return Pod(metadata=metadata, spec=template.spec)


Manifest = MutableMapping[str, Any]


def write_changes(manifest: Manifest, path: Path, preview: Preview) -> None:
    """Writes the decided changes into the pod (or pod template) at `path` of the manifest."""
    target: Any = manifest
    for step in path:
        target = target[step]
    for received, call in zip(preview.received_pods, preview.calls, strict=True):
        for operation in call.operations:
            _write_operation(target, operation, received, call.decision.pod)


def _write_operation(target: Manifest, operation: Operation, before: Pod, after: Pod) -> None:
    steps = [step.replace("~1", "/").replace("~0", "~") for step in operation["path"].split("/")[1:]]
    if steps[:1] == ["spec"] and steps[1] in ("containers", "initContainers"):
        _write_resources(target["spec"][steps[1]], int(steps[2]), steps[1], before, after)
    elif steps[:2] == ["spec", "tolerations"] and operation["op"] == "remove" and len(steps) == 3:
        _remove_value(
            target["spec"].get("tolerations") or [], to_plain_json(before)["spec"]["tolerations"][int(steps[2])]
        )
    elif steps[:2] == ["metadata", "annotations"]:
        _write_annotations(target, steps, operation)
    else:
        _write_value(target, steps, operation)


def _write_resources(containers: MutableSequence[Manifest], index: int, part: str, before: Pod, after: Pod) -> None:
    """Writes the requests and limits that have changed into the manifest, and with a changed limit also the request.

    The API server copies a limit into a missing request. If the manifest had no request, the server would copy the new
    limit, or nothing if the limit was removed. Other values that only the defaults have set are not written, because in
    the manifest they would count as the author's own.
    """
    old_container, container = (_containers(pod, part)[index] for pod in (before, after))
    new_limits, old_limits = limits_of(container.resources), limits_of(old_container.resources)
    new_requests, old_requests = requests_of(container.resources), requests_of(old_container.resources)
    limits = _changed_names(new_limits, old_limits)
    for resource in sorted(_changed_names(new_requests, old_requests) | limits):
        _write_amount(containers[index], "requests", resource, new_requests.get(resource))
    for resource in sorted(limits):
        _write_amount(containers[index], "limits", resource, new_limits.get(resource))


def _changed_names(new: ResourceList, old: ResourceList) -> set[str]:
    return {name for name in {*new, *old} if new.get(name) != old.get(name)}


def _containers(pod: Pod, part: str) -> tuple[Container, ...]:
    return pod.spec.containers if part == "containers" else pod.spec.init_containers


def _write_amount(container: Manifest, side: str, resource: str, value: Any) -> None:
    resources = container.get("resources") or {}
    amounts = resources.get(side) or {}
    if value is not None and amounts.get(resource) != value:
        amounts[resource] = value
        resources[side] = amounts
        container["resources"] = resources
    elif value is None and resource in amounts:
        del amounts[resource]
        if not amounts:
            del resources[side]
        if not resources:
            del container["resources"]


def _remove_value(items: MutableSequence[Any], item: Any) -> None:
    """Removes an item by its value and not by its index, because the server may have added items to those that the
    author wrote."""
    for index, existing in enumerate(items):
        if dict(existing) == item:
            del items[index]
            return


def _write_annotations(target: Manifest, steps: list[str], operation: Operation) -> None:
    if len(steps) == 2:
        for key, value in (operation.get("value") or {}).items():
            _write_annotations(target, [*steps, key], {"op": "add", "value": value})
    elif steps[2] != ANNOTATION:
        _write_value(target, steps, operation)


def _write_value(target: Any, steps: list[str], operation: Operation) -> None:
    """Applies the operation. Parents that only the server has filled in are created, and a value that is already absent
    is ignored."""
    for step, following in pairwise(steps):
        target = _child_or_new(target, step, [] if following == "-" else {})
    last = steps[-1]
    if operation["op"] == "remove":
        if isinstance(target, MutableMapping):
            target.pop(last, None)
        elif int(last) < len(target):
            del target[int(last)]
    elif last == "-":
        target.append(operation["value"])
    elif isinstance(target, MutableSequence):
        target[int(last)] = operation["value"]
    else:
        target[last] = operation["value"]


def _child_or_new(parent: Any, step: str, empty: Any) -> Any:
    if isinstance(parent, MutableSequence):
        return parent[int(step)]
    if parent.get(step) is None:
        parent[step] = empty
    return parent[step]
