"""What do we answer to this review? Bytes of an AdmissionReview in, bytes of the answer and a record of it out.

It must never be why a pod cannot start: whatever goes wrong in here, a review that has a uid is answered "allowed,
unchanged", with a warning that says so, and the record carries what failed.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from trimtab.admission import review as wire
from trimtab.admission.judge import Outcome, judge
from trimtab.admission.patch import Operation
from trimtab.cluster.api.pod import Pod
from trimtab.cluster.snapshot import without_nulls
from trimtab.policy.decide import Decision
from trimtab.policy.document import Policies
from trimtab.policy.draft import Change
from trimtab.policy.facts import Facts
from trimtab.policy.subject import DEFAULT_TERMS, Terms


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One review and what was decided, for the log, the metrics and the audit annotations."""

    outcome: Outcome
    uid: str = ""
    namespace: str = ""
    name: str = ""
    dry_run: bool = False
    decision: Decision | None = None
    operations: tuple[Operation, ...] = ()
    problem: str = ""
    """What failed, where something did."""
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Answer:
    """What goes back."""

    status: int
    """HTTP status: 200, or 400 for what is no review."""
    body: bytes
    record: Record


def answer(body: bytes, policies: Policies, facts: Facts, terms: Terms = DEFAULT_TERMS) -> Answer:
    """The answer to one request body. Never raises."""
    try:
        review = wire.decode(body)
    except wire.NotAReview as error:
        return _malformed(str(error))
    try:
        record = _record(review, policies, facts, terms)
    except Exception as error:  # noqa: BLE001 - the last net: no pod is ever blocked on our account
        record = _of(review, Outcome.FAILED, problem=f"{type(error).__name__}: {error}")
    return Answer(200, _encoded(review, record), record)


def _malformed(text: str) -> Answer:
    body = msgspec.json.encode({"error": text})
    return Answer(400, body, Record(outcome=Outcome.MALFORMED, problem=text))


def _record(review: wire.Review, policies: Policies, facts: Facts, terms: Terms) -> Record:
    strange = _strange(review)
    if strange:
        return _of(review, Outcome.NOT_OURS, problem=strange)
    request = review.request
    if request.operation != "CREATE" or request.sub_resource:
        return _of(review, Outcome.NOT_OURS)
    pod = _pod(bytes(request.object))
    if isinstance(pod, str):
        return _of(review, Outcome.UNREADABLE, problem=pod)
    return _decided(review, pod, policies, facts, terms)


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


def _decided(review: wire.Review, pod: Pod, policies: Policies, facts: Facts, terms: Terms) -> Record:
    found = judge(pod, policies, facts, review.request.namespace, terms)
    warnings = told(found.decision) if found.outcome in (Outcome.CHANGED, Outcome.UNCHANGED) else ()
    return _of(
        review, found.outcome, decision=found.decision, operations=found.operations, problem=found.problem,
        warnings=warnings,
    )  # fmt: skip


def _of(
    review: wire.Review,
    outcome: Outcome,
    *,
    decision: Decision | None = None,
    operations: tuple[Operation, ...] = (),
    problem: str = "",
    warnings: tuple[str, ...] = (),
) -> Record:
    request = review.request
    return Record(
        outcome=outcome,
        uid=request.uid,
        namespace=request.namespace,
        name=request.name,
        dry_run=request.dry_run,
        decision=decision,
        operations=operations,
        problem=problem,
        warnings=warnings or ((f"trimtab: the pod is unchanged: {problem}",) if problem else ()),
    )


def _encoded(review: wire.Review, record: Record) -> bytes:
    if record.outcome is Outcome.DENIED and record.decision is not None:
        message = f"trimtab: {record.decision.denied}"
        return wire.encode(review, allowed=False, message=message, audit=_audit(record))
    warnings = tuple(map(_short, record.warnings))
    return wire.encode(review, operations=record.operations, warnings=warnings, audit=_audit(record))


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


def _audit(record: Record) -> Mapping[str, str]:
    """For the API server's audit log; it puts our webhook's name before each key."""
    found = {"outcome": record.outcome.value}
    decision = record.decision
    if decision is not None:
        if record.outcome is Outcome.CHANGED:
            found["changed"] = ", ".join(sorted({change.policy for change in decision.changes if change.policy}))
        codes = sorted({left.reason.code.name for left in decision.left if left.loud})
        if decision.skipped is not None:
            codes.append(decision.skipped.code.name)
        if codes:
            found["reasons"] = ", ".join(codes)
    return found
