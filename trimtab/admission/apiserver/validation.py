"""What would the API refuse in the fields that we may write?

`ValidatePodCreate` (pkg/apis/core/validation/validation.go, 1.36) as far as our shapes go: names and labels, resources,
host ports, placement, tolerations, overhead. What nobody here changes (images, volumes, probes) is not checked.
"""

from collections.abc import Iterator

from trimtab.admission.apiserver.outcome import Refused, aggregate
from trimtab.admission.apiserver.valid import names, placement, ports, resources, tolerations
from trimtab.cluster.api.meta import UnsetType, get
from trimtab.cluster.api.pod import Pod, PodSpec
from trimtab.policy.facts import Facts

PLUGIN = "validation"


def validate(pod: Pod, facts: Facts, namespace: str) -> Pod | Refused:
    """422 with every complaint at once, in the server's order and words; the pod where there are none."""
    complaints = [*_named(pod), *_metadata(pod), *_spec(pod.spec)]
    return Refused(422, PLUGIN, aggregate(complaints)) if complaints else pod


def _named(pod: Pod) -> Iterator[str]:
    if not pod.metadata.name and not pod.metadata.generate_name:
        yield "metadata.name: Required value: name or generateName is required"


def _metadata(pod: Pod) -> Iterator[str]:
    yield from names.labels("metadata.labels", get(pod.metadata.labels, {}))
    yield from names.annotations("metadata.annotations", get(pod.metadata.annotations, {}))


def _spec(spec: PodSpec) -> Iterator[str]:
    if not spec.containers:
        yield "spec.containers: Required value"
    for kind, containers in (("containers", spec.containers), ("initContainers", spec.init_containers)):
        for place, container in enumerate(containers):
            yield from resources.of_container(f"spec.{kind}[{place}].resources", get(container.resources, None))
    yield from ports.complaints(spec)
    yield from resources.of_pod(spec)
    yield from names.labels("spec.nodeSelector", get(spec.node_selector, {}))
    yield from placement.affinity(spec)
    yield from placement.spread(spec)
    yield from tolerations.complaints(get(spec.tolerations, ()))
    yield from _classes(spec)
    yield from resources.of_overhead("spec.overhead", get(spec.overhead, {}))


def _classes(spec: PodSpec) -> Iterator[str]:
    if get(spec.priority_class_name, ""):
        yield from names.subdomain("spec.priorityClassName", get(spec.priority_class_name, ""))
    if not isinstance(spec.runtime_class_name, UnsetType):
        yield from names.subdomain("spec.runtimeClassName", spec.runtime_class_name)
    policy = get(spec.preemption_policy, "Never")
    if policy not in ("PreemptLowerPriority", "Never"):
        yield names.unsupported("spec.preemptionPolicy", policy, ("PreemptLowerPriority", "Never"))
