"""A kube-scheduler that packs nodes: its configuration and manifests, and the equivalent settings for clouds that run
the scheduler themselves.

NodeResourcesFit with MostAllocated gives the fullest node the highest score (kube-scheduler 1.36). The weights of cpu
and memory are the shares of the nodes' price that pay for each, so that a node counts as full when what it costs is
used. Sources: kubernetes.io "Resource bin packing"; EKS API KubeSchedulerConfigRequest; learn.microsoft.com "Bin pack
nodes with scheduler profiles" (aks.azure.com/v1alpha1, preview); GKE "autoscaling profiles".
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from trimtab.cluster.node import NodeInfo
from trimtab.cluster.reason import Unreadable

DEFAULT_NAME = "trimtab-pack"
SCHEDULER_IMAGE = "registry.k8s.io/kube-scheduler"
_MILLI, _GIB = 1000, 1 << 30


@dataclass(frozen=True, slots=True)
class ResourceWeights:
    """The weights of cpu and memory in the score, which add up to 100."""

    cpu: int
    memory: int


def weigh_resources(nodes: Iterable[NodeInfo], memory_weight: float) -> ResourceWeights | None:
    """Returns the shares of these nodes' price that pay for cpu and for memory, or None if no node can be read.

    `memory_weight` is the number of GiB that cost as much as a core.
    """
    cores = gib = 0.0
    for node in nodes:
        if not isinstance(node.capacity, Unreadable):
            cores += node.capacity.get("cpu", 0) / _MILLI
            gib += node.capacity.get("memory", 0) / _GIB
    if not cores or not gib:
        return None
    cpu = round(100 * memory_weight * cores / (memory_weight * cores + gib))
    return ResourceWeights(cpu=min(99, max(1, cpu)), memory=100 - min(99, max(1, cpu)))


def render_strategy(weights: ResourceWeights) -> dict[str, Any]:
    """Returns the scoring strategy of NodeResourcesFit."""
    resources = [{"name": "cpu", "weight": weights.cpu}, {"name": "memory", "weight": weights.memory}]
    return {"type": "MostAllocated", "resources": resources}


def render_configuration(name: str, weights: ResourceWeights, lease_namespace: str | None) -> dict[str, Any]:
    """Returns a KubeSchedulerConfiguration with one profile of this name.

    With `lease_namespace`, its replicas elect a leader by a Lease of the same name in that namespace; None leaves that
    to the caller. The score NodeResourcesBalancedAllocation is disabled, because it would work against filling nodes.
    """
    configuration: dict[str, Any] = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [
            {
                "schedulerName": name,
                "plugins": {
                    "score": {
                        "disabled": [{"name": "NodeResourcesBalancedAllocation"}],
                        "enabled": [{"name": "NodeResourcesFit", "weight": 10}],
                    }
                },
                "pluginConfig": [
                    {
                        "name": "NodeResourcesFit",
                        "args": {
                            "apiVersion": "kubescheduler.config.k8s.io/v1",
                            "kind": "NodeResourcesFitArgs",
                            "scoringStrategy": render_strategy(weights),
                        },
                    }
                ],
            }
        ],
    }
    if lease_namespace is not None:
        configuration["leaderElection"] = {
            "leaderElect": True,
            "resourceLock": "leases",
            "resourceName": name,
            "resourceNamespace": lease_namespace,
        }
    return configuration


def render_eks(weights: ResourceWeights) -> dict[str, Any]:
    """Returns the KubeSchedulerConfigRequest of the EKS API, which changes the cluster's only scheduler."""
    return {"nodeResourcesFit": {"scoringStrategy": render_strategy(weights)}}


def render_aks(configuration_text: str) -> dict[str, Any]:
    """Returns the SchedulerConfiguration object of AKS (preview) with a KubeSchedulerConfiguration as text."""
    return {
        "apiVersion": "aks.azure.com/v1alpha1",
        "kind": "SchedulerConfiguration",
        "metadata": {"name": "upstream"},
        "spec": {"rawConfig": configuration_text},
    }


GKE_COMMAND = "gcloud container clusters update CLUSTER --autoscaling-profile=optimize-utilization"
"""The command that sets a GKE cluster's autoscaling profile so that nodes are packed. Pods then use the scheduler
gke.io/optimize-utilization-scheduler."""


def render_manifests(name: str, namespace: str, image: str, configuration_text: str) -> list[dict[str, Any]]:
    """Returns the manifests of a second scheduler: its service account and permissions, its configuration, and two
    replicas of which one leads."""
    labels = {"app.kubernetes.io/name": name, "app.kubernetes.io/part-of": "trimtab"}
    meta = {"name": name, "namespace": namespace, "labels": labels}
    subject = [{"kind": "ServiceAccount", "name": name, "namespace": namespace}]
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta},
        _bind_cluster_role(f"{name}-scheduler", "system:kube-scheduler", labels, subject),
        _bind_cluster_role(f"{name}-volumes", "system:volume-scheduler", labels, subject),
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "RoleBinding",
            "metadata": {"name": f"{name}-authentication", "namespace": "kube-system", "labels": labels},
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io",
                "kind": "Role",
                "name": "extension-apiserver-authentication-reader",
            },
            "subjects": subject,
        },
        {
            # system:kube-scheduler may use the Lease kube-scheduler alone.
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "Role",
            "metadata": meta,
            "rules": [
                {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["create"]},
                {
                    "apiGroups": ["coordination.k8s.io"],
                    "resources": ["leases"],
                    "resourceNames": [name],
                    "verbs": ["get", "update", "patch"],
                },
            ],
        },
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "RoleBinding",
            "metadata": meta,
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name},
            "subjects": subject,
        },
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"config.yaml": configuration_text}},
        _render_deployment(name, meta, labels, image),
    ]


def _bind_cluster_role(name: str, role: str, labels: Mapping[str, str], subject: list[Any]) -> dict[str, Any]:
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name, "labels": dict(labels)},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": subject,
    }


def _render_deployment(name: str, meta: Mapping[str, Any], labels: Mapping[str, str], image: str) -> dict[str, Any]:
    container = {
        "name": "kube-scheduler",
        "image": image,
        "command": ["kube-scheduler", "--config=/etc/scheduler/config.yaml"],
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}},
        "livenessProbe": {"httpGet": {"path": "/livez", "port": 10259, "scheme": "HTTPS"}, "initialDelaySeconds": 15},
        "readinessProbe": {"httpGet": {"path": "/readyz", "port": 10259, "scheme": "HTTPS"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [{"name": "config", "mountPath": "/etc/scheduler", "readOnly": True}],
    }
    spread = {
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": dict(labels)},
    }
    pod = {
        "serviceAccountName": name,
        "priorityClassName": "system-cluster-critical",
        "securityContext": {"runAsNonRoot": True, "runAsUser": 65534, "seccompProfile": {"type": "RuntimeDefault"}},
        "topologySpreadConstraints": [spread],
        "containers": [container],
        "volumes": [{"name": "config", "configMap": {"name": name}}],
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": dict(meta),
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": dict(labels)},
            "template": {"metadata": {"labels": dict(labels)}, "spec": pod},
        },
    }
