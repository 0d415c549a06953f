"""Finds out what in a pod reads a container's limit: the downward API, or the runtime in the container.

A limit that is read stays. The pod of a review is decoded without environment variables and command lines, because most
decisions do not need them. Here they are decoded from the pod's own bytes, once, for the first limit that would be
removed.
"""

from trimtab.cluster.api.pod import Container, Pod
from trimtab.cluster.limit_references import LimitField, env_limit_fields, find_reference_reader, volume_limit_fields
from trimtab.cluster.runtime_patterns import CPU, MEMORY
from trimtab.cluster.runtime_signs import (
    IndependentRuntime,
    LimitReader,
    LimitUse,
    RuntimeSign,
    add_label_signs,
    container_signs,
    find_limit_use,
)
from trimtab.policy.decision_reads import ContainerSigns
from trimtab.policy.pod_body import read_containers
from trimtab.policy.pod_context import ContainerRef, PodContext


def find_reference(subject: PodContext, place: ContainerRef, resource: str) -> LimitReader | None:
    """Returns what reads this limit through the downward API: an environment variable of any container, or a volume."""
    limit = place.container.name, f"limits.{resource}"
    return find_reference_reader(limit, subject.compute_once(_volume_fields), subject.compute_once(_env_fields))


def find_runtime_use(subject: PodContext, place: ContainerRef, resource: str) -> LimitUse:
    """Returns whether the container's runtime reads this limit. No runtime reads a limit of ephemeral storage."""
    if resource not in (CPU, MEMORY):
        return IndependentRuntime("")
    return find_limit_use(subject.compute_once(_runtimes_by_container).get(place.container.name, ()), resource)


def _runtimes_by_container(subject: PodContext) -> dict[str, tuple[RuntimeSign, ...]]:
    # Operators name a pod's language in annotations, too.
    mappings = subject.labels, subject.annotations
    return {signs.name: add_label_signs(signs.runtimes, *mappings) for signs in subject.compute_once(_all_signs)}


def _all_signs(subject: PodContext) -> tuple[ContainerSigns, ...]:
    signs = read_container_signs(subject.pod, subject.body)
    if subject.reads is not None:
        subject.reads.container_signs.add(signs)
    return signs


def read_container_signs(pod: Pod, body: bytes) -> tuple[ContainerSigns, ...]:
    """Returns what the environment variables, command lines and images of the pod's containers show.

    body: the pod's own bytes; if they are empty, `pod` itself has been decoded with its variables and command lines.
    """
    containers = read_containers(body) if body else (*pod.spec.containers, *pod.spec.init_containers)
    return tuple([_signs_of(container) for container in containers])


def _signs_of(container: Container) -> ContainerSigns:
    signs = container_signs(container.runtime_signs, container.image)
    return ContainerSigns(container.name, env_limit_fields(container), signs)


def _env_fields(subject: PodContext) -> frozenset[LimitField]:
    return frozenset([field for signs in subject.compute_once(_all_signs) for field in signs.limit_fields])


def _volume_fields(subject: PodContext) -> frozenset[LimitField]:
    return frozenset(volume_limit_fields(subject.pod.spec.volumes))
