"""Whether the API server accepts a request of a pod as a whole in place of the requests of its containers."""

from __future__ import annotations

from collections.abc import Collection

from trimtab.admission.apiserver import resourcequota
from trimtab.admission.reasons import REQUEST_REFUSED
from trimtab.admission.resource_refusal import refuse_resources
from trimtab.cluster import quantity
from trimtab.cluster.api.meta import change, value_or
from trimtab.cluster.api.pod import Container, Pod, Resources
from trimtab.cluster.quantity import NotAQuantity
from trimtab.cluster.reason import Reason
from trimtab.cluster.resources import requests_of
from trimtab.policy.cluster_facts import ClusterFacts


def refuse_whole_request(
    pod: Pod, facts: ClusterFacts, namespace: str, *, resource: str, request: int, containers: Collection[str]
) -> Reason | None:
    """Returns why the API server would refuse the pod if it requested this amount of a resource, in millicores or
    bytes, in place of these containers; None if it accepts the pod, or cannot read it in the first place.

    It refuses a pod whose containers request more together than the pod does. A container without a request gets its
    own limit as its request, or the default of a LimitRange; an init container keeps its request. A LimitRange may also
    require a minimum of the pod.
    """
    own = value_or(pod.spec.resources, Resources())
    requests = {**requests_of(own), resource: quantity.format_quantity(resource, request)}
    spec = change(
        pod.spec,
        resources=change(own, requests=requests),
        containers=tuple(_without_request(one, resource, containers) for one in pod.spec.containers),
        init_containers=tuple(_without_request(one, resource, containers) for one in pod.spec.init_containers),
    )
    try:
        refused_before, refused = (refuse_resources(one, facts, namespace) for one in (pod, change(pod, spec=spec)))
    except NotAQuantity:
        return None
    # A full quota refuses the pod without the change as well, and a smaller request is what helps.
    if refused is None or all(map(resourcequota.is_exceeded_quota, (refused, refused_before))):
        return None
    return REQUEST_REFUSED(f"the API server would refuse the pod: {refused.message}")


def _without_request(container: Container, resource: str, containers: Collection[str]) -> Container:
    if container.name not in containers or resource not in requests_of(container.resources):
        return container
    resources = value_or(container.resources, Resources())
    others = {name: amount for name, amount in requests_of(resources).items() if name != resource}
    return change(container, resources=change(resources, requests=others))
