"""Reads from a snapshot the templates from which owners create their next pods, and finds whether these may be others
than the pods that the owners have now."""

from collections.abc import Collection, Mapping, Sequence

from trimtab.admission.apiserver.pod_classes import names_missing_class
from trimtab.admission.apiserver.resourcequota import is_exceeded
from trimtab.cluster.api.core import LimitRange, PriorityClass, ResourceQuota, RuntimeClass
from trimtab.cluster.api.workload import PodTemplateSpec, Templated
from trimtab.cluster.cluster_state import Inventory
from trimtab.cluster.config_error import ConfigError
from trimtab.cluster.next_pod import (
    has_requests,
    has_revision_of,
    keep_template,
    largest_requests,
    requests_of_template,
)
from trimtab.cluster.owner import OwnerKey
from trimtab.cluster.snapshot import Snapshot, decode_object
from trimtab.cluster.yaml_documents import Document
from trimtab.policy.cluster_facts import ALL_KINDS

Templates = Mapping[OwnerKey, PodTemplateSpec]
"""Owner → the template of its next pod."""


def read_templates(documents: Sequence[Document], owners: Collection[OwnerKey]) -> Templates:
    """Returns the templates of these owners, whatever their kind is, as far as the documents have them."""
    kinds = {owner.kind for owner in owners}
    templates: dict[OwnerKey, PodTemplateSpec] = {}
    for document in documents:
        if document.kind is None or document.kind not in kinds:
            continue
        owner = decode_object(document, Templated)
        # An owner of another project may have something else at the place of a template.
        if isinstance(owner, ConfigError) or not owner.spec.template.spec.containers:
            continue
        key = OwnerKey(owner.metadata.namespace or "default", document.kind, owner.metadata.name)
        template = keep_template(owner) if key in owners else None
        if template is not None:
            templates[key] = template
    return templates


def owners_of_pods(inventory: Inventory) -> frozenset[OwnerKey]:
    """Returns the owners of the pods that a plan may move."""
    return frozenset(pod.owner for pod in inventory.pods if pod.owner is not None and not pod.is_daemon)


def may_differ(inventory: Inventory, snapshot: Snapshot, templates: Templates) -> bool:
    """Returns whether an owner's next pod may be another than one of its pods, or may not be created at all."""
    if any(key.owner not in templates for key in largest_requests(inventory.pods)):
        return True
    if any(map(is_exceeded, snapshot.objects_of(ResourceQuota))) or _has_lost_classes(snapshot, templates):
        return True
    ranged = {item.metadata.namespace or "default" for item in snapshot.objects_of(LimitRange)}
    requests = {owner: requests_of_template(template) for owner, template in templates.items()}
    for pod in inventory.pods:
        template = templates.get(pod.owner) if pod.owner is not None and not pod.is_daemon else None
        if template is not None and pod.owner is not None:
            if pod.namespace in ranged or not has_revision_of(pod, template):
                return True
            if not has_requests(pod, requests[pod.owner]):
                return True
    return False


def _has_lost_classes(snapshot: Snapshot, templates: Templates) -> bool:
    names = {item.metadata.name for item in snapshot.objects_of(PriorityClass)}
    return bool(names) and any(names_missing_class(template.spec, names) for template in templates.values())


def complete_kinds(snapshot: Snapshot) -> frozenset[str]:
    """Returns the kinds of facts of which the snapshot has all objects as far as can be told: a snapshot of a few kinds
    has no PriorityClass, although every cluster has some, and a class that it does not have may exist."""
    unseen = {
        kind.__name__ for kind in (PriorityClass, RuntimeClass) if not any(True for _ in snapshot.objects_of(kind))
    }
    return ALL_KINDS - unseen
