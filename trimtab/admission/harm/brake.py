"""Counts → does this policy harm pods? Harmful, quiet, or not enough is known.

A trouble is blamed on a policy only where all of this holds:

- the policy changed fields of the pods that can cause it (a label kills nobody);
- at least `least_pods` pods carry its change, and `least_troubled` of them were hit within the window;
- at least `least_pods` pods it means are known that do not carry its change: those from before, or it missed;
- the share that is hit rose by at least `rise`, and to at least `factor` times what it was;
- pods it does not mean are hit less than that: else the trouble is the cluster's.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from trimtab.admission.harm import reasons
from trimtab.admission.running.incident import Trouble
from trimtab.cluster.reason import NotYet, Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class HarmTerms:
    """When is a rise harm?"""

    window: float = 3600.0
    """Seconds back from now (or from a pod's end) within which a trouble counts. An hour: memory creeps slowly, and
    longer would blame a policy for yesterday."""
    memory: float = 86400.0
    """Seconds for which pods are remembered that are gone and did not carry the change. A day: a rollout that replaces
    every pod must not erase what it is compared with."""
    unschedulable_after: float = 300.0
    """Seconds a pod may wait for a node before that counts. Five minutes: an autoscaler brings one in two to four."""
    least_pods: int = 5
    """Pods on either side, at least. Below, one unlucky pod is a share of 20% and more."""
    least_troubled: int = 3
    """Pods that were hit, at least. Two may be chance, or one bad release."""
    rise: float = 0.05
    """Share of pods by which it must have risen: 0.05 is one pod in twenty more than before."""
    factor: float = 2.0
    """How many times as often as before. Twice: workloads that are killed now and then stay as they are."""


DEFAULT_HARM_TERMS = HarmTerms()


@dataclass(frozen=True, slots=True)
class Count:
    """Pods, and how many of them were hit."""

    pods: int = 0
    hit: int = 0

    def __add__(self, other: "Count") -> "Count":
        return Count(self.pods + other.pods, self.hit + other.hit)

    @property
    def share(self) -> float:
        return self.hit / self.pods if self.pods else 0.0

    def __str__(self) -> str:
        return f"{self.hit} of {self.pods} pods"


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """One trouble, to one policy."""

    before: Count = Count()
    """Pods it means that do not carry its change."""
    after: Count = Count()
    """Pods that carry a change of it that can cause this trouble."""
    elsewhere: Count = Count()
    """Pods it does not mean."""


@dataclass(frozen=True, slots=True)
class Harm:
    """The policy harms pods; the evidence."""

    reason: Reason
    trouble: Trouble
    compared: Compared


Verdict = Harm | NotYet | Reason
"""Harm; not enough is known; or why there is none."""


def judge(policy: str, counts: Mapping[Trouble, Compared], terms: HarmTerms = DEFAULT_HARM_TERMS) -> Verdict:
    """Over all troubles: the first that is harm, else what is not known, else that all is quiet."""
    found = [_judged(policy, trouble, compared, terms) for trouble, compared in sorted(counts.items())]
    for kind in (Harm, NotYet):
        for verdict in found:
            if isinstance(verdict, kind):
                return verdict
    quiet = reasons.QUIET(f"pods that {policy} changed fare no worse than others")
    return next((verdict for verdict in found if isinstance(verdict, Reason)), quiet)


def _judged(policy: str, trouble: Trouble, found: Compared, terms: HarmTerms) -> Verdict | None:
    """None: nothing was hit."""
    if found.after.hit < terms.least_troubled:
        return _few(found, terms) if found.after.hit else None
    if found.after.pods < terms.least_pods or found.before.pods < terms.least_pods:
        return _few(found, terms)
    rose, least = found.after.share - found.before.share, terms.factor * found.before.share
    if rose < terms.rise or found.after.share < least:
        return None
    told = f"{trouble}: {found.after} that {policy} changed, {found.before} that it means and did not change"
    if found.elsewhere.pods >= terms.least_pods and found.elsewhere.share * terms.factor >= found.after.share:
        return reasons.EVERYWHERE(f"{told}; but {found.elsewhere} that it does not mean")
    return Harm(reasons.HARMFUL(told), trouble, found)


def _few(found: Compared, terms: HarmTerms) -> NotYet:
    return NotYet(
        reason=reasons.TOO_FEW("too few pods to tell harm from chance"),
        have=f"{found.after} changed, {found.before} not changed",
        need=f"{terms.least_troubled} hit, and {terms.least_pods} pods on either side",
    )
