"""What do we answer to this review? Bytes of an AdmissionReview in, bytes of the answer and a record of it out.

It must never be why a pod cannot start: whatever goes wrong in here, a review that has a uid is answered "allowed,
unchanged", with a warning that says so, and the record carries what failed.
"""

import msgspec

from trimtab.admission import review as wire
from trimtab.admission.judge import Outcome, Verdict, judge
from trimtab.admission.likeness import likeness, stands_for_its_like
from trimtab.admission.record import Finding, Record
from trimtab.admission.remembered import Memory
from trimtab.cluster.api.pod import Pod
from trimtab.cluster.snapshot import without_nulls
from trimtab.policy.decide import Decision
from trimtab.policy.document import Policies
from trimtab.policy.draft import Change
from trimtab.policy.facts import Facts
from trimtab.policy.reads import watched
from trimtab.policy.subject import DEFAULT_TERMS, Terms


class Answer(msgspec.Struct, frozen=True, eq=False, gc=False):
    """What goes back."""

    status: int
    """HTTP status: 200, or 400 for what is no review."""
    body: bytes
    record: Record


def answer(
    body: bytes, policies: Policies, facts: Facts, terms: Terms = DEFAULT_TERMS, memory: Memory | None = None
) -> Answer:
    """The answer to one request body. Never raises.

    memory: answers given before; with it the answer is the very same, and sooner.
    """
    try:
        review = wire.decode(body)
    except wire.NotAReview as error:
        return _malformed(str(error))
    try:
        finding = _found(review, policies, facts, terms, memory)
    except Exception as error:  # noqa: BLE001 - the last net: no pod is ever blocked on our account
        finding = _problem(Outcome.FAILED, f"{type(error).__name__}: {error}")
    request = review.request
    record = Record(
        finding=finding, uid=request.uid, namespace=request.namespace, name=request.name, dry_run=request.dry_run
    )
    return Answer(200, wire.encode(review, finding.response), record)


def _malformed(text: str) -> Answer:
    body = msgspec.json.encode({"error": text})
    return Answer(400, body, Record(finding=Finding(outcome=Outcome.MALFORMED, problem=text)))


def _found(review: wire.Review, policies: Policies, facts: Facts, terms: Terms, memory: Memory | None) -> Finding:
    strange = _strange(review)
    if strange:
        return _problem(Outcome.NOT_OURS, strange)
    request = review.request
    if request.operation != "CREATE" or request.sub_resource:
        return _problem(Outcome.NOT_OURS, "")
    raw = bytes(request.object)
    if request.dry_run and ASKED.encode() in raw:
        return _here(policies, terms)
    same = likeness(raw) if memory is not None else None
    if memory is None or same is None:
        return _decided(raw, request.namespace, policies, facts, terms)[0]
    key = request.namespace, same[0]
    known = memory.find(key, policies, facts, terms)
    if known is not None:
        return known
    noted, reads = watched(facts)
    finding, pod = _decided(raw, request.namespace, policies, noted, terms)
    if pod is not None and stands_for_its_like(pod, same[1], finding):
        memory.keep(key, finding, pod, reads)
    return finding


ASKED = "trimtab.dev/are-you-there"
"""Annotation of a pod that is not to be created: whoever asks with it reads in a warning that we were asked."""
HERE = "trimtab: here"
"""What that warning begins with."""


def _here(policies: Policies, terms: Terms) -> Finding:
    """Only on a dry run: what is stored is never left out by an annotation."""
    said = f"{HERE}, with {len(policies.all)} policies{', paused' if terms.paused else ''}"
    response = wire.allow(b"", (said,), {"outcome": Outcome.SKIPPED.value})
    return Finding(outcome=Outcome.SKIPPED, warnings=(said,), response=response)


def _strange(review: wire.Review) -> str:
    """Why the review is not one we know; empty for one that is."""
    if (review.api_version, review.kind) != (wire.API_VERSION, wire.KIND):
        return f"expected {wire.API_VERSION} {wire.KIND}, came {review.api_version} {review.kind}".strip()
    asked = review.request.resource
    if (asked.group, asked.resource) != ("", "pods"):
        return f"expected pods, came {asked.resource or 'no resource'}"
    return ""


def _pod(raw: bytes) -> Pod | str:
    """The pod in the review; or why it cannot be read."""
    try:
        return _pods.decode(raw)
    except msgspec.ValidationError:
        pass
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        return f"{type(error).__name__}: {error}"
    try:
        return msgspec.convert(without_nulls(msgspec.json.decode(raw)), Pod)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        return str(error)


_pods = msgspec.json.Decoder(Pod)


def _decided(raw: bytes, namespace: str, policies: Policies, facts: Facts, terms: Terms) -> tuple[Finding, Pod | None]:
    """What is found of the pod in these bytes, and the pod; None where they are not one."""
    pod = _pod(raw)
    if isinstance(pod, str):
        return _problem(Outcome.UNREADABLE, pod), None
    return _judged(judge(pod, policies, facts, namespace, terms)), pod


def _problem(outcome: Outcome, problem: str) -> Finding:
    """Nothing was decided; the pod goes through as it came."""
    warnings = (f"trimtab: the pod is unchanged: {problem}",) if problem else ()
    response = wire.allow(b"", tuple(map(_short, warnings)), {"outcome": outcome.value})
    return Finding(outcome=outcome, problem=problem, warnings=warnings, response=response)


def _judged(found: Verdict) -> Finding:
    decision, outcome = found.decision, found.outcome
    warnings = told(decision) if outcome in (Outcome.CHANGED, Outcome.UNCHANGED) else ()
    if found.problem:
        warnings = (f"trimtab: the pod is unchanged: {found.problem}",)
    changes = decision.changes if outcome is Outcome.CHANGED else ()
    policies = tuple(sorted({change.policy for change in changes if change.policy}))
    audit = _audit(outcome, decision, policies)
    patch = msgspec.json.encode(found.operations) if found.operations else b""
    if outcome is Outcome.DENIED:
        response = wire.deny(f"trimtab: {decision.denied}", audit)
    else:
        response = wire.allow(patch, tuple(map(_short, warnings)), audit)
    return Finding(
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


def _would(would: Change) -> str:
    after, before = (value if value is not None else "absent" for value in (would.after, would.before))
    return f"trimtab: {would.policy} (mode warn) would make {would.field} {after} (now {before})"


def _short(text: str) -> str:
    """ASCII on one line, as a Warning header needs it."""
    plain = " ".join(text.encode("ascii", "replace").decode().split())
    return plain if len(plain) <= _MOST_CHARACTERS else plain[: _MOST_CHARACTERS - 3] + "..."


def _audit(outcome: Outcome, decision: Decision, policies: tuple[str, ...]) -> dict[str, str]:
    """For the API server's audit log; it puts our webhook's name before each key."""
    found = {"outcome": outcome.value}
    if outcome is Outcome.CHANGED:
        found["changed"] = ", ".join(policies)
    codes = sorted({left.reason.code.name for left in decision.left if left.loud})
    if decision.skipped is not None:
        codes.append(decision.skipped.code.name)
    if codes:
        found["reasons"] = ", ".join(codes)
    return found
