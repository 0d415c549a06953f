"""The report of `trimtab admit`: per pod what changed, what was left alone, and why; then totals."""

from typing import Any

from trimtab.admission.apiserver.outcome import PodAdmitted, PodRejected
from trimtab.admission.apiserver.serialization import canonical
from trimtab.admission.json_patch import plain
from trimtab.admission.pod_templates import PodTemplateLocation
from trimtab.admission.preview import Preview
from trimtab.cli.output import API_VERSION, ReasonReport, ReportPart, why
from trimtab.cluster import quantity
from trimtab.cluster.api.meta import get
from trimtab.cluster.api.pod import Pod
from trimtab.cluster.resources import Amounts, pod_limits, pod_requests, qos
from trimtab.policy.pod_changes import FieldChange, FieldKept


class ChangeReport(ReportPart, frozen=True, kw_only=True):
    field: str
    before: str | int | None
    after: str | int | None
    """Null: absent."""
    policy: str
    """Empty where it follows from the pod's class, not from a policy."""
    reason: ReasonReport


class KeptFieldReport(ReportPart, frozen=True, kw_only=True):
    field: str
    policy: str
    reason: ReasonReport
    warning: bool
    """Shown to whoever creates the pod."""


class PodShape(ReportPart, frozen=True, kw_only=True):
    """What a pod costs and how it is treated. Quantities as Kubernetes writes them; overhead is in the requests."""

    requests: dict[str, str]
    limits: dict[str, str]
    qos: str
    runtime_class: str | None
    overhead: dict[str, str]


class RefusalReport(ReportPart, frozen=True, kw_only=True):
    code: int
    by: str
    message: str


class PodReport(ReportPart, frozen=True, kw_only=True):
    """One manifest's pods."""

    file: str
    kind: str
    name: str
    namespace: str
    replicas: int
    outcome: str
    """Of the webhook's first call; `not-asked` where the API server refuses the pod before it asks us."""
    calls: int
    changes: list[ChangeReport]
    left: list[KeptFieldReport]
    would: list[ChangeReport]
    """What policies in mode warn or audit would have changed."""
    warnings: list[str]
    problem: str
    before: PodShape | None
    """As stored without us; null where the API server alone would refuse the pod."""
    after: PodShape | None
    """As stored with us; null where it is refused."""
    refused: RefusalReport | None
    refused_without_us: RefusalReport | None
    """Why the API server alone would refuse the pod; null where it would not."""
    patch: list[dict[str, Any]]
    """What the webhook answers, against the pod as the API server shows it to us."""
    stored: dict[str, Any] | None
    """The pod as stored after both passes, as far as anything reads or changes it."""
    steps: list[str]
    """What happened to it on the way, the API server's own steps included."""


class Totals(ReportPart, frozen=True, kw_only=True):
    pods: int
    changed: int
    refused: int
    requests_before: dict[str, str]
    """Summed over all replicas; pods that are refused either way do not count."""
    requests_after: dict[str, str]


class AdmitReport(ReportPart, frozen=True, kw_only=True):
    """Published as deploy/schemas/admit-report.schema.json."""

    api_version: str = API_VERSION
    kind: str = "AdmitReport"
    policies: list[str]
    notes: list[str]
    """What was assumed."""
    pods: list[PodReport]
    totals: Totals


def pod_report(template: PodTemplateLocation, preview: Preview, warnings: tuple[str, ...]) -> PodReport:
    result, unaided = preview.result, preview.unaided
    stored = result.pod if isinstance(result, PodAdmitted) else None
    would = preview.calls[0].decision.would if preview.calls else ()
    return PodReport(
        file=template.document.file,
        kind=template.kind,
        name=f"{template.name} {template.part}".rstrip(),
        namespace=template.namespace,
        replicas=template.replicas,
        outcome=preview.outcome.value if preview.outcome else "not-asked",
        calls=len(preview.calls),
        changes=[change_report(found) for found in preview.changes],
        left=[_left(found) for found in preview.left],
        would=[change_report(found) for found in would],
        warnings=list(warnings),
        problem="; ".join(call.problem for call in preview.calls if call.problem),
        before=_shape(unaided.pod) if isinstance(unaided, PodAdmitted) else None,
        after=_shape(stored) if stored else None,
        refused=_refusal(result) if isinstance(result, PodRejected) else None,
        refused_without_us=_refusal(unaided) if isinstance(unaided, PodRejected) else None,
        patch=list(preview.operations),
        stored=_full(template, stored) if stored else None,
        steps=[str(step) for step in result.steps] if isinstance(result, PodAdmitted) else [],
    )


def _full(template: PodTemplateLocation, pod: Pod) -> dict[str, Any]:
    found: dict[str, Any] = plain(canonical(pod))
    found.setdefault("metadata", {}).setdefault("namespace", template.namespace)
    return {"apiVersion": "v1", "kind": "Pod", **found}


def _refusal(refused: PodRejected) -> RefusalReport:
    return RefusalReport(code=refused.code, by=refused.plugin, message=refused.message)


def change_report(found: FieldChange) -> ChangeReport:
    return ChangeReport(
        field=found.field, before=found.before, after=found.after, policy=found.policy, reason=why(found.reason)
    )


def _left(found: FieldKept) -> KeptFieldReport:
    return KeptFieldReport(field=found.field, policy=found.policy, reason=why(found.reason), warning=found.loud)


def _shape(pod: Pod) -> PodShape:
    return PodShape(
        requests=_written(pod_requests(pod.spec)),
        limits=_written(pod_limits(pod.spec)),
        qos=qos(pod.spec).value,
        runtime_class=get(pod.spec.runtime_class_name, None),
        overhead={name: str(value) for name, value in get(pod.spec.overhead, {}).items()},
    )


def _written(amounts: Amounts) -> dict[str, str]:
    return {name: quantity.format_quantity(name, amounts[name]) for name in sorted(amounts) if amounts[name]}


def totals(pods: list[PodReport]) -> Totals:
    counted = [pod for pod in pods if pod.before and pod.after]
    return Totals(
        pods=len(pods),
        changed=sum(bool(pod.changes) for pod in pods),
        refused=sum(pod.refused is not None for pod in pods),
        requests_before=_summed(counted, "before"),
        requests_after=_summed(counted, "after"),
    )


def _summed(pods: list[PodReport], side: str) -> dict[str, str]:
    total: Amounts = {"cpu": 0, "memory": 0}
    for pod in pods:
        shape: PodShape = getattr(pod, side)
        for name, written in shape.requests.items():
            total[name] = total.get(name, 0) + pod.replicas * quantity.scheduler_value(name, written)
    return {name: quantity.format_quantity(name, number) for name, number in sorted(total.items())}
