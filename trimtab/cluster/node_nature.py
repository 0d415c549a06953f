"""What a node is: a machine that runs any pod, or something else, with the signs that show it.

This module alone knows the labels, taints, annotations and names that show what a node is; everything else asks
`NodeInfo.nature` (or `nature_of_node` for a Node object). Beside the table of platforms stand general signs, which also
recognize platforms that the table lacks: words of Virtual Kubelet in labels, taints and the kubelet's version, a node
for one pod only, and a capacity that no machine has.

A node without a sign is an ordinary machine.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from math import prod

from trimtab.cluster.api.core import Node, Taint
from trimtab.cluster.api.meta import Labels, ResourceList, value_or
from trimtab.cluster.quantity import NotAQuantity
from trimtab.cluster.resources import Amounts, scheduler_amounts


class NodeKind(StrEnum):
    """What a node can be, other than an ordinary machine. A node can be several of these."""

    SERVERLESS = "serverless"
    """Not a machine that is paid for: the platform bills pods, or the node represents another cluster. Its capacity is
    not real, and its removal saves nothing."""
    EDGE = "edge"
    """A machine outside of the cluster's data center, for pods that belong there. No autoscaler removes it."""
    CONTROL_PLANE = "control-plane"
    KARPENTER = "karpenter"
    """A machine that Karpenter adds and removes."""
    SLICE_HOST = "slice-host"
    """One of several hosts of a TPU slice, which are added and removed together."""
    FAKE = "fake"
    """A simulated node. It counts as the machine that it simulates, so that a plan can be tried on it, but a plan says
    that it costs nothing."""


class SignPlace(StrEnum):
    """The part of a Node object in which a sign is."""

    LABEL = "label"
    TAINT = "taint"
    ANNOTATION = "annotation"


@dataclass(frozen=True, slots=True)
class SignRule:
    """One row of the table: a label, taint or annotation that shows what a node is."""

    kind: NodeKind
    place: SignPlace
    key: str
    values: tuple[str, ...]
    """The values that are signs. If there are none, every value is one."""
    platform: str
    source: str
    """Where the sign is documented, or the program that sets or reads it."""


@dataclass(frozen=True, slots=True)
class NodeSign:
    """A sign that a node has."""

    kind: NodeKind
    platform: str
    """The platform or component that the sign belongs to; for Karpenter the name of the NodePool."""
    evidence: str
    """The sign itself, as in "the label type=virtual-kubelet"."""
    key: str = ""
    """The key of the label, taint or annotation; empty for other signs."""


@dataclass(frozen=True, slots=True)
class NodeNature:
    """What a node is. Without signs, it is an ordinary machine."""

    signs: tuple[NodeSign, ...] = ()
    """At most one sign of each kind."""
    is_machine: bool = field(init=False)
    """Whether the node is a machine that is paid for, so that it counts in sums and prices."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "is_machine", self.sign_of(NodeKind.SERVERLESS) is None)

    def sign_of(self, kind: NodeKind) -> NodeSign | None:
        """Returns the sign that the node is of this kind, or None if it is not."""
        return next((sign for sign in self.signs if sign.kind is kind), None)

    @property
    def is_made_to_measure(self) -> bool:
        """Whether the platform makes a node for each pod, with the size of the pod."""
        sign = self.sign_of(NodeKind.SERVERLESS)
        return sign is not None and sign.platform in (_FARGATE, _ONE_POD)

    @property
    def reserved_sign(self) -> NodeSign | None:
        """The sign that the node is only for pods that select it: it is no machine, or a machine elsewhere."""
        return self.sign_of(NodeKind.SERVERLESS) or self.sign_of(NodeKind.EDGE)


_FARGATE, _ONE_POD = "AWS Fargate", "a node for one pod"
ORDINARY = NodeNature()
KARPENTER_POOL_LABEL = "karpenter.sh/nodepool"
_COMPUTE_TYPE = "eks.amazonaws.com/compute-type"
_TPU_TOPOLOGY_LABEL, _TPU_RESOURCE = "cloud.google.com/gke-tpu-topology", "google.com/tpu"
"""The node label with the layout of a TPU slice ("2x2x4"), and the resource that counts the chips of one node."""

_S, _E, _C, _K = NodeKind.SERVERLESS, NodeKind.EDGE, NodeKind.CONTROL_PLANE, NodeKind.KARPENTER
_F = NodeKind.FAKE
_LABEL, _TAINT, _ANNOTATION = SignPlace.LABEL, SignPlace.TAINT, SignPlace.ANNOTATION
SIGN_RULES: tuple[SignRule, ...] = (
    SignRule(
        _S,
        _LABEL,
        "type",
        ("virtual-kubelet",),
        "Virtual Kubelet",
        "the label of the default node: virtual-kubelet, ACI, Alibaba ECI, Huawei CCE bursting",
    ),
    SignRule(
        _S,
        _TAINT,
        "virtual-kubelet.io/provider",
        (),
        "Virtual Kubelet",
        "DefaultTaintKey of the command virtual-kubelet",
    ),
    SignRule(_S, _LABEL, _COMPUTE_TYPE, ("fargate",), _FARGATE, "Amazon EKS user guide, Fargate"),
    SignRule(_S, _TAINT, _COMPUTE_TYPE, ("fargate",), _FARGATE, "Amazon EKS user guide, Fargate"),
    SignRule(
        _S,
        _LABEL,
        "node.kubernetes.io/instance-type",
        ("eklet",),
        "Tencent super nodes",
        "Tencent TKE documentation, scheduling pods to super nodes",
    ),
    SignRule(
        _S,
        _TAINT,
        "eks.tke.cloud.tencent.com/eklet",
        (),
        "Tencent super nodes",
        "Tencent TKE documentation, scheduling pods to super nodes",
    ),
    SignRule(
        _S,
        _ANNOTATION,
        "oci.oraclecloud.com/virtual-node-pool-id",
        (),
        "Oracle virtual nodes",
        "opencost, pkg/cloud/oracle/provider.go",
    ),
    SignRule(
        _S,
        _LABEL,
        "liqo.io/type",
        ("virtual-node",),
        "Liqo, which represents another cluster",
        "Liqo documentation, namespace offloading",
    ),
    SignRule(
        _S,
        _LABEL,
        "vcluster.loft.sh/fake-node",
        ("true",),
        "vCluster, which shows a node of another cluster",
        "loft-sh/vcluster, nodeservice and translate: the label of fake nodes",
    ),
    # Not documented by Google; third-party programs read it. Google documents the names of the nodes (`_AUTOPILOT`).
    SignRule(
        _S,
        _LABEL,
        "cloud.google.com/gke-autopilot",
        ("", "true"),
        "GKE Autopilot",
        "armosec/armoapi-go, cloud host types (unverified)",
    ),
    SignRule(_E, _LABEL, _COMPUTE_TYPE, ("hybrid",), "EKS Hybrid Nodes", "Amazon EKS user guide, hybrid nodes"),
    SignRule(
        _E,
        _LABEL,
        "alibabacloud.com/is-edge-worker",
        ("true",),
        "Alibaba ACK Edge",
        "kubernetes/cloud-provider-alibaba-cloud, model/elb",
    ),
    SignRule(_E, _LABEL, "openyurt.io/is-edge-worker", ("true",), "OpenYurt", "OpenYurt documentation, joining nodes"),
    SignRule(
        _C,
        _LABEL,
        "node-role.kubernetes.io/control-plane",
        (),
        "Kubernetes",
        "Kubernetes documentation, well-known labels",
    ),
    SignRule(_C, _LABEL, "node-role.kubernetes.io/master", (), "Kubernetes", "kubeadm before 1.24, OpenShift, k3s"),
    SignRule(_C, _LABEL, "node-role.kubernetes.io/controlplane", (), "Rancher", "RKE documentation, roles of nodes"),
    SignRule(_C, _LABEL, "node-role.kubernetes.io/etcd", (), "Rancher", "RKE, RKE2 and k3s documentation, roles"),
    SignRule(_K, _LABEL, KARPENTER_POOL_LABEL, (), "Karpenter", "Karpenter documentation, NodePools"),
    SignRule(_K, _LABEL, "karpenter.sh/provisioner-name", (), "Karpenter", "Karpenter before 0.32, Provisioners"),
    SignRule(
        _F,
        _ANNOTATION,
        "kwok.x-k8s.io/node",
        ("fake",),
        "KWOK",
        "KWOK documentation, manage nodes and pods: the selector of the nodes that it manages",
    ),
    SignRule(_F, _TAINT, "kwok.x-k8s.io/node", ("fake",), "KWOK", "KWOK documentation, manage nodes and pods"),
)

_AUTOPILOT = re.compile(r"gk3-.+")
"""The names of GKE Autopilot's nodes (Google Cloud documentation, Autopilot; those of GKE Standard begin with gke-)."""
_EDGE_ROLE, _AGENT_ROLE = "node-role.kubernetes.io/edge", "node-role.kubernetes.io/agent"
"""KubeEdge's keadm sets both. The first alone is often set on ordinary nodes that receive traffic (Kubespray)."""
_VIRTUAL = re.compile(r"(?:^|[./_-])virtual-?(?:kubelet|node)(?:$|[./_-])")
_TYPE_KEY = re.compile(r"(?:^|[./_-])(?:type|role|provider)$")
_VIRTUAL_VERSION = re.compile(r"(?:^|-)(?:vk|virtual-kubelet)(?:$|-)")
"""Virtual Kubelet appends "vk" and its own version to the version of Kubernetes: v1.31.1-vk-azure-aci-1.6.2."""
MAX_MILLICORES, MAX_MEMORY = 4096 * 1000, 64 << 40
"""More than any machine has: in 2026, the largest that clouds rent have about 2 000 cores and 32 TiB."""


def nature_of_node(node: Node) -> NodeNature:
    """Returns what the node of a Node object is."""
    allocatable, capacity = (_read_amounts(part) for part in (node.status.allocatable, node.status.capacity))
    meta = node.metadata
    return nature_of(
        meta.name,
        value_or(meta.labels, {}),
        value_or(meta.annotations, {}),
        node.spec.taints,
        provider_id=node.spec.provider_id,
        kubelet_version=node.status.node_info.kubelet_version,
        capacity=join_amounts(allocatable, capacity),
    )


def _read_amounts(quantities: ResourceList) -> Amounts:
    try:
        return scheduler_amounts(quantities)
    except NotAQuantity:
        return {}


def join_amounts(allocatable: Amounts, capacity: Amounts) -> Amounts:
    """Returns the amounts that show what a node is: its capacity, or what is allocatable if the capacity is not known.
    The number of pods is only taken from the capacity, because readers assume one where `allocatable` lacks it."""
    return {**{name: amount for name, amount in allocatable.items() if name != "pods"}, **capacity}


def nature_of(
    name: str,
    labels: Labels,
    annotations: Labels,
    taints: Iterable[Taint],
    *,
    provider_id: str = "",
    kubelet_version: str = "",
    capacity: Mapping[str, int],
) -> NodeNature:
    """Returns what a node is. `capacity` is in the scheduler's units; it is empty if it is not known."""
    taints = tuple(taints)
    signs: dict[NodeKind, NodeSign] = {}
    for sign in (
        *_signs_by_table(labels, annotations, taints),
        *_serverless_signs(name, labels, taints, provider_id, kubelet_version, capacity),
        *_edge_signs(labels, kubelet_version),
        *_slice_signs(labels, capacity),
    ):
        signs.setdefault(sign.kind, sign)
    return NodeNature(tuple(signs.values())) if signs else ORDINARY


def _signs_by_table(labels: Labels, annotations: Labels, taints: tuple[Taint, ...]) -> Iterator[NodeSign]:
    values_by_place = {_LABEL: labels, _ANNOTATION: annotations, _TAINT: {one.key: one.value for one in taints}}
    for rule in SIGN_RULES:
        value = values_by_place[rule.place].get(rule.key)
        if value is not None and (not rule.values or value in rule.values):
            platform = value if rule.kind is NodeKind.KARPENTER else rule.platform
            yield NodeSign(rule.kind, platform, _describe_sign(rule.place, rule.key, value), rule.key)


def _serverless_signs(
    name: str,
    labels: Labels,
    taints: tuple[Taint, ...],
    provider_id: str,
    kubelet_version: str,
    capacity: Mapping[str, int],
) -> Iterator[NodeSign]:
    for place, key, value in (
        *((_LABEL, key, value) for key, value in labels.items()),
        *((_TAINT, taint.key, taint.value) for taint in taints),
    ):
        is_virtual = _VIRTUAL.search(key) or ("virtual" in value and _TYPE_KEY.search(key) and _VIRTUAL.search(value))
        if is_virtual and value != "false":
            yield NodeSign(NodeKind.SERVERLESS, "a virtual node", _describe_sign(place, key, value), key)
    if _VIRTUAL_VERSION.search(kubelet_version):
        evidence = f"the kubelet's version {kubelet_version}"
        yield NodeSign(NodeKind.SERVERLESS, "Virtual Kubelet", evidence)
    if _AUTOPILOT.fullmatch(name) and provider_id.startswith("gce://"):
        yield NodeSign(NodeKind.SERVERLESS, "GKE Autopilot", "the name, which begins with gk3-")
    if capacity.get("pods") == 1:
        yield NodeSign(NodeKind.SERVERLESS, _ONE_POD, "the capacity of one pod")
    if capacity.get("cpu", 0) > MAX_MILLICORES or capacity.get("memory", 0) > MAX_MEMORY:
        yield NodeSign(NodeKind.SERVERLESS, "a virtual node", "a capacity that no machine has")


def _edge_signs(labels: Labels, kubelet_version: str) -> Iterator[NodeSign]:
    if "kubeedge" in kubelet_version:
        yield NodeSign(NodeKind.EDGE, "KubeEdge", f"the kubelet's version {kubelet_version}")
    if _EDGE_ROLE in labels and _AGENT_ROLE in labels:
        yield NodeSign(NodeKind.EDGE, "KubeEdge", f"the labels {_EDGE_ROLE} and {_AGENT_ROLE}")


def _slice_signs(labels: Labels, capacity: Mapping[str, int]) -> Iterator[NodeSign]:
    """Yields the sign of a host of a TPU slice that has more chips than this host. GKE scales such a slice only as a
    whole."""
    topology = labels.get(_TPU_TOPOLOGY_LABEL, "")
    sizes = topology.split("x")
    if capacity and all(size.isdecimal() for size in sizes) and prod(map(int, sizes)) > capacity.get(_TPU_RESOURCE, 0):
        yield NodeSign(NodeKind.SLICE_HOST, topology, f"the label {_TPU_TOPOLOGY_LABEL}={topology}")


def _describe_sign(place: SignPlace, key: str, value: str) -> str:
    return f"the {place} {key}={value}" if value else f"the {place} {key}"


SIGN_LABELS = frozenset(rule.key for rule in SIGN_RULES if rule.place is _LABEL) | {_EDGE_ROLE, _AGENT_ROLE}
"""The labels that can show what a node is. A pod that requires one of them names the kind of node on which it runs."""
SIGN_KEYS = SIGN_LABELS | {rule.key for rule in SIGN_RULES if rule.place is _TAINT}
"""The keys of labels and taints that can show what a node is."""
SIGN_ANNOTATIONS = {rule.key: rule.values for rule in SIGN_RULES if rule.place is _ANNOTATION}
"""Annotation that can show what a node is → the values that do; if there are none, every value does."""
