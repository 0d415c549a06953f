"""What a pod needs of its node beside what kube-scheduler compares: the system, the runtime, features and drivers."""

from collections.abc import Iterable

import msgspec

from trimtab.cluster.api.meta import value_or
from trimtab.cluster.api.pod import Container, PodOS, PodSpec, Volume
from trimtab.cluster.resources import all_containers


class RuntimeNeeds(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What a pod needs of the kubelet and the container runtime of its node. The scheduler does not check it."""

    operating_system: str = ""
    """`spec.os.name`; empty if the pod does not say it."""
    runtime_class: str = ""
    uses_user_namespace: bool = False
    """Whether the pod has `hostUsers: false`."""
    uses_strict_groups: bool = False
    """Whether the pod has `supplementalGroupsPolicy: Strict`."""
    mounts_recursively: bool = False
    """Whether a container has a mount with `recursiveReadOnly: Enabled`."""
    declared_features: frozenset[str] = frozenset()
    """The features that the node must declare."""
    volume_drivers: tuple[str, ...] = ()
    """The CSI drivers of the volumes that the pod itself defines."""


NO_RUNTIME_NEEDS = RuntimeNeeds()


def read_runtime_needs(spec: PodSpec) -> RuntimeNeeds:
    """Returns what the pod needs of the kubelet and the container runtime of its node."""
    context, containers = spec.security_context, all_containers(spec)
    needs = RuntimeNeeds(
        operating_system=value_or(spec.os, PodOS()).name,
        runtime_class=value_or(spec.runtime_class_name, ""),
        uses_user_namespace=spec.host_users is False,
        uses_strict_groups=context is not None and context.supplemental_groups_policy == "Strict",
        mounts_recursively=any(
            mount.recursive_read_only == "Enabled" for container in containers for mount in container.volume_mounts
        ),
        declared_features=frozenset(_needed_features(spec, containers)),
        volume_drivers=inline_drivers(spec.volumes),
    )
    return NO_RUNTIME_NEEDS if needs == NO_RUNTIME_NEEDS else needs


def _needed_features(spec: PodSpec, containers: Iterable[Container]) -> Iterable[str]:
    """Yields the features that a node must declare to run the pod. kube-scheduler infers them from the spec, too
    (component-helpers/nodedeclaredfeatures, 1.35)."""
    if spec.host_network and spec.host_users is False:
        yield "UserNamespacesHostNetworkSupport"
    rules = (rule for container in containers for rule in container.restart_policy_rules)
    if any(rule.action == "RestartAllContainers" for rule in rules):
        yield "RestartAllContainersOnContainerExits"


def inline_drivers(volumes: Iterable[Volume]) -> tuple[str, ...]:
    """Returns the CSI drivers of the volumes that the pod itself defines."""
    drivers = [volume.csi.get("driver") for volume in volumes if isinstance(volume.csi, dict)]
    return tuple(driver for driver in drivers if isinstance(driver, str) and driver) if drivers else ()
