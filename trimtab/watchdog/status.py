"""What does a policy's status say now? From what was found, and what it said before."""

from collections.abc import Mapping
from dataclasses import dataclass

from trimtab.admission.harm.brake import Count, Harm, Verdict
from trimtab.admission.harm.counts import Counts
from trimtab.admission.running.incident import Trouble
from trimtab.admission.running.report import Tally
from trimtab.cluster.reason import NotYet
from trimtab.policy.status import HARM_BRAKE, LOADED, Condition, Status
from trimtab.policy.status import Harm as Before


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What is known of one policy of the cluster."""

    name: str
    generation: int
    mode: str
    written: str
    """When its spec was last written."""
    mistakes: tuple[str, ...] = ()
    """Why it does not load; what it was before is in force then."""
    tally: Tally
    counts: Counts | None = None
    """None while it is not in mode apply."""
    verdict: Verdict | None = None
    """What the brake makes of the counts; None while harm is not looked for."""
    braked: bool = False
    """It was just put to `warn`, for the harm that the verdict tells."""
    before: Status
    """What its status says now."""


def status(found: Found, now: str) -> Status:
    """What it should say; conditions keep the time of their last change."""
    tally = found.tally
    return Status(
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


def _loaded(found: Found, now: str) -> Condition:
    if found.mistakes:
        told = "; ".join(found.mistakes)
        return _condition(found, now, LOADED, "False", "Mistakes", f"what it was before stays in force: {told}")
    return _condition(found, now, LOADED, "True", "Sound", "the document is in force as it stands")


def _brake(found: Found, now: str) -> Condition:
    """On until somebody says `mode: apply` again."""
    if found.braked and isinstance(found.verdict, Harm):
        return _condition(found, now, HARM_BRAKE, "True", _word(found.verdict), f"put to warn: {found.verdict.reason}")
    before = found.before.condition(HARM_BRAKE)
    if before is not None and before.status == "True" and found.mode != "apply":
        return before
    was_on = before is not None and (before.status == "True" or before.reason == _REARMED)
    if was_on and found.verdict is not None and not isinstance(found.verdict, Harm):
        return _condition(found, now, HARM_BRAKE, "False", _REARMED, "somebody put it back to apply")
    return _off(found, now)


_REARMED = "ReArmed"


def _off(found: Found, now: str) -> Condition:
    match found.verdict:
        case None:
            return _condition(found, now, HARM_BRAKE, "False", "NotLookedFor", "not in mode apply, or the brake is off")
        case NotYet():
            return _condition(found, now, HARM_BRAKE, "Unknown", "TooFewPods", str(found.verdict))
        case Harm():
            told = f"would be put to warn: {found.verdict.reason}"
            return _condition(found, now, HARM_BRAKE, "False", "OnlyTold", told)
        case _:
            name = "".join(part.title() for part in found.verdict.code.name.split("-"))
            return _condition(found, now, HARM_BRAKE, "False", name, str(found.verdict))


def _word(harm: Harm) -> str:
    return harm.trouble.name.title().replace("_", "")


def _condition(found: Found, now: str, kind: str, value: str, reason: str, message: str) -> Condition:
    before = found.before.condition(kind)
    since = before.last_transition_time if before is not None and before.status == value else now
    return Condition(
        type=kind, status=value, reason=reason, message=message[:_MESSAGE], last_transition_time=since,
        observed_generation=found.generation,
    )  # fmt: skip


_MESSAGE = 2000
"""Kubernetes' own conditions take 32 768 characters; nobody reads more than this."""


def _harm(found: Found) -> Before | None:
    """While it is in force, what is known of the time before; afterwards what was known last."""
    if found.counts is None:
        return found.before.harm
    seen = {trouble: compared.before for trouble, compared in found.counts.items()}
    return Before(
        since=found.written,
        pods=max((count.pods for count in seen.values()), default=0),
        oom_killed=seen[Trouble.OOM_KILLED].hit,
        evicted=seen[Trouble.EVICTED].hit,
        unschedulable=seen[Trouble.UNSCHEDULABLE].hit,
    )


def remembered(before: Before, written: str) -> Mapping[Trouble, Count]:
    """What an earlier life knew of the time before this version of the policy; nothing of another version's."""
    if before.since != written or not before.pods:
        return {}
    hit = {
        Trouble.OOM_KILLED: before.oom_killed,
        Trouble.EVICTED: before.evicted,
        Trouble.UNSCHEDULABLE: before.unschedulable,
    }
    return {trouble: Count(before.pods, count) for trouble, count in hit.items()}
