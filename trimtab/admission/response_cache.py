"""Was this very pod answered before, and would it be answered the same now?

A ReplicaSet of fifty sends fifty reviews of one pod. The decision is a function of the pod, the policies, the terms
and what it reads of the facts; so the second answer may be the first one's bytes, where all of these are the same.
What was checked before sending was checked for just these bytes, pod and facts.

    the pod      byte for byte, but for the name of its token volume (`likeness`)
    policies     the same value, or everything is forgotten
    terms        likewise; whose markers are believed is compared where a marker was written or read, as it holds a time
    facts        each question that was asked of them would be answered the same (`policy.cluster_facts`); where only
                 the use of a quota or the kinds of nodes differ, whether the pod could still run is asked again

Which reviews are of the same pod, but for what is drawn anew for each?

The pods that one ReplicaSet, DaemonSet or Job makes differ in nothing but the name of their token volume: the
ServiceAccount plugin calls it `kube-api-access-` and five drawn characters, and puts it in before we are called
(plugin/pkg/admission/serviceaccount). Our shapes read that name once at the most, and no decision asks for it.
"""

import re

import msgspec

from trimtab.admission.admission_result import AdmissionFinding, AdmissionOutcome
from trimtab.admission.missing_node import missing_node
from trimtab.admission.quota_headroom import NO_ANSWERS, QuotaAnswers, Raise, raised, unfit
from trimtab.cluster.api.meta import UNSET, change
from trimtab.cluster.api.pod import Pod, Volume
from trimtab.policy import reasons
from trimtab.policy.changed_annotation import text_of
from trimtab.policy.cluster_facts import ClusterFacts, FactDependencies, Freshness
from trimtab.policy.pod_context import AdmissionSettings, MarkerSigner, PodContext
from trimtab.policy.podpolicy import Policies

Key = tuple[str, bytes]
"""Namespace, and the pod's bytes as `likeness` leaves them."""

ROOM = 48 * 1024 * 1024
"""Bytes by estimate, a quarter less than they take: some fifteen hundred different pods of ordinary size."""

_LASTING = frozenset(
    {AdmissionOutcome.CHANGED, AdmissionOutcome.UNCHANGED, AdmissionOutcome.SKIPPED, AdmissionOutcome.DENIED}
)
"""Outcomes that say something of the pod. Others are mistakes, and each is worth its own line."""


class _Kept(msgspec.Struct, eq=False, gc=False):
    finding: AdmissionFinding
    before: Pod
    reads: FactDependencies
    as_of: int
    """Which facts the reads were last compared with."""
    signer: MarkerSigner | None
    """By which a marker was written or read; None where the pod has none, before and after."""
    raised: tuple[Raise, ...] | None = None
    """What it takes more of quotas than as it came, once that was asked."""


class ResponseCache:
    """Answers given, by pod. Bounded; for one thread."""

    def __init__(self, room: int = ROOM, answers: QuotaAnswers = NO_ANSWERS) -> None:
        """answers: what siblings were told of quotas."""
        self._room = room // 2
        self.answers = answers
        self._policies: Policies | None = None
        self._terms: AdmissionSettings | None = None
        self._facts: ClusterFacts | None = None
        self._as_of = 0
        self._young: dict[Key, _Kept] = {}
        self._old: dict[Key, _Kept] = {}
        self._weight = 0

    def __len__(self) -> int:
        return len(self._young) + len(self._old)

    def find(
        self, key: Key, policies: Policies, facts: ClusterFacts, terms: AdmissionSettings
    ) -> AdmissionFinding | None:
        """What this pod was found to be, where it would be found the same now."""
        self._now(policies, facts, terms)
        kept = self._young.get(key) or self._recalled(key)
        if kept is None:
            return None
        if kept.signer is not None and kept.signer is not terms.signer and kept.signer != terms.signer:
            self._young.pop(key)
            return None
        if kept.as_of != self._as_of:
            if not _holds(kept, facts, key[0], terms, self.answers):
                self._young.pop(key)
                return None
            kept.as_of = self._as_of
        return kept.finding

    def keep(self, key: Key, finding: AdmissionFinding, before: Pod, reads: FactDependencies) -> None:
        """Remember what was just found with the policies, facts and terms that `find` was asked with."""
        mistaken = finding.problem or (finding.decision is not None and finding.decision.failures)
        if finding.outcome in _LASTING and not mistaken:
            assert self._terms is not None, "`find` was asked before"
            signer = self._terms.signer if _is_marked(finding, before) else None
            self._put(key, _Kept(finding, before, reads, self._as_of, signer))

    def _now(self, policies: Policies, facts: ClusterFacts, terms: AdmissionSettings) -> None:
        if self._policies is not policies or (self._terms is not terms and self._terms != terms):
            self._policies = policies
            self._young, self._old, self._weight = {}, {}, 0
        self._terms = terms
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


def _is_marked(finding: AdmissionFinding, before: Pod) -> bool:
    """Does the pod carry a marker, or will it?"""
    return finding.outcome is AdmissionOutcome.CHANGED or text_of(before) is not None


def _weight(key: Key, kept: _Kept) -> int:
    """Bytes, roughly: the pod's own, and some four hundred for each thing said of it."""
    decision = kept.finding.decision
    said = len(decision.changes) + len(decision.left) + len(decision.would) if decision else 0
    return len(key[1]) + 2 * len(kept.finding.response) + 400 * said + 8192


def _holds(kept: _Kept, facts: ClusterFacts, namespace: str, terms: AdmissionSettings, answers: QuotaAnswers) -> bool:
    """Where only the use of quotas differs, or the kinds of nodes, the outcome is looked at again, not decided."""
    since, decision = kept.reads.since(facts), kept.finding.decision
    if since in (Freshness.SAME, Freshness.OTHER) or decision is None:
        return since is not Freshness.OTHER
    if since is Freshness.NODES:
        if any(left.reason.code in _OF_NODES for left in decision.left):
            return False
        kept.reads.nodes = facts.nodes
        if missing_node(kept.before, decision.pod, facts, namespace, terms) is not None:
            return False
    if kept.finding.outcome is not AdmissionOutcome.CHANGED or not kept.reads.quotas:
        return True
    if any(left.reason.code is reasons.QUOTA_MAY_REFUSE for left in decision.left):
        return False  # the warning tells the use
    if kept.raised is None:
        kept.raised = raised(kept.before, decision.pod, facts, namespace, terms)
    return unfit(kept.raised, PodContext(pod=decision.pod, namespace=namespace, facts=facts), answers) is None


_OF_NODES = frozenset({reasons.NO_NODE, reasons.NODE_UNKNOWN})


_TOKEN = re.compile(rb'"kube-api-access-[a-z0-9]{5}"')
_START = b'"kube-api-access-'
_LENGTH = len(_START) + 6
_NOBODYS = b"\xff"
"""No JSON holds this byte: it is no UTF-8."""
_PLACE = _START + _NOBODYS * 5 + b'"'
"""As long as what it stands for, so that nothing has to move."""


def likeness(raw: bytes) -> tuple[bytes, bytes] | None:
    """The pod's bytes with a mark wherever the token volume's name stands, and that name (empty where there is none).

    No two bodies give the same pair. None: bytes that nothing may be concluded from.
    """
    if _NOBODYS in raw:
        return None
    at = raw.rfind(_START)
    name = raw[at : at + _LENGTH] if at >= 0 else b""
    if not _TOKEN.fullmatch(name):
        return raw, b""
    return raw.replace(name, _PLACE), name


def stands_for_its_like(pod: Pod, name: bytes, finding: AdmissionFinding) -> bool:
    """Does what we read of the pod hold `name` (with its quotes) only where no decision looks?

    That is: once, as the name of a volume from a source that we do not read; and nothing of it is in what was found.
    """
    if not name:
        return True
    plain = name[1:-1]
    if plain in finding.patch or plain in msgspec.json.encode(finding.warnings):
        return False
    found = msgspec.json.encode(pod).count(plain)
    nameless = Volume(name=plain.decode())
    bare = (change(volume, projected=UNSET) for volume in pod.spec.volumes)  # no decision asks a token for its parts
    return found == sum(volume == nameless for volume in bare) <= 1
