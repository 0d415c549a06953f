"""Which policies changed what, written on the pod itself.

The annotation `trimtab.dev/changed` holds compact JSON: `by` maps each policy to the fields it changed with their
values, `pod` is a fingerprint of whose pod this is. A marker that somebody copied with a manifest has another
fingerprint and is replaced; one from an earlier call for the same pod tells the later call what we did.
"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import msgspec

from trimtab.cluster.api.meta import Metadata, change, get
from trimtab.cluster.api.pod import Pod
from trimtab.policy.draft import Change

ANNOTATION = "trimtab.dev/changed"
REMOVED = "removed"


@dataclass(frozen=True, slots=True)
class Marker:
    """What earlier calls of ours did to this very pod."""

    by: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    @property
    def values(self) -> dict[str, str]:
        """Field → the value we gave it; fields we removed are not in it."""
        return {name: value for fields in self.by.values() for name, value in fields.items() if value != REMOVED}

    @property
    def deciders(self) -> dict[str, tuple[str, str | None]]:
        """Field → the policy that decided it, and its value; None where it removed the field."""
        return {
            name: (policy, None if value == REMOVED else value)
            for policy, fields in self.by.items()
            for name, value in fields.items()
        }


class _Written(msgspec.Struct):
    pod: str
    by: dict[str, dict[str, str]]


def read(pod: Pod, namespace: str) -> Marker | None:
    """The marker of this very pod; None where there is none, or it is another pod's or damaged."""
    text = get(pod.metadata.annotations, {}).get(ANNOTATION)
    if text is None:
        return None
    try:
        written = msgspec.json.decode(text, type=_Written)
    except (msgspec.DecodeError, RecursionError):
        return None
    return Marker(written.by) if written.pod == fingerprint(pod, namespace) else None


def write(pod: Pod, namespace: str, before: Marker | None, changes: Iterable[Change]) -> Pod:
    """The pod with a marker that tells of these changes beside the earlier ones."""
    by = {policy: dict(fields) for policy, fields in before.by.items()} if before else {}
    for found in changes:
        for fields in by.values():
            fields.pop(found.field, None)
        by.setdefault(found.policy, {})[found.field] = REMOVED if found.after is None else str(found.after)
    told = {policy: fields for policy, fields in by.items() if fields}
    text = msgspec.json.encode(_Written(pod=fingerprint(pod, namespace), by=told), order="sorted").decode()
    return _with(pod, {**get(pod.metadata.annotations, {}), ANNOTATION: text})


def without(pod: Pod) -> Pod:
    """The pod without any marker."""
    kept = {k: v for k, v in get(pod.metadata.annotations, {}).items() if k != ANNOTATION}
    return _with(pod, kept)


def _with(pod: Pod, annotations: dict[str, str]) -> Pod:
    return change(pod, metadata=change(pod.metadata, annotations=annotations))


def fingerprint(pod: Pod, namespace: str) -> str:
    """Whose pod this is: namespace, names, controller.

    Nothing that another webhook may change between our two calls (it adds a sidecar, it rewrites images).
    """
    metadata: Metadata = pod.metadata
    owner = metadata.controller
    parts = [namespace, metadata.name, metadata.generate_name, f"{owner.kind}/{owner.name}" if owner else ""]
    return hashlib.blake2b("\n".join(parts).encode(), digest_size=6).hexdigest()
