"""Requests of whole pods (pod-level resources, KEP-2837): the kubelets that know them, and the name under which the
usage of all containers of a pod together is recorded."""

from __future__ import annotations

import re
from collections.abc import Collection

from trimtab.cluster.api.pod import PodSpec
from trimtab.cluster.resources import Role, all_containers, limits_of, requests_of, role_of

MIN_KUBELET = (1, 34)
"""The oldest kubelet, as (major, minor), that puts pod-level resources into force by default (KEP-2837)."""
_VERSION = re.compile(r"v?(\d{1,3})\.(\d{1,3})(?:\D|\Z)", re.ASCII)
_SEPARATOR = "+"
MAX_NAME_LENGTH = 512
"""The length of a name in characters up to which the usage of a set of containers is recorded. The author of a pod
chooses the number of its containers."""


def parse_kubelet_version(text: str) -> tuple[int, int] | None:
    """Returns (major, minor) of a kubelet's version such as v1.36.2-eks-1, or None if the text is no version."""
    match = _VERSION.match(text)
    return None if match is None else (int(match[1]), int(match[2]))


def list_lasting_names(spec: PodSpec) -> tuple[str, ...]:
    """Returns the names of the containers that run as long as the pod does: main containers and sidecars."""
    sidecars = (c.name for c in spec.init_containers if role_of(c, init=True) is Role.SIDECAR)
    return (*(c.name for c in spec.containers), *sidecars)


def has_huge_pages(spec: PodSpec) -> bool:
    """Returns whether a container of the pod, or the pod as a whole, requests huge pages or has a limit of them."""
    return any(
        name.startswith("hugepages-")
        for resources in (spec.resources, *(container.resources for container in all_containers(spec)))
        for side in (requests_of(resources), limits_of(resources))
        for name in side
    )


def name_whole_pod(containers: Collection[str]) -> str:
    """Returns the name under which the usage of these containers together is recorded, in place of a container's name;
    empty if it is not recorded: for a single container, and for too many.

    The name of no container has a plus sign. The names of all containers are in it, so that usage of another set of
    containers never counts for this one.
    """
    name = _SEPARATOR.join(sorted(containers))
    return name if len(containers) > 1 and len(name) <= MAX_NAME_LENGTH else ""


def split_whole_pod(name: str) -> tuple[str, ...]:
    """Returns the containers of a name of several containers together; none for an empty name."""
    return tuple(name.split(_SEPARATOR)) if name else ()


def is_whole_pod(container: str) -> bool:
    """Returns whether this name in place of a container's is that of several containers together."""
    return _SEPARATOR in container
