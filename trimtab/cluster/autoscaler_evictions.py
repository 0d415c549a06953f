"""Which pods keep a cluster autoscaler from removing their node, according to its flags."""

from dataclasses import dataclass

from trimtab.cluster import autoscaler_flags as f
from trimtab.cluster.cluster_autoscaler import Autoscaler


@dataclass(frozen=True, slots=True, kw_only=True)
class EvictionRules:
    """Which pods keep an autoscaler from removing their node. The defaults are those of the autoscaler."""

    local_storage_blocks: bool = True
    """Whether a pod with an emptyDir or a hostPath keeps its node."""
    custom_controllers_block: bool = True
    """Whether a pod whose owner is of an unknown kind keeps its node."""
    system_pod_seconds: int = 3600
    """The age in seconds until which a pod in kube-system without a PodDisruptionBudget keeps its node; 0: no such pod
    does."""
    min_replicas: int = 0
    """A pod of a ReplicaSet or ReplicationController that wants fewer replicas keeps its node."""


DEFAULT_RULES = EvictionRules()


def read_eviction_rules(autoscaler: Autoscaler | None) -> EvictionRules:
    """Returns the rules of an autoscaler, according to its flags. If there are several autoscalers, a pod keeps its
    node where it does so for any of them. Without an autoscaler, the defaults hold."""
    if autoscaler is None:
        return DEFAULT_RULES
    members = [member.flags for member in autoscaler.each]
    return EvictionRules(
        local_storage_blocks=any(f.SKIP_LOCAL_STORAGE.is_true_in(flags) for flags in members),
        custom_controllers_block=any(f.SKIP_CUSTOM_CONTROLLERS.is_true_in(flags) for flags in members),
        system_pod_seconds=max(
            f.SYSTEM_POD_TIMEOUT.seconds_in(flags) if f.SKIP_SYSTEM_PODS.is_true_in(flags) else 0 for flags in members
        ),
        min_replicas=max(
            f.MIN_REPLICAS.number_in(flags) if f.SKIP_CUSTOM_CONTROLLERS.is_true_in(flags) else 0 for flags in members
        ),
    )
