"""Finds which pod templates stand for the same pods, so that a sum counts each pod once.

The output of `kubectl get all` has a Deployment, its ReplicaSets and its pods: three kinds of objects, and one set of
pods. Of such objects the topmost that has a template counts, because its controller creates the others.
"""

from collections.abc import Iterable, Sequence

from trimtab.admission.pod_templates import PodTemplateLocation
from trimtab.cluster.owner import OwnerKey
from trimtab.policy.cluster_facts import ClusterFacts


def find_counted_owners(templates: Sequence[PodTemplateLocation], facts: ClusterFacts) -> tuple[OwnerKey | None, ...]:
    """Returns for each template the topmost owner of its pods whose template is among `templates` as well; None for a
    template whose pods only it stands for."""
    with_template = {template.key for template in templates if template.path}
    return tuple(_topmost(_owners_of(template, facts), with_template - {template.key}) for template in templates)


def _owners_of(template: PodTemplateLocation, facts: ClusterFacts) -> tuple[OwnerKey, ...]:
    return template.with_owners(facts).owner_chain(template.pod, template.namespace)


def _topmost(owners: Iterable[OwnerKey], with_template: set[OwnerKey]) -> OwnerKey | None:
    return next((owner for owner in reversed(tuple(owners)) if owner in with_template), None)
