"""Reads and writes the annotation `trimtab.dev/changed`, which records which policies changed which fields of a pod.
Also distinguishes values that LimitRanger filled in from those of the author.

The annotation holds compact JSON: `by` maps each policy to the fields that it changed and their values, `pod` is a
fingerprint of the pod's identity, `at` is the time in seconds since 1970, and `sig` is a signature of all of it.
Everyone who may create a pod may also write the annotation. So a later call of the webhook relies on it only if a
replica of Trimtab has signed it within the last 30 seconds (`read_trusted_annotation`). For people and reports, it is
read without that check (`read_claimed_annotation`).

LimitRanger fills in the namespace's defaults before webhooks are called, and records in an annotation which values it
has filled in.
"""

import hashlib
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

import msgspec

from trimtab.cluster.api.meta import Metadata, change, value_or
from trimtab.cluster.api.pod import Pod
from trimtab.policy.pod_changes import FieldChange
from trimtab.policy.pod_context import UNSIGNED, ContainerRef, MarkerSigner, PodContext

ANNOTATION = "trimtab.dev/changed"
REMOVED = "removed"


@dataclass(frozen=True, slots=True)
class ChangedAnnotation:
    """The changes that earlier calls of Trimtab made to a pod."""

    by: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    @property
    def value_by_field(self) -> dict[str, str]:
        """Field → the value that Trimtab gave it. Fields that Trimtab removed are left out."""
        return {name: value for fields in self.by.values() for name, value in fields.items() if value != REMOVED}

    @property
    def decider_by_field(self) -> dict[str, tuple[str, str | None]]:
        """Field → (policy that decided it, its value), where the value is None if the policy removed the field."""
        return {
            name: (policy, None if value == REMOVED else value)
            for policy, fields in self.by.items()
            for name, value in fields.items()
        }

    def for_policies(self, policies: Collection[str]) -> "ChangedAnnotation":
        """Returns the part of the annotation that belongs to these policies or to no policy."""
        return ChangedAnnotation({name: fields for name, fields in self.by.items() if not name or name in policies})


class _AnnotationContent(msgspec.Struct, omit_defaults=True):
    pod: str
    by: Mapping[str, Mapping[str, str]]
    at: int = 0
    sig: str = ""


class _RenderedContent(msgspec.Struct, omit_defaults=True):
    """The same, with the changes as they are encoded in it."""

    pod: str
    by: msgspec.Raw
    at: int = 0
    sig: str = ""


def read_trusted_annotation(pod: Pod, namespace: str, signer: MarkerSigner) -> ChangedAnnotation | None:
    """Returns the annotation if a replica of Trimtab has written and signed it for this very pod within the last 30
    seconds, otherwise None."""
    content = _decode_annotation(pod) if signer.keys is not None else None
    if content is None or not signer.is_recent(content.at):
        return None
    annotation = ChangedAnnotation(content.by)
    parts = _signed_parts(pod, _pod_identity(pod, namespace), encode_changes(annotation))
    return annotation if signer.verify_signature(content.sig, content.at, *parts) else None


def read_claimed_annotation(pod: Pod, namespace: str) -> ChangedAnnotation | None:
    """Returns the content of the annotation without checking who wrote it. None if it is absent, damaged, or was
    written for another pod."""
    content = _decode_annotation(pod)
    is_about_pod = content is not None and content.pod == pod_fingerprint(pod, namespace)
    return ChangedAnnotation(content.by) if content is not None and is_about_pod else None


def annotation_text(pod: Pod) -> str | None:
    """Returns the text of the annotation, or None if the pod has none."""
    return value_or(pod.metadata.annotations, {}).get(ANNOTATION)


def _decode_annotation(pod: Pod) -> _AnnotationContent | None:
    text = annotation_text(pod)
    if text is None:
        return None
    try:
        return msgspec.json.decode(text, type=_AnnotationContent)
    except (msgspec.DecodeError, RecursionError):
        return None


def write_annotation(
    pod: Pod,
    namespace: str,
    earlier_annotation: ChangedAnnotation | None,
    changes: Iterable[FieldChange],
    signer: MarkerSigner = UNSIGNED,
) -> tuple[Pod, ChangedAnnotation]:
    """Returns the pod with an annotation that holds these changes and the earlier ones, signed if there is a key; and
    the content of that annotation."""
    last = {field_change.field: field_change for field_change in changes}
    earlier = earlier_annotation.by if earlier_annotation else {}
    # A field has one decider: a new change replaces the entry of an earlier call, also of another policy.
    by = {policy: {name: v for name, v in fields.items() if name not in last} for policy, fields in earlier.items()}
    for field_change in last.values():
        value = REMOVED if field_change.after is None else str(field_change.after)
        by.setdefault(field_change.policy, {})[field_change.field] = value
    annotation = ChangedAnnotation({policy: fields for policy, fields in by.items() if fields})
    text = render_annotation(pod, namespace, annotation, signer)
    return _with_annotations(pod, {**value_or(pod.metadata.annotations, {}), ANNOTATION: text}), annotation


def render_annotation(pod: Pod, namespace: str, annotation: ChangedAnnotation, signer: MarkerSigner) -> str:
    """Returns the text of the annotation for this pod, which is signed if there are signing keys."""
    return render_changes(pod, namespace, encode_changes(annotation), signer)


def encode_changes(annotation: ChangedAnnotation) -> bytes:
    """Returns the changes as JSON. Its keys are sorted, so that every replica signs the same bytes."""
    return msgspec.json.encode(annotation.by, order="sorted")


def render_changes(pod: Pod, namespace: str, changes: bytes, signer: MarkerSigner) -> str:
    """Returns the text of the annotation for this pod, from the changes as `encode_changes` returns them."""
    identity = _pod_identity(pod, namespace)
    timestamp, signature = 0, ""
    if signer.keys is not None:
        timestamp = signer.timestamp_seconds
        signature = signer.sign_parts(timestamp, *_signed_parts(pod, identity, changes))
    content = _RenderedContent(pod=_fingerprint(identity), by=msgspec.Raw(changes), at=timestamp, sig=signature)
    return msgspec.json.encode(content, order="sorted").decode()


def remove_annotation(pod: Pod) -> Pod:
    """Returns the pod without the annotation."""
    annotations = {k: v for k, v in value_or(pod.metadata.annotations, {}).items() if k != ANNOTATION}
    return _with_annotations(pod, annotations)


def _with_annotations(pod: Pod, annotations: dict[str, str]) -> Pod:
    return change(pod, metadata=change(pod.metadata, annotations=annotations))


def pod_fingerprint(pod: Pod, namespace: str) -> str:
    """Returns a hash of the pod's identity: namespace, names and controller.

    It covers nothing that another webhook may change between two calls of Trimtab, such as sidecars or images.
    """
    return _fingerprint(_pod_identity(pod, namespace))


def _fingerprint(identity: list[str]) -> str:
    # Six bytes are enough: the fingerprint only finds annotations that were copied; the signature covers the identity
    # itself.
    return hashlib.blake2b("\n".join(identity).encode(), digest_size=6).hexdigest()


def _pod_identity(pod: Pod, namespace: str) -> list[str]:
    metadata: Metadata = pod.metadata
    owner = metadata.controller_owner
    return [namespace, metadata.name, metadata.generate_name, f"{owner.kind_name}/{owner.name}" if owner else ""]


def _signed_parts(pod: Pod, identity: list[str], changes: bytes) -> tuple[str, ...]:
    """Returns the parts that are signed: the pod's identity, the UID of its controller, and all recorded changes."""
    owner = pod.metadata.controller_owner
    return (*identity, owner.uid if owner else "", changes.decode(errors="surrogatepass"))


LIMIT_RANGER = "kubernetes.io/limit-ranger"
_DEFAULTED = re.compile(r"(.+) (request|limit) for (init )?container (\S+)")


def is_defaulted(
    pod_context: PodContext, container: ContainerRef, side: Literal["request", "limit"], resource: str
) -> bool:
    """Returns whether LimitRanger has filled in this value, according to its annotation: "LimitRanger plugin set: cpu,
    memory request for container app; cpu limit for init container prepare"
    (plugin/pkg/admission/limitranger/admission.go)."""
    # Most namespaces have no LimitRange.
    if LIMIT_RANGER not in pod_context.annotations:
        return False
    return (container.part, container.container.name, side, resource) in pod_context.compute_once(_defaulted_values)


def _defaulted_values(pod_context: PodContext) -> frozenset[tuple[str, str, str, str]]:
    sentences = pod_context.annotations.get(LIMIT_RANGER, "").partition(": ")[2]
    matches = (_DEFAULTED.fullmatch(part.strip()) for part in sentences.split(";")) if sentences else ()
    return frozenset(
        ("initContainers" if match[3] else "containers", match[4], match[2], resource.strip())
        for match in matches
        if match is not None
        for resource in match[1].split(",")
    )
