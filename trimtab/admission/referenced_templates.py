"""Reads Argo Rollouts whose pods have the template of another object (`spec.workloadRef`), which the Rollout scales
down (argo-rollouts, pkg/apis/rollouts/v1alpha1/types.go, `ObjectRef`; docs/migrating.md)."""

from collections.abc import Iterable, Mapping
from typing import Any

from trimtab.cluster.kinds import ROLLOUT, group_kind
from trimtab.cluster.owner import OwnerKey
from trimtab.cluster.yaml_documents import Document, value_at


def find_template_owner(document: Document) -> OwnerKey | None:
    """Returns the object whose template the pods of this object have; None if the object is no Rollout, or has a
    template of its own."""
    if document.kind != ROLLOUT or value_at(document.value, ("spec", "template")):
        return None
    reference = value_at(document.value, ("spec", "workloadRef"))
    if not isinstance(reference, Mapping) or not reference.get("name"):
        return None
    kind = group_kind(str(reference.get("apiVersion") or ""), str(reference.get("kind") or ""))
    return OwnerKey(_namespace_of(document), kind, str(reference["name"]))


def find_template_users(documents: Iterable[Document]) -> dict[OwnerKey, OwnerKey]:
    """Returns object → the Rollout whose pods have its template."""
    return {
        owner: OwnerKey(owner.namespace, ROLLOUT, str(value_at(document.value, ("metadata", "name"))))
        for document in documents
        if (owner := find_template_owner(document)) is not None
    }


def add_referenced_templates(documents: Iterable[Document]) -> list[Document]:
    """Returns the documents, with the referenced template in each Rollout that refers to one of them. The template of
    such a Rollout is derived: it is not in the Rollout's own file."""
    all_documents = list(documents)
    references = {owner for document in all_documents if (owner := find_template_owner(document)) is not None}
    if not references:
        return all_documents
    kinds, templates = {owner.kind for owner in references}, dict[OwnerKey, Any]()
    for document in all_documents:
        if document.kind is not None and document.kind in kinds:
            key = OwnerKey(_namespace_of(document), document.kind, str(value_at(document.value, ("metadata", "name"))))
            templates[key] = value_at(document.value, ("spec", "template"))
    return [_with_template(document, templates) for document in all_documents]


def _with_template(document: Document, templates: Mapping[OwnerKey, Any]) -> Document:
    owner = find_template_owner(document)
    template = templates.get(owner) if owner is not None else None
    if template is None:
        return document
    value = document.value
    return document.with_derived_value({**value, "spec": {**value["spec"], "template": template}})


def _namespace_of(document: Document) -> str:
    return str(value_at(document.value, ("metadata", "namespace")) or "default")
