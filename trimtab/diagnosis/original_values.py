"""The values that a pod's author wrote, by the template of its owner, and the reason of each change.

The pod's annotation names only the new values. To find the reasons, the present policies decide about the template
again. If they give the value in the annotation, their reason is reported; otherwise the report says what has changed
since.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from trimtab.admission.admission_context import AdmissionContext
from trimtab.admission.preview import preview_admission, submitted_pod
from trimtab.cluster.api.workload import PodTemplateSpec
from trimtab.cluster.owner import OwnerKey
from trimtab.cluster.yaml_documents import Document
from trimtab.policy.changed_annotation import REMOVED
from trimtab.policy.cluster_facts import ClusterFacts
from trimtab.policy.pod_changes import FieldChange
from trimtab.policy.podpolicy import Policies

Decided = Mapping[tuple[str, str], FieldChange]
"""Policy and field → the change that the policy would make now to the next pod of the owner."""


def decide_about_template(
    documents: Iterable[Document], namespace: str, owner: OwnerKey | None, policies: Policies, facts: ClusterFacts
) -> Decided | None:
    """Returns the changes that the policies would make now to the owner's next pod.

    Returns None if the owner's template is not among the documents."""
    template = None if owner is None else find_template(documents, namespace, owner)
    if owner is None or template is None:
        return None
    context = AdmissionContext(policies=policies, facts=facts)
    previewed = preview_admission(submitted_pod(template, owner), namespace, context)
    return {(change.policy, change.field): change for change in previewed.all_changes}


def find_template(documents: Iterable[Document], namespace: str, owner: OwnerKey) -> PodTemplateSpec | None:
    """Returns the pod template of a controller, or None if the template is not among the documents or is not valid."""
    for document in documents:
        metadata = (document.value.get("metadata") or {}) if document.kind == owner.kind else {}
        if (metadata.get("namespace", ""), metadata.get("name")) != (namespace, owner.name):
            continue
        template = (document.value.get("spec") or {}).get("template")
        if isinstance(template, dict):
            try:
                return msgspec.convert(template, PodTemplateSpec)
            except msgspec.ValidationError:
                return None
    return None


def explain_change(policy: str, field: str, value: str, decided: Decided | None) -> tuple[str | None, str]:
    """Returns the value of a field before the change, and why the policy changed it. The value is None if it is not
    known.

    `decided`: the changes that the policies would make now; None if the template of the owner is not known."""
    if decided is None:
        return None, "the pod template of the pod's owner was not read"
    change = decided.get((policy, field))
    if change is None:
        return None, "the present policy does not make this change, or the owner's template has changed"
    before = "nothing" if change.before is None else str(change.before)
    after = REMOVED if change.after is None else str(change.after)
    if after != value:
        return before, f"the policy would set {after} now: {change.reason}"
    return before, str(change.reason)
