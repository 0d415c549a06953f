"""Lays manifests over the objects of a cluster: the cluster as it is after the manifests are applied."""

from collections.abc import Mapping
from typing import Any

from trimtab.autoscaling.lint_snapshot import LintSnapshot
from trimtab.autoscaling.read_snapshot import reread_snapshot
from trimtab.autoscaling.rule import LintSubject
from trimtab.cluster.yaml_documents import Document


def lay_over(cluster: LintSnapshot, manifests: Mapping[LintSubject, Document]) -> LintSnapshot:
    """Returns the snapshot of the cluster in which the manifests replace the objects of the same name, or are added.

    What the API server and controllers own stays as it is in the cluster: the status, the owners, and a number of
    replicas that the manifest does not set.
    """
    documents = dict(cluster.documents)
    for subject, document in manifests.items():
        present = cluster.documents.get(subject)
        documents[subject] = document if present is None else _as_applied(document, present)
    return reread_snapshot(cluster, documents.values())


def _as_applied(document: Document, present: Document) -> Document:
    value, old = _mapping(document.value), _mapping(present.value)
    applied: dict[str, Any] = {**value}
    if "status" in old:
        applied["status"] = old["status"]
    owners = _mapping(old.get("metadata")).get("ownerReferences")
    if owners:
        applied["metadata"] = {"ownerReferences": owners, **_mapping(value.get("metadata"))}
    replicas = _mapping(old.get("spec")).get("replicas")
    if replicas is not None and isinstance(value.get("spec"), dict):
        applied["spec"] = {"replicas": replicas, **value["spec"]}
    # A derived document stays one: its fields are not in the file.
    return document.with_derived_value(applied) if document.is_derived else document.with_value(applied)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
