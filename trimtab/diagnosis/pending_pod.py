"""What Trimtab has to do with a pod that is Pending: nothing, its placement or requests, or the eviction before it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from trimtab.cluster.api.meta import value_or
from trimtab.cluster.api.pod import Pod
from trimtab.cluster.owner import OwnerKey
from trimtab.cluster.timestamps import format_timestamp, parse_timestamp
from trimtab.compaction.drain.pool_state import HistoryEntry, PoolState
from trimtab.policy.compiled_annotation import COMPILED_PREFIX

PLACEMENT_FIELDS = ("nodeAffinity", "nodeSelector", "tolerations", "topologySpreadConstraints", "runtimeClassName")
SUCCESSOR_SECONDS = 300
"""The seconds after an eviction in which a new pod of the same owner may be the replacement of the evicted pod."""


def explain_pending(
    pod: Pod, changed_fields: Sequence[str] | None, owners: Sequence[OwnerKey], states: Iterable[PoolState]
) -> str:
    """Returns a text that says whether Trimtab can be a reason why the pod waits; empty if the pod is not Pending.

    `changed_fields`: the fields that the webhook changed on admission; None without a readable annotation.
    """
    if pod.status.phase != "Pending":
        return ""
    changes = list(_describe_changes(pod, changed_fields)) or ["Trimtab did not change this pod."]
    return " ".join(["The pod is Pending.", *changes, *_describe_eviction(pod, owners, list(states))])


def _describe_changes(pod: Pod, fields: Sequence[str] | None) -> Iterable[str]:
    placement = [field for field in fields or () if field.startswith(PLACEMENT_FIELDS)]
    requests = [field for field in fields or () if ".requests." in field or field.startswith(("overhead", "requests."))]
    names = [name for name, of_it in (("placement", placement), ("requests", requests)) if of_it]
    if names:
        yield (
            f"Trimtab changed the pod's {' and its '.join(names)} on admission: {', '.join([*placement, *requests])}."
        )
    elif fields:
        yield "Trimtab changed other fields of the pod on admission, but neither its placement nor its requests."
    compiled = [
        name.removeprefix(COMPILED_PREFIX)
        for name in value_or(pod.metadata.annotations, {})
        if name.startswith(COMPILED_PREFIX)
    ]
    if compiled:
        yield f"The API server changed the pod according to compiled policies of Trimtab: {', '.join(compiled)}."


def _describe_eviction(pod: Pod, owners: Sequence[OwnerKey], states: Sequence[PoolState]) -> Iterable[str]:
    namespace, created = pod.metadata.namespace, parse_timestamp(pod.metadata.creation_timestamp)
    is_known = any(f"{namespace}/{pod.metadata.name}" in state.moved for state in states)
    evictions = sorted(
        (
            record
            for state in states
            for record in state.ring
            if _is_eviction_before(record, namespace, owners, created)
        ),
        key=lambda record: record.at,
    )
    last = f": {evictions[-1].pod}, at {format_timestamp(evictions[-1].at)}" if evictions else ""
    if is_known:
        yield f"The pod is the successor of a pod that Trimtab evicted{last}."
    elif evictions and created is not None and created - evictions[-1].at <= SUCCESSOR_SECONDS:
        yield f"The pod may be the successor of a pod that Trimtab evicted{last}."


def _is_eviction_before(record: HistoryEntry, namespace: str, owners: Sequence[OwnerKey], created: int | None) -> bool:
    """Returns whether the record is an eviction of another pod of these owners, before the pod was created.

    Evictions that the compactor only rehearsed do not count."""
    return (
        record.what == "evicted"
        and not record.rehearsed
        and record.pod.startswith(f"{namespace}/")
        and record.owner in set(map(str, owners))
        and (created is None or record.at <= created)
    )
