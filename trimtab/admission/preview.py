"""What would become of this pod in a cluster: through the API server's two passes, with us in the chain?

The same `judge` that answers reviews is called where the server would call us, so what is shown is what would happen.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from trimtab.admission.apiserver.outcome import Refused, Stored
from trimtab.admission.apiserver.passes import admit
from trimtab.admission.judge import Outcome, Verdict, judge
from trimtab.admission.patch import Operation, diff
from trimtab.cluster.api.pod import Pod
from trimtab.policy.document import Policies
from trimtab.policy.draft import Change, Left
from trimtab.policy.facts import Facts
from trimtab.policy.subject import DEFAULT_TERMS, Terms


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """One pod's way through admission."""

    sent: Pod
    """As its creator sends it."""
    unaided: Stored | Refused
    """What the API server alone would make of it."""
    result: Stored | Refused
    """What it makes of it with us."""
    calls: tuple[Verdict, ...]
    """What we answered, call by call; none where the server refused the pod before it asked us."""
    seen: tuple[Pod, ...] = ()
    """The pod as each call saw it."""

    @property
    def outcome(self) -> Outcome | None:
        """Of the first call; None where there was none."""
        return self.calls[0].outcome if self.calls else None

    @property
    def operations(self) -> tuple[Operation, ...]:
        """The patch of the first call: what the webhook would send."""
        return self.calls[0].operations if self.calls else ()

    @property
    def changes(self) -> tuple[Change, ...]:
        """What we changed, over both calls."""
        return tuple(c for call in self.calls if call.outcome is Outcome.CHANGED for c in call.decision.changes)

    @property
    def left(self) -> tuple[Left, ...]:
        """What we left alone, as the first call saw it, and what only the second noticed (such as missing overhead)."""
        found = dict.fromkeys(self.calls[0].decision.left) if self.calls else {}
        later = {left: None for call in self.calls[1:] for left in call.decision.left if left.loud}
        return tuple({**found, **later})

    @property
    def patch_from_sent(self) -> tuple[Operation, ...]:
        """From what was sent to what is stored; empty where it is refused."""
        return diff(self.sent, self.result.pod) if isinstance(self.result, Stored) else ()


@dataclass(slots=True)
class _Listening:
    """Our webhook, remembering what it was asked and what it said."""

    judge: Callable[[Pod], Verdict]
    calls: list[Verdict] = field(default_factory=list)
    seen: list[Pod] = field(default_factory=list)

    def __call__(self, pod: Pod) -> Pod:
        verdict = self.judge(pod)
        self.seen.append(pod)
        self.calls.append(verdict)
        return verdict.applied(pod)


def preview(pod: Pod, policies: Policies, facts: Facts, namespace: str, terms: Terms = DEFAULT_TERMS) -> Preview:
    """The pod through both passes; a pod we deny is refused with our words."""
    webhook = _Listening(lambda found: judge(found, policies, facts, namespace, terms))
    filled = terms.overhead == "server"
    unaided = admit(pod, facts, namespace, lambda found: found, runtime_class_admission=filled)
    result = admit(pod, facts, namespace, webhook, runtime_class_admission=filled)
    for call in webhook.calls:
        if call.decision.denied is not None:
            result = Refused(403, "trimtab", f"trimtab: {call.decision.denied}")
    return Preview(sent=pod, unaided=unaided, result=result, calls=tuple(webhook.calls), seen=tuple(webhook.seen))
