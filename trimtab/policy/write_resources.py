"""What did the author ask for, where a policy gave a share of it?

A share is taken once: of what was written, and not of what an earlier call made of it, or a manifest that was admitted
before. So the pod carries the annotation `trimtab.dev/written-requests`: field → what was written, and what it became.
It counts only while the request still is what it became. Anybody may write it, and gains nothing: whoever says that 2
was written where 1 stands could have written 2.

Settled requests and limits, written into the containers of a pod.
"""

from collections.abc import Iterable, Mapping

import msgspec

from trimtab.cluster import quantity
from trimtab.cluster.api.meta import UNSET, Metadata, ResourceList, change, get
from trimtab.cluster.api.pod import Container, PodSpec, Resources
from trimtab.cluster.limit_ranges import breaks_pod_bounds, counts_by_qos, unmet_quota
from trimtab.cluster.quantity import Written
from trimtab.cluster.reason import Reason
from trimtab.cluster.resources import POD_LEVEL, QoS, limits_of, qos, requests_of
from trimtab.policy import reasons
from trimtab.policy.pod_changes import FieldChange, PodChanges, ResourceRequest
from trimtab.policy.pod_context import ContainerRef, PodContext

ANNOTATION = "trimtab.dev/written-requests"


class WrittenRequest(msgspec.Struct, frozen=True, gc=False):
    """One request: what its author wrote, and what a policy made of it."""

    written: str
    given: str


_decode = msgspec.json.Decoder(dict[str, WrittenRequest]).decode


def find_written_request(subject: PodContext, name: str, stands: Written) -> Written:
    """What the author wrote, where the pod says that the request that stands was made of it; else what stands."""
    found = subject.once(_records).get(name) if ANNOTATION in subject.annotations else None
    return found.written if found is not None and quantity.same(found.given, stands) else stands


def encode_written_requests(metadata: Metadata, made: Mapping[str, WrittenRequest]) -> str:
    """The annotation's text with these requests beside those that it tells of already."""
    told = _readable(get(metadata.annotations, {}).get(ANNOTATION, ""))
    return msgspec.json.encode({**told, **made}, order="sorted").decode()


def with_written_requests(metadata: Metadata, text: str) -> Metadata:
    """The metadata with this annotation."""
    return change(metadata, annotations={**get(metadata.annotations, {}), ANNOTATION: text})


def _records(subject: PodContext) -> Mapping[str, WrittenRequest]:
    return _readable(subject.annotations[ANNOTATION])


def _readable(text: str) -> dict[str, WrittenRequest]:
    """Empty where it is damaged; without amounts that make no sense."""
    try:
        found = _decode(text) if text else {}
    except (msgspec.DecodeError, RecursionError):
        return {}
    return {name: one for name, one in found.items() if _is_amount(one.written) and _is_amount(one.given)}


def _is_amount(written: str) -> bool:
    return quantity.is_quantity(written) and quantity.parse(written) > 0


class ClampedResource(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One resource of one container as it will stand. None: absent."""

    place: ContainerRef
    resource: str
    request: Written | None
    limit: Written | None
    request_want: ResourceRequest | None
    limit_want: ResourceRequest | None


def write_clamped_resources(draft: PodChanges, settled: list[ClampedResource]) -> None:
    """Write what differs into the draft; take it all back where the class of service would change unasked."""
    changes, spec = _within_pod_bounds(draft, settled, _changes(draft, settled))
    if not changes:
        return
    unasked = _unasked(draft.subject, qos(spec), changes)
    if unasked is not None:
        for found in changes:
            draft.leave_unchanged(found.field, unasked, loud=True, policy=found.policy)
        return
    quota = find_newly_unmet_quota(draft, spec)
    if quota is not None:
        for found in changes:
            reason = reasons.QUOTA_COUNTS_LIMIT(f"ResourceQuota {quota} would refuse the pod: it counts more than this")
            draft.leave_unchanged(found.field, reason, loud=True, policy=found.policy)
        return
    draft.spec = spec
    draft.changes += changes
    _record_shares(draft, settled, changes)


def _record_shares(draft: PodChanges, settled: list[ClampedResource], changes: list[FieldChange]) -> None:
    """Note on the pod what each share was made of, so that it is taken once."""
    given = {found.field: found for found in changes if found.after is not None}
    made = {
        name: (given[name], WrittenRequest(written=str(one.request_want.wrote), given=str(given[name].after)))
        for one in settled
        if one.request_want is not None and one.request_want.wrote is not None
        if (name := f"{one.place.name}.requests.{one.resource}") in given
    }
    if not made:
        return
    before = get(draft.metadata.annotations, {}).get(ANNOTATION)
    text = encode_written_requests(draft.metadata, {name: record for name, (_, record) in made.items()})
    policy = next(iter(made.values()))[0].policy
    reason = reasons.POLICY_SAYS("it tells what was written, so that a share is taken of it once")
    draft.record_change(f"annotations[{ANNOTATION}]", before, text, reason, policy)
    draft.metadata = with_written_requests(draft.metadata, text)


def _unasked(subject: PodContext, after: QoS, changes: list[FieldChange]) -> Reason | None:
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


def find_newly_unmet_quota(draft: PodChanges, spec: PodSpec) -> str | None:
    """The quota that would refuse the pod with this spec and would not have as it came.

    A change may bring a pod under a quota: BestEffort no more, or of another PriorityClass.
    """
    quotas = draft.subject.facts.quotas.get(draft.subject.namespace, ())
    found = unmet_quota(quotas, change(draft.subject.pod, spec=spec)) if quotas else None
    return found if found is not None and unmet_quota(quotas, draft.subject.pod) is None else None


def _within_pod_bounds(
    draft: PodChanges, settled: list[ClampedResource], changes: list[FieldChange]
) -> tuple[list[FieldChange], PodSpec]:
    """The changes but those of a resource whose sum over all containers a LimitRange for pods would refuse now, and the
    spec with them."""
    ranges = draft.subject.facts.limit_ranges.get(draft.subject.namespace, ())
    spec = _written(draft.spec, settled, changes) if changes else draft.spec
    others = {one.resource for one in settled if one.resource not in POD_LEVEL}
    for resource in (*POD_LEVEL, *sorted(others)) if changes and ranges else ():
        by = breaks_pod_bounds(ranges, spec, resource)
        if by is None or breaks_pod_bounds(ranges, draft.spec, resource) is not None:
            continue
        reason = reasons.LIMIT_RANGE_REFUSES(f"LimitRange {by} bounds the {resource} of the whole pod")
        for found in (c for c in changes if c.field.endswith(f".{resource}")):
            draft.leave_unchanged(found.field, reason, loud=True, policy=found.policy)
        changes = [c for c in changes if not c.field.endswith(f".{resource}")]
        spec = _written(draft.spec, settled, changes)
    return changes, spec


def _changes(draft: PodChanges, settled: Iterable[ClampedResource]) -> list[FieldChange]:
    found: list[FieldChange] = []
    for one in settled:
        sides = _sides(one)
        if draft.decided_before and _is_foreign(draft, sides):
            continue
        for name, before, after, want in sides:
            reason, policy = want.reason, want.policy
            found.append(
                FieldChange(field=name, before=_text(before), after=_text(after), policy=policy, reason=reason)
            )
    return found


_Side = tuple[str, Written | None, Written | None, ResourceRequest]
"""Field, how it stands, how it will, and who wants that."""


def _sides(one: ClampedResource) -> list[_Side]:
    """Of request and limit those that become another."""
    resources, place = one.place.container.resources, one.place.name
    request, limit = requests_of(resources).get(one.resource), limits_of(resources).get(one.resource)
    found: list[_Side] = []
    asks = one.request_want or one.limit_want
    if asks is not None and not _same(request, one.request):
        found.append((f"{place}.requests.{one.resource}", request, one.request, asks))
    if one.limit_want is not None and not _same(limit, one.limit):
        found.append((f"{place}.limits.{one.resource}", limit, one.limit, one.limit_want))
    return found


def _is_foreign(draft: PodChanges, sides: Iterable[_Side]) -> bool:
    """Did something else change request or limit after us? Then both are left: one follows from the other.

    A limit that we removed, and that somebody put back, is theirs, too: they would put it back again.
    """
    for name, before, after, want in sides:
        if after is None and before is not None and draft.was_removed_before(name):
            sentence = f"an earlier call removed it, it is now {before}"
        elif after is not None and draft.is_foreign(name, _text(before)):
            sentence = f"an earlier call made it {draft.applied_before[name]}, it is now {before}"
        else:
            continue
        draft.leave_unchanged(name, reasons.CHANGED_AFTER_US(sentence), loud=True, policy=want.policy)
        return True
    return False


def _same(before: Written | None, after: Written | None) -> bool:
    if before is None or after is None:
        return before is after
    return quantity.same(before, after)


def _text(written: Written | None) -> str | None:
    return None if written is None else str(written)


def _written(spec: PodSpec, settled: Iterable[ClampedResource], changes: list[FieldChange]) -> PodSpec:
    names = {change.field for change in changes}
    sides: dict[ContainerRef, dict[str, ResourceList]] = {}
    parts = {"containers": list(spec.containers), "initContainers": list(spec.init_containers)}
    for one in settled:
        place = one.place
        for side, after in (("requests", one.request), ("limits", one.limit)):
            if f"{place.name}.{side}.{one.resource}" in names:
                written = sides.setdefault(place, {})
                if side not in written:
                    resources = parts[place.part][place.index].resources
                    written[side] = dict(requests_of(resources) if side == "requests" else limits_of(resources))
                if after is None:
                    written[side].pop(one.resource, None)
                else:
                    written[side][one.resource] = after
    for place, written in sides.items():
        parts[place.part][place.index] = _with(parts[place.part][place.index], written)
    return change(spec, containers=tuple(parts["containers"]), init_containers=tuple(parts["initContainers"]))


def _with(container: Container, written: dict[str, ResourceList]) -> Container:
    """With these requests, limits or both. An emptied mapping goes whole, so that removing the last limit leaves the
    same pod as never having had one."""
    resources = get(container.resources, Resources())
    return change(container, resources=change(resources, **{side: found or UNSET for side, found in written.items()}))
