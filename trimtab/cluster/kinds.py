"""Kinds with their API groups.

A kind's name alone does not identify it: `apps/v1` and `apps.kruise.io/v1beta1` both have a StatefulSet, and the two
have nothing in common. So every kind in Trimtab is a `GroupKind`. The versions of one group are one kind.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final, NewType

GroupKind = NewType("GroupKind", str)
"""A kind of a group: `Deployment`, or `StatefulSet.apps.kruise.io`. The group follows the kind's name unless the name
alone means this group (`GROUPS_BY_KIND`). So the name of a built-in kind never equals that of another group's kind."""

_CORE: Final = "core"
"""How the core group is written after the name of a kind that is another group's."""

GROUPS_BY_KIND: Mapping[str, str] = {
    # Kubernetes 1.36, api/openapi-spec, `x-kubernetes-group-version-kind`.
    **dict.fromkeys(
        (
            "Binding",
            "ConfigMap",
            "Endpoints",
            "LimitRange",
            "Namespace",
            "Node",
            "PersistentVolume",
            "PersistentVolumeClaim",
            "Pod",
            "PodTemplate",
            "ReplicationController",
            "ResourceQuota",
            "Secret",
            "Service",
            "ServiceAccount",
            "List",
        ),
        "",
    ),
    **dict.fromkeys(("ControllerRevision", "DaemonSet", "Deployment", "ReplicaSet", "StatefulSet"), "apps"),
    **dict.fromkeys(("CronJob", "Job"), "batch"),
    "Event": "events.k8s.io",
    "HorizontalPodAutoscaler": "autoscaling",
    "PodDisruptionBudget": "policy",
    "PriorityClass": "scheduling.k8s.io",
    "RuntimeClass": "node.k8s.io",
    "Lease": "coordination.k8s.io",
    "EndpointSlice": "discovery.k8s.io",
    "APIService": "apiregistration.k8s.io",
    "CustomResourceDefinition": "apiextensions.k8s.io",
    **dict.fromkeys(("Ingress", "IngressClass", "NetworkPolicy"), "networking.k8s.io"),
    **dict.fromkeys(("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"), "rbac.authorization.k8s.io"),
    **dict.fromkeys(
        ("CSIDriver", "CSINode", "CSIStorageCapacity", "StorageClass", "VolumeAttachment"), "storage.k8s.io"
    ),
    **dict.fromkeys(("DeviceClass", "ResourceClaim", "ResourceClaimTemplate", "ResourceSlice"), "resource.k8s.io"),
    **dict.fromkeys(
        (
            "MutatingAdmissionPolicy",
            "MutatingAdmissionPolicyBinding",
            "MutatingWebhookConfiguration",
            "ValidatingAdmissionPolicy",
            "ValidatingAdmissionPolicyBinding",
            "ValidatingWebhookConfiguration",
        ),
        "admissionregistration.k8s.io",
    ),
    **dict.fromkeys(("NodeMetrics", "PodMetrics"), "metrics.k8s.io"),
    "KubeletConfiguration": "kubelet.config.k8s.io",
    "KubeSchedulerConfiguration": "kubescheduler.config.k8s.io",
    # github.com/kubernetes/autoscaler: vertical-pod-autoscaler/pkg/apis, cluster-autoscaler/apis.
    **dict.fromkeys(("VerticalPodAutoscaler", "VerticalPodAutoscalerCheckpoint"), "autoscaling.k8s.io"),
    "CapacityBuffer": "autoscaling.x-k8s.io",
    "Cluster": "cluster.x-k8s.io",
    # The projects' own CustomResourceDefinitions.
    "Rollout": "argoproj.io",
    "DeploymentConfig": "apps.openshift.io",
    **dict.fromkeys(("Certificate", "Issuer"), "cert-manager.io"),
    **dict.fromkeys(("NodeClaim", "NodePool"), "karpenter.sh"),
    **dict.fromkeys(("ScaledJob", "ScaledObject"), "keda.sh"),
    "SleepInfo": "kube-green.com",
    "Elasticsearch": "elasticsearch.k8s.elastic.co",
    "JobSet": "jobset.x-k8s.io",
    "LeaderWorkerSet": "leaderworkerset.x-k8s.io",
    **dict.fromkeys(("RayCluster", "RayJob", "RayService"), "ray.io"),
    **dict.fromkeys(("Capture", "DrainOrder", "ForbiddenKind", "PodPolicy", "PoolStatus"), "trimtab.dev"),
}
"""Kind → the group that the kind's name means where no group is written: in an owner reference or a target without
`apiVersion`, in a policy's `owners`, in documents that an earlier version of Trimtab stored."""

_FORMER_GROUPS: Mapping[tuple[str, str], str] = {
    # Until Kubernetes 1.16 these kinds were served in two groups, and old objects still name the former one
    # (CHANGELOG-1.16, "Deprecations and Removals").
    **{("extensions", kind): "apps" for kind in ("DaemonSet", "Deployment", "ReplicaSet")},
    **{("extensions", kind): "networking.k8s.io" for kind in ("Ingress", "NetworkPolicy")},
    # An event is the same object in both groups (events.k8s.io/v1 and v1).
    ("", "Event"): "events.k8s.io",
    # OpenShift 3 served its kinds without a group (docs.openshift.com, "API group-qualified resource names").
    ("", "DeploymentConfig"): "apps.openshift.io",
}
"""(former group, kind) → the group of the same objects today. It is for owner references and stored objects, which name
the object by its UID, and for the targets of VPAs, whose controllers read only the name of the kind."""


CONTROLLER_KINDS: Final = (
    "CronJob",
    "DaemonSet",
    "Deployment",
    "Job",
    "ReplicaSet",
    "ReplicationController",
    "Rollout",
    "StatefulSet",
)
"""The kinds of controllers whose pods Trimtab knows well."""


def groups_of(kind: str) -> tuple[str, ...]:
    """Returns the groups in which the kind that this name alone means is or was served; the present one first."""
    present = GROUPS_BY_KIND[kind]
    return (present, *(group for (group, name), now in _FORMER_GROUPS.items() if (name, now) == (kind, present)))


# A cluster has a few hundred kinds at most; what tenants write must not make the cache grow.
@lru_cache(maxsize=1024)
def group_kind(api_version: str, kind: str) -> GroupKind:
    """Returns the kind of an object or a reference. Without an `apiVersion` the kind is what its name alone means."""
    if not api_version and "." not in kind:
        return GroupKind(kind)
    group = api_version.rpartition("/")[0]
    return _join_group(_FORMER_GROUPS.get((group, kind), group), kind, is_group_known=bool(api_version))


def _join_group(group: str, kind: str, *, is_group_known: bool = True) -> GroupKind:
    if "." not in kind and GROUPS_BY_KIND.get(kind, "" if is_group_known else None) == group:
        return GroupKind(kind)
    # No kind's name contains a dot (the API server checks this), so what a tenant writes here must equal no other kind.
    return GroupKind(f"{kind.replace('.', '%2E')}.{group or _CORE}")


_SPELLINGS = {kind.lower(): kind for kind in (*GROUPS_BY_KIND, *CONTROLLER_KINDS)}


def spell_kind(kind: str) -> str:
    """Returns the kind whose name differs at most in upper and lower case; if there is none, the kind itself. The API
    server knows a kind only by its exact name."""
    return _SPELLINGS.get(kind.lower(), kind)


def is_former_group(group: str, kind: str) -> bool:
    """Returns whether the kind was served in this group once, and is not any more."""
    return (group, kind) in _FORMER_GROUPS


CORE_VERSION: Final = "v1"
"""The `apiVersion` of the core group."""


def scale_target_kind(api_version: str, kind: str) -> GroupKind:
    """Returns the kind of an HPA's target. Without an `apiVersion`, the HPA's controller looks in the core group (its
    `ParseGroupVersion` of an empty text), whatever the name of the kind means elsewhere.

    The controller asks the server for exactly the group that is written. So a former group stays what it is: a server
    that no longer serves it scales nothing.
    """
    return _join_group((api_version or CORE_VERSION).rpartition("/")[0], kind)


def built_in(kind: str) -> GroupKind:
    """Returns the kind that this name alone means. Raises KeyError if it means none: then the group must be written."""
    GROUPS_BY_KIND[kind]
    return GroupKind(kind)


CRON_JOB: Final = built_in("CronJob")
DAEMON_SET: Final = built_in("DaemonSet")
DEPLOYMENT: Final = built_in("Deployment")
JOB: Final = built_in("Job")
NODE: Final = built_in("Node")
POD: Final = built_in("Pod")
REPLICA_SET: Final = built_in("ReplicaSet")
REPLICATION_CONTROLLER: Final = built_in("ReplicationController")
ROLLOUT: Final = built_in("Rollout")
STATEFUL_SET: Final = built_in("StatefulSet")


def kind_name(kind: GroupKind) -> str:
    """Returns the kind's name without its group."""
    return kind.partition(".")[0]


def group_name(kind: GroupKind) -> str | None:
    """Returns the kind's group; an empty string for the core group, and None if no group is known."""
    name, dot, group = kind.partition(".")
    if not dot:
        return GROUPS_BY_KIND.get(name)
    return "" if group == _CORE else group


def kind_of_object(value: Any) -> GroupKind | None:
    """Returns the kind of a manifest, or None if it names no kind."""
    kind = value.get("kind") if isinstance(value, Mapping) else None
    if not isinstance(kind, str) or not kind:
        return None
    version = value.get("apiVersion")
    return group_kind(version if isinstance(version, str) else "", kind)
