"""Reuses a decision for pods with the same spec whose metadata differ only in values that no policy read.

The next rollout of a Deployment, the next Job and the next step of a workflow send pods that were never sent before:
with the name of another owner, names of their own, other hashes, other values of labels and annotations; often with
other environment variables and arguments, which Trimtab does not even decode. The decision is the same. It is reused if
all of these conditions hold:

    the pod      everything that Trimtab decodes is equal, except names, the nearest owner's name and UID, the name of
                 the token volume, values of labels and annotations, and, if no policy distinguishes images by them,
                 their tags and digests; the pod has none of Trimtab's own annotations, and no security context
                 with options for Windows
    metadata     each value of a label or annotation that was read for the decision is equal (`policy.decision_reads`)
    signs        if the decision read what environments and command lines show, they show the same
    owners       the chain of owners is equal, except the name of the nearest owner; each test that a policy made of
                 that name, or of the name of a pod without an owner, has the same result
    rollouts     the same policies are rolled out to the topmost owner, or to the pod without an owner
    reasons      they contain neither a name nor an image that may differ
    facts        each fact that was read is the same, also if it was read by the owner's name
    quotas       no quota was read: whether its usage leaves room depends on the owner
    policies, settings     they are the same; when they change, all decisions are dropped

Only the annotation `trimtab.dev/changed` identifies the pod; it is written and signed for each pod. The patch is
applied to each pod before it is sent, as every patch is.
"""

import base64
from collections import Counter
from collections.abc import Hashable, Iterator
from enum import StrEnum
from typing import Any

import msgspec

from trimtab.admission.admission_result import AdmissionOutcome, AdmissionRecord
from trimtab.admission.apiserver import validate_names
from trimtab.admission.apiserver.validate_pod import metadata_errors
from trimtab.admission.pod_bytes import encode_texts
from trimtab.admission.similar_pod import with_changes_of
from trimtab.admission.template_instance import TemplateInstance, TemplateKey
from trimtab.admission.template_patch import ENCODED_TEXT, TemplatePatch, prepare_patch
from trimtab.cluster.api.meta import Metadata, change, value_or
from trimtab.cluster.api.pod import Pod
from trimtab.cluster.owner import CONTROLLER_BY_HASH_LABEL, OwnerKey, former_stored
from trimtab.cluster.resources import all_containers
from trimtab.policy.actions.limits import read_container_signs
from trimtab.policy.changed_annotation import (
    annotation_text,
    encode_changes,
    render_annotation,
    render_changes,
)
from trimtab.policy.cluster_facts import ClusterFacts
from trimtab.policy.decision_reads import Answers, ContainerSigns, FactDependencies, MetadataReads
from trimtab.policy.match import rollout_place
from trimtab.policy.pod_context import MarkerSigner, identify_for_rollout, name_owners

MAX_TEMPLATES = 256
MAX_TEMPLATE_BYTES = 16 * 1024 * 1024
"""The maximum size of all templates together in estimated bytes (`estimate_bytes`). It is enough for `MAX_TEMPLATES`
pods of ordinary size."""
_OUTCOMES = frozenset({AdmissionOutcome.CHANGED, AdmissionOutcome.UNCHANGED, AdmissionOutcome.SKIPPED})


class Lookup(StrEnum):
    """How the decision on a pod was found, or why it had to be made. Metrics use the values as a label."""

    SAME_POD = "same-pod"
    """The pod is the same as an earlier one, but for its token volume and its node."""
    SIMILAR_POD = "similar-pod"
    """The pod is of the same template as an earlier one."""
    FIRST = "first"
    """No decision on a similar pod is stored, or it holds for its own pod only."""
    UNLIKE = "unlike"
    """Decisions on such pods are not shared: see "the pod" in `template_cache`."""
    METADATA = "metadata"
    """A label or annotation that was read has another value."""
    OWNER = "owner"
    """The owners differ: a policy or a rollout distinguishes their names, or a reason contains one."""
    SIGNS = "signs"
    """The environment or the command line shows another runtime."""
    FACTS = "facts"
    """A fact about the cluster or the owner is another one."""
    PATCH = "patch"
    """The patch of the earlier pod cannot be applied to this one."""


class _Template(msgspec.Struct, eq=False, gc=False):
    """A decision, and everything that it depends on except its key."""

    size: int
    """The estimated size in bytes."""
    record: AdmissionRecord
    before: Pod
    owners: tuple[OwnerKey, ...]
    is_of_one_owner: bool
    """Whether the decision holds for this nearest owner only, because it contains the owner's name."""
    own_reads: FactDependencies
    """What was read by the nearest owner's name."""
    common_reads: FactDependencies
    """Everything else that was read."""
    as_of: int
    """The cache's number for the facts with which `common_reads` were last compared."""
    labels: dict[str, str | None]
    """Label that was read → its value, or None if the pod did not have the label."""
    annotations: dict[str, str | None]
    owner_tests: tuple[tuple[Any, bool], ...]
    rollouts: tuple[tuple[tuple[str, int], bool], ...]
    container_signs: frozenset[tuple[ContainerSigns, ...]]
    """What the environments and command lines show; empty if the decision did not read it."""
    changes: bytes
    """The changes as the annotation contains them; empty if nothing is patched."""
    patch: TemplatePatch | None
    """None if nothing is patched."""
    patch_parts: tuple[bytes, bytes]
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

    def __init__(self, lookups: Counter[Lookup] | None = None, max_templates: int = MAX_TEMPLATES) -> None:
        """`lookups` counts how decisions are found."""
        self._lookups: Counter[Lookup] = Counter() if lookups is None else lookups
        self._max_templates = max_templates
        self._templates: dict[TemplateKey, _Template | _Candidate] = {}
        self._estimated_bytes = 0
        self._facts: ClusterFacts | None = None
        self._as_of = 0

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
        outcome = self._find_decision(instance, raw, facts, reads, signer)
        if isinstance(outcome, Lookup):
            self._lookups[outcome] += 1
            return None
        self._lookups[Lookup.SIMILAR_POD] += 1
        return outcome

    def _find_decision(
        self, instance: TemplateInstance, raw: bytes, facts: ClusterFacts, reads: FactDependencies, signer: MarkerSigner
    ) -> AdmissionRecord | Lookup:
        template = self._template_for(instance.key)
        if template is None:
            return Lookup.FIRST
        if not _has_same_metadata(template, instance.pod.metadata):
            return Lookup.METADATA
        if not _has_like_owners(template, instance):
            return Lookup.OWNER
        if template.container_signs and read_container_signs(instance.pod, raw) not in template.container_signs:
            return Lookup.SIGNS
        if self._facts is not facts:
            self._facts = facts
            self._as_of += 1
        if template.as_of != self._as_of:
            if not template.common_reads.has_same_answers(facts):
                return Lookup.FACTS
            template.as_of = self._as_of
        answers: Answers | None = {}
        if template.own_reads.answers:
            answers = template.own_reads.read_for_other(facts, _renamed_keys(template.owners, instance))
        if answers is None:
            return Lookup.FACTS
        record = _record_for(template, instance, signer)
        if record is None:
            return Lookup.PATCH
        common = template.common_reads
        read = common.merge(answers) if answers else common.answers
        # The dicts of a template are shared, and not changed: hardly ever was anything but owners read for this pod.
        for name, values in read.items():
            reads.answers[name] = {**values, **reads.answers[name]} if name in reads.answers else values
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


def estimate_bytes(key_bytes: int, pod_bytes: int, record: AdmissionRecord) -> int:
    """Returns the approximate memory in bytes that a cached decision on a pod takes: its key, the decoded pod, and
    about four hundred for each change or reason.

    pod_bytes: the size of what is decoded of the pod, as JSON.

    Users who may create pods may write ones whose decoded form takes many times as much as their JSON. So each
    character of a pod above the ordinary size counts as much as it can take at most.
    """
    decision = record.decision
    items = len(decision.changes) + len(decision.fields_kept) + len(decision.would) if decision else 0
    excess = max(0, pod_bytes - _SMALL_POD_BYTES)
    return key_bytes + 2 * len(record.response) + 400 * items + 8192 + _MAX_BYTES_PER_CHARACTER * excess


def _has_same_metadata(template: _Template, metadata: Metadata) -> bool:
    """Returns whether all labels and annotations that were read have the same values in both pods."""
    labels, annotations = value_or(metadata.labels, {}), value_or(metadata.annotations, {})
    # Loops, not generators: this runs for every pod that is not the same as an earlier one.
    for key, value in template.labels.items():
        if labels.get(key) != value:
            return False
    return not template.annotations or all(annotations.get(key) == value for key, value in template.annotations.items())


def _has_like_owners(template: _Template, instance: TemplateInstance) -> bool:
    """Returns whether the owners are equal. The name of the nearest owner may differ, and that of a pod without an
    owner, if every test of that name by a policy or a rollout has the same result."""
    owners, earlier = instance.owners, template.owners
    if owners and owners == earlier:
        return True
    if template.is_of_one_owner or len(owners) != len(earlier) or owners[1:] != earlier[1:]:
        return False
    if owners and owners[0].kind != earlier[0].kind:
        return False
    if template.owner_tests:
        name = name_owners(owners, instance.pod.metadata)[0]
        for is_wanted, result in template.owner_tests:
            if is_wanted(name) is not result:
                return False
    if not template.rollouts:
        return True
    identity = identify_for_rollout(instance.namespace, owners, instance.pod.metadata)
    return all((rollout_place(policy, identity) < share) is result for (policy, share), result in template.rollouts)


def _keys_of(owner: OwnerKey) -> tuple[Hashable, ...]:
    """Returns the keys by which facts about an owner are asked for."""
    former = former_stored(owner)
    return (owner, owner.stored) if former is None else (owner, owner.stored, former)


def _renamed_keys(earlier: tuple[OwnerKey, ...], instance: TemplateInstance) -> dict[Hashable, Hashable]:
    """Returns, for each fact about the template's nearest owner, its key → the key of the same fact about the pod's
    owner."""
    if earlier[:1] == instance.owners[:1]:
        return {}
    # Owners of one kind have the same number of keys.
    return dict(zip(_keys_of(earlier[0]), _keys_of(instance.owners[0]), strict=True))


def _build_template(candidate: _Candidate) -> _Template | None:
    """Returns the template, or None if the decision may hold only for the pod that it was made for."""
    instance, record, reads = candidate.instance, candidate.record, candidate.reads
    decision, metadata = record.decision, instance.pod.metadata
    if record.outcome not in _OUTCOMES or decision is None or record.problem or decision.failures:
        return None
    # The check before sending finds nothing in a pod that the API server refuses anyway; the next pod may be valid.
    if any(metadata_errors(instance.pod)) or any(metadata_errors(decision.pod)):
        return None
    owner = instance.owners[0] if instance.owners else None
    own_reads, common_reads = reads.split_by_owner(() if owner is None else _keys_of(owner))
    names, owner_name = _names_of(instance), "" if owner is None else owner.name
    fact_keys, texts = frozenset(_list_asked(common_reads)), encode_texts(record)
    if reads.reads_quotas or _changes_owners(metadata, decision.pod.metadata):
        return None
    if any(name and (_is_in(name, texts) or name in fact_keys) for name in names):
        return None
    changes, patch, patch_parts, response = b"", None, (b"", b""), (record.response, b"")
    if record.patch:
        text, marker = annotation_text(decision.pod), decision.marker
        if marker is None or text != render_annotation(instance.pod, instance.namespace, marker, candidate.signer):
            return None
        parts = record.patch.split(msgspec.json.encode(text))
        response_parts = record.response.split(base64.b64encode(record.patch))
        if len(parts) != 2 or len(response_parts) != 2:
            return None
        patch_parts, response = (parts[0], parts[1]), (response_parts[0], response_parts[1])
        changes = encode_changes(marker)
        patch = prepare_patch(instance.pod, decision.pod, msgspec.json.decode(ENCODED_TEXT.join(parts)))
        if patch is None:
            return None
    labels, annotations = value_or(metadata.labels, {}), value_or(metadata.annotations, {})
    return _Template(
        size=candidate.size,
        record=record,
        before=instance.pod,
        owners=instance.owners,
        is_of_one_owner=bool(owner_name) and (_is_in(owner_name, texts) or owner_name in fact_keys),
        own_reads=own_reads,
        common_reads=common_reads,
        as_of=-1,
        labels={key: labels.get(key) for key in candidate.metadata_reads.labels},
        annotations={key: annotations.get(key) for key in candidate.metadata_reads.annotations},
        owner_tests=tuple(candidate.metadata_reads.owner_tests.items()),
        rollouts=tuple(candidate.metadata_reads.rollouts.items()),
        container_signs=frozenset(candidate.metadata_reads.container_signs),
        changes=changes,
        patch=patch,
        patch_parts=patch_parts,
        response=response,
    )


def _changes_owners(before: Metadata, after: Metadata) -> bool:
    """Returns whether the decision changed a label by which the pod's owners are found."""
    labels, changed = value_or(before.labels, {}), value_or(after.labels, {})
    return any(labels.get(key) != changed.get(key) for key in CONTROLLER_BY_HASH_LABEL)


def _names_of(instance: TemplateInstance) -> list[str]:
    """Returns the pod's names, and the images that may differ between similar pods."""
    metadata = instance.pod.metadata
    names = [metadata.name, metadata.generate_name]
    if instance.masks_tags:
        names += [container.image for container in all_containers(instance.pod.spec)]
    return names


def _is_in(name: str, texts: bytes) -> bool:
    # As names are written in JSON, without the quotation marks around them: the API server does not check the names of
    # owners, which may contain any character.
    return bool(name) and msgspec.json.encode(name)[1:-1] in texts


def _list_asked(reads: FactDependencies) -> Iterator[Hashable]:
    """Yields the keys by which facts were asked for, and the parts of these keys."""
    for _, key in reads.keys:
        yield key
        if isinstance(key, tuple):
            yield from key
        elif isinstance(key, str):
            yield from key.split("/")


def _record_for(template: _Template, instance: TemplateInstance, signer: MarkerSigner) -> AdmissionRecord | None:
    """Returns the template's record for another pod, or None if its patch cannot be applied to that pod."""
    record, pod = template.record, instance.pod
    decision = record.decision
    assert decision is not None
    if template.patch is None:
        return change(record, decision=change(decision, pod=pod))
    try:
        text = render_changes(pod, instance.namespace, template.changes, signer)
        after = with_changes_of(pod, template.before, decision.pod, text)
        patched = template.patch.apply(pod, text)
    except (ValueError, msgspec.ValidationError):
        return None  # the pod is decided by itself
    if patched != after or _has_new_errors(after.metadata, decision.pod.metadata):
        return None
    patch = msgspec.json.encode(text).join(template.patch_parts)
    return change(
        record,
        decision=change(decision, pod=after),
        patch=patch,
        response=base64.b64encode(patch).join(template.response),
    )


def _has_new_errors(after: Metadata, valid: Metadata) -> bool:
    """Returns whether there are errors of labels and annotations that `valid`, which has the same keys and no errors,
    cannot have."""
    known, annotations = value_or(valid.labels, {}), value_or(after.annotations, {})
    for key, value in value_or(after.labels, {}).items():
        if known.get(key) != value and not validate_names.is_label_value(value):
            return True
    return not validate_names.are_surely_small(annotations) and any(
        validate_names.annotation_errors("metadata.annotations", annotations)
    )
