"""Was this very pod answered before, and would it be answered the same now?

A ReplicaSet of fifty sends fifty reviews of one pod. The decision is a function of the pod, the policies, the terms
and what it reads of the facts; so the second answer may be the first one's bytes, where all of these are the same.
What was checked before sending was checked for just these bytes, pod and facts.

    the pod      byte for byte, but for the name of its token volume (`likeness`)
    policies     the same value, or everything is forgotten
    terms        likewise
    facts        each question that was asked of them would be answered the same (`policy.reads`); where only the use
                 of a quota differs, what the API server would refuse is asked again
"""

import msgspec

from trimtab.admission.check import refused_for_it
from trimtab.admission.judge import Outcome
from trimtab.admission.record import Finding
from trimtab.cluster.api.pod import Pod
from trimtab.policy.document import Policies
from trimtab.policy.facts import Facts
from trimtab.policy.reads import Reads, Since
from trimtab.policy.subject import Terms

Key = tuple[str, bytes]
"""Namespace, and the pod's bytes as `likeness` leaves them."""

ROOM = 48 * 1024 * 1024
"""Bytes by estimate, a quarter less than they take: some fifteen hundred different pods of ordinary size."""

_LASTING = frozenset({Outcome.CHANGED, Outcome.UNCHANGED, Outcome.SKIPPED, Outcome.DENIED})
"""Outcomes that say something of the pod. Others are mistakes, and each is worth its own line."""


class _Kept(msgspec.Struct, eq=False, gc=False):
    finding: Finding
    before: Pod
    reads: Reads
    as_of: int
    """Which facts the reads were last compared with."""


class Memory:
    """Answers given, by pod. Bounded; for one thread."""

    def __init__(self, room: int = ROOM) -> None:
        self._room = room // 2
        self._policies: Policies | None = None
        self._terms: Terms | None = None
        self._facts: Facts | None = None
        self._as_of = 0
        self._young: dict[Key, _Kept] = {}
        self._old: dict[Key, _Kept] = {}
        self._weight = 0

    def __len__(self) -> int:
        return len(self._young) + len(self._old)

    def find(self, key: Key, policies: Policies, facts: Facts, terms: Terms) -> Finding | None:
        """What this pod was found to be, where it would be found the same now."""
        self._now(policies, facts, terms)
        kept = self._young.get(key) or self._recalled(key)
        if kept is None:
            return None
        if kept.as_of != self._as_of:
            if not _holds(kept, facts, key[0], terms):
                self._young.pop(key)
                return None
            kept.as_of = self._as_of
        return kept.finding

    def keep(self, key: Key, finding: Finding, before: Pod, reads: Reads) -> None:
        """Remember what was just found with the policies, facts and terms that `find` was asked with."""
        if finding.outcome in _LASTING and not (finding.decision and finding.decision.failures):
            self._put(key, _Kept(finding, before, reads, self._as_of))

    def _now(self, policies: Policies, facts: Facts, terms: Terms) -> None:
        if self._policies is not policies or (self._terms is not terms and self._terms != terms):
            self._policies, self._terms = policies, terms
            self._young, self._old, self._weight = {}, {}, 0
        if self._facts is not facts:
            self._facts = facts
            self._as_of += 1

    def _recalled(self, key: Key) -> _Kept | None:
        """From the older half, which it leaves for the younger one."""
        kept = self._old.pop(key, None)
        if kept is not None:
            self._put(key, kept)
        return kept

    def _put(self, key: Key, kept: _Kept) -> None:
        """What was not asked for while half the room was filled anew is forgotten."""
        self._weight += _weight(key, kept)
        if self._weight > self._room:
            self._old, self._young, self._weight = self._young, {}, _weight(key, kept)
        self._young[key] = kept


def _weight(key: Key, kept: _Kept) -> int:
    """Bytes, roughly: the pod's own, and some four hundred for each thing said of it."""
    decision = kept.finding.decision
    said = len(decision.changes) + len(decision.left) + len(decision.would) if decision else 0
    return len(key[1]) + 2 * len(kept.finding.response) + 400 * said + 8192


def _holds(kept: _Kept, facts: Facts, namespace: str, terms: Terms) -> bool:
    since = kept.reads.since(facts)
    if since is not Since.USED:
        return since is Since.SAME
    if kept.finding.outcome is not Outcome.CHANGED or kept.finding.decision is None:
        return True
    return refused_for_it(kept.before, kept.finding.decision.pod, facts, namespace, terms) is None
