"""Which policies changed what, written on the pod itself.

The annotation `trimtab.dev/changed` holds compact JSON: `by` maps each policy to the fields it changed with their
values, `pod` is a fingerprint of whose pod this is, `at` the time in seconds since 1970, and `sig` a signature of it
all. Whoever may create a pod may write the annotation, too: a later call decides by it only where the signature is ours
and seconds old (`read`). For people and reports it tells what was done (`claimed`).

Whose is this value, and who reads it? What stands in a pod was not all written by its author.

LimitRanger fills in the namespace's defaults before webhooks are called, and says so in an annotation. A container may
read its own limits: as an environment variable, or from a file of the downward API.
"""

import hashlib
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

import msgspec

from trimtab.cluster.api.meta import Metadata, change, get
from trimtab.cluster.api.pod import Pod, ResourceField, downward_items
from trimtab.policy.pod_changes import FieldChange
from trimtab.policy.pod_context import UNSIGNED, ContainerRef, MarkerSigner, PodContext

ANNOTATION = "trimtab.dev/changed"
REMOVED = "removed"


@dataclass(frozen=True, slots=True)
class ChangedAnnotation:
    """What earlier calls of ours did to this very pod."""

    by: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    @property
    def value_by_field(self) -> dict[str, str]:
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

    def of(self, policies: Collection[str]) -> "ChangedAnnotation":
        """Only what it says of these policies, and of none."""
        return ChangedAnnotation({name: fields for name, fields in self.by.items() if not name or name in policies})


class _Written(msgspec.Struct, omit_defaults=True):
    pod: str
    by: dict[str, dict[str, str]]
    at: int = 0
    sig: str = ""


def read(pod: Pod, namespace: str, signer: MarkerSigner) -> ChangedAnnotation | None:
    """The marker that a call of ours wrote on this very pod seconds ago; None for any other, and for none."""
    written = _decoded(pod) if signer.keys is not None else None
    if written is None or not signer.is_recent(written.at):
        return None
    if not signer.verify_signature(written.sig, written.at, *_parts(pod, namespace, written.by)):
        return None
    return ChangedAnnotation(written.by)


def claimed(pod: Pod, namespace: str) -> ChangedAnnotation | None:
    """What the annotation says, whoever wrote it; None where it is damaged, not there, or speaks of another pod."""
    written = _decoded(pod)
    return ChangedAnnotation(written.by) if written is not None and written.pod == fingerprint(pod, namespace) else None


def text_of(pod: Pod) -> str | None:
    """The annotation as it stands."""
    return get(pod.metadata.annotations, {}).get(ANNOTATION)


def _decoded(pod: Pod) -> _Written | None:
    text = text_of(pod)
    if text is None:
        return None
    try:
        return msgspec.json.decode(text, type=_Written)
    except (msgspec.DecodeError, RecursionError):
        return None


def write(
    pod: Pod,
    namespace: str,
    before: ChangedAnnotation | None,
    changes: Iterable[FieldChange],
    signer: MarkerSigner = UNSIGNED,
) -> tuple[Pod, ChangedAnnotation]:
    """The pod with a marker that tells of these changes beside the earlier ones, signed where there are keys; and that
    marker."""
    last = {found.field: found for found in changes}
    earlier = before.by if before else {}
    by = {policy: {name: v for name, v in fields.items() if name not in last} for policy, fields in earlier.items()}
    for found in last.values():
        by.setdefault(found.policy, {})[found.field] = REMOVED if found.after is None else str(found.after)
    told = {policy: fields for policy, fields in by.items() if fields}
    at = signer.timestamp_seconds if signer.keys is not None else 0
    signature = signer.sign_parts(at, *_parts(pod, namespace, told)) if signer.keys is not None else ""
    written = _Written(pod=fingerprint(pod, namespace), by=told, at=at, sig=signature)
    text = msgspec.json.encode(written, order="sorted").decode()
    return _with(pod, {**get(pod.metadata.annotations, {}), ANNOTATION: text}), ChangedAnnotation(told)


def remove_annotation(pod: Pod) -> Pod:
    """The pod without any marker."""
    kept = {k: v for k, v in get(pod.metadata.annotations, {}).items() if k != ANNOTATION}
    return _with(pod, kept)


def _with(pod: Pod, annotations: dict[str, str]) -> Pod:
    return change(pod, metadata=change(pod.metadata, annotations=annotations))


def fingerprint(pod: Pod, namespace: str) -> str:
    """Whose pod this is: namespace, names, controller.

    Nothing that another webhook may change between our two calls (it adds a sidecar, it rewrites images).
    """
    return hashlib.blake2b("\n".join(_identity(pod, namespace)).encode(), digest_size=6).hexdigest()


def _identity(pod: Pod, namespace: str) -> list[str]:
    metadata: Metadata = pod.metadata
    owner = metadata.controller
    return [namespace, metadata.name, metadata.generate_name, f"{owner.kind}/{owner.name}" if owner else ""]


def _parts(pod: Pod, namespace: str, by: Mapping[str, Mapping[str, str]]) -> tuple[str, ...]:
    """What is signed: whose pod this is, the UID of its controller included, and what was decided."""
    owner = pod.metadata.controller
    said = msgspec.json.encode(by, order="sorted").decode(errors="surrogatepass")
    return (*_identity(pod, namespace), owner.uid if owner else "", said)


LIMIT_RANGER = "kubernetes.io/limit-ranger"
_SET = re.compile(r"(.+) (request|limit) for (init )?container (\S+)")


def is_defaulted(subject: PodContext, place: ContainerRef, side: Literal["request", "limit"], resource: str) -> bool:
    """Did LimitRanger put this value in? By its annotation: "LimitRanger plugin set: cpu, memory request for container
    app; cpu limit for init container prepare" (plugin/pkg/admission/limitranger/admission.go)."""
    if LIMIT_RANGER not in subject.annotations:
        return False
    return (place.part, place.container.name, side, resource) in subject.once(_defaulted)


def _defaulted(subject: PodContext) -> frozenset[tuple[str, str, str, str]]:
    said = subject.annotations.get(LIMIT_RANGER, "").partition(": ")[2]
    found = (_SET.fullmatch(part.strip()) for part in said.split(";")) if said else ()
    return frozenset(
        ("initContainers" if match[3] else "containers", match[4], match[2], resource.strip())
        for match in found
        if match is not None
        for resource in match[1].split(",")
    )


def is_limit_read(subject: PodContext, place: ContainerRef, resource: str) -> bool:
    """Does any container read this limit?"""
    fields = subject.once(_fields_read)
    return bool(fields) and (place.container.name, f"limits.{resource}") in fields


def _fields_read(subject: PodContext) -> frozenset[tuple[str, str]]:
    """(container, field) of all that is read; containers of a pod have names of their own."""
    return frozenset((field.container_name, field.resource) for field in _fields(subject))


def _fields(subject: PodContext) -> Iterator[ResourceField]:
    for place in subject.places:
        for source in [env.value_from for env in place.container.env if env.value_from is not None]:
            field = source.resource_field_ref
            if field is not None:
                name = field.container_name or place.container.name
                yield ResourceField(container_name=name, resource=field.resource)
    for volume in subject.pod.spec.volumes:
        for item in downward_items(volume):
            if item.resource_field_ref is not None:
                yield item.resource_field_ref
