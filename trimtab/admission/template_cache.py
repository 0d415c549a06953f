"""Reuses a decision for pods with the same spec whose metadata differ only in values that no policy read.

The next rollout of a Deployment, the next Job of a CronJob and the next replica of a StatefulSet send pods that were
never sent before: with the name of another owner, other hashes, other values of labels and annotations; often with
other environment variables and arguments, which Trimtab does not even decode. The decision is the same. It is reused if
all of these conditions hold:

    the pod      everything that Trimtab decodes is equal, except names, the nearest owner's name and UID, the name of
                 the token volume, values of labels and annotations, and, if no policy distinguishes images by them,
                 their tags and digests; the pod has none of Trimtab's own annotations, and no security context
                 with options for Windows
    metadata     each value of a label or annotation that was read for the decision is equal (`policy.decision_reads`)
    signs        if the decision read what environments and command lines show, they show the same
    owners       the chain of owners is equal, except the name of the nearest owner if that has an owner itself; each
                 test that a policy made of that name has the same result
    reasons      they contain neither a name nor an image that may differ
    facts        each fact that was read is the same, also if it was read by the owner's name
    quotas       no quota was read: whether its usage leaves room depends on the owner
    policies, settings     they are the same; when they change, all decisions are dropped

Only the annotation `trimtab.dev/changed` identifies the pod; it is written and signed for each pod. The patch is
applied to each pod before it is sent, as every patch is.
"""

import base64
from collections.abc import Hashable
from typing import Any

import msgspec

from trimtab.admission.admission_result import AdmissionOutcome, AdmissionRecord
from trimtab.admission.apiserver.validate_pod import metadata_errors
from trimtab.admission.json_patch import apply_patch_in_place
from trimtab.cluster.api.meta import UNSET, Labels, Metadata, OwnerReference, UnsetType, change, value_or
from trimtab.cluster.api.pod import Container, Pod, PodSpec
from trimtab.cluster.operating_system import mentions_windows_options
from trimtab.cluster.owner import CONTROLLER_BY_HASH_LABEL, OwnerKey, former_stored
from trimtab.cluster.resources import all_containers
from trimtab.policy.actions.limits import read_container_signs
from trimtab.policy.changed_annotation import ANNOTATION, ChangedAnnotation, annotation_text, render_annotation
from trimtab.policy.cluster_facts import ClusterFacts
from trimtab.policy.decision_reads import ContainerSigns, FactDependencies, MetadataReads
from trimtab.policy.field_owners import names_apply
from trimtab.policy.match import reads_image_tags
from trimtab.policy.pod_context import MarkerSigner
from trimtab.policy.podpolicy import Policies

MAX_TEMPLATES = 256
MAX_TEMPLATE_BYTES = 16 * 1024 * 1024
"""The maximum size of all templates together in estimated bytes (`estimate_bytes`). It is enough for `MAX_TEMPLATES`
pods of ordinary size."""
_MAX_BYTES = 64 * 1024
"""The size in bytes from which the decision on a pod is never reused. The annotations of such a pod may come near the
API server's limit for the size of all annotations."""
_OWN_PREFIX = "trimtab.dev/"
_OUTCOMES = frozenset({AdmissionOutcome.CHANGED, AdmissionOutcome.UNCHANGED, AdmissionOutcome.SKIPPED})

TemplateKey = tuple[Any, ...]


class TemplateInstance(msgspec.Struct, frozen=True, eq=False):
    """A pod under review, with the values that are compared to find a decision for a similar pod."""

    pod: Pod
    namespace: str
    key: TemplateKey
    owners: tuple[OwnerKey, ...]
    masks_tags: bool
    """Whether the images of similar pods may have other tags and digests."""


class _Template(msgspec.Struct, eq=False, gc=False):
    """A decision, and everything that it depends on except its key."""

    size: int
    """The estimated size in bytes."""
    record: AdmissionRecord
    before: Pod
    owners: tuple[OwnerKey, ...]
    reads: FactDependencies
    labels: dict[str, str | None]
    """Label that was read → its value, or None if the pod did not have the label."""
    annotations: dict[str, str | None]
    owner_tests: tuple[tuple[Any, bool], ...]
    container_signs: frozenset[tuple[ContainerSigns, ...]]
    """What the environments and command lines show; empty if the decision did not read it."""
    patch: tuple[bytes, bytes]
    """The parts of the patch before and after the text of the annotation; empty if nothing is patched."""
    response: tuple[bytes, bytes]
    """The parts of the response before and after the patch."""


class _Candidate(msgspec.Struct, eq=False, gc=False):
    """A decision from which a template is built when the next pod with the same key arrives."""

    size: int
    """The estimated size in bytes, which is that of the template too."""
    instance: TemplateInstance
    record: AdmissionRecord
    metadata_reads: MetadataReads
    reads: FactDependencies
    signer: MarkerSigner


class TemplateCache:
    """The last decision for each template, up to a maximum number and size of templates. Only one thread may use it."""

    def __init__(self, max_templates: int = MAX_TEMPLATES) -> None:
        self._max_templates = max_templates
        self._templates: dict[TemplateKey, _Template | _Candidate] = {}
        self._estimated_bytes = 0

    def __len__(self) -> int:
        return len(self._templates)

    def clear(self) -> None:
        """Drops all decisions, because the policies or the settings have changed."""
        self._templates.clear()
        self._estimated_bytes = 0

    def reuse_decision(
        self, instance: TemplateInstance, raw: bytes, facts: ClusterFacts, reads: FactDependencies, signer: MarkerSigner
    ) -> AdmissionRecord | None:
        """Returns the record that a decision on this pod would have, or None if that is not certain.

        raw: the pod's own bytes.
        facts: the facts without a record of what is read from them. reads: the record of what was read to find the
        pod's owners; everything that the reused decision read is added to this record.
        """
        template = self._template_for(instance.key)
        if template is None or not _has_same_metadata(template, instance.pod.metadata):
            return None
        if not _has_like_owners(template, instance.owners):
            return None
        if template.container_signs and read_container_signs(instance.pod, raw) not in template.container_signs:
            return None
        answers = template.reads.read_again(facts, _renamed_keys(template.owners[0], instance))
        if answers is None:
            return None
        record = _record_for(template, instance, signer)
        if record is not None:
            reads.answers.update(answers)
        return record

    def store_decision(
        self,
        instance: TemplateInstance,
        record: AdmissionRecord,
        metadata_reads: MetadataReads,
        reads: FactDependencies,
        signer: MarkerSigner,
        size: int,
    ) -> None:
        """Stores the decision on a pod. It replaces an earlier decision with the same key.

        size: the result of `estimate_bytes`.
        """
        # The newest decision goes to the end: the first one is dropped when there is no more room.
        self._pop(instance.key)
        while self._templates and (
            len(self._templates) >= self._max_templates or self._estimated_bytes + size > MAX_TEMPLATE_BYTES
        ):
            self._pop(next(iter(self._templates)))
        self._put(instance.key, _Candidate(size, instance, record, metadata_reads, reads, signer))

    def _put(self, key: TemplateKey, entry: _Template | _Candidate) -> None:
        self._templates[key] = entry
        self._estimated_bytes += entry.size

    def _pop(self, key: TemplateKey) -> None:
        entry = self._templates.pop(key, None)
        self._estimated_bytes -= 0 if entry is None else entry.size

    def _template_for(self, key: TemplateKey) -> _Template | None:
        entry = self._templates.get(key)
        if not isinstance(entry, _Candidate):
            return entry
        # Removed first: if an exception is raised, the next pod with this key is decided by itself.
        self._pop(key)
        template = _build_template(entry)
        if template is not None:
            self._put(key, template)
        return template


_SMALL_POD_BYTES = 4096
_MAX_BYTES_PER_CHARACTER = 24
"""The greatest memory in bytes that one character of a pod's JSON takes when it is decoded: an empty object is a `dict`
of 64 bytes."""


def estimate_bytes(key_bytes: int, pod: Pod, record: AdmissionRecord) -> int:
    """Returns the approximate memory in bytes that a cached decision on a pod takes: its key, the decoded pod, and
    about four hundred for each change or reason.

    Users who may create pods may write ones whose decoded form takes many times as much as their JSON. So each
    character of a pod above the ordinary size counts as much as it can take at most.
    """
    decision = record.decision
    items = len(decision.changes) + len(decision.fields_kept) + len(decision.would) if decision else 0
    excess = max(0, len(msgspec.json.encode(pod)) - _SMALL_POD_BYTES)
    return key_bytes + 2 * len(record.response) + 400 * items + 8192 + _MAX_BYTES_PER_CHARACTER * excess


def read_instance(
    pod: Pod, raw: bytes, token_name: bytes, namespace: str, facts: ClusterFacts, policies: Policies
) -> TemplateInstance | None:
    """Returns the pod with the values that are compared to find a decision for a similar pod, or None if no decision
    may be reused for it.

    raw: the pod's own bytes. token_name: the name of its token volume in quotes, as in these bytes; empty if it has
    none.
    """
    metadata = pod.metadata
    controller = metadata.controller_owner
    if controller is None or len(raw) > _MAX_BYTES or names_apply(raw):
        return None
    # The key does not contain the security contexts of containers.
    if mentions_windows_options(raw):
        return None
    annotations = value_or(metadata.annotations, {})
    if any(key.startswith(_OWN_PREFIX) for key in annotations):
        return None
    owners = facts.owner_chain(pod, namespace)
    references = tuple(
        [_nameless(reference) if reference is controller else reference for reference in metadata.owner_references]
    )
    masks_tags = not policies.compute_once(reads_image_tags)
    remainder = change(
        pod,
        metadata=change(
            metadata, name="", generate_name="", labels=UNSET, annotations=UNSET, owner_references=references
        ),
        spec=_without_tags(pod.spec) if masks_tags else pod.spec,
    )
    encoded = msgspec.json.encode(remainder)
    if token_name:
        encoded = encoded.replace(token_name, _PLACEHOLDER)
    key = (
        namespace,
        encoded,
        bool(metadata.name),
        bool(metadata.generate_name),
        _keys(metadata.labels),
        _keys(metadata.annotations),
    )
    return TemplateInstance(pod, namespace, key, owners, masks_tags)


def _without_tags(spec: PodSpec) -> PodSpec:
    return change(
        spec,
        containers=tuple([change(container, image=_name_of(container.image)) for container in spec.containers]),
        init_containers=tuple(
            [change(container, image=_name_of(container.image)) for container in spec.init_containers]
        ),
    )


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


def _has_same_metadata(template: _Template, metadata: Metadata) -> bool:
    """Returns whether all labels and annotations that were read have the same values in both pods."""
    labels, annotations = value_or(metadata.labels, {}), value_or(metadata.annotations, {})
    return all(labels.get(key) == value for key, value in template.labels.items()) and all(
        annotations.get(key) == value for key, value in template.annotations.items()
    )


def _has_like_owners(template: _Template, owners: tuple[OwnerKey, ...]) -> bool:
    """Returns whether the owners are equal. The name of the nearest owner may differ, if every test of that name by a
    policy has the same result."""
    if owners == template.owners:
        return True
    # The only owner is the one that users and recommendations know by name.
    if len(owners) < 2 or owners[0].kind != template.owners[0].kind or owners[1:] != template.owners[1:]:
        return False
    name = str(owners[0])
    return all(is_wanted(name) is result for is_wanted, result in template.owner_tests)


def _renamed_keys(earlier: OwnerKey, instance: TemplateInstance) -> dict[Hashable, Hashable]:
    """Returns, for each fact about the template's nearest owner, its key → the key of the same fact about the pod's
    owner."""
    current = instance.owners[0]
    if earlier == current:
        return {}
    renamed: dict[Hashable, Hashable] = {earlier: current, earlier.stored: current.stored}
    if (former := former_stored(earlier)) is not None:
        renamed[former] = former_stored(current)
    return renamed


def _build_template(candidate: _Candidate) -> _Template | None:
    """Returns the template, or None if the decision may hold only for the pod that it was made for."""
    instance, record, reads = candidate.instance, candidate.record, candidate.reads
    decision, metadata = record.decision, instance.pod.metadata
    if record.outcome not in _OUTCOMES or decision is None or record.problem or decision.failures:
        return None
    # The check before sending finds nothing in a pod that the API server refuses anyway; the next pod may be valid.
    if any(metadata_errors(instance.pod)):
        return None
    if reads.reads_quotas or _is_named(instance, record) or _changes_owners(metadata, decision.pod.metadata):
        return None
    patch, response = (b"", b""), (record.response, b"")
    if record.patch:
        text, marker = annotation_text(decision.pod), decision.marker
        if marker is None or text != render_annotation(instance.pod, instance.namespace, marker, candidate.signer):
            return None
        parts = record.patch.split(msgspec.json.encode(text))
        response_parts = record.response.split(base64.b64encode(record.patch))
        if len(parts) != 2 or len(response_parts) != 2:
            return None
        patch, response = (parts[0], parts[1]), (response_parts[0], response_parts[1])
    labels, annotations = value_or(metadata.labels, {}), value_or(metadata.annotations, {})
    return _Template(
        size=candidate.size,
        record=record,
        before=instance.pod,
        owners=instance.owners,
        reads=reads,
        labels={key: labels.get(key) for key in candidate.metadata_reads.labels},
        annotations={key: annotations.get(key) for key in candidate.metadata_reads.annotations},
        owner_tests=tuple(candidate.metadata_reads.owner_tests.items()),
        container_signs=frozenset(candidate.metadata_reads.container_signs),
        patch=patch,
        response=response,
    )


def _changes_owners(before: Metadata, after: Metadata) -> bool:
    """Returns whether the decision changed a label by which the pod's owners are found."""
    labels, changed = value_or(before.labels, {}), value_or(after.labels, {})
    return any(labels.get(key) != changed.get(key) for key in CONTROLLER_BY_HASH_LABEL)


def _is_named(instance: TemplateInstance, record: AdmissionRecord) -> bool:
    """Returns whether the decision contains a name or an image that may differ between similar pods."""
    decision, metadata = record.decision, instance.pod.metadata
    assert decision is not None
    names = [instance.owners[0].name if len(instance.owners) > 1 else "", metadata.name, metadata.generate_name]
    if instance.masks_tags:
        names += [container.image for container in all_containers(instance.pod.spec)]
    texts = msgspec.json.encode(
        (decision.changes, decision.fields_kept, decision.would, decision.skipped, record.warnings)
    )
    texts += record.patch + record.response
    # As names are written in JSON, without the quotation marks around them: the API server does not check the names of
    # owners, which may contain any character.
    return any(name and msgspec.json.encode(name)[1:-1] in texts for name in names)


def _record_for(template: _Template, instance: TemplateInstance, signer: MarkerSigner) -> AdmissionRecord | None:
    """Returns the template's record for another pod, or None if its patch cannot be applied to that pod."""
    record, pod = template.record, instance.pod
    decision = record.decision
    assert decision is not None
    if not record.patch:
        return msgspec.structs.replace(record, decision=change(decision, pod=pod))
    assert decision.marker is not None
    try:
        after, text = _changed_pod(template, instance, decision.marker, signer)
        patch = msgspec.json.encode(text).join(template.patch)
        operations = msgspec.json.decode(patch)
        patched = msgspec.convert(apply_patch_in_place(msgspec.to_builtins(pod), operations), type(pod))
    except (ValueError, msgspec.ValidationError):
        return None  # the pod is decided by itself
    # The size of all annotations together was checked for the template's own pod.
    if patched != after or any(metadata_errors(after)):
        return None
    return msgspec.structs.replace(
        record,
        decision=change(decision, pod=after),
        patch=patch,
        response=base64.b64encode(patch).join(template.response),
    )


def _changed_pod(
    template: _Template, instance: TemplateInstance, marker: ChangedAnnotation, signer: MarkerSigner
) -> tuple[Pod, str]:
    """Returns the pod with the template's changes, and the text of the pod's own annotation."""
    assert template.record.decision is not None
    pod, after = instance.pod, template.record.decision.pod
    text = render_annotation(pod, instance.namespace, marker, signer)
    earlier, changed, metadata = template.before.metadata, after.metadata, pod.metadata
    annotations = _with_changes(metadata.annotations, earlier.annotations, changed.annotations)
    metadata = change(
        metadata,
        labels=_with_changes(metadata.labels, earlier.labels, changed.labels),
        annotations={**value_or(annotations, {}), ANNOTATION: text},
    )
    return change(pod, metadata=metadata, spec=_changed_spec(pod.spec, template.before.spec, after.spec)), text


def _with_changes(
    values: Labels | UnsetType, earlier: Labels | UnsetType, changed: Labels | UnsetType
) -> Labels | UnsetType:
    """Returns the values with the changes that turned `earlier` into `changed`; `values` and `earlier` have the same
    keys."""
    if changed is earlier:
        return values
    before, result = value_or(earlier, {}), value_or(changed, {})
    own = value_or(values, {})
    return {key: own[key] if key in own and before.get(key) == value else value for key, value in result.items()}


def _changed_spec(spec: PodSpec, earlier: PodSpec, changed: PodSpec) -> PodSpec:
    """Returns the changed spec with the images and the token volume of this pod; `spec` and `earlier` differ in nothing
    else."""
    if changed is earlier:
        return spec
    volumes = tuple(
        [
            own if before == after else after
            for own, before, after in zip(spec.volumes, earlier.volumes, changed.volumes, strict=True)
        ]
    )
    return change(
        changed,
        volumes=volumes,
        containers=_with_own_images(changed.containers, spec.containers),
        init_containers=_with_own_images(changed.init_containers, spec.init_containers),
    )


def _with_own_images(changed: tuple[Container, ...], own: tuple[Container, ...]) -> tuple[Container, ...]:
    return tuple(
        [
            container if container.image == original.image else change(container, image=original.image)
            for container, original in zip(changed, own, strict=True)
        ]
    )
