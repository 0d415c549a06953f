"""Whether the API server accepts a changed manifest: its pods go through the same admission as in `trimtab admit`."""

from collections.abc import Iterable
from functools import cache

from trimtab.admission.apiserver.admission_chain import run_admission_chain
from trimtab.admission.apiserver.defaulting import set_defaults
from trimtab.admission.apiserver.outcome import PodRejected
from trimtab.admission.apiserver.validate_pod import validate_pod
from trimtab.admission.pod_templates import PodTemplateLocation, read_templates
from trimtab.autoscaling.fixes import IsAccepted
from trimtab.cluster.snapshot import build_snapshot
from trimtab.cluster.yaml_documents import Document
from trimtab.policy.cluster_facts import ClusterFacts, from_snapshot


def accept_as_api_server(documents: Iterable[Document]) -> IsAccepted:
    """Returns a function that tells whether the API server takes an object after a change: none of its pods is
    rejected, except for pods that were rejected before.

    `documents` are the objects of the cluster, such as LimitRanges, that admission depends on."""
    objects = tuple(documents)

    @cache
    def read_facts() -> ClusterFacts:
        return from_snapshot(build_snapshot(objects).snapshot)

    def is_accepted(before: Document, after: Document) -> bool:
        rejections = count_rejections(after, read_facts())
        return not rejections or rejections <= count_rejections(before, read_facts())

    return is_accepted


def count_rejections(document: Document, facts: ClusterFacts) -> int:
    """Returns how often admission or validation rejects a pod of the object; 1 for a template that is not readable.

    Validation runs once more by itself, because a missing RuntimeClass or PriorityClass, which the files need not
    have, ends admission before it."""
    rejections = 0
    for template in read_templates(document):
        if not isinstance(template, PodTemplateLocation):
            rejections += 1
            continue
        known = template.with_owners(facts)
        admitted = run_admission_chain(template.pod, known, template.namespace, lambda submitted: submitted)
        pod = set_defaults(template.pod, known, template.namespace)
        checked = pod if isinstance(pod, PodRejected) else validate_pod(pod, known, template.namespace)
        rejections += isinstance(admitted, PodRejected) + isinstance(checked, PodRejected)
    return rejections
