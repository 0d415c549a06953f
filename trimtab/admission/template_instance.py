"""Reads from a pod what is compared to find a decision on a similar pod (see `template_cache`)."""

from typing import Any, NamedTuple

import msgspec

from trimtab.cluster.api.meta import UNSET, Labels, OwnerReference, UnsetType, change, value_or
from trimtab.cluster.api.pod import Pod, PodSpec
from trimtab.cluster.bounded_cache import cache_short_strings
from trimtab.cluster.operating_system import mentions_windows_options
from trimtab.cluster.owner import OwnerKey
from trimtab.policy.cluster_facts import ClusterFacts
from trimtab.policy.field_owners import names_apply
from trimtab.policy.match import reads_image_tags
from trimtab.policy.podpolicy import Policies

_MAX_BYTES = 64 * 1024
"""The size in bytes from which the decision on a pod is never reused. The annotations of such a pod may come near the
API server's limit for the size of all annotations."""
_OWN_PREFIX = "trimtab.dev/"

TemplateKey = tuple[Any, ...]


class EncodedPod(NamedTuple):
    """A pod as JSON, in two parts."""

    likeness: bytes
    """Everything that similar pods have in common, other than labels and annotations."""
    own: bytes
    """What they may differ in."""
    masks_tags: bool
    """Whether the images of similar pods may have other tags and digests."""

    @property
    def size(self) -> int:
        """The size of both parts in bytes."""
        return len(self.likeness) + len(self.own)


class TemplateInstance(msgspec.Struct, frozen=True, eq=False):
    """A pod under review, with the values that are compared to find a decision for a similar pod."""

    pod: Pod
    namespace: str
    key: TemplateKey
    owners: tuple[OwnerKey, ...]
    masks_tags: bool
    """Whether the images of similar pods may have other tags and digests."""


def encode_parts(pod: Pod, policies: Policies) -> EncodedPod:
    """Returns the pod as JSON, divided into what similar pods have in common and what not."""
    metadata = pod.metadata
    controller, references = metadata.controller_owner, metadata.owner_references
    masks_tags = not policies.compute_once(reads_image_tags)
    remainder = change(
        pod,
        metadata=change(
            metadata,
            name="",
            generate_name="",
            labels=UNSET,
            annotations=UNSET,
            owner_references=tuple([_nameless(one) if one is controller else one for one in references]),
        ),
        spec=_without_tags(pod.spec) if masks_tags else pod.spec,
    )
    own = metadata.name, metadata.generate_name, metadata.labels, metadata.annotations, references
    return EncodedPod(
        msgspec.json.encode(remainder), msgspec.json.encode([x for x in own if x is not UNSET]), masks_tags
    )


def read_instance(
    pod: Pod, raw: bytes, encoded: EncodedPod, token_name: bytes, namespace: str, facts: ClusterFacts
) -> TemplateInstance | None:
    """Returns the pod with the values that are compared to find a decision for a similar pod, or None if no decision
    may be reused for it.

    raw: the pod's own bytes. token_name: the name of its token volume in quotes, as in these bytes; empty if it has
    none.
    """
    metadata = pod.metadata
    if len(raw) > _MAX_BYTES or names_apply(raw):
        return None
    # The key does not contain the security contexts of containers.
    if mentions_windows_options(raw):
        return None
    for name in value_or(metadata.annotations, ()):
        if name.startswith(_OWN_PREFIX):
            return None
    likeness = encoded.likeness.replace(token_name, _PLACEHOLDER) if token_name else encoded.likeness
    owners = facts.owner_chain(pod, namespace)
    key = (
        namespace,
        likeness,
        # Of owners, only the name of the nearest one may differ.
        len(owners),
        owners[1:],
        bool(metadata.name),
        bool(metadata.generate_name),
        _keys(metadata.labels),
        _keys(metadata.annotations),
    )
    return TemplateInstance(pod, namespace, key, owners, encoded.masks_tags)


def _without_tags(spec: PodSpec) -> PodSpec:
    return change(
        spec,
        containers=tuple([change(container, image=_name_of(container.image)) for container in spec.containers]),
        init_containers=tuple(
            [change(container, image=_name_of(container.image)) for container in spec.init_containers]
        ),
    )


@cache_short_strings(max_length=256, max_entries=4096)
def _name_of(image: str) -> str:
    """Returns the image without its tag and digest, but with the character before them. An image with a slash in its
    digest is returned as it is (distribution/reference: neither a tag nor a digest contains one)."""
    base, at, digest = image.partition("@")
    # The API server checks no images, and patterns would take what is before such a slash for a registry.
    if "/" in digest:
        return image
    path, slash, last = base.rpartition("/")
    name, colon, _ = last.partition(":")
    return f"{path}{slash}{name}{colon}{at}"


_PLACEHOLDER = b'"\xff"'
"""A name that is not valid UTF-8, so that no pod contains it."""


def _nameless(reference: OwnerReference) -> OwnerReference:
    return change(reference, name="", uid="")


def _keys(values: Labels | UnsetType) -> tuple[str, ...] | None:
    return None if values is UNSET else tuple(values)
