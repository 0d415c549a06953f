"""The recommended reservation as a configuration snippet for each platform.

All snippets set the kubelet's `kubeReserved`. A change applies to new nodes: Gardener and Karpenter replace the old
nodes, AKS and EKS need a new node pool.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from trimtab.cli.output import format_manifests
from trimtab.cluster import quantity
from trimtab.reservations.measure import Reserved

SNIPPETS = ("kubelet", "gardener", "nodeadm", "ec2nodeclass", "aks")
_MEGABYTE = 1_000_000


def render_snippet(platform: str, pool: str, reserved: Reserved) -> str:
    """Returns the configuration of one pool for this platform, below a comment that names the pool."""
    return f"# pool {pool}\n{_RENDERERS[platform](pool, reserved)}"


def _kube_reserved(reserved: Reserved) -> dict[str, str]:
    return {"cpu": quantity.format_cpu(reserved.millicores), "memory": quantity.format_memory(reserved.memory_bytes)}


def _render_yaml(document: Mapping[str, Any]) -> str:
    return format_manifests([document])


def _render_kubelet(_pool: str, reserved: Reserved) -> str:
    return _render_yaml(
        {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "kubeReserved": _kube_reserved(reserved),
        }
    )


def _render_gardener(pool: str, reserved: Reserved) -> str:
    kubelet = {"kubelet": {"kubeReserved": _kube_reserved(reserved)}}
    workers = [{"name": pool, "kubernetes": kubelet}]
    return "# Part of a Shoot. Gardener replaces the pool's nodes when this changes.\n" + _render_yaml(
        {"spec": {"provider": {"workers": workers}}}
    )


def _render_nodeadm(_pool: str, reserved: Reserved) -> str:
    return _render_yaml(
        {
            "apiVersion": "node.eks.aws/v1alpha1",
            "kind": "NodeConfig",
            "spec": {"kubelet": {"config": {"kubeReserved": _kube_reserved(reserved)}}},
        }
    )


def _render_ec2nodeclass(pool: str, reserved: Reserved) -> str:
    return "# Part of an EC2NodeClass. Karpenter replaces the nodes that drift from it.\n" + _render_yaml(
        {
            "apiVersion": "karpenter.k8s.aws/v1",
            "kind": "EC2NodeClass",
            "metadata": {"name": pool},
            "spec": {"kubelet": {"kubeReserved": _kube_reserved(reserved)}},
        }
    )


def _render_aks(pool: str, reserved: Reserved) -> str:
    # Whole megabytes, rounded up: AKS takes no other unit.
    megabytes = -(-reserved.memory_bytes // _MEGABYTE)
    config = {"kubeReserved": {"cpuMillicores": reserved.millicores, "memoryMB": megabytes}}
    text = msgspec.json.format(msgspec.json.encode(config), indent=2).decode()
    return (
        f"# kubelet.json, for a new node pool (a preview of AKS): az aks nodepool add --name {pool} "
        f"--kubelet-config kubelet.json\n{text}\n"
    )


_RENDERERS: Mapping[str, Callable[[str, Reserved], str]] = {
    "kubelet": _render_kubelet,
    "gardener": _render_gardener,
    "nodeadm": _render_nodeadm,
    "ec2nodeclass": _render_ec2nodeclass,
    "aks": _render_aks,
}
