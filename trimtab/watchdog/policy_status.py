"""What does a policy's status say now? From what was found, and what it said before.

The status of every policy, written when it differs, and not too often.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from trimtab.admission.audit.findings import PolicyTally
from trimtab.admission.audit.harm import Count, Counts, HarmEvidence, Verdict
from trimtab.admission.audit.original_pod import FailureKind
from trimtab.cluster.reason import NotYet
from trimtab.kube.client import APPLY
from trimtab.kube.errors import KubeFault, NotFound
from trimtab.kube.objects import Writer
from trimtab.kube.resources import PLACES, one
from trimtab.policy.podpolicy import API_VERSION, KIND
from trimtab.policy.status import HARM_BRAKE, LOADED, PolicyStatus, StatusCondition, plain
from trimtab.policy.status import HarmStatus as Before
from trimtab.runtime.log import Logger


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyObservation:
    """What is known of one policy of the cluster."""

    name: str
    generation: int
    mode: str
    written: str
    """When its spec was last written."""
    mistakes: tuple[str, ...] = ()
    """Why it does not load; what it was before is in force then."""
    tally: PolicyTally
    counts: Counts | None = None
    """None while it is not in mode apply."""
    verdict: Verdict | None = None
    """What the brake makes of the counts; None while harm is not looked for."""
    braked: bool = False
    """It was just put to `warn`, for the harm that the verdict tells."""
    before: PolicyStatus
    """What its status says now."""


def status(found: PolicyObservation, now: str) -> PolicyStatus:
    """What it should say; conditions keep the time of their last change."""
    tally = found.tally
    return PolicyStatus(
        observed_generation=found.generation,
        matched=tally.matched,
        changed=tally.changed,
        unpatched=tally.unpatched,
        would=tally.would,
        skipped=tally.skipped,
        overruled=tally.overruled,
        last_error="; ".join(found.mistakes) or tally.failure,
        conditions=(_loaded(found, now), _brake(found, now)),
        harm=_harm(found),
    )


def _loaded(found: PolicyObservation, now: str) -> StatusCondition:
    if found.mistakes:
        told = "; ".join(found.mistakes)
        return _condition(found, now, LOADED, "False", "Mistakes", f"what it was before stays in force: {told}")
    return _condition(found, now, LOADED, "True", "Sound", "the document is in force as it stands")


def _brake(found: PolicyObservation, now: str) -> StatusCondition:
    """On until somebody says `mode: apply` again."""
    if found.braked and isinstance(found.verdict, HarmEvidence):
        return _condition(found, now, HARM_BRAKE, "True", _word(found.verdict), f"put to warn: {found.verdict.reason}")
    before = found.before.condition(HARM_BRAKE)
    if before is not None and before.status == "True" and found.mode != "apply":
        return before
    was_on = before is not None and (before.status == "True" or before.reason == _REARMED)
    if was_on and found.verdict is not None and not isinstance(found.verdict, HarmEvidence):
        return _condition(found, now, HARM_BRAKE, "False", _REARMED, "the mode was set back to apply")
    return _off(found, now)


_REARMED = "AppliedAgain"


def _off(found: PolicyObservation, now: str) -> StatusCondition:
    match found.verdict:
        case None:
            return _condition(found, now, HARM_BRAKE, "False", "NotChecked", "not in mode apply, or the brake is off")
        case NotYet():
            return _condition(found, now, HARM_BRAKE, "Unknown", "TooFewPods", str(found.verdict))
        case HarmEvidence():
            told = f"would be put to warn: {found.verdict.reason}"
            return _condition(found, now, HARM_BRAKE, "False", "ReportedOnly", told)
        case _:
            name = "".join(part.title() for part in found.verdict.code.name.split("-"))
            return _condition(found, now, HARM_BRAKE, "False", name, str(found.verdict))


def _word(harm: HarmEvidence) -> str:
    return harm.trouble.name.title().replace("_", "")


def _condition(found: PolicyObservation, now: str, kind: str, value: str, reason: str, message: str) -> StatusCondition:
    before = found.before.condition(kind)
    since = before.last_transition_time if before is not None and before.status == value else now
    return StatusCondition(
        type=kind, status=value, reason=reason, message=message[:_MESSAGE], last_transition_time=since,
        observed_generation=found.generation,
    )  # fmt: skip


_MESSAGE = 2000
"""Kubernetes' own conditions take 32 768 characters; nobody reads more than this."""


def _harm(found: PolicyObservation) -> Before | None:
    """While it is in force, what is known of the time before; afterwards what was known last."""
    if found.counts is None:
        return found.before.harm
    seen = {trouble: compared.before for trouble, compared in found.counts.items()}
    return Before(
        since=found.written,
        pods=max((count.pods for count in seen.values()), default=0),
        oom_killed=seen[FailureKind.OOM_KILLED].hit,
        evicted=seen[FailureKind.EVICTED].hit,
        unschedulable=seen[FailureKind.UNSCHEDULABLE].hit,
    )


def remembered(before: Before, written: str) -> Mapping[FailureKind, Count]:
    """What an earlier life knew of the time before this version of the policy; nothing of another version's."""
    if before.since != written or not before.pods:
        return {}
    hit = {
        FailureKind.OOM_KILLED: before.oom_killed,
        FailureKind.EVICTED: before.evicted,
        FailureKind.UNSCHEDULABLE: before.unschedulable,
    }
    return {trouble: Count(before.pods, count) for trouble, count in hit.items()}


@dataclass(slots=True)
class PolicyStatusWriter:
    """Not for two threads."""

    writer: Writer
    log: Logger
    every: float
    """Seconds between two writes of one policy's; what is urgent is written at once."""
    elapsed: Callable[[], float]
    _written: dict[str, tuple[float, PolicyStatus]] = field(default_factory=dict)

    def write(self, name: str, before: PolicyStatus, status: PolicyStatus) -> bool:
        """Whether it was written. `before`: what the cluster shows; trouble is logged, and it is tried again."""
        if status == before or self._is_soon(name, status):
            return False
        try:
            self._apply(name, status)
        except NotFound:
            return False  # deleted meanwhile
        except KubeFault as error:
            self.log.warning("status.not-written", policy=name, error=str(error))
            return False
        self._written[name] = (self.elapsed(), status)
        return True

    def forget(self, names: set[str]) -> None:
        """All but these are gone."""
        self._written = {name: found for name, found in self._written.items() if name in names}

    def _is_soon(self, name: str, status: PolicyStatus) -> bool:
        """Was it written a moment ago, and is nothing urgent new?"""
        found = self._written.get(name)
        if found is None:
            return False
        at, last = found
        return self.elapsed() - at < self.every and _said(last) == _said(status)

    def _apply(self, name: str, status: PolicyStatus) -> None:
        body = {"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": name}, "status": plain(status)}
        path, doing = one(PLACES[KIND], "", name, "status"), f"apply status of PodPolicy {name}"
        self.writer.write("PATCH", path, body, doing=doing, content_type=APPLY, query={"force": "true"})


def _said(status: PolicyStatus) -> list[tuple[str, bool]]:
    """What must be known at once: a document that does not load, a brake that is on."""
    return [
        (found.type, found.status == ("True" if found.type == HARM_BRAKE else "False")) for found in status.conditions
    ]
