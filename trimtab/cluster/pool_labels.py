"""The labels and annotations with which platforms name the pool of a node.

A pool of one's own is named by the label `trimtab.dev/pool` on its nodes, or selected by the labels in the pool's
settings. If no node has a label of this table, `candidate_labels` finds the labels that divide the nodes into groups.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from trimtab.cluster.api.meta import Labels
from trimtab.cluster.node_nature import KARPENTER_POOL_LABEL

POOL_LABEL = "trimtab.dev/pool"
"""A label. On a ConfigMap, it says that the ConfigMap has a pool's settings. On a node, it names the node's pool, and
takes precedence over all other labels."""


@dataclass(frozen=True, slots=True)
class PoolLabel:
    """A label, or an annotation, of nodes whose value is the name or the ID of the node's pool."""

    key: str
    platform: str
    source: str
    """Where the label is documented, or where nodes with it can be seen."""
    is_annotation: bool = False


PLATFORM_LABELS: tuple[PoolLabel, ...] = (
    PoolLabel(POOL_LABEL, "Trimtab", "this project: set it on nodes to name a pool of your own"),
    PoolLabel("cloud.google.com/gke-nodepool", "Google GKE", "Google Cloud documentation, node pools"),
    PoolLabel("eks.amazonaws.com/nodegroup", "Amazon EKS managed node groups", "Amazon EKS user guide"),
    PoolLabel("alpha.eksctl.io/nodegroup-name", "eksctl", "eksctl documentation, node groups"),
    PoolLabel("kubernetes.azure.com/agentpool", "Azure AKS", "AKS documentation, node pools"),
    PoolLabel("agentpool", "Azure AKS, older label", "AKS documentation, node pools"),
    PoolLabel("worker.gardener.cloud/pool", "Gardener, STACKIT", "Gardener documentation, worker pools"),
    PoolLabel(KARPENTER_POOL_LABEL, "Karpenter", "Karpenter documentation, NodePools"),
    PoolLabel("karpenter.sh/provisioner-name", "Karpenter before 0.32", "Karpenter documentation, Provisioners"),
    PoolLabel("kops.k8s.io/instancegroup", "kOps", "kOps documentation, labels"),
    PoolLabel("doks.digitalocean.com/node-pool", "DigitalOcean DOKS", "DigitalOcean documentation, node labels"),
    PoolLabel(
        "hypershift.openshift.io/nodePool",
        "HyperShift: ROSA and ARO with hosted control planes",
        "cluster-api-provider-azure and ARO-HCP, labels of nodes",
    ),
    PoolLabel("lke.linode.com/pool-id", "Akamai LKE", "linode/cluster-api and dumps of nodes"),
    PoolLabel("ibm-cloud.kubernetes.io/worker-pool-name", "IBM Cloud", "dumps of nodes; portworx/torpedo"),
    PoolLabel("k8s.scaleway.com/pool-name", "Scaleway Kapsule", "Scaleway documentation; node selectors"),
    PoolLabel("alibabacloud.com/nodepool-id", "Alibaba ACK", "kubernetes/cloud-provider-alibaba-cloud; dumps of nodes"),
    PoolLabel("node.exoscale.net/nodepool-id", "Exoscale SKS", "exoscale/cloud-provider-exoscale; kubelet flags"),
    PoolLabel("vke.vultr.com/node-pool", "Vultr VKE", "node selectors in public repositories"),
    PoolLabel(
        "hcloud/node-group",
        "Hetzner with the cluster autoscaler",
        "kubernetes/autoscaler, cloudprovider/hetzner; kube-hetzner",
    ),
    PoolLabel("cce.cloud.com/cce-nodepool", "Huawei CCE, Open Telekom Cloud", "CCE user guide, node pools"),
    PoolLabel("yandex.cloud/node-group-id", "Yandex Managed Kubernetes", "dumps of nodes"),
    PoolLabel("tke.cloud.tencent.com/nodepool-id", "Tencent TKE", "dumps of nodes; TKE documentation"),
    PoolLabel("nodepool", "OVHcloud and others", "OVHcloud documentation, labels of node pools"),
    PoolLabel("k8s.ovh.net/nodepool", "OVHcloud, the ID of the pool", "opencost, pkg/cloud/ovh"),
    PoolLabel("kubernetes.civo.com/civo-node-pool", "Civo", "Civo documentation, node pools"),
    PoolLabel("magnum.openstack.org/nodegroup", "OpenStack Magnum", "Magnum documentation, node groups"),
    PoolLabel("compute.coreweave.com/node-pool", "CoreWeave", "CoreWeave documentation, node pools"),
    PoolLabel("autoscaling.k8s.io/nodegroup", "other users of the cluster autoscaler", "node selectors"),
    PoolLabel(
        "oci.oraclecloud.com/node-pool-id",
        "Oracle OKE",
        "oracle/oci-cloud-controller-manager and opencost, annotations of nodes",
        is_annotation=True,
    ),
)
"""If a node has several of these, the first in this order names its pool; a label counts before an annotation."""
POOL_LABELS = tuple(one.key for one in PLATFORM_LABELS if not one.is_annotation)
"""The labels of `PLATFORM_LABELS`."""
POOL_ANNOTATIONS = tuple(one.key for one in PLATFORM_LABELS if one.is_annotation)
"""The annotations of `PLATFORM_LABELS`."""

MAX_CANDIDATES = 4
"""The maximum number of labels that `candidate_labels` returns."""


@dataclass(frozen=True, slots=True)
class CandidateLabel:
    """A label that divides the nodes into groups, so that it might name their pools."""

    key: str
    groups: int
    """The number of its values."""


def candidate_labels(nodes: Iterable[Labels]) -> tuple[CandidateLabel, ...]:
    """Returns the labels that could name the pools of these nodes, the most likely ones first.

    A candidate is on every node, has at least two values, and at least one value is on two nodes or more, so that it
    does not name single nodes. Of labels that divide the nodes into the same groups, only one is returned. A label
    whose key has a word for a group of nodes (pool, group, role ...) comes first, then the one with fewer values.
    """
    all_labels = list(nodes)
    if len(all_labels) < 2:
        return ()
    shared = set(all_labels[0]).intersection(*all_labels)
    by_groups: dict[tuple[int, ...], str] = {}
    for key in sorted(shared, key=_likelihood):
        values = [labels[key] for labels in all_labels]
        if 1 < len(set(values)) < len(values):
            # The values as numbers in the order in which they first occur: equal for equal groups.
            numbers: dict[str, int] = {}
            by_groups.setdefault(tuple(numbers.setdefault(value, len(numbers)) for value in values), key)
    found = [CandidateLabel(key, len(set(groups))) for groups, key in by_groups.items()]
    return tuple(sorted(found, key=lambda one: (_likelihood(one.key)[0], one.groups, one.key))[:MAX_CANDIDATES])


_GROUP_WORDS = ("pool", "group", "role", "class", "profile", "team", "purpose", "machineset", "set")


def _likelihood(key: str) -> tuple[int, str]:
    name = key.lower()
    if any(word in name for word in ("pool", "nodegroup", "node-group", "machineset")):
        return 0, key
    return (1 if any(word in name.rpartition("/")[2] for word in _GROUP_WORDS) else 2), key
