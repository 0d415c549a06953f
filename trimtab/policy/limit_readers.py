"""Finds out what in a pod reads a container's limit: the downward API, the kubelet for a volume in memory, or the
runtime in the container.

A limit that is read stays. The pod of a review is decoded without environment variables and command lines, because most
decisions do not need them. Here they are decoded from the pod's own bytes, once, for the first limit that would be
removed.
"""

from collections.abc import Iterable, Iterator

import msgspec

from trimtab.cluster.api.meta import UNSET, ApiObject, decode_part, value_or
from trimtab.cluster.api.pod import Container, ContainerSecurityContext, Pod, Volume, downward_items
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
from trimtab.policy.pod_context import ContainerRef, PodContext

LimitField = tuple[str, str]
"""(container, field), such as ("app", "limits.memory"). Container names are unique within a pod."""


def env_limit_fields(container: Container) -> tuple[LimitField, ...]:
    """Returns the limits to which the container's environment variables refer, of itself or of another container."""
    references = [env.value_from.resource_field_ref for env in container.env if env.value_from is not None]
    # A reference without a container's name means its own container (core/v1 ResourceFieldRef).
    fields = [(field.container_name or container.name, field.resource) for field in references if field is not None]
    return tuple([field for field in fields if field[1].startswith("limits.")])


def volume_limit_fields(volumes: Iterable[Volume]) -> Iterator[LimitField]:
    """Yields the limits that files of these volumes show."""
    for volume in volumes:
        for item in downward_items(volume):
            field = item.resource_field_ref
            if field is not None and field.resource.startswith("limits."):
                yield field.container_name, field.resource


def find_reference_reader(
    limit: LimitField, volume_fields: Iterable[LimitField], env_fields: Iterable[LimitField]
) -> LimitReader | None:
    """Returns what reads this limit through the downward API, or None if nothing does.

    `volume_fields` and `env_fields`: the limits to which the volumes and the environment variables of the pod refer.
    """
    if limit in volume_fields:
        place = "a volume"
    elif limit in env_fields:
        place = "an environment variable"
    else:
        return None
    return LimitReader("the downward API", f"resourceFieldRef: {limit[1]} in {place}")


# Kubernetes, pkg/volume/emptydir/empty_dir.go, calculateEmptyDirMemorySize: the memory that the node can allocate, or
# less if the pod has a limit or the volume has a size limit.
def find_memory_volume_reader(volumes: Iterable[Volume]) -> LimitReader | None:
    """Returns the kubelet as the reader of the pod's memory limits if it gives a volume in memory its size by them, or
    None if there is no such volume.

    Without the limit of a single container, the pod has no limit, and the volume may fill the memory of the node. A
    volume with a size limit never grows beyond that.
    """
    for volume in volumes:
        empty_dir = value_or(volume.empty_dir, None)
        if empty_dir is not None and empty_dir.medium == "Memory" and empty_dir.size_limit in (UNSET, None):
            return LimitReader(
                "the kubelet",
                f"emptyDir {volume.name} in memory without a sizeLimit",
                without_limit="the volume could grow to the memory of the node",
                instead=f"set a sizeLimit for emptyDir {volume.name}",
            )
    return None


def find_reference(pod_context: PodContext, container: ContainerRef, resource: str) -> LimitReader | None:
    """Returns what reads this limit through the downward API: an environment variable of any container, or a volume."""
    limit = container.container.name, f"limits.{resource}"
    return find_reference_reader(limit, pod_context.compute_once(_volume_fields), pod_context.compute_once(_env_fields))


def find_runtime_use(pod_context: PodContext, container: ContainerRef, resource: str) -> LimitUse:
    """Returns whether the container's runtime reads this limit. No runtime reads a limit of ephemeral storage."""
    if resource not in (CPU, MEMORY):
        return IndependentRuntime("")
    return find_limit_use(pod_context.compute_once(_runtimes_by_container).get(container.container.name, ()), resource)


def _runtimes_by_container(pod_context: PodContext) -> dict[str, tuple[RuntimeSign, ...]]:
    # Operators name a pod's language in annotations, too.
    mappings = pod_context.labels, pod_context.annotations
    return {signs.name: add_label_signs(signs.runtimes, *mappings) for signs in pod_context.compute_once(_all_signs)}


def _all_signs(pod_context: PodContext) -> tuple[ContainerSigns, ...]:
    signs = read_container_signs(pod_context.pod, pod_context.body)
    if pod_context.reads is not None:
        pod_context.reads.container_signs.add(signs)
    return signs


class _TextContainer(Container, frozen=True, kw_only=True):
    security_context: ContainerSecurityContext | None = msgspec.field(default=None, name="-")


class _TextSpec(ApiObject, frozen=True, kw_only=True):
    containers: tuple[_TextContainer, ...] = ()
    init_containers: tuple[_TextContainer, ...] = ()


class _TextPod(ApiObject, frozen=True, kw_only=True):
    """A pod with those fields only that may show a runtime."""

    spec: _TextSpec = _TextSpec()


_text_decoder = msgspec.json.Decoder(_TextPod)


def _read_containers(body: bytes) -> tuple[Container, ...]:
    """Returns the containers of the pod with what their environment variables and command lines show."""
    spec = decode_part(_text_decoder, _TextPod, body).spec
    return (*spec.containers, *spec.init_containers)


def read_container_signs(pod: Pod, body: bytes) -> tuple[ContainerSigns, ...]:
    """Returns what the environment variables, command lines and images of the pod's containers show.

    body: the pod's own bytes; if they are empty, `pod` itself has been decoded with its variables and command lines.
    """
    containers = _read_containers(body) if body else (*pod.spec.containers, *pod.spec.init_containers)
    return tuple([_signs_of(container) for container in containers])


def _signs_of(container: Container) -> ContainerSigns:
    signs = container_signs(container.runtime_signs, container.image)
    return ContainerSigns(container.name, env_limit_fields(container), signs)


def _env_fields(pod_context: PodContext) -> frozenset[LimitField]:
    return frozenset([field for signs in pod_context.compute_once(_all_signs) for field in signs.limit_fields])


def _volume_fields(pod_context: PodContext) -> frozenset[LimitField]:
    return frozenset(volume_limit_fields(pod_context.pod.spec.volumes))
