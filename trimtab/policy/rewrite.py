"""Settled requests and limits, written into the containers of a pod."""

from collections.abc import Iterable

import msgspec

from trimtab.cluster import quantity
from trimtab.cluster.api.meta import UNSET, ResourceList, change, get
from trimtab.cluster.api.pod import Container, PodSpec, Resources
from trimtab.cluster.limits import breaks_pod_bounds, counts_by_qos, unmet_quota
from trimtab.cluster.quantity import Written
from trimtab.cluster.reason import Reason
from trimtab.cluster.resources import POD_LEVEL, QoS, limits_of, qos, requests_of
from trimtab.policy import reasons
from trimtab.policy.draft import Change, Draft, Want
from trimtab.policy.subject import Place, Subject


class Settled(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One resource of one container as it will stand. None: absent."""

    place: Place
    resource: str
    request: Written | None
    limit: Written | None
    request_want: Want | None
    limit_want: Want | None


def rewrite(draft: Draft, settled: list[Settled]) -> None:
    """Write what differs into the draft; take it all back where the class of service would change unasked."""
    changes = _within_pod_bounds(draft, settled, _changes(draft, settled))
    if not changes:
        return
    spec = _written(draft.spec, settled, changes)
    unasked = _unasked(draft.subject, qos(spec), changes)
    if unasked is not None:
        for found in changes:
            draft.leave(found.field, unasked, loud=True, policy=found.policy)
        return
    quota = newly_unmet(draft, spec)
    if quota is not None:
        for found in changes:
            reason = reasons.QUOTA_COUNTS_LIMIT(f"ResourceQuota {quota} would refuse the pod: it counts more than this")
            draft.leave(found.field, reason, loud=True, policy=found.policy)
        return
    draft.spec = spec
    draft.changes += changes


def _unasked(subject: Subject, after: QoS, changes: list[Change]) -> Reason | None:
    """Why the pod must keep its class of service; None: it does, or the policies mean it to change.

    - Guaranteed by requests alone, with no limit of a policy's own;
    - BestEffort, because only a limit beside a request of zero had made it more;
    - no longer BestEffort where a quota counts pods by that: it may demand limits, or be full.
    """
    if after is subject.qos:
        return None
    if after is QoS.GUARANTEED and any(c.after is not None and ".limits." in c.field for c in changes):
        return None
    if after is not QoS.BURSTABLE:
        return reasons.QOS_WOULD_CHANGE(f"the pod would become {after}")
    quota = counts_by_qos(subject.facts.quotas.get(subject.namespace, ()))
    if subject.qos is QoS.BEST_EFFORT and quota is not None:
        return reasons.QUOTA_COUNTS_QOS(f"ResourceQuota {quota} counts pods by whether they are BestEffort")
    return None


def newly_unmet(draft: Draft, spec: PodSpec) -> str | None:
    """The quota that would refuse the pod with this spec and would not have as it came.

    A change may bring a pod under a quota: BestEffort no more, or of another PriorityClass.
    """
    quotas = draft.subject.facts.quotas.get(draft.subject.namespace, ())
    found = unmet_quota(quotas, change(draft.subject.pod, spec=spec)) if quotas else None
    return found if found is not None and unmet_quota(quotas, draft.subject.pod) is None else None


def _within_pod_bounds(draft: Draft, settled: list[Settled], changes: list[Change]) -> list[Change]:
    """The changes but those of a resource whose sum over all containers a LimitRange for pods would refuse now."""
    ranges = draft.subject.facts.limit_ranges.get(draft.subject.namespace, ())
    for resource in POD_LEVEL if changes and ranges else ():
        by = breaks_pod_bounds(ranges, _written(draft.spec, settled, changes), resource)
        if by is None or breaks_pod_bounds(ranges, draft.spec, resource) is not None:
            continue
        reason = reasons.LIMIT_RANGE_REFUSES(f"LimitRange {by} bounds the {resource} of the whole pod")
        for found in (c for c in changes if c.field.endswith(f".{resource}")):
            draft.leave(found.field, reason, loud=True, policy=found.policy)
        changes = [c for c in changes if not c.field.endswith(f".{resource}")]
    return changes


def _changes(draft: Draft, settled: Iterable[Settled]) -> list[Change]:
    found: list[Change] = []
    for one in settled:
        if _is_foreign(draft, one):
            continue
        resources = one.place.container.resources
        for side, before, after, want in (
            ("requests", requests_of(resources).get(one.resource), one.request, one.request_want or one.limit_want),
            ("limits", limits_of(resources).get(one.resource), one.limit, one.limit_want),
        ):
            if want is None or _same(before, after):
                continue
            name = f"{one.place.name}.{side}.{one.resource}"
            found.append(
                Change(field=name, before=_text(before), after=_text(after), policy=want.policy, reason=want.reason)
            )
    return found


def _is_foreign(draft: Draft, one: Settled) -> bool:
    """Did something else change request or limit after us? Then both are left: one follows from the other."""
    if not draft.applied_before:
        return False
    resources = one.place.container.resources
    for side, before, after, want in (
        ("requests", requests_of(resources).get(one.resource), one.request, one.request_want or one.limit_want),
        ("limits", limits_of(resources).get(one.resource), one.limit, one.limit_want),
    ):
        name = f"{one.place.name}.{side}.{one.resource}"
        if want is None or after is None or _same(before, after) or not draft.is_foreign(name, _text(before)):
            continue
        sentence = f"an earlier call made it {draft.applied_before[name]}, it is now {before}"
        draft.leave(name, reasons.CHANGED_AFTER_US(sentence), loud=True, policy=want.policy)
        return True
    return False


def _same(before: Written | None, after: Written | None) -> bool:
    if before is None or after is None:
        return before is after
    return quantity.same(before, after)


def _text(written: Written | None) -> str | None:
    return None if written is None else str(written)


def _written(spec: PodSpec, settled: Iterable[Settled], changes: list[Change]) -> PodSpec:
    names = {change.field for change in changes}
    containers = {"containers": list(spec.containers), "initContainers": list(spec.init_containers)}
    for one in settled:
        for side, after in (("requests", one.request), ("limits", one.limit)):
            if f"{one.place.name}.{side}.{one.resource}" in names:
                part = containers[one.place.part]
                part[one.place.index] = _with(part[one.place.index], side, one.resource, after)
    return change(
        spec,
        containers=tuple(containers["containers"]),
        init_containers=tuple(containers["initContainers"]),
    )


def _with(container: Container, side: str, resource: str, after: Written | None) -> Container:
    resources = get(container.resources, Resources())
    written: ResourceList = dict(requests_of(resources) if side == "requests" else limits_of(resources))
    if after is None:
        written.pop(resource, None)
    else:
        written[resource] = after
    # An emptied mapping goes whole, so that removing the last limit leaves the same pod as never having had one.
    value = written or UNSET
    resources = change(resources, requests=value) if side == "requests" else change(resources, limits=value)
    return change(container, resources=resources)
