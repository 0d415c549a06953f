"""What do we answer to this review? Bytes of an AdmissionReview in, bytes of the answer and a record of it out.

Whatever goes wrong in here, a review that has a uid is answered "allowed, unchanged", with a warning that says so, and
the record carries what failed. Only where a policy may require something of pods of that namespace is the pod denied.
"""

import msgspec

from trimtab.admission import admission_review as wire
from trimtab.admission.admission_result import AdmissionFinding, AdmissionOutcome, AdmissionRecord, PodDecision, judge
from trimtab.admission.quota_headroom import NO_ANSWERS, QuotaAnswers, Target
from trimtab.admission.response_cache import ResponseCache, likeness, stands_for_its_like
from trimtab.cluster.api.pod import Pod, PodWithoutEnv
from trimtab.cluster.quantity import NotAQuantity
from trimtab.cluster.snapshot import without_nulls
from trimtab.policy import reasons
from trimtab.policy.cluster_facts import ClusterFacts, watched
from trimtab.policy.decide import Decision
from trimtab.policy.pod_changes import FieldChange
from trimtab.policy.pod_context import DEFAULT_TERMS, AdmissionSettings
from trimtab.policy.pod_size_limits import excess_bytes
from trimtab.policy.podpolicy import Policies
from trimtab.policy.required_actions import required_policies_for, undecided


class AdmissionResponse(msgspec.Struct, frozen=True, eq=False, gc=False):
    """What goes back."""

    status: int
    """HTTP status: 200, or 400 for what is no review."""
    body: bytes
    record: AdmissionRecord
    awaits: Target | None = None
    """The owner on which the answer hangs and of which no watch has told yet: see `waits` of `answer`."""


def answer(
    body: bytes,
    policies: Policies,
    facts: ClusterFacts,
    terms: AdmissionSettings = DEFAULT_TERMS,
    memory: ResponseCache | None = None,
    *,
    waits: bool = False,
) -> AdmissionResponse:
    """The answer to one request body. Never raises.

    memory: answers given before; with it the answer is the very same, and sooner. What it holds of quotas is told to
    all siblings of a pod.
    waits: whoever asks can wait a moment. Where how much a quota has room for hangs on an owner that was made this
    moment, the answer says which, and nothing of it is kept: it is to be asked for again once that owner is known.
    """
    if memory is not None:
        memory.answers.begin(waits=waits)
    try:
        review = wire.decode(body)
    except wire.NotAReview as error:
        return _malformed(str(error))
    try:
        finding = _found(review, policies, facts, terms, memory)
    except NotAQuantity as error:
        finding = _undecided(AdmissionOutcome.UNREADABLE, str(error), review.request, policies, facts, terms)
    except Exception as error:  # noqa: BLE001 - the last net: no pod is ever blocked on our account
        finding = _undecided(
            AdmissionOutcome.FAILED, f"{type(error).__name__}: {error}", review.request, policies, facts, terms
        )
    request = review.request
    record = AdmissionRecord(
        finding=finding, uid=request.uid, namespace=request.namespace, name=request.name, dry_run=request.dry_run,
        user_info=request.user_info, size=len(body),
    )  # fmt: skip
    awaits = None if memory is None else memory.answers.awaited
    return AdmissionResponse(200, wire.encode(review, finding.response), record, awaits)


def _malformed(text: str) -> AdmissionResponse:
    body = msgspec.json.encode({"error": text})
    return AdmissionResponse(
        400, body, AdmissionRecord(finding=AdmissionFinding(outcome=AdmissionOutcome.MALFORMED, problem=text))
    )


def _found(
    review: wire.Review, policies: Policies, facts: ClusterFacts, terms: AdmissionSettings, memory: ResponseCache | None
) -> AdmissionFinding:
    strange = _strange(review)
    if strange:
        return _problem(AdmissionOutcome.NOT_OURS, strange)
    request = review.request
    if request.operation != "CREATE" or request.sub_resource:
        return _problem(AdmissionOutcome.NOT_OURS, "")
    raw = bytes(request.object)
    over = excess_bytes(raw)
    if over is not None:
        return _undecided(
            AdmissionOutcome.TOO_LARGE, f"{over} [{reasons.TOO_LARGE.name}]", request, policies, facts, terms
        )
    if request.dry_run and ASKED.encode() in raw:
        return _here(policies, terms)
    same = likeness(raw) if memory is not None else None
    answers = NO_ANSWERS if memory is None or request.dry_run else memory.answers
    if memory is None or same is None:
        return _decided(raw, request, policies, facts, terms, answers)[0]
    key = request.namespace, same[0]
    known = memory.find(key, policies, facts, terms)
    if known is not None:
        return known
    noted, reads = watched(facts)
    finding, pod = _decided(raw, request, policies, noted, terms, answers)
    if pod is not None and answers.awaited is None and stands_for_its_like(pod, same[1], finding):
        memory.keep(key, finding, pod, reads)
    return finding


ASKED = "trimtab.dev/probe"
"""Annotation of a pod that is not to be created: whoever asks with it reads in a warning that we were asked."""
HERE = "trimtab: here"
"""What that warning begins with."""


def _here(policies: Policies, terms: AdmissionSettings) -> AdmissionFinding:
    """Only on a dry run: what is stored is never left out by an annotation."""
    said = f"{HERE}, with {len(policies.all)} policies{', paused' if terms.paused else ''}"
    response = wire.allow(b"", (said,), {"outcome": AdmissionOutcome.SKIPPED.value})
    return AdmissionFinding(outcome=AdmissionOutcome.SKIPPED, warnings=(said,), response=response)


def _strange(review: wire.Review) -> str:
    """Why the review is not one we know; empty for one that is."""
    if (review.api_version, review.kind) != (wire.API_VERSION, wire.KIND):
        return f"expected {wire.API_VERSION} {wire.KIND}, got {review.api_version} {review.kind}".strip()
    asked = review.request.resource
    if (asked.group, asked.resource) != ("", "pods"):
        return f"expected pods, got {asked.resource or 'no resource'}"
    return ""


def _pod(raw: bytes) -> Pod | str:
    """The pod in the review; or why it cannot be read."""
    try:
        return (_pods if _RESOURCE_FIELD in raw else _pods_without_env).decode(raw)
    except msgspec.ValidationError:
        pass
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        return f"{type(error).__name__}: {error}"
    try:
        return msgspec.convert(without_nulls(msgspec.json.decode(raw)), Pod)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        return str(error)


_pods, _pods_without_env = msgspec.json.Decoder(Pod), msgspec.json.Decoder(PodWithoutEnv)
_RESOURCE_FIELD = b"resourceFieldRef"
"""In the bytes of each pod whose variables tell a container its own requests or limits. Only those variables are read;
the API server, which writes the bytes, escapes no field's name."""


def _decided(
    raw: bytes,
    request: wire.AdmissionRequest,
    policies: Policies,
    facts: ClusterFacts,
    terms: AdmissionSettings,
    answers: QuotaAnswers,
) -> tuple[AdmissionFinding, Pod | None]:
    """What is found of the pod in these bytes, and the pod; None where they are not one."""
    pod = _pod(raw)
    if isinstance(pod, str):
        return _undecided(AdmissionOutcome.UNREADABLE, pod, request, policies, facts, terms), None
    return _judged(judge(pod, policies, facts, request.namespace, terms, body=raw, answers=answers)), pod


def _undecided(
    outcome: AdmissionOutcome,
    problem: str,
    request: wire.AdmissionRequest,
    policies: Policies,
    facts: ClusterFacts,
    terms: AdmissionSettings,
) -> AdmissionFinding:
    """The pod goes through as it came; it is denied where a policy may require something of pods of its namespace."""
    names = required_policies_for(policies, facts, request.namespace, terms)
    if not names or request.operation != "CREATE" or request.sub_resource:
        return _problem(outcome, problem)
    decision = Decision(pod=Pod(), denied=undecided(names, problem))
    return _judged(PodDecision(outcome=AdmissionOutcome.DENIED, decision=decision, problem=problem))


def _problem(outcome: AdmissionOutcome, problem: str) -> AdmissionFinding:
    """Nothing was decided; the pod goes through as it came."""
    warnings = (f"trimtab: the pod is unchanged: {problem}",) if problem else ()
    response = wire.allow(b"", tuple(map(_short, warnings)), {"outcome": outcome.value})
    return AdmissionFinding(outcome=outcome, problem=problem, warnings=warnings, response=response)


def _judged(found: PodDecision) -> AdmissionFinding:
    decision, outcome = found.decision, found.outcome
    warnings = told(decision) if outcome in (AdmissionOutcome.CHANGED, AdmissionOutcome.UNCHANGED) else ()
    if found.problem and outcome is not AdmissionOutcome.DENIED:
        warnings = (f"trimtab: the pod is unchanged: {found.problem}",)
    changes = decision.changes if outcome is AdmissionOutcome.CHANGED else ()
    policies = tuple(sorted({change.policy for change in changes if change.policy}))
    audit = _audit(outcome, decision, policies)
    patch = msgspec.json.encode(found.operations) if found.operations else b""
    if outcome is AdmissionOutcome.DENIED:
        response = wire.deny(f"trimtab: {decision.denied}", audit)
    else:
        response = wire.allow(patch, tuple(map(_short, warnings)), audit)
    return AdmissionFinding(
        outcome=outcome, decision=decision, policies=policies, patch=patch, problem=found.problem,
        warnings=warnings, response=response,
    )  # fmt: skip


MOST_WARNINGS = 5
_MOST_CHARACTERS = 250
"""The API server cuts a warning at 256 bytes and all of them at 4096."""


def told(decision: Decision) -> tuple[str, ...]:
    """What whoever creates the pod should read: work left undone, and what policies in mode `warn` would do."""
    modes = decision.modes
    found = [
        f"trimtab: {left.policy or 'all policies'}: {left.reason} [{left.reason.code.name}]"
        for left in decision.left
        if left.loud
    ]
    found += [_would(would) for would in decision.would if modes.get(would.policy) == "warn"]
    if len(found) > MOST_WARNINGS:
        found = [*found[: MOST_WARNINGS - 1], f"trimtab: and {len(found) - MOST_WARNINGS + 1} more"]
    return tuple(found)


def _would(would: FieldChange) -> str:
    after, before = (value if value is not None else "absent" for value in (would.after, would.before))
    return f"{beginning_of_would(would.policy, would.field)}{after} (now {before})"


def beginning_of_would(policy: str, field: str) -> str:
    """How the warning begins that says what a policy in mode `warn` would do to this field."""
    return f"trimtab: {policy} (mode warn) would make {field} "


def _short(text: str) -> str:
    """ASCII on one line, as a Warning header needs it."""
    plain = " ".join(text.encode("ascii", "replace").decode().split())
    return plain if len(plain) <= _MOST_CHARACTERS else plain[: _MOST_CHARACTERS - 3] + "..."


def _audit(outcome: AdmissionOutcome, decision: Decision, policies: tuple[str, ...]) -> dict[str, str]:
    """For the API server's audit log; it puts our webhook's name before each key."""
    found = {"outcome": outcome.value}
    if outcome is AdmissionOutcome.CHANGED:
        found["changed"] = ", ".join(policies)
    codes = sorted({left.reason.code.name for left in decision.left if left.loud})
    if decision.skipped is not None:
        codes.append(decision.skipped.code.name)
    if codes:
        found["reasons"] = ", ".join(codes)
    return found
