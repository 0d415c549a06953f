"""Finds the limits that a pod itself says are read: through the downward API, in environment variables or in files of a
volume, and by the kubelet for a volume in memory."""

from collections.abc import Iterable, Iterator

from trimtab.cluster.api.meta import UNSET, value_or
from trimtab.cluster.api.pod import Container, Volume, downward_items
from trimtab.cluster.runtime_signs import LimitReader

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
