"""Answers an AdmissionReview for a pod: takes the bytes of the review, and returns the bytes of the response and a
record.

Whatever fails, a review with a uid is answered with "allowed, unchanged" and a warning that says so, and the record
contains what failed. The pod is refused only if a policy may require something of pods in its namespace.
"""

import msgspec

from trimtab.admission import admission_review as wire
from trimtab.admission.admission_context import AdmissionContext
from trimtab.admission.admission_result import AdmissionOutcome, AdmissionRecord, PodDecision
from trimtab.admission.apiserver.resourcequota import NO_ANSWERS
from trimtab.admission.pod_bytes import (
    PodBytes,
    is_of_any_node,
    is_shareable,
    mask_pod_bytes,
    pin_to_node,
    read_shapes,
    with_any_node,
)
from trimtab.admission.pod_decision import decide_pod
from trimtab.admission.response_cache import CacheKey
from trimtab.admission.template_cache import Lookup, estimate_bytes
from trimtab.admission.template_instance import TemplateInstance, encode_parts, read_instance
from trimtab.cluster.api.meta import without_nulls
from trimtab.cluster.api.pod import Pod, PodWithoutEnv
from trimtab.cluster.format_count import format_count
from trimtab.cluster.kinds import JOB
from trimtab.cluster.owner import OwnerKey
from trimtab.cluster.quantity import NotAQuantity
from trimtab.policy import reasons
from trimtab.policy.decide import Decision
from trimtab.policy.decision_reads import MetadataReads, track_dependencies
from trimtab.policy.pod_changes import FieldChange
from trimtab.policy.pod_context import PodContext
from trimtab.policy.pod_size_limits import find_excess_bytes
from trimtab.policy.required_actions import required_policies_for, undecided_reason


class AdmissionResponse(msgspec.Struct, frozen=True, kw_only=True, eq=False, gc=False):
    """The HTTP status, the response body, and what was decided about which request."""

    status: int
    """HTTP status: 200, or 400 for a body that is not a review."""
    body: bytes
    record: AdmissionRecord
    request: wire.AdmissionRequest = wire.NO_REQUEST
    review_bytes: int = 0
    """The size of the whole review in bytes."""
    awaits: OwnerKey | None = None
    """The owner on which the response depends and that no watch has reported yet (see `waits` of `answer_review`), or
    None."""


def answer_review(body: bytes, context: AdmissionContext, *, waits: bool = False) -> AdmissionResponse:
    """Returns the response to the body of an admission review. Raises nothing.

    `waits`: the caller can wait a moment. If the room in a quota depends on an owner that was just created, `awaits`
    names the owner and nothing is cached; the caller should ask again when the owner is known.
    """
    memory = context.memory
    if memory is not None:
        memory.answers.begin_pod(waits=waits)
    try:
        review = wire.decode(body)
    except wire.NotAReview as error:
        record = AdmissionRecord(outcome=AdmissionOutcome.MALFORMED, problem=str(error))
        return AdmissionResponse(status=400, body=msgspec.json.encode({"error": record.problem}), record=record)
    try:
        record = _decide_review(review, context)
    except NotAQuantity as error:
        record = _undecided_record(AdmissionOutcome.UNREADABLE, str(error), review.request, context)
    except Exception as error:  # noqa: BLE001 - no bug of Trimtab may block a pod
        record = _undecided_record(AdmissionOutcome.FAILED, f"{type(error).__name__}: {error}", review.request, context)
    return AdmissionResponse(
        status=200,
        body=wire.encode(review, record.response),
        record=record,
        request=review.request,
        review_bytes=len(body),
        awaits=None if memory is None else memory.answers.awaited,
    )


def _decide_review(review: wire.Review, context: AdmissionContext) -> AdmissionRecord:
    unexpected = _unexpected_review(review)
    if unexpected:
        return _unchanged_record(AdmissionOutcome.NOT_OURS, unexpected)
    request = review.request
    if request.operation != "CREATE" or request.sub_resource:
        return _unchanged_record(AdmissionOutcome.NOT_OURS, "")
    raw = bytes(request.object)
    size_excess = find_excess_bytes(raw)
    if size_excess is not None:
        problem = f"{size_excess} [{reasons.TOO_LARGE.name}]"
        return _undecided_record(AdmissionOutcome.TOO_LARGE, problem, request, context)
    if request.dry_run and PROBE_ANNOTATION.encode() in raw:
        return _answer_probe(context)
    memory = context.memory
    pod_bytes = mask_pod_bytes(raw) if memory is not None else None
    if memory is None or pod_bytes is None:
        return _decide_bytes(raw, request, context)
    key = request.namespace, pod_bytes.masked, read_shapes(context.facts, pod_bytes.node_name)
    cached = memory.find_record(key, context.policies, context.facts, context.settings)
    return cached or _decide_and_store(raw, request, context, key, pod_bytes)


def _decide_and_store(
    raw: bytes, request: wire.AdmissionRequest, context: AdmissionContext, key: CacheKey, pod_bytes: PodBytes
) -> AdmissionRecord:
    """Returns the record for a pod that is not in the cache, and stores the record in the cache."""
    memory, settings = context.memory, context.settings
    assert memory is not None
    pod, is_pinned = _decode_masked(raw, pod_bytes)
    if isinstance(pod, str):
        return _undecided_record(AdmissionOutcome.UNREADABLE, pod, request, context)
    recorded_facts, reads = track_dependencies(context.facts)
    if is_pinned:
        read_shapes(recorded_facts, pod_bytes.node_name)  # the key depends on it
    encoded = encode_parts(pod, context.policies)
    instance = read_instance(pod, raw, encoded, pod_bytes.token_name, request.namespace, recorded_facts)
    record, metadata_reads = None, None
    if instance is not None:
        metadata_reads = MetadataReads()
        record = memory.templates.reuse_decision(instance, raw, context.facts, reads, settings.signer)
    else:
        memory.lookups[Lookup.UNLIKE] += 1
    is_reused = record is not None
    answers = NO_ANSWERS if request.dry_run else memory.answers
    if record is None:
        subject = PodContext(
            pod=pod,
            namespace=request.namespace,
            facts=recorded_facts,
            settings=settings,
            body=raw,
            reads=metadata_reads,
        )
        record = _build_record(decide_pod(subject, context.policies, answers=answers))
        if answers.awaited is not None:
            return record
    # Storing the response costs more than it saves if no equal pod follows.
    if is_reused and instance is not None and _is_seldom_repeated(instance) and memory.recent_keys.is_first(key):
        return record
    # Of a template's pod, too: values that the template does not compare may contain the name of the token volume.
    if not is_shareable(pod, encoded.likeness, encoded.own, pod_bytes, record, is_reused=is_reused):
        return record
    size = estimate_bytes(len(key[1]), encoded.size, record)
    if pod_bytes.node_name == "" or (is_pinned and is_of_any_node(pod_bytes, record, reads)):
        memory.store_record(key, record, pod, reads, size)
    if instance is not None and metadata_reads is not None and not is_reused:
        memory.templates.store_decision(instance, record, metadata_reads, reads, settings.signer, size)
    return record


def _is_seldom_repeated(instance: TemplateInstance) -> bool:
    """Returns whether equal pods seldom follow this one: it has a name of its own, or it is the pod of a Job, most of
    which have one pod."""
    return bool(instance.pod.metadata.name) or any(owner.kind == JOB for owner in instance.owners[:1])


PROBE_ANNOTATION = "trimtab.dev/probe"
"""The annotation of a dry-run pod that tests whether the webhook is called: the response then has a warning that begins
with `PROBE_WARNING`."""
PROBE_WARNING = "trimtab: here"
"""The beginning of the warning for such a test pod."""


def _answer_probe(context: AdmissionContext) -> AdmissionRecord:
    """Returns the record for a pod that tests the webhook. It is only for dry runs, because no annotation may exempt a
    pod that is stored."""
    count = format_count(len(context.policies.all), "policy", "policies")
    warning = f"{PROBE_WARNING}, with {count}{', paused' if context.settings.paused else ''}"
    response = wire.encode_allowed(b"", (warning,), {"outcome": AdmissionOutcome.SKIPPED.value})
    return AdmissionRecord(outcome=AdmissionOutcome.SKIPPED, warnings=(warning,), response=response)


def _unexpected_review(review: wire.Review) -> str:
    """Returns why the review is not for a pod in a known API version, or an empty string if it is."""
    if (review.api_version, review.kind) != (wire.API_VERSION, wire.KIND):
        return f"expected {wire.API_VERSION} {wire.KIND}, got {review.api_version} {review.kind}".strip()
    resource = review.request.resource
    if (resource.group, resource.resource) != ("", "pods"):
        return f"expected pods, got {resource.resource or 'no resource'}"
    return ""


def _decode_masked(raw: bytes, pod_bytes: PodBytes) -> tuple[Pod | str, bool]:
    """Returns the pod in the review, or the text of the error; and whether nothing but its required node affinity
    contains the name of its node that is masked."""
    if not pod_bytes.node_name:
        return _decode_pod(raw), False
    pod = _decode_pod(with_any_node(raw, pod_bytes.node_name))
    pinned = pod if isinstance(pod, str) else pin_to_node(pod, pod_bytes.node_name)
    return (_decode_pod(raw), False) if pinned is None else (pinned, not isinstance(pinned, str))


def _decode_pod(raw: bytes) -> Pod | str:
    """Returns the pod in the review, or the text of the error if it cannot be decoded."""
    try:
        return _pod_decoder.decode(raw)
    except msgspec.ValidationError:
        pass
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        return f"{type(error).__name__}: {error}"
    try:
        return msgspec.convert(without_nulls(msgspec.json.decode(raw)), PodWithoutEnv)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        return str(error)


# What the variables and command lines show is read from the pod's bytes where a decision needs it.
_pod_decoder = msgspec.json.Decoder(PodWithoutEnv)


def _decide_bytes(raw: bytes, request: wire.AdmissionRequest, context: AdmissionContext) -> AdmissionRecord:
    """Returns the record for the pod in these bytes, without storing it in a cache."""
    pod = _decode_pod(raw)
    if isinstance(pod, str):
        return _undecided_record(AdmissionOutcome.UNREADABLE, pod, request, context)
    answers = NO_ANSWERS if context.memory is None or request.dry_run else context.memory.answers
    subject = PodContext(pod=pod, namespace=request.namespace, facts=context.facts, settings=context.settings, body=raw)
    return _build_record(decide_pod(subject, context.policies, answers=answers))


def _undecided_record(
    outcome: AdmissionOutcome, problem: str, request: wire.AdmissionRequest, context: AdmissionContext
) -> AdmissionRecord:
    """Returns the record for a pod that cannot be decided: it is admitted unchanged, or refused if a policy may require
    something of pods in its namespace."""
    names = required_policies_for(context.policies, context.facts, request.namespace, context.settings)
    if not names or request.operation != "CREATE" or request.sub_resource:
        return _unchanged_record(outcome, problem)
    decision = Decision(pod=Pod(), denied=undecided_reason(names, problem))
    return _build_record(PodDecision(outcome=AdmissionOutcome.DENIED, decision=decision, problem=problem))


def _unchanged_record(outcome: AdmissionOutcome, problem: str) -> AdmissionRecord:
    """Returns the record for a pod that was not decided and is admitted unchanged."""
    warnings = (f"trimtab: the pod is unchanged: {problem}",) if problem else ()
    response = wire.encode_allowed(b"", tuple(map(_header_text, warnings)), {"outcome": outcome.value})
    return AdmissionRecord(outcome=outcome, problem=problem, warnings=warnings, response=response)


def _build_record(result: PodDecision) -> AdmissionRecord:
    decision, outcome = result.decision, result.outcome
    is_admitted = outcome in (AdmissionOutcome.CHANGED, AdmissionOutcome.UNCHANGED)
    warnings = _limit_count(decision_warnings(decision)) if is_admitted else ()
    if result.problem and outcome is not AdmissionOutcome.DENIED:
        warnings = (f"trimtab: the pod is unchanged: {result.problem}",)
    changes = decision.changes if outcome is AdmissionOutcome.CHANGED else ()
    policies = tuple(sorted({change.policy for change in changes if change.policy}))
    audit = _audit_annotations(outcome, decision, policies)
    patch = msgspec.json.encode(result.operations) if result.operations else b""
    if outcome is AdmissionOutcome.DENIED:
        response = wire.encode_denied(f"trimtab: {decision.denied}", audit)
    else:
        response = wire.encode_allowed(patch, tuple(map(_header_text, warnings)), audit)
    return AdmissionRecord(
        outcome=outcome,
        decision=decision,
        policies=policies,
        patch=patch,
        problem=result.problem,
        warnings=warnings,
        response=response,
    )


MAX_WARNINGS = 5
# The API server truncates one warning at 256 characters and all of them at 4096 (pkg/endpoints/filters/warning.go).
_MAX_WARNING_CHARACTERS = 250


def decision_warnings(decision: Decision) -> tuple[str, ...]:
    """Returns all warnings for the author of the pod: what could not be done, and what policies in mode `warn` would
    change."""
    modes = decision.mode_by_policy
    warnings = [
        f"trimtab: {kept_field.policy or 'all policies'}: {kept_field.reason} [{kept_field.reason.code.name}]"
        for kept_field in decision.fields_kept
        if kept_field.loud
    ]
    warnings += [_would_change(would) for would in decision.would if modes.get(would.policy) == "warn"]
    return tuple(warnings)


def _limit_count(warnings: tuple[str, ...]) -> tuple[str, ...]:
    """Returns the warnings that fit into a response, and the number of the others."""
    if len(warnings) <= MAX_WARNINGS:
        return warnings
    shown = warnings[: MAX_WARNINGS - 1]
    return (*shown, f"trimtab: there are {len(warnings) - len(shown)} more warnings")


def _would_change(would: FieldChange) -> str:
    after, before = (value if value is not None else "absent" for value in (would.after, would.before))
    return f"{would_change_prefix(would.policy, would.field)}{after} (now {before})"


def would_change_prefix(policy: str, field: str) -> str:
    """Returns the beginning of the warning that says what a policy in mode `warn` would do to this field."""
    return f"trimtab: {policy} (mode warn) would make {field} "


def _header_text(text: str) -> str:
    """Returns the text as ASCII on one line, as the Warning header (RFC 7234) requires."""
    ascii_text = " ".join(text.encode("ascii", "replace").decode().split())
    return (
        ascii_text if len(ascii_text) <= _MAX_WARNING_CHARACTERS else ascii_text[: _MAX_WARNING_CHARACTERS - 3] + "..."
    )


def _audit_annotations(outcome: AdmissionOutcome, decision: Decision, policies: tuple[str, ...]) -> dict[str, str]:
    """Returns the audit annotations. The API server adds the name of the webhook before each key."""
    annotations = {"outcome": outcome.value}
    if outcome is AdmissionOutcome.CHANGED:
        annotations["changed"] = ", ".join(policies)
    codes = sorted({kept_field.reason.code.name for kept_field in decision.fields_kept if kept_field.loud})
    if decision.skipped is not None:
        codes.append(decision.skipped.code.name)
    if codes:
        annotations["reasons"] = ", ".join(codes)
    return annotations
