"""Caches responses by pod, and checks whether a cached response would be given again.

A ReplicaSet with fifty replicas causes fifty reviews of the same pod. The decision is a function of the pod, the
policies, the settings and the facts that it reads. So if all of these are the same, the second response may have the
same bytes as the first. The checks before sending were made for exactly these bytes, this pod and these facts.

    the pod      byte for byte the same, except the names of its token volume and of its node (`pod_bytes`)
    policies     the same object, or everything is dropped
    settings     likewise; the signer, which holds a time, is compared only if an annotation was written or read
    facts        each fact read for the decision is unchanged (`policy.decision_reads`); if only the use of a quota or
                 the node shapes changed, only the consequences are checked again
"""

from collections import Counter

import msgspec

from trimtab.admission.admission_result import AdmissionOutcome, AdmissionRecord
from trimtab.admission.apiserver.resourcequota import (
    NO_ANSWERS,
    QuotaAnswers,
    QuotaIncrease,
    find_exceeded_quota,
    quota_increases,
)
from trimtab.admission.pod_bytes import ShapeKeys
from trimtab.admission.pod_decision import find_obstacle, object_to_nodes
from trimtab.admission.reasons import NO_NODE, NODE_UNKNOWN, QUOTA_MAY_REFUSE, QUOTA_WITHHELD
from trimtab.admission.recent_hashes import RecentHashes
from trimtab.admission.template_cache import Lookup, TemplateCache
from trimtab.cluster.api.pod import Pod
from trimtab.policy.changed_annotation import annotation_text
from trimtab.policy.cluster_facts import ClusterFacts
from trimtab.policy.decide import Decision
from trimtab.policy.decision_reads import FactDependencies, Freshness, track_dependencies
from trimtab.policy.pod_context import AdmissionSettings, MarkerSigner, PodBeforeAndAfter, PodContext
from trimtab.policy.podpolicy import Policies

CacheKey = tuple[str, bytes, ShapeKeys]
"""(namespace, the bytes of the pod as `mask_pod_bytes` returns them, what a decision may read of its node)."""

MAX_CACHE_BYTES = 48 * 1024 * 1024
"""The maximum size of the cache in estimated bytes; the actual size is about a third larger. It is enough for about
fifteen hundred different pods of ordinary size."""

_CACHED_OUTCOMES = frozenset(
    {AdmissionOutcome.CHANGED, AdmissionOutcome.UNCHANGED, AdmissionOutcome.SKIPPED, AdmissionOutcome.DENIED}
)
"""The outcomes that depend on the pod alone. The others are errors, each of which is logged by itself."""


class _Entry(msgspec.Struct, eq=False, gc=False):
    size: int
    """The estimated size in bytes."""
    record: AdmissionRecord
    before: Pod
    reads: FactDependencies
    as_of: int
    """The cache's number for the facts against which this entry was last checked."""
    signer: MarkerSigner | None
    """The signer with which an annotation was written or read; None if the pod has no annotation before and after."""
    is_used: bool = False
    """Whether the entry was found since it was stored, or since it was last spared."""
    raised: tuple[QuotaIncrease, ...] | None = None
    """The amounts by which the pod increases the usage of quotas; None until they have been computed."""


class ResponseCache:
    """Records by pod. The cache has a maximum size, and only one thread may use it.

    For each new entry the oldest ones make room, one by one: to drop thousands at once would delay a review by tens of
    milliseconds. An entry that was found meanwhile is spared once, and becomes the newest.
    """

    def __init__(self, room: int = MAX_CACHE_BYTES, answers: QuotaAnswers = NO_ANSWERS) -> None:
        """`answers` are the decisions about quotas that siblings of a pod got."""
        self._room = room
        self.answers = answers
        self.lookups: Counter[Lookup] = Counter()
        """The number of pods by how their decision was found; it only grows."""
        self.templates = TemplateCache(self.lookups)
        self.recent_keys = RecentHashes()
        """The pods of which most are seen once: their response is stored when the second one arrives."""
        self._policies: Policies | None = None
        self._settings: AdmissionSettings | None = None
        self._facts: ClusterFacts | None = None
        self._as_of = 0
        self._entries: dict[CacheKey, _Entry] = {}
        self._estimated_bytes = 0

    def __len__(self) -> int:
        return len(self._entries)

    def find_record(
        self, key: CacheKey, policies: Policies, facts: ClusterFacts, settings: AdmissionSettings
    ) -> AdmissionRecord | None:
        """Returns the cached record for this pod if deciding the pod now would give the same record, otherwise
        None."""
        self._reset_if_changed(policies, facts, settings)
        entry = self._entries.get(key)
        if entry is None:
            return None
        if entry.signer is not None and entry.signer is not settings.signer and entry.signer != settings.signer:
            self._drop(key)
            return None
        if entry.as_of != self._as_of:
            if not _is_still_valid(entry, facts, key[0], settings, self.answers):
                self._drop(key)
                return None
            entry.as_of = self._as_of
        entry.is_used = True
        self.lookups[Lookup.SAME_POD] += 1
        return entry.record

    def store_record(
        self, key: CacheKey, record: AdmissionRecord, before: Pod, reads: FactDependencies, size: int
    ) -> None:
        """Stores a new record, which was made with the policies, facts and settings of the last call of
        `find_record`. `size` is the result of `template_cache.estimate_bytes`."""
        has_error = record.problem or (record.decision is not None and record.decision.failures)
        if record.outcome in _CACHED_OUTCOMES and not has_error:
            assert self._settings is not None, "`find_record` is called first"
            signer = self._settings.signer if _is_marked(record, before) else None
            self._insert(key, _Entry(size, record, before, reads, self._as_of, signer))

    def _reset_if_changed(self, policies: Policies, facts: ClusterFacts, settings: AdmissionSettings) -> None:
        if self._policies is not policies or (self._settings is not settings and self._settings != settings):
            self._policies = policies
            self._entries, self._estimated_bytes = {}, 0
            self.templates.clear()
        self._settings = settings
        if self._facts is not facts:
            self._facts = facts
            self._as_of += 1

    def _insert(self, key: CacheKey, entry: _Entry) -> None:
        """Adds an entry, for which older ones make room."""
        self._drop(key)
        self._estimated_bytes += entry.size
        while self._entries and self._estimated_bytes > self._room:
            oldest = next(iter(self._entries))
            if self._entries[oldest].is_used:
                spared = self._entries[oldest] = self._entries.pop(oldest)
                spared.is_used = False
            else:
                self._drop(oldest)
        self._entries[key] = entry

    def _drop(self, key: CacheKey) -> None:
        entry = self._entries.pop(key, None)
        self._estimated_bytes -= 0 if entry is None else entry.size


def _is_marked(record: AdmissionRecord, before: Pod) -> bool:
    """Returns whether the pod has the annotation of changes, or will have it after the patch."""
    return record.outcome is AdmissionOutcome.CHANGED or annotation_text(before) is not None


def _is_still_valid(
    entry: _Entry, facts: ClusterFacts, namespace: str, settings: AdmissionSettings, answers: QuotaAnswers
) -> bool:
    """Returns whether the decision would be the same with these facts. If only the usage of quotas or the node shapes
    have changed, only the consequences are checked again: whether a node and the quotas have room."""
    freshness, decision = entry.reads.check_freshness(facts), entry.record.decision
    if freshness in (Freshness.SAME, Freshness.OTHER) or decision is None:
        return freshness is not Freshness.OTHER
    if freshness is Freshness.NODES:
        # A required action may have been withheld, because no node had a place for the pod.
        if entry.record.outcome is AdmissionOutcome.DENIED:
            return False
        if any(kept_field.reason.code in _NODE_CODES for kept_field in decision.fields_kept):
            return False
        # With other nodes, the check may read other facts too. What was read may also belong to a template, for
        # which nothing has been checked again, so it is replaced and not changed.
        recorded_facts, further_reads = track_dependencies(facts)
        # The same question as without the cache, with the same exceptions: a pod without a change, and a pod with an
        # invalid quantity, have no objection.
        pods = _pods_of(entry, decision, recorded_facts, namespace, settings)
        if find_obstacle(pods, answers, (object_to_nodes,)) is not None:
            return False
        entry.reads = msgspec.structs.replace(
            entry.reads, nodes=facts.nodes, answers=entry.reads.merge(further_reads.answers)
        )
    # The reason contains the use, and where the use fell there may be room now.
    if any(kept_field.reason.code in _QUOTA_CODES for kept_field in decision.fields_kept):
        return False
    if entry.record.outcome is not AdmissionOutcome.CHANGED or not entry.reads.reads_quotas:
        return True
    pods = _pods_of(entry, decision, facts, namespace, settings)
    if entry.raised is None:
        entry.raised = quota_increases(pods)
    return find_exceeded_quota(entry.raised, pods.after, answers) is None


def _pods_of(
    entry: _Entry, decision: Decision, facts: ClusterFacts, namespace: str, settings: AdmissionSettings
) -> PodBeforeAndAfter:
    before, after = (
        PodContext(pod=pod, namespace=namespace, facts=facts, settings=settings) for pod in (entry.before, decision.pod)
    )
    return PodBeforeAndAfter(before=before, after=after)


_NODE_CODES = frozenset({NO_NODE, NODE_UNKNOWN})
_QUOTA_CODES = QUOTA_WITHHELD | {QUOTA_MAY_REFUSE}
