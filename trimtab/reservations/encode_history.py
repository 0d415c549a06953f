"""Converts an `OverheadHistory` to text and back, without loss, so that it survives a restart.

The text is JSON, packed with gzip and base64: a week of one pool takes some tens of kilobytes in a ConfigMap.
"""

from __future__ import annotations

import base64
import gzip

import msgspec

from trimtab.cluster.bounded_decode import BytesRefused, decode_json, unpack
from trimtab.cluster.reason import Unreadable
from trimtab.reservations.overhead_history import OverheadHistory, SampleGroup

_VERSION = 1


class _Group(msgspec.Struct, frozen=True, array_like=True):
    day: int
    resource: str
    pod_group: int
    count: int
    pods: int
    maximum: float
    kept: tuple[tuple[int, float], ...]


class _History(msgspec.Struct, frozen=True):
    version: int
    first: int | None
    last: int | None
    moments: int
    complete: int
    nodes: dict[str, int]
    max_pods_by_day: dict[int, int]
    groups: tuple[_Group, ...]


def encode_history(history: OverheadHistory) -> str:
    """Returns the history as text. Equal histories give equal texts."""
    groups = tuple(
        _Group(
            day,
            resource,
            pod_group,
            group.count,
            group.pods,
            round(group.maximum, 1),
            tuple((sample_hash, round(amount, 1)) for sample_hash, amount in group.kept),
        )
        for (day, resource, pod_group), group in sorted(history.groups.items())
    )
    content = _History(
        version=_VERSION,
        first=history.first,
        last=history.last,
        moments=history.moments,
        complete=history.complete,
        nodes=dict(sorted(history.nodes.items())),
        max_pods_by_day=dict(sorted(history.max_pods_by_day.items())),
        groups=groups,
    )
    # Without a time in the header, equal histories have equal bytes.
    return base64.b64encode(gzip.compress(msgspec.json.encode(content), 6, mtime=0)).decode()


def decode_history(where: str, text: str, max_days: int) -> OverheadHistory | Unreadable:
    """Returns the history in a text; Unreadable if the text is damaged, too large or of another version."""
    try:
        content = decode_json(unpack(base64.b64decode(text, validate=True)), _History)
    except BytesRefused as error:
        return Unreadable(where, f"the history cannot be read: {error}")
    except (ValueError, RecursionError) as error:
        return Unreadable(where, f"the history is damaged: {error}")
    if content.version != _VERSION:
        return Unreadable(where, f"the history has version {content.version}, but this release reads {_VERSION}")
    return OverheadHistory(
        max_days=max_days,
        nodes=content.nodes,
        moments=content.moments,
        complete=content.complete,
        first=content.first,
        last=content.last,
        max_pods_by_day=content.max_pods_by_day,
        groups={
            (group.day, group.resource, group.pod_group): SampleGroup(
                count=group.count, pods=group.pods, maximum=group.maximum, kept=list(group.kept)
            )
            for group in content.groups
        },
    )
