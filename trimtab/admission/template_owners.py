"""Finds which pod templates stand for the same pods, so that a sum counts each pod once.

The output of `kubectl get all` has a Deployment, its ReplicaSets and its pods: three kinds of objects, and one set of
pods. Of such objects the topmost that has a template counts, because its controller creates the others. An object that
is there several times, as in the output of `kubectl get pods,all`, is one object.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from trimtab.admission.pod_templates import PodTemplateLocation
from trimtab.cluster.kinds import CONTROLLER_KINDS, POD
from trimtab.cluster.owner import OwnerKey, controller_key
from trimtab.cluster.yaml_documents import value_at
from trimtab.cluster.yaml_parser import Path
from trimtab.policy.cluster_facts import ClusterFacts


def find_counted_owners(templates: Sequence[PodTemplateLocation], facts: ClusterFacts) -> tuple[OwnerKey | None, ...]:
    """Returns for each template the topmost owner of its pods whose template is among `templates` as well; for an
    object that occurs again later, that object itself, because the last one holds, as for `kubectl apply`. None for a
    template whose pods only it stands for."""
    with_template = {template.key for template in templates if template.path}
    # A pod may own the StatefulSet of other pods, as the leader of a LeaderWorkerSet's group does.
    owners_of_pods = {
        template.key: controller_key(template.pod.metadata, template.namespace)
        for template in templates
        if not template.path
    }
    facts = replace(facts, owners={**facts.owners, **owners_of_pods})
    places = [_place_of(template) for template in templates]
    last = {place: number for number, place in enumerate(places)}
    return tuple(
        template.key
        if place is not None and last[place] != number
        else _topmost(
            _creators(template.with_owners(facts).owner_chain(template.pod, template.namespace)),
            with_template - {template.key},
        )
        for number, (template, place) in enumerate(zip(templates, places, strict=True))
    )


def _place_of(template: PodTemplateLocation) -> tuple[OwnerKey, Path] | None:
    """Returns the object and the place of the template in it; None if the API server gives each such object another
    name (`generateName`)."""
    is_named = bool(value_at(template.document.value, ("metadata", "name")))
    return (template.key, template.path) if is_named else None


def _creators(owners: tuple[OwnerKey, ...]) -> Iterator[OwnerKey]:
    """Yields the owners whose templates may stand for the pod. Above a pod that owns others, the built-in controllers
    stand for that pod alone; only the object of the whole group has the templates of both."""
    is_above_pod = False
    for owner in owners:
        if not (is_above_pod and owner.kind in CONTROLLER_KINDS):
            yield owner
        is_above_pod = is_above_pod or owner.kind == POD


def _topmost(owners: Iterable[OwnerKey], with_template: set[OwnerKey]) -> OwnerKey | None:
    return next((owner for owner in reversed(tuple(owners)) if owner in with_template), None)
