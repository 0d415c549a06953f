"""The report of `trimtab admit`: for each pod the changes, the fields that were kept, and the reasons; then totals."""

from collections.abc import Iterable
from typing import Any, ClassVar

from trimtab.admission.apiserver.outcome import PodAdmitted, PodRejected
from trimtab.admission.apiserver.serialization import to_canonical
from trimtab.admission.json_patch import to_plain_json
from trimtab.admission.pod_templates import PodTemplateLocation
from trimtab.admission.preview import Preview
from trimtab.admission.vpa_sizing import VpaSizing
from trimtab.cli.output import API_VERSION, ReasonReport, ReportPart, report_reason
from trimtab.cluster import quantity
from trimtab.cluster.api.meta import value_or
from trimtab.cluster.api.pod import Pod
from trimtab.cluster.owner import OwnerKey
from trimtab.cluster.resources import Amounts, pod_limits, pod_requests, qos_class
from trimtab.policy.pod_changes import FieldChange


class ChangeReport(ReportPart, frozen=True, kw_only=True):
    """One field that changes."""

    field: str
    """The path of the field, such as containers[app].requests.cpu."""
    before: str | int | None
    """The value before; null if the field was not set."""
    after: str | int | None
    """The new value of the field; null if the field is removed."""
    policy: str
    """The policy that makes the change; empty if the change follows from the pod's RuntimeClass."""
    reason: ReasonReport
    """Why the field is changed."""


class KeptFieldReport(ReportPart, frozen=True, kw_only=True):
    """One field that a policy did not change, with the reason."""

    field: str
    """The path of the field, such as containers[app].requests.cpu."""
    policy: str
    """The policy that would have changed the field."""
    reason: ReasonReport
    """Why the field stays."""
    warning: bool
    """Whether the author of the pod gets a warning."""


class PodShape(ReportPart, frozen=True, kw_only=True):
    """The requests, limits, QoS class and RuntimeClass of a stored pod. The requests include the overhead."""

    requests: dict[str, str]
    """Resource → quantity, all containers together."""
    limits: dict[str, str]
    """Resource → quantity, all containers together."""
    qos: str
    """The QoS class: Guaranteed, Burstable or BestEffort."""
    runtime_class: str | None
    """The name of the RuntimeClass; null if the pod names none."""
    overhead: dict[str, str]
    """Resource → quantity of the sandbox; empty without a RuntimeClass that has overhead."""


class RefusalReport(ReportPart, frozen=True, kw_only=True):
    """The refusal of a pod: the HTTP status, the admission plugin, the message."""

    code: int
    """The HTTP status of the refusal, such as 403."""
    by: str
    """The admission plugin that refuses the pod."""
    message: str
    """The message of the API server."""


class VpaAmountReport(ReportPart, frozen=True, kw_only=True):
    """One request that the VPA sets, with the limit that follows from it."""

    container: str
    """The name of the container."""
    resource: str
    """The resource: cpu or memory."""
    request_before: str | None
    """The request without the VPA; null if there is none."""
    request: str
    """The request that the VPA sets, as a quantity."""
    limit_before: str | None
    """The limit without the VPA; null if there is none."""
    limit: str | None
    """The limit; null if the container has none."""


class VpaReport(ReportPart, frozen=True, kw_only=True):
    """What the VPA's own webhook sets in the same request. `before` and `after` of the pod do not contain it."""

    name: str
    """The name of the VPA."""
    amounts: list[VpaAmountReport]
    """The requests that the VPA sets."""
    is_capped: bool
    """Whether a LimitRange does not permit these amounts, so that the VPA sets others."""
    refused: RefusalReport | None
    """The refusal of the pod with these amounts; null if it is admitted, or if the amounts are capped."""


class PodReport(ReportPart, frozen=True, kw_only=True):
    """The pods of one manifest, with the changes that policies make to them."""

    file: str
    """The file of the manifest."""
    kind: str
    """The kind of the object."""
    name: str
    """The name of the pod, or of the object with the pod template."""
    namespace: str
    """The namespace of the object."""
    replicas: int
    """The number of pods that the object wants."""
    counted_with: str
    """The object in the report, such as `Deployment/web`, that stands for the same pods. The totals count these pods
    there. Empty if no other object does."""
    outcome: str
    """The outcome of the webhook's first call; `not-asked` if the API server refuses the pod before it calls the
    webhook."""
    calls: int
    """How often the API server calls the webhook for the pod; 0 if it refuses the pod before."""
    changes: list[ChangeReport]
    """The fields that policies change, each with its reason."""
    left: list[KeptFieldReport]
    """The fields that policies left as they are, each with the reason."""
    would: list[ChangeReport]
    """The changes that policies in mode warn or audit would make; they are reported, not made."""
    warnings: list[str]
    """The warnings that the author of the pod gets."""
    problem: str
    """Why the pod could not be decided; empty if it could."""
    before: PodShape | None
    """The pod as stored without Trimtab; null if the API server alone would refuse it."""
    after: PodShape | None
    """The pod as stored with Trimtab; null if admission refuses the pod."""
    refused: RefusalReport | None
    """The refusal of the pod with Trimtab; null if it is admitted."""
    refused_without_us: RefusalReport | None
    """The refusal by the API server alone; null if it would admit the pod."""
    patch: list[dict[str, Any]]
    """The JSON patch in the webhook's response to the AdmissionReview of the pod."""
    stored: dict[str, Any] | None
    """The pod as stored after both calls of the webhook, with the fields that Trimtab models; null if the pod is
    refused."""
    steps: list[str]
    """The steps of admission, including those of the API server, as text."""
    vpa: VpaReport | None
    """What the VPA of the pod's owner sets; null if there is none that changes a request."""


class Totals(ReportPart, frozen=True, kw_only=True):
    """The totals of the pods in the report, each of which counts once."""

    pods: int
    """The number of entries in the report that no other entry stands for (see `countedWith`)."""
    changed: int
    """The number of entries that Trimtab changes."""
    refused: int
    """The number of entries whose pods are refused."""
    admitted_only_with_us: int
    """The number of entries whose pods only Trimtab's changes make acceptable to the API server."""
    requests_before: dict[str, str]
    """The requests of all replicas that are stored without Trimtab: resource → quantity. Pods that are refused with
    Trimtab are left out."""
    requests_after: dict[str, str]
    """The requests of all replicas that are stored with Trimtab: resource → quantity."""


class AdmitReport(ReportPart, frozen=True, kw_only=True):
    """The report of `trimtab admit`. Published as deploy/schemas/admit-report.schema.json."""

    printed_by: ClassVar[str] = "trimtab admit -f FILE"
    api_version: str = API_VERSION
    kind: str = "AdmitReport"
    policies: list[str]
    """The names of the policies that were in force."""
    notes: list[str]
    """The assumptions under which the report was made, one sentence each."""
    pods: list[PodReport]
    """The pods, one entry for each manifest."""
    totals: Totals
    """The sums over all pods."""


def report_pod(
    template: PodTemplateLocation,
    preview: Preview,
    warnings: tuple[str, ...],
    counted_with: OwnerKey | None = None,
    sizing: VpaSizing | None = None,
) -> PodReport:
    result, unaided = preview.result, preview.unaided
    stored = result.pod if isinstance(result, PodAdmitted) else None
    would = preview.calls[0].decision.would if preview.calls else ()
    return PodReport(
        file=template.document.file,
        kind=template.kind,
        name=f"{template.name} {template.part}".rstrip(),
        namespace=template.namespace,
        replicas=template.replicas,
        counted_with=str(counted_with or ""),
        outcome=preview.outcome.value if preview.outcome else "not-asked",
        calls=len(preview.calls),
        changes=[report_change(change) for change in preview.all_changes],
        left=[
            KeptFieldReport(
                field=change.field,
                policy=change.policy,
                reason=report_reason(change.reason),
                warning=change.loud,
            )
            for change in preview.kept_fields
        ],
        would=[report_change(change) for change in would],
        warnings=list(warnings),
        problem="; ".join(call.problem for call in preview.calls if call.problem),
        before=_report_shape(unaided.pod) if isinstance(unaided, PodAdmitted) else None,
        after=_report_shape(stored) if stored else None,
        refused=_report_refusal(result) if isinstance(result, PodRejected) else None,
        refused_without_us=_report_refusal(unaided) if isinstance(unaided, PodRejected) else None,
        patch=list(preview.patch_operations),
        stored=_stored_manifest(template, stored) if stored else None,
        steps=[str(step) for step in result.steps] if isinstance(result, PodAdmitted) else [],
        vpa=None if sizing is None else _report_sizing(sizing),
    )


def _report_sizing(sizing: VpaSizing) -> VpaReport:
    amounts = [
        VpaAmountReport(
            container=one.container,
            resource=one.resource,
            request_before=one.request_before,
            request=one.request,
            limit_before=one.limit_before,
            limit=one.limit,
        )
        for one in sizing.amounts
    ]
    refused = None if sizing.refused is None else _report_refusal(sizing.refused)
    return VpaReport(name=sizing.name, amounts=amounts, is_capped=sizing.is_capped, refused=refused)


def _stored_manifest(template: PodTemplateLocation, pod: Pod) -> dict[str, Any]:
    manifest: dict[str, Any] = to_plain_json(to_canonical(pod))
    manifest.setdefault("metadata", {}).setdefault("namespace", template.namespace)
    return {"apiVersion": "v1", "kind": "Pod", **manifest}


def _report_refusal(refused: PodRejected) -> RefusalReport:
    return RefusalReport(code=refused.code, by=refused.plugin, message=refused.message)


def report_change(change: FieldChange) -> ChangeReport:
    return ChangeReport(
        field=change.field,
        before=change.before,
        after=change.after,
        policy=change.policy,
        reason=report_reason(change.reason),
    )


def _report_shape(pod: Pod) -> PodShape:
    return PodShape(
        requests=_format_amounts(pod_requests(pod.spec)),
        limits=_format_amounts(pod_limits(pod.spec)),
        qos=qos_class(pod.spec).value,
        runtime_class=value_or(pod.spec.runtime_class_name, None),
        overhead={name: str(value) for name, value in value_or(pod.spec.overhead, {}).items()},
    )


def _format_amounts(amounts: Amounts) -> dict[str, str]:
    return {name: quantity.format_quantity(name, amounts[name]) for name in sorted(amounts) if amounts[name]}


def sum_totals(pods: list[PodReport]) -> Totals:
    counted = [pod for pod in pods if not pod.counted_with]
    return Totals(
        pods=len(counted),
        changed=sum(bool(pod.changes) for pod in counted),
        refused=sum(pod.refused is not None for pod in counted),
        admitted_only_with_us=sum(pod.refused is None and pod.refused_without_us is not None for pod in counted),
        requests_before=_sum_requests((pod.before, pod.replicas) for pod in counted if pod.after is not None),
        requests_after=_sum_requests((pod.after, pod.replicas) for pod in counted),
    )


def _sum_requests(shapes: Iterable[tuple[PodShape | None, int]]) -> dict[str, str]:
    total: Amounts = {"cpu": 0, "memory": 0}
    for shape, replicas in shapes:
        for name, quantity_text in shape.requests.items() if shape is not None else ():
            total[name] = total.get(name, 0) + replicas * quantity.scheduler_value(name, quantity_text)
    return {name: quantity.format_quantity(name, number) for name, number in sorted(total.items())}
