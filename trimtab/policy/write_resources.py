"""Writes clamped requests and limits into the containers of a pod.

A rule that computes a share of a request must use what the author wrote, not what an earlier call, or an earlier
admission of the same manifest, has made of it. So the annotation `trimtab.dev/written-requests` holds, for each field,
what the author wrote (empty: nothing) and the request that was computed from it. An entry counts only while the request
still is the computed one. Everyone may write the annotation, but gains nothing by it: an author who claims to have
written 2 where 1 is set could have written 2.
"""

from collections.abc import Iterable, Mapping

import msgspec

from trimtab.cluster import quantity
from trimtab.cluster.api.meta import UNSET, Metadata, ResourceList, change, value_or
from trimtab.cluster.api.pod import Container, PodSpec, Resources
from trimtab.cluster.limit_ranges import limit_range_broken_by_pod
from trimtab.cluster.quantity import Written
from trimtab.cluster.reason import Reason
from trimtab.cluster.resource_quotas import quota_rejecting_pod, quota_with_qos_scope
from trimtab.cluster.resources import POD_LEVEL, QoS, limits_of, qos_class, requests_of
from trimtab.policy import reasons
from trimtab.policy.pod_changes import FieldChange, PodChanges, ResourceRequest
from trimtab.policy.pod_context import ContainerRef, PodContext

ANNOTATION = "trimtab.dev/written-requests"


class WrittenRequest(msgspec.Struct, frozen=True, gc=False):
    """One request: what its author wrote, and what a policy has computed from it."""

    written: str
    """What the author wrote; empty if the author wrote no request."""
    given: str


_decode = msgspec.json.Decoder(dict[str, WrittenRequest]).decode


def find_written_request(pod_context: PodContext, name: str, current: Written) -> Written | None:
    """Returns the author's request (None if there was none) if the annotation says that the current request was
    computed from it; otherwise the current request."""
    record = pod_context.compute_once(_decode_annotation).get(name) if ANNOTATION in pod_context.annotations else None
    if record is None or not quantity.is_same_quantity(record.given, current):
        return current
    return record.written or None


def encode_written_requests(metadata: Metadata, new: Mapping[str, WrittenRequest]) -> str:
    """Returns the annotation's text with these requests added to those that it already holds."""
    recorded = _decode_written_requests(value_or(metadata.annotations, {}).get(ANNOTATION, ""))
    return msgspec.json.encode({**recorded, **new}, order="sorted").decode()


def with_written_requests(metadata: Metadata, text: str) -> Metadata:
    """Returns the metadata with this annotation."""
    return change(metadata, annotations={**value_or(metadata.annotations, {}), ANNOTATION: text})


def _decode_annotation(pod_context: PodContext) -> Mapping[str, WrittenRequest]:
    return _decode_written_requests(pod_context.annotations[ANNOTATION])


def _decode_written_requests(text: str) -> dict[str, WrittenRequest]:
    """Returns the content of the annotation. It is empty if the annotation is damaged; amounts that cannot be parsed
    are skipped."""
    try:
        decoded = _decode(text) if text else {}
    except (msgspec.DecodeError, RecursionError):
        return {}
    return {
        name: request
        for name, request in decoded.items()
        if (not request.written or _is_amount(request.written)) and _is_amount(request.given)
    }


def _is_amount(text: str) -> bool:
    return quantity.is_quantity(text) and quantity.parse(text) > 0


class ClampedResource(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The final request and limit of one resource of one container; None: absent."""

    place: ContainerRef
    resource: str
    request: Written | None
    limit: Written | None
    request_want: ResourceRequest | None
    limit_want: ResourceRequest | None


def write_clamped_resources(draft: PodChanges, clamped: list[ClampedResource]) -> None:
    """Writes all changed requests and limits into the pod. All of them are undone if the pod's quality of service class
    would change although no policy asks for that, or if a quota would refuse the pod."""
    changes, spec = _within_pod_bounds(draft, clamped, _field_changes(draft, clamped))
    if not changes:
        return
    unasked = _unasked_qos_change(draft.pod_context, qos_class(spec), changes)
    # All changes or none: each of them may be what keeps or changes the class of service.
    if unasked is not None:
        for field_change in changes:
            draft.leave_unchanged(field_change.field, unasked, loud=True, policy=field_change.policy)
        return
    quota = find_newly_unmet_quota(draft, spec)
    if quota is not None:
        for field_change in changes:
            reason = reasons.QUOTA_COUNTS_LIMIT(
                f"ResourceQuota {quota} would refuse the pod, because it counts other resources as well"
            )
            draft.leave_unchanged(field_change.field, reason, loud=True, policy=field_change.policy)
        return
    draft.spec = spec
    draft.changes += changes
    _record_shares(draft, clamped, changes)


def _record_shares(draft: PodChanges, clamped: list[ClampedResource], changes: list[FieldChange]) -> None:
    """Records in the annotation from which request each share was computed, so that the share is computed only once."""
    by_field = {field_change.field: field_change for field_change in changes if field_change.after is not None}
    shares = {
        name: (by_field[name], WrittenRequest(written=str(item.request_want.wrote), given=str(by_field[name].after)))
        for item in clamped
        if item.request_want is not None and item.request_want.wrote is not None
        if (name := f"{item.place.name}.requests.{item.resource}") in by_field
    }
    if not shares:
        return
    earlier_text = value_or(draft.metadata.annotations, {}).get(ANNOTATION)
    # Merged with the entries of earlier admissions, which other fields may still need.
    text = encode_written_requests(draft.metadata, {name: record for name, (_, record) in shares.items()})
    policy = next(iter(shares.values()))[0].policy
    reason = reasons.POLICY_SAYS("the annotation records the author's request, so that the share is computed only once")
    draft.record_change(f"annotations[{ANNOTATION}]", earlier_text, text, reason, policy)
    draft.metadata = with_written_requests(draft.metadata, text)


def _unasked_qos_change(pod_context: PodContext, new_qos: QoS, changes: list[FieldChange]) -> Reason | None:
    """Returns why the pod must keep its quality of service class, or None if it does keep it, or if the policies ask
    for the change.

    The pod must not become

    - Guaranteed by requests alone, without a limit that a policy sets;
    - BestEffort only because a limit next to a request of zero was removed;
    - Burstable if a quota counts pods by whether they are BestEffort: that quota may demand limits, or be full.
    """
    if new_qos is pod_context.qos:
        return None
    if new_qos is QoS.GUARANTEED and any(c.after is not None and ".limits." in c.field for c in changes):
        return None
    # Guaranteed without the author's intent would change eviction order and cpu pinning; BestEffort is evicted first.
    if new_qos is not QoS.BURSTABLE:
        return reasons.QOS_WOULD_CHANGE(f"the pod would change to the QoS class {new_qos}")
    quota = quota_with_qos_scope(pod_context.facts.quotas.get(pod_context.namespace, ()))
    if pod_context.qos is QoS.BEST_EFFORT and quota is not None:
        return reasons.QUOTA_COUNTS_QOS(f"ResourceQuota {quota} counts only BestEffort pods, or only other pods")
    return None


def find_newly_unmet_quota(changes: PodChanges, spec: PodSpec) -> str | None:
    """Returns the name of a quota that would refuse the pod with this spec but accepts the pod as its author wrote it,
    or None if there is none.

    A change may bring a pod under a quota, because the pod is no longer BestEffort or has another PriorityClass.
    """
    quotas = changes.pod_context.facts.quotas.get(changes.pod_context.namespace, ())
    name = quota_rejecting_pod(quotas, change(changes.pod_context.pod, spec=spec)) if quotas else None
    return name if name is not None and quota_rejecting_pod(quotas, changes.pod_context.pod) is None else None


def _within_pod_bounds(
    draft: PodChanges, clamped: list[ClampedResource], changes: list[FieldChange]
) -> tuple[list[FieldChange], PodSpec]:
    """Drops the changes of each resource whose sum over all containers would break a LimitRange for pods. Returns the
    remaining changes, and the spec with them."""
    ranges = draft.pod_context.facts.limit_ranges.get(draft.pod_context.namespace, ())
    spec = _spec_with(draft.spec, clamped, changes) if changes else draft.spec
    others = {item.resource for item in clamped if item.resource not in POD_LEVEL}
    # In a fixed order, so that the same pod always gives the same reason.
    for resource in (*POD_LEVEL, *sorted(others)) if changes and ranges else ():
        limit_range = limit_range_broken_by_pod(ranges, spec, resource)
        # A pod that breaks the bounds already is refused whatever Trimtab does; its changes stay for the message.
        if limit_range is None or limit_range_broken_by_pod(ranges, draft.spec, resource) is not None:
            continue
        reason = reasons.LIMIT_RANGE_REFUSES(f"LimitRange {limit_range} bounds the {resource} of the whole pod")
        for field_change in (c for c in changes if c.field.endswith(f".{resource}")):
            draft.leave_unchanged(field_change.field, reason, loud=True, policy=field_change.policy)
        changes = [c for c in changes if not c.field.endswith(f".{resource}")]
        spec = _spec_with(draft.spec, clamped, changes)
    return changes, spec


def _field_changes(draft: PodChanges, clamped: Iterable[ClampedResource]) -> list[FieldChange]:
    changes: list[FieldChange] = []
    for item in clamped:
        sides = _changed_sides(item)
        if draft.decided_before and _is_foreign(draft, sides):
            continue
        for name, old, new, wanted in sides:
            changes.append(
                FieldChange(field=name, before=_text(old), after=_text(new), policy=wanted.policy, reason=wanted.reason)
            )
    return changes


_Side = tuple[str, Written | None, Written | None, ResourceRequest]
"""(field, current value, new value, the policy's proposal from which the new value comes)."""


def _changed_sides(item: ClampedResource) -> list[_Side]:
    """Returns the request and the limit, as far as they change."""
    resources, place = item.place.container.resources, item.place.name
    request, limit = requests_of(resources).get(item.resource), limits_of(resources).get(item.resource)
    sides: list[_Side] = []
    # A request may change because of its limit: the API server's copy of it is written out before the limit goes.
    wanted = item.request_want or item.limit_want
    if wanted is not None and not _is_same(request, item.request):
        sides.append((f"{place}.requests.{item.resource}", request, item.request, wanted))
    if item.limit_want is not None and not _is_same(limit, item.limit):
        sides.append((f"{place}.limits.{item.resource}", limit, item.limit, item.limit_want))
    return sides


def _is_foreign(changes: PodChanges, sides: Iterable[_Side]) -> bool:
    """Returns whether something other than Trimtab has changed the request or the limit since an earlier call of the
    webhook. Then neither is changed, because one follows from the other.

    This includes a limit that an earlier call removed and something else has set again: if Trimtab removed it, it would
    be set again each time.
    """
    for name, old, new, wanted in sides:
        if new is None and old is not None and changes.was_removed_before(name):
            # An earlier call of the webhook in this very request, by the signed annotation.
            sentence = f"Trimtab removed the value in an earlier call, but another webhook has set it to {old} since"
        elif new is not None and changes.is_foreign(name, _text(old)):
            sentence = (
                f"Trimtab set the value to {changes.applied_before[name]} in an earlier call, but another webhook "
                f"has set it to {old} since"
            )
        else:
            continue
        changes.leave_unchanged(name, reasons.CHANGED_AFTER_US(sentence), loud=True, policy=wanted.policy)
        return True
    return False


def _is_same(old: Written | None, new: Written | None) -> bool:
    if old is None or new is None:
        return old is new
    return quantity.is_same_quantity(old, new)


def _text(amount: Written | None) -> str | None:
    return None if amount is None else str(amount)


def _spec_with(spec: PodSpec, clamped: Iterable[ClampedResource], changes: list[FieldChange]) -> PodSpec:
    """Returns the spec with these changes of requests and limits."""
    names = {change.field for change in changes}
    sides: dict[ContainerRef, dict[str, ResourceList]] = {}
    parts = {"containers": list(spec.containers), "initContainers": list(spec.init_containers)}
    for item in clamped:
        place = item.place
        for side, new in (("requests", item.request), ("limits", item.limit)):
            if f"{place.name}.{side}.{item.resource}" in names:
                changed_lists = sides.setdefault(place, {})
                # Copied once per container and side; the mapping of the author's pod must not change.
                if side not in changed_lists:
                    resources = parts[place.part][place.index].resources
                    changed_lists[side] = dict(requests_of(resources) if side == "requests" else limits_of(resources))
                if new is None:
                    changed_lists[side].pop(item.resource, None)
                else:
                    changed_lists[side][item.resource] = new
    for place, changed_lists in sides.items():
        parts[place.part][place.index] = _container_with(parts[place.part][place.index], changed_lists)
    return change(spec, containers=tuple(parts["containers"]), init_containers=tuple(parts["initContainers"]))


def _container_with(container: Container, changed_lists: dict[str, ResourceList]) -> Container:
    """Returns the container with these requests and limits. Mappings that become empty are removed, so that a pod whose
    last limit is removed equals one that never had a limit."""
    resources = value_or(container.resources, Resources())
    return change(
        container, resources=change(resources, **{side: amounts or UNSET for side, amounts in changed_lists.items()})
    )
