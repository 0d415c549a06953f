"""What do policies say of pods that run already, and what do they lack?

The pods are decided about again, as they were submitted as far as that can be known, with today's policies and facts.
A pod that came through our webhook carries its marker, which makes the second decision find nothing to do: what it
finds all the same is what the pod lacks.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from trimtab.admission.running.submitted import NOT_HELD, Alike
from trimtab.cluster.api.meta import UNSET, change, get
from trimtab.cluster.api.pod import Pod
from trimtab.cluster.reason import Reason
from trimtab.policy import reasons
from trimtab.policy.actions import overhead
from trimtab.policy.asked import Asked, ask
from trimtab.policy.decide import Decision, decide
from trimtab.policy.document import Policies
from trimtab.policy.draft import Change
from trimtab.policy.facts import Facts
from trimtab.policy.match import always_left_alone
from trimtab.policy.subject import Subject, Terms


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Of pods alike, to each policy. A policy that does not mean them appears nowhere."""

    meant: frozenset[str] = frozenset()
    """Policies that mean them, whatever their mode."""
    carried: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Policy → fields it changed when the pods were admitted, by their marker."""
    lacks: Mapping[str, tuple[Change, ...]] = field(default_factory=dict)
    """Policy in mode apply → what it would change and has not."""
    would: Mapping[str, tuple[Change, ...]] = field(default_factory=dict)
    """Policy in mode warn or audit → what it would change."""
    left_out: Mapping[str, Reason] = field(default_factory=dict)
    """Policy whose `match` means them → why it leaves them alone as a whole: opted out, rollout, paused."""
    overruled: frozenset[str] = frozenset()
    failed: Mapping[str, str] = field(default_factory=dict)
    """Policy → how an action of it failed: our bug."""
    denied: Reason | None = None
    """Why they would not be let in again."""


def stand(alike: Alike, policies: Policies, facts: Facts, terms: Terms) -> Standing:
    """How these pods stand to these policies. Never raises for what a pod or policy may hold."""
    pod = as_seen(alike.pod, facts)
    subject = Subject(pod=pod, namespace=alike.namespace, facts=facts, terms=terms)
    carried = {name: frozenset(fields) for name, fields in alike.marker.by.items() if name} if alike.marker else {}
    skipped = always_left_alone(subject)
    if skipped is not None:
        left_out = dict.fromkeys((turn.name for turn in ask(policies, subject).meaning), skipped)
        return Standing(carried=carried, left_out=left_out)
    decision = decide(pod, policies, facts, alike.namespace, terms)
    return Standing(
        meant=frozenset(found.policy for found in decision.matched),
        carried=carried,
        lacks=_by_policy(decision.changes, decision.modes),
        would=_by_policy(decision.would, decision.modes),
        left_out=_left_out(ask(policies, subject)),
        overruled=_overruled(alike, decision),
        failed=_failed(decision),
        denied=decision.denied,
    )


def as_seen(pod: Pod, facts: Facts) -> Pod:
    """With the overhead its class brings now: the stored one is the class's of then, and told of apart.

    Overhead without a class, or whose class is gone, is the pod's own and stays.
    """
    found = facts.runtime_classes.get(get(pod.spec.runtime_class_name, ""))
    stored = get(pod.spec.overhead, {})
    if found is None or not stored or stored == found.overhead.pod_fixed:
        return pod
    now = dict(found.overhead.pod_fixed)
    return change(pod, spec=change(pod.spec, overhead=now or UNSET))


def _by_policy(changes: tuple[Change, ...], known: Mapping[str, str]) -> dict[str, tuple[Change, ...]]:
    """What nobody's policy says (a class's overhead) is told apart; what is not held is not judged."""
    found: dict[str, tuple[Change, ...]] = {}
    for one in changes:
        if one.policy in known and one.before != NOT_HELD and one.field != overhead.FIELD:
            found[one.policy] = (*found.get(one.policy, ()), one)
    return found


def _left_out(asked: Asked) -> dict[str, Reason]:
    return {left.policy: left.reason for left in asked.not_in_rollout}


def _overruled(alike: Alike, decision: Decision) -> frozenset[str]:
    """A field that another policy's change has set already was that policy's to decide."""
    deciders = alike.marker.deciders if alike.marker else {}
    return frozenset(
        left.policy
        for left in decision.left
        if left.reason.code is reasons.OVERRULED
        or (left.reason.code is reasons.ALREADY_SET and deciders.get(left.field, (left.policy,))[0] != left.policy)
    )


def _failed(decision: Decision) -> dict[str, str]:
    """`decide` tells failures as "policy: action: what"."""
    told = (failure.partition(": ") for failure in decision.failures)
    return {policy: what for policy, _, what in told}
