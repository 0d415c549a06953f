"""Would all replicas of a pod's owner fit the namespace's quotas, the surge of a rollout included, as we change them?

An answer is given once for an owner and a template, not for a pod: siblings get the same one. While they are made, a
quota's `used` has them at once, and what their owner says of them comes later, when its controller has made them all:
nobody could say from the two which part of the use is theirs.
"""

from collections import OrderedDict
from dataclasses import dataclass, field

import msgspec

from trimtab.admission.apiserver import resourcequota as quotas
from trimtab.admission.apiserver import runtimeclass
from trimtab.admission.apiserver.outcome import PodRejected
from trimtab.cluster import quantity
from trimtab.cluster.api.core import ResourceQuota
from trimtab.cluster.api.meta import get
from trimtab.cluster.api.pod import Pod
from trimtab.cluster.limit_ranges import hard_of, quota_covers, unmet_quota
from trimtab.cluster.reason import Reason
from trimtab.policy import autoscalers, reasons
from trimtab.policy.cluster_facts import ClusterFacts
from trimtab.policy.pod_context import AdmissionSettings, PodContext
from trimtab.policy.retained_facts import OWNERS

MARGIN = 10
"""Percent of a quota that stays free beside what is raised: its `used` lags behind by some pods."""
_TEMPLATE_LABELS = ("pod-template-hash", "controller-revision-hash")


class Raise(msgspec.Struct, frozen=True, gc=False):
    """What one pod takes of one amount of a quota, where that is more than it took as it came."""

    quota: str
    name: str
    each: int
    """Billionths, as `quantity.parse` counts."""
    written: str


Target = tuple[str, str, str]
"""(namespace, kind, name) of an owner."""
_Key = tuple[str, str, str, Raise, int, int]
"""Namespace, UID of the nearest owner, its template, what is raised, what the quota allows, and for how many pods."""


@dataclass(eq=False)
class QuotaAnswers:
    """What was answered, and how much of each quota that has promised. Bounded; for one thread."""

    most: int = 4096
    waits: bool = field(default=False, init=False)
    """Does whoever asks now wait for an owner that no watch has told yet, and ask again?"""
    awaited: Target | None = field(default=None, init=False)
    """That owner, where what was asked last hangs on it: nothing is kept of the answer."""
    _given: "OrderedDict[_Key, bool]" = field(default_factory=OrderedDict)
    _promised: dict[tuple[str, str, str], dict[Target, int]] = field(default_factory=dict)
    """(namespace, quota, amount) → owner → what each of its pods was told to take."""

    def begin(self, *, waits: bool) -> None:
        """The next pod is asked about."""
        self.waits, self.awaited = waits and self.most > 0, None

    def find(self, key: _Key | None) -> bool | None:
        """What siblings were told; None where none of them has come."""
        return None if key is None else self._given.get(key)

    def keep(self, key: _Key | None, answer: bool) -> None:
        if key is None or self.most == 0:
            return
        self._given[key] = answer
        while len(self._given) > self.most:
            self._given.popitem(last=False)

    def promise(self, namespace: str, one: Raise, owner: Target) -> None:
        """All pods of this owner may take so much."""
        promised = self._promised.setdefault((namespace, one.quota, one.name), {})
        if len(promised) < self.most:
            promised[owner] = one.each

    def outstanding(self, one: Raise, subject: PodContext, besides: Target) -> int:
        """What other owners were told that their pods may take, of pods that do not exist yet by what they say."""
        promised = self._promised.get((subject.namespace, one.quota, one.name), {})
        total = 0
        for owner, each in list(promised.items()):
            wanted = subject.facts.replicas.get(owner)
            missing = 0 if wanted is None else wanted.wanted - subject.facts.updated.get(owner, 0)
            if missing <= 0:
                del promised[owner]
            elif owner != besides:
                total += missing * each
        return total


NO_ANSWERS = QuotaAnswers(most=0)
"""Where pods are looked at one by one, as in a file: nothing is remembered."""


def as_stored(pod: Pod, facts: ClusterFacts, namespace: str, terms: AdmissionSettings) -> Pod:
    """With what its RuntimeClass brings once the server has filled that in."""
    if terms.overhead != "server" or not get(pod.spec.runtime_class_name, ""):
        return pod
    found = runtimeclass.admit(pod, facts, namespace)
    return pod if isinstance(found, PodRejected) else found


def raised(before: Pod, after: Pod, facts: ClusterFacts, namespace: str, terms: AdmissionSettings) -> tuple[Raise, ...]:
    """All that quotas count and the changes made more; but of a quota that would refuse the pod as it came, because it
    does not name all that is counted, and now does: there is nothing to lose then.
    """
    found = facts.quotas.get(namespace, ())
    if not found:
        return ()
    later = as_stored(after, facts, namespace, terms)
    sooner = as_stored(before, facts, namespace, terms)
    charged, charged_before = quotas.charge(later), quotas.charge(sooner)
    return tuple(
        Raise(quota.metadata.name, name, quantity.parse(charged[name]), str(charged[name]))
        for quota in found
        if quota_covers(quota, later)
        if unmet_quota((quota,), sooner) is None or unmet_quota((quota,), later) is not None
        for counted in (charged_before if quota_covers(quota, sooner) else {},)
        for name in hard_of(quota)
        if name in charged and quantity.compare(charged[name], counted.get(name, 0)) > 0
    )


def unfit(
    raises: tuple[Raise, ...], subject: PodContext, answers: QuotaAnswers = NO_ANSWERS
) -> tuple[ResourceQuota, Raise] | None:
    """The first of these for which not all pods of the owner have room; None where all have."""
    by_name = (
        {quota.metadata.name: quota for quota in subject.facts.quotas.get(subject.namespace, ())} if raises else {}
    )
    for one in raises:
        if not _fits(by_name[one.quota], one, subject, answers):
            return by_name[one.quota], one
    return None


def keep(raises: tuple[Raise, ...], subject: PodContext, answers: QuotaAnswers) -> None:
    """The pod goes out with all of this: its siblings will, too."""
    if not raises:
        return
    by_name = {quota.metadata.name: quota for quota in subject.facts.quotas.get(subject.namespace, ())}
    replicas, owner = _replicas(subject), _counted_owner(subject)
    if replicas is None or owner is None:
        return
    for one in raises:
        answers.keep(_key(one, subject, _amount(by_name[one.quota], one), replicas), True)
        answers.promise(subject.namespace, one, owner)


def _amount(quota: ResourceQuota, one: Raise) -> int:
    return quantity.parse(hard_of(quota)[one.name])


def _fits(quota: ResourceQuota, one: Raise, subject: PodContext, answers: QuotaAnswers) -> bool:
    """Is there room for every pod that the owner has not made yet, with a tenth of the quota to spare?

    - Those that exist are in `used` already, whatever they were given.
    - Where nobody knows how many there will be, nothing is raised; nor of their siblings, until all of them exist.
    - Siblings of one that was answered get that answer. Where that was yes and others have used the room since, this
      one is not raised: it would be refused.
    """
    used, hard = quantity.parse(quota.status.used.get(one.name, 0)), _amount(quota, one)
    replicas, owner = _replicas(subject), _counted_owner(subject)
    unknown = _key(one, subject, hard, _NOT_KNOWN)
    if replicas is None or owner is None:
        unseen = _unseen_controller(subject) if answers.waits else None
        if unseen is None:
            answers.keep(unknown, False)
        else:
            answers.awaited = unseen
        return False
    there, wanted = _updated(subject), subject.replicas
    if wanted is not None and there < wanted.wanted and answers.find(unknown) is False:
        return False
    key = _key(one, subject, hard, replicas)
    known = answers.find(key)
    if known is not None:
        return known and used + one.each <= hard
    taken = used + answers.outstanding(one, subject, owner) + max(1, replicas - there) * one.each
    fits = taken * 100 <= hard * (100 - MARGIN)
    if not fits:
        answers.keep(key, False)
    return fits


_NOT_KNOWN = -1


def _unseen_controller(subject: PodContext) -> Target | None:
    """The pod's controller, where its kind is watched and no watch has told of it: it was made this moment."""
    controller = subject.pod.metadata.controller
    if controller is None or controller.kind not in OWNERS or not controller.uid:
        return None
    target = (subject.namespace, controller.kind, controller.name)
    return None if target in subject.facts.owners else target


def _key(one: Raise, subject: PodContext, hard: int, replicas: int) -> _Key | None:
    """None for a pod without siblings, and of an owner without a UID."""
    controller = subject.pod.metadata.controller
    if controller is None or not controller.uid:
        return None
    template = next((subject.labels[label] for label in _TEMPLATE_LABELS if label in subject.labels), "")
    return subject.namespace, controller.uid, template, one, hard, replicas


def _counted_owner(subject: PodContext) -> Target | None:
    """The topmost owner that says how many pods it wants; for a bare pod a name that nobody has."""
    if not subject.owners:
        return subject.namespace, "Pod", ""
    targets = ((subject.namespace, owner.kind, owner.name) for owner in reversed(subject.owners))
    return next((target for target in targets if target in subject.facts.replicas), None)


def _replicas(subject: PodContext) -> int | None:
    """The most pods that the owner may have at once: by itself, by its HPA, and while it rolls out.

    None where nobody tells. An owner that wants none and makes a pod was scaled up this moment: so it is for that one.
    """
    wanted = subject.replicas
    if wanted is None or wanted.wanted == 0:
        return None
    return max(wanted.wanted, autoscalers.max_replicas(subject)) + wanted.surge


def _updated(subject: PodContext) -> int:
    """Pods of the owner's present template that exist. Of a ReplicaSet that nobody has seen yet there is none, nor of
    one of another revision than its Deployment: what that says is about the one before."""
    targets = [(subject.namespace, owner.kind, owner.name) for owner in subject.owners]
    if targets and targets[0] not in subject.facts.owners:
        return 0
    told = (subject.facts.replicas.get(target) for target in targets)
    if len({replicas.revision for replicas in told if replicas is not None and replicas.revision}) > 1:
        return 0
    found = (subject.facts.updated.get(target) for target in targets)
    return next((count for count in found if count is not None), 0)


def words_of(quota: ResourceQuota, one: Raise, subject: PodContext) -> Reason:
    replicas, name = _replicas(subject), quota.metadata.name
    if replicas is None:
        whose = subject.top or "the pod"
        sentence = f"ResourceQuota {name} counts {one.name}, and how many pods {whose} makes is not known"
    else:
        used = quota.status.used.get(one.name, "0")
        sentence = (
            f"with {one.name} {one.written} for each of {replicas} pods, {100 - MARGIN}% of ResourceQuota {name} would "
            f"be passed: {used} of {hard_of(quota)[one.name]} is used"
        )
    return reasons.QUOTA_WOULD_REFUSE(sentence)
