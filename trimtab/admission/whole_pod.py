"""Whether a pod can run with a request for all its containers together in place of those of its containers: whether the
API server accepts it, and the nodes that may take it know such requests."""

from __future__ import annotations

from collections.abc import Collection

from trimtab.admission.apiserver import resourcequota
from trimtab.admission.missing_node import may_use_shape
from trimtab.admission.reasons import REQUEST_REFUSED
from trimtab.admission.resource_refusal import refuse_resources
from trimtab.cluster import quantity
from trimtab.cluster.api.meta import change, value_or
from trimtab.cluster.api.pod import Container, Pod, Resources, Toleration
from trimtab.cluster.node import HOSTNAME_LABEL
from trimtab.cluster.quantity import NotAQuantity
from trimtab.cluster.reason import Reason
from trimtab.cluster.resources import limits_of, requests_of
from trimtab.cluster.whole_pods import MIN_KUBELET
from trimtab.policy.cluster_facts import ClusterFacts
from trimtab.policy.pod_context import PodBeforeAndAfter
from trimtab.policy.pod_level.obstacles import KubeletVersions, explain_kubelets
from trimtab.policy.pod_level.reasons import POD_LEVEL_REFUSED

_EVERY_TAINT = Toleration(operator="Exists")


def refuse_whole_request(
    pod: Pod, facts: ClusterFacts, namespace: str, *, resource: str, request: int, containers: Collection[str]
) -> Reason | None:
    """Returns why the API server would refuse the pod if it requested this amount of a resource, in millicores or
    bytes, in place of these containers; None if it accepts the pod, or cannot read it in the first place.

    It refuses a pod whose containers request more together than the pod does. A container with a limit keeps its
    request, and so does an init container; a container without a request gets the default of a LimitRange. A LimitRange
    may also require a minimum of the pod.
    """
    own = value_or(pod.spec.resources, Resources())
    requests = {**requests_of(own), resource: quantity.format_quantity(resource, request)}
    spec = change(
        pod.spec,
        resources=change(own, requests=requests),
        containers=tuple(_without_request(one, resource, containers) for one in pod.spec.containers),
        init_containers=tuple(_without_request(one, resource, containers) for one in pod.spec.init_containers),
    )
    message = _find_new_refusal(pod, change(pod, spec=spec), facts, namespace)
    return None if message is None else REQUEST_REFUSED(f"the API server would refuse the pod: {message}")


def explain_pod_level(pods: PodBeforeAndAfter) -> Reason | None:
    """Returns why a pod of which such requests were changed must not request for all its containers together; None if
    it may.

    Every node that may take the pod must have a kubelet of 1.34 or newer: an older API server drops the field, and an
    older kubelet runs the pod as if it requested nothing. No kubelet is newer than its API server.
    """
    before, after, facts = pods.before.pod, pods.after.pod, pods.after.facts
    reason = explain_kubelets(_read_kubelets(after, facts))
    if reason is not None:
        return reason
    message = _find_new_refusal(before, after, facts, pods.after.namespace)
    return None if message is None else POD_LEVEL_REFUSED(f"the API server would refuse the pod: {message}")


def _read_kubelets(pod: Pod, facts: ClusterFacts) -> KubeletVersions:
    """Returns the kubelets of the kinds of nodes that may take the pod, cordoned ones included, and of node groups
    without a node, about which nothing is known."""
    nodes, spec = facts.nodes, pod.spec
    if spec.node_name:
        # No scheduler looks at the taints, and a kubelet rejects a pod only for a taint NoExecute.
        spec = change(spec, tolerations=(_EVERY_TAINT,))
    shapes = [shape for shape in (*nodes.shapes, *nodes.closed) if may_use_shape(spec, shape, facts.machines)]
    older = {
        f"{shape.kubelet[0]}.{shape.kubelet[1]}" for shape in shapes if shape.kubelet and shape.kubelet < MIN_KUBELET
    }
    unknown = {
        shape.labels.get(HOSTNAME_LABEL) or "a node without a version" for shape in shapes if shape.kubelet is None
    }
    groups = {f"node group {name}, which is empty now" for name in nodes.growing or ()}
    return KubeletVersions(nodes=len(shapes), older=tuple(sorted(older)), unknown=tuple(sorted(unknown | groups)))


def _find_new_refusal(before: Pod, after: Pod, facts: ClusterFacts, namespace: str) -> str | None:
    """Returns with what message the API server would refuse the changed pod; None if it accepts it, or refuses the pod
    without the change for the same full quota."""
    try:
        refused_before, refused = (refuse_resources(one, facts, namespace) for one in (before, after))
    except NotAQuantity:
        return None
    # A full quota refuses the pod without the change as well, and a smaller request is what helps.
    if refused is None or all(map(resourcequota.is_exceeded_quota, (refused, refused_before))):
        return None
    return refused.message


def _without_request(container: Container, resource: str, containers: Collection[str]) -> Container:
    if container.name not in containers or resource not in requests_of(container.resources):
        return container
    # The API server would set a missing request to the limit.
    if resource in limits_of(container.resources):
        return container
    resources = value_or(container.resources, Resources())
    others = {name: amount for name, amount in requests_of(resources).items() if name != resource}
    return change(container, resources=change(resources, requests=others))
