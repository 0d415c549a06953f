"""Simulates the ResourceQuota plugin: a pod must specify the amounts that the namespace's quotas count, and must fit
into the quotas.

The plugin (apiserver pkg/admission/plugin/resourcequota/controller.go, pkg/quota/v1/evaluator/core/pods.go, 1.36) is
the last step. It reads `status`: `hard` as the quota controller has confirmed it, and `used`. For a quota without any
status, as in a file that was never applied, `spec.hard` is used: the required amounts are checked, but the usage is
unknown, and no pod is rejected because of it.

The plugin judges one pod. `quota_increases` and what follows it check that all replicas of the pod's owner fit into the
quotas after the changes, including the surge of a rollout. One decision is made for an owner and a template, not for
each pod, so that all siblings get the same one. While they are being created, a quota's `used` includes them at once,
but the owner's status includes them only when its controller has created all of them. So the two do not show which part
of the usage belongs to the siblings.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec

from trimtab.admission.apiserver import resource_sums
from trimtab.admission.apiserver.outcome import PodRejected
from trimtab.admission.apiserver.pod_classes import with_class_overhead
from trimtab.admission.apiserver.resource_sums import round_quantities
from trimtab.admission.reasons import QUOTA_ROOM_UNKNOWN, QUOTA_TOO_CLOSE, QUOTA_WOULD_REFUSE
from trimtab.cluster import quantity
from trimtab.cluster.api.core import ResourceQuota
from trimtab.cluster.api.meta import ResourceList, value_or
from trimtab.cluster.api.pod import Pod, PodSpec
from trimtab.cluster.fair_share import FairCache
from trimtab.cluster.format_count import format_count
from trimtab.cluster.kinds import POD
from trimtab.cluster.owner import OwnerKey, referenced_owner
from trimtab.cluster.reason import Reason
from trimtab.cluster.resource_quotas import effective_hard, quota_covers, quota_rejecting_pod, unnamed_resources
from trimtab.cluster.resources import Amounts, is_pod_level, limits_of, requests_of
from trimtab.policy import autoscalers
from trimtab.policy.cluster_facts import OWNERS, ClusterFacts
from trimtab.policy.pod_context import PodBeforeAndAfter, PodContext

PLUGIN = "ResourceQuota"
_EXCEEDED = "exceeded quota:"
_STANDARD_RESOURCES = ("cpu", "memory", "ephemeral-storage")
_COUNTED_NAMES = {
    "count/pods",
    "pods",
    *_STANDARD_RESOURCES,
    *(f"{side}.{part}" for side in ("requests", "limits") for part in _STANDARD_RESOURCES),
}


def check_quotas(pod: Pod, facts: ClusterFacts, namespace: str) -> Pod | PodRejected:
    """Returns the rejection of a pod that does not specify what a quota counts, or that exceeds a quota; otherwise the
    pod."""
    quotas = [quota for quota in facts.quotas.get(namespace, ()) if quota_covers(quota, pod) and _counted_names(quota)]
    if not quotas:
        return pod
    for quota in quotas:
        missing = [
            f"{name} for: {','.join(lacking)}" for name, lacking in unnamed_resources(_counted_names(quota), pod.spec)
        ]
        message = f"failed quota: {quota.metadata.name}: must specify {'; '.join(missing)}"
        refused = (PodRejected(403, PLUGIN, message) if missing else None) or _check_status(quota)
        if refused:
            return refused
    charged = quota_usage(pod)
    exceeded = (_check_exceeded(quota, charged) for quota in quotas)
    return next((refused for refused in exceeded if refused), pod)


def quota_usage(pod: Pod) -> ResourceList:
    """Returns the amounts that this pod uses, by the names that quotas have for them. Overhead is included, and zeros
    are left out."""
    # The pod's requests (`PodRequests`, component-helpers resource/helpers.go): pod-level requests replace the sum,
    # and overhead is added.
    total = resource_sums.sum_containers(pod.spec, requests_of) | _pod_level_resources(requests_of(pod.spec.resources))
    requests, limits = resource_sums.add_resources(total, value_or(pod.spec.overhead, {})), _pod_limits(pod.spec)
    amounts = {"count/pods": "1", "pods": "1"} | _quota_names(requests, limits)
    return {name: value for name, value in amounts.items() if quantity.parse(value)}


def _pod_limits(spec: PodSpec) -> ResourceList:
    """Returns the pod's limits (`PodLimits`): overhead is only added to limits that are set and not zero."""
    total = resource_sums.sum_containers(spec, limits_of) | _pod_level_resources(limits_of(spec.resources))
    overhead = value_or(spec.overhead, {})
    return resource_sums.add_resources(
        total, {n: v for n, v in overhead.items() if n in total and quantity.parse(total[n])}
    )


def _pod_level_resources(amounts: ResourceList) -> ResourceList:
    return {name: value for name, value in amounts.items() if is_pod_level(name)}


def _quota_names(requests: ResourceList, limits: ResourceList) -> ResourceList:
    amounts: ResourceList = {}
    for name, value in requests.items():
        if name in _STANDARD_RESOURCES or name.startswith("hugepages-"):
            amounts |= {name: value, f"requests.{name}": value}
        elif _is_extended(name):
            amounts[f"requests.{name}"] = value
    return amounts | {f"limits.{name}": value for name, value in limits.items() if name in _STANDARD_RESOURCES}


def _is_extended(name: str) -> bool:
    return "/" in name and "kubernetes.io/" not in name


def _counted_names(quota: ResourceQuota) -> list[str]:
    """Returns the names of the amounts that the quota counts for pods."""
    return sorted(name for name in effective_hard(quota) if name in _COUNTED_NAMES or _is_counted_prefix(name))


def _is_counted_prefix(name: str) -> bool:
    if name.startswith(("hugepages-", "requests.hugepages-")):
        return True
    return name.startswith("requests.") and _is_extended(name)


def _check_status(quota: ResourceQuota) -> PodRejected | None:
    if all(name in quota.status.used for name in _counted_names(quota) if name in quota.status.hard):
        return None
    message = f"status unknown for quota: {quota.metadata.name}, resources: {','.join(_counted_names(quota))}"
    return PodRejected(403, PLUGIN, message)


def _check_exceeded(quota: ResourceQuota, charged: ResourceList) -> PodRejected | None:
    hard, used = round_quantities(quota.status.hard), round_quantities(quota.status.used)
    after = {
        name: resource_sums.add_quantities(used.get(name, 0), value) for name, value in charged.items() if name in hard
    }
    exceeded = sorted(name for name, value in after.items() if quantity.compare_quantities(value, hard[name]) > 0)
    if not exceeded:
        return None
    parts = [("requested", charged), ("used", used), ("limited", hard)]
    amounts = ", ".join(f"{word}: {_format_amounts(values, exceeded)}" for word, values in parts)
    return PodRejected(403, PLUGIN, f"{_EXCEEDED} {quota.metadata.name}, {amounts}")


def find_refusing_quota(quotas: Iterable[ResourceQuota], pod: Pod, growth: Amounts) -> str | None:
    """Returns the name of a quota that would refuse `pod` although the pod that it replaces is gone, or None if there
    is none.

    `growth`: how much more the pod requests than the one that it replaces, in the scheduler's units. Without growth, a
    quota refuses the pod only if the namespace uses more than the quota allows now, as after the quota was lowered.
    """
    for quota in quotas:
        if not quota_covers(quota, pod):
            continue
        hard, used = quota.status.hard, quota.status.used
        for name in quota_usage(pod).keys() & hard.keys() & used.keys():
            resource = name.removeprefix("requests.").removeprefix("limits.")
            more = 0 if name.startswith("limits.") else growth.get(resource, 0)
            in_use = quantity.scheduler_value(resource, used[name]) + more
            if in_use > quantity.scheduler_value(resource, hard[name]):
                return quota.metadata.name
    return None


def is_exceeded(quota: ResourceQuota) -> bool:
    """Returns whether a namespace uses more than its quota allows, as after the quota was lowered."""
    hard, used = quota.status.hard, quota.status.used
    return any(name in used and quantity.compare_quantities(used[name], limit) > 0 for name, limit in hard.items())


def is_exceeded_quota(rejected: PodRejected | None) -> bool:
    """Returns whether a pod was rejected because the namespace would use more than a quota allows."""
    return rejected is not None and rejected.plugin == PLUGIN and rejected.message.startswith(_EXCEEDED)


def _format_amounts(values: ResourceList, names: list[str]) -> str:
    return ",".join(f"{name}={quantity.canonical_form(values[name])}" for name in names if name in values)


MARGIN_PERCENT = 10
"""The percentage of a quota that must stay free after the increase, because `used` does not yet include the newest
pods."""
_TEMPLATE_LABELS = ("pod-template-hash", "controller-revision-hash")


class QuotaIncrease(msgspec.Struct, frozen=True, gc=False):
    """An amount by which the changes increase what a pod uses of a quota."""

    quota: str
    name: str
    each: int
    """The increase per pod in billionths of a unit, as `quantity.parse` counts."""
    written: str


class AnswerKey(NamedTuple):
    """What siblings have in common."""

    namespace: str
    owner_uid: str
    """The UID of the direct owner."""
    template: str
    increase: QuotaIncrease
    hard: int
    """The hard limit of the quota."""
    pods: int


@dataclass(eq=False)
class QuotaAnswers:
    """The decisions made so far, and how much of each quota they have promised. Their number is limited, and one
    namespace's decisions drop no other's. Only one thread may use it."""

    max_answers: int = 4096
    waits: bool = field(default=False, init=False)
    """Whether the caller can wait for an owner that no watch has reported yet, and then calls again."""
    awaited: OwnerKey | None = field(default=None, init=False)
    """The owner for which the caller waits, if the present pod depends on it; no decision is then stored."""
    _answers: FairCache[AnswerKey, bool] = field(init=False)
    _promised_each: dict[tuple[str, str, str], dict[OwnerKey, int]] = field(default_factory=dict)
    """(namespace, quota, amount) → owner → how much each of its pods may use."""

    def __post_init__(self) -> None:
        self._answers = FairCache(self.max_answers)

    def begin_pod(self, *, waits: bool) -> None:
        """Starts the check of the next pod."""
        self.waits, self.awaited = waits and self.max_answers > 0, None

    def find_answer(self, key: AnswerKey | None) -> bool | None:
        """Returns the decision that siblings got, or None if there is none."""
        return None if key is None else self._answers.find_entry(key.namespace, key)

    def store_answer(self, key: AnswerKey | None, answer: bool) -> None:
        if key is not None and self.max_answers > 0:
            self._answers.store_entry(key.namespace, key, answer)

    def promise_amount(self, namespace: str, increase: QuotaIncrease, owner: OwnerKey) -> None:
        """Records that all pods of this owner may use the amount."""
        by_owner = self._promised_each.setdefault((namespace, increase.quota, increase.name), {})
        if len(by_owner) < self.max_answers:
            by_owner[owner] = increase.each

    def outstanding_amount(self, increase: QuotaIncrease, pod_context: PodContext, except_owner: OwnerKey) -> int:
        """Returns the amount that was promised to pods of other owners, as far as these pods do not exist yet according
        to the owners' status."""
        by_owner = self._promised_each.get((pod_context.namespace, increase.quota, increase.name), {})
        total = 0
        for owner, each in list(by_owner.items()):
            wanted = pod_context.facts.replicas.get(owner)
            missing = 0 if wanted is None else wanted.wanted - pod_context.facts.updated.get(owner, 0)
            if missing <= 0:
                del by_owner[owner]
            elif owner != except_owner:
                total += missing * each
        return total


NO_ANSWERS = QuotaAnswers(max_answers=0)
"""The value for pods that are checked one by one, as from a file: no decisions about quotas are stored."""


def quota_increases(pods: PodBeforeAndAfter) -> tuple[QuotaIncrease, ...]:
    """Returns all amounts that quotas count and that the changes have increased.

    If a quota would reject the pod as submitted, because the pod does not specify all counted amounts, and the changed
    pod specifies them, the quota is left out: the pod cannot be worse off.
    """
    quotas_here = pods.after.facts.quotas.get(pods.after.namespace, ())
    if not quotas_here:
        return ()
    changed, submitted = (subject.compute_once(with_class_overhead) for subject in (pods.after, pods.before))
    charged, charged_before = quota_usage(changed), quota_usage(submitted)
    return tuple(
        QuotaIncrease(quota.metadata.name, name, quantity.parse(charged[name]), str(charged[name]))
        for quota in quotas_here
        if quota_covers(quota, changed)
        if quota_rejecting_pod((quota,), submitted) is None or quota_rejecting_pod((quota,), changed) is not None
        for counted in (charged_before if quota_covers(quota, submitted) else {},)
        for name in effective_hard(quota)
        if name in charged and quantity.compare_quantities(charged[name], counted.get(name, 0)) > 0
    )


def find_exceeded_quota(
    raises: tuple[QuotaIncrease, ...], pod_context: PodContext, answers: QuotaAnswers = NO_ANSWERS
) -> tuple[ResourceQuota, QuotaIncrease] | None:
    """Returns the first increase that does not fit for all pods of the owner, with its quota, or None if all fit."""
    by_name = (
        {quota.metadata.name: quota for quota in pod_context.facts.quotas.get(pod_context.namespace, ())}
        if raises
        else {}
    )
    for increase in raises:
        if not _has_room(by_name[increase.quota], increase, pod_context, answers):
            return by_name[increase.quota], increase
    return None


def store_increases(raises: tuple[QuotaIncrease, ...], pod_context: PodContext, answers: QuotaAnswers) -> None:
    """Records that the pod is admitted with these increases, so that its siblings are admitted with them too."""
    if not raises:
        return
    by_name = {quota.metadata.name: quota for quota in pod_context.facts.quotas.get(pod_context.namespace, ())}
    replicas, owner = largest_pod_count(pod_context), _counted_owner(pod_context)
    if replicas is None or owner is None:
        return
    for increase in raises:
        answers.store_answer(
            _answer_key(increase, pod_context, _hard_limit(by_name[increase.quota], increase), replicas), True
        )
        answers.promise_amount(pod_context.namespace, increase, owner)


def _hard_limit(quota: ResourceQuota, increase: QuotaIncrease) -> int:
    return quantity.parse(effective_hard(quota)[increase.name])


def _has_room(quota: ResourceQuota, increase: QuotaIncrease, pod_context: PodContext, answers: QuotaAnswers) -> bool:
    """Returns whether there is room for every pod that the owner has not created yet, with `MARGIN_PERCENT` of the
    quota to spare.

    - Pods that exist are in `used` already, with whatever they requested.
    - If the number of pods is unknown, the answer is no. Siblings then get the same answer until all of them exist.
    - Siblings get the decision of the first pod. If that allowed the increase but other pods have used the room since,
      the answer for this pod is no, because the quota would reject it.
    """
    used, hard = quantity.parse(quota.status.used.get(increase.name, 0)), _hard_limit(quota, increase)
    replicas, owner = largest_pod_count(pod_context), _counted_owner(pod_context)
    unknown_key = _answer_key(increase, pod_context, hard, _UNKNOWN_REPLICAS)
    if replicas is None or owner is None:
        unseen_owner = _unseen_controller(pod_context) if answers.waits else None
        if unseen_owner is None:
            answers.store_answer(unknown_key, False)
        else:
            answers.awaited = unseen_owner
        return False
    existing, wanted = _updated_pods(pod_context), pod_context.replicas
    if wanted is not None and existing < wanted.wanted and answers.find_answer(unknown_key) is False:
        return False
    key = _answer_key(increase, pod_context, hard, replicas)
    stored = answers.find_answer(key)
    if stored is not None:
        return stored and used + increase.each <= hard
    expected_use = (
        used + answers.outstanding_amount(increase, pod_context, owner) + max(1, replicas - existing) * increase.each
    )
    fits = expected_use * 100 <= hard * (100 - MARGIN_PERCENT)
    if not fits:
        answers.store_answer(key, False)
    return fits


_UNKNOWN_REPLICAS = -1


def _unseen_controller(pod_context: PodContext) -> OwnerKey | None:
    """Returns the pod's controller if its kind is watched and no watch has reported it yet, because it was just
    created; otherwise None."""
    controller = pod_context.pod.metadata.controller_owner
    if controller is None or not controller.uid:
        return None
    target = referenced_owner(controller, pod_context.namespace)
    return None if target.kind not in OWNERS or target in pod_context.facts.owners else target


def _answer_key(increase: QuotaIncrease, pod_context: PodContext, hard: int, replicas: int) -> AnswerKey | None:
    """Returns the key of a decision, or None for a pod without a controller, or whose controller has no UID."""
    controller = pod_context.pod.metadata.controller_owner
    if controller is None or not controller.uid:
        return None
    template = next((pod_context.labels[label] for label in _TEMPLATE_LABELS if label in pod_context.labels), "")
    return AnswerKey(pod_context.namespace, controller.uid, template, increase, hard, replicas)


def _counted_owner(pod_context: PodContext) -> OwnerKey | None:
    """Returns the topmost owner whose number of pods is known; for a pod without an owner, the key of an object that
    does not exist."""
    if not pod_context.owners:
        return OwnerKey(pod_context.namespace, POD, "")
    return next((owner for owner in reversed(pod_context.owners) if owner in pod_context.facts.replicas), None)


def largest_pod_count(pod_context: PodContext) -> int | None:
    """Returns the largest number of pods that the owner may have at once: by its replicas, by its HPA, and during a
    rollout.

    None if that is unknown. It is also unknown for an owner that wants no pods and yet creates one, because it was
    scaled up a moment ago.
    """
    wanted = pod_context.replicas
    if wanted is None or wanted.wanted == 0:
        return None
    return max(wanted.wanted, autoscalers.max_replicas(pod_context)) + wanted.surge


def _updated_pods(pod_context: PodContext) -> int:
    """Returns the number of existing pods of the owner's current template.

    It is 0 for a ReplicaSet that no watch has reported yet. It is also 0 for a ReplicaSet of another revision than its
    Deployment's, because the Deployment's status then describes the previous revision.
    """
    targets = pod_context.owners
    if targets and targets[0] not in pod_context.facts.owners:
        return 0
    known_replicas = (pod_context.facts.replicas.get(target) for target in targets)
    if len({replicas.revision for replicas in known_replicas if replicas is not None and replicas.revision}) > 1:
        return 0
    counts = (pod_context.facts.updated.get(target) for target in targets)
    return next((count for count in counts if count is not None), 0)


def explain_exceeded_quota(quota: ResourceQuota, increase: QuotaIncrease, pod_context: PodContext) -> Reason:
    """Returns the reason why an increase does not fit its quota."""
    replicas, name = largest_pod_count(pod_context), quota.metadata.name
    if replicas is None:
        owner = pod_context.top_owner or "the pod"
        return QUOTA_ROOM_UNKNOWN(
            f"ResourceQuota {name} counts {increase.name}, and Trimtab does not know how many pods {owner} creates"
        )
    used, limit = quota.status.used.get(increase.name, "0"), effective_hard(quota)[increase.name]
    missing = max(1, replicas - _updated_pods(pod_context))
    pods = f"for each of {format_count(replicas, 'pod')}" if replicas > 1 else "for the pod"
    amount = f"{increase.name} {increase.written} {pods}"
    state = f"of which {used} of {limit} is used"
    if quantity.parse(used) + missing * increase.each <= quantity.parse(limit):
        return QUOTA_TOO_CLOSE(
            f"{amount} would fit into ResourceQuota {name}, {state}, but would leave less than {MARGIN_PERCENT}% of it"
        )
    return QUOTA_WOULD_REFUSE(f"{amount} would exceed ResourceQuota {name}, {state}")
