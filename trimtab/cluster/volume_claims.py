"""PersistentVolumeClaims: from which nodes the volume of a claim can be reached, and whether it counts against the
number of volumes that a node can attach."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from trimtab.cluster.api.meta import UNSET, Labels, SelectorRequirement, change, value_or
from trimtab.cluster.api.pod import NodeSelector, NodeSelectorTerm
from trimtab.cluster.api.storage import PersistentVolume, PersistentVolumeClaim, PersistentVolumeSpec, StorageClass
from trimtab.cluster.kinds import POD
from trimtab.cluster.owner import controller_key

TOPOLOGY_LABELS = {
    "topology.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region": "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
}
"""A label of a volume → the label of a node whose value must agree with it (volumezone `topologyLabels`, 1.36)."""
SHARED_ACCESS_MODES = frozenset({"ReadWriteMany", "ReadOnlyMany"})
NO_PROVISIONER = "kubernetes.io/no-provisioner"
"""The provisioner of classes whose volumes are made by hand or by a controller for local disks."""
ZONE_SEPARATOR = "__"
"""Separates several zones in the value of one label (volume/helpers `LabelZonesToSet`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A PersistentVolumeClaim with the volume to which it is bound."""

    volume: str
    """The name of the volume; empty while the claim is not bound, or if the volume is not in the snapshot."""
    driver: str
    """The CSI driver that attaches the volume, even if the volume was created for an in-tree driver; empty if no driver
    does."""
    nodes: NodeSelector | None
    """The nodes from which the volume can be reached; None: every node."""
    is_single_pod: bool
    """Whether only one pod at a time may use the claim (ReadWriteOncePod)."""
    is_single_node: bool = False
    """Whether the volume can be attached to only one node at a time (ReadWriteOnce with a CSI driver), so that pods
    that share it must be on one node."""
    is_local: bool = False
    """Whether the data is on one node: the PersistentVolume is `local` or `hostPath`."""


def read_claims(
    shapes: Iterable[PersistentVolumeClaim], volumes: Iterable[PersistentVolume], classes: Iterable[StorageClass] = ()
) -> Iterator[tuple[tuple[str, str], Claim]]:
    """Yields ((namespace, name), claim) of each PersistentVolumeClaim."""
    volumes_by_name = {volume.metadata.name: volume for volume in volumes}
    anywhere = {one.metadata.name for one in classes if _follows_pod(one)}
    for shape in shapes:
        claim = _bound_claim(shape, volumes_by_name.get(shape.spec.volume_name))
        if _ends_with_pod(shape) and value_or(shape.spec.storage_class_name, "") in anywhere and not claim.is_local:
            # The successor gets a new claim, whose volume is made where the scheduler puts the pod.
            claim = replace(claim, nodes=None)
        yield (shape.metadata.namespace, shape.metadata.name), claim


def _ends_with_pod(shape: PersistentVolumeClaim) -> bool:
    """Returns whether the claim is that of a generic ephemeral volume: a pod controls it, and it is deleted with the
    pod (pkg/controller/volume/ephemeral)."""
    owner = controller_key(shape.metadata, shape.metadata.namespace)
    return owner is not None and owner.kind == POD


def _follows_pod(storage_class: StorageClass) -> bool:
    """Returns whether a new volume of the class is made wherever its pod is scheduled:

    - the class waits for the first pod before it makes a volume (WaitForFirstConsumer);
    - a provisioner makes the volumes: those of `no-provisioner` exist already, on their nodes;
    - the class does not restrict the places of its volumes (`allowedTopologies`).
    """
    return (
        storage_class.volume_binding_mode == "WaitForFirstConsumer"
        and storage_class.provisioner not in ("", NO_PROVISIONER)
        and not value_or(storage_class.allowed_topologies, ())
    )


def _bound_claim(shape: PersistentVolumeClaim, volume: PersistentVolume | None) -> Claim:
    # The scheduler enforces this mode (VolumeRestrictions plugin).
    alone = "ReadWriteOncePod" in shape.spec.access_modes
    # Not bound yet (WaitForFirstConsumer), or the volume is missing in the snapshot: any node may do.
    if volume is None:
        return Claim(volume="", driver="", nodes=None, is_single_pod=alone)
    spec = volume.spec
    return Claim(
        volume=shape.spec.volume_name,
        driver=_csi_driver(spec),
        nodes=_reachable_nodes(volume),
        is_single_pod=alone,
        # Without an attaching driver, ReadWriteOnce is not enforced by Kubernetes (NFS, hostPath).
        is_single_node=not SHARED_ACCESS_MODES.intersection(shape.spec.access_modes) and _csi_driver(spec) != "",
        is_local=not (spec.local is UNSET and spec.host_path is UNSET),
    )


def _csi_driver(spec: PersistentVolumeSpec) -> str:
    """Returns the CSI driver of a volume. The scheduler counts volumes of the in-tree types against the driver that
    replaced them (csi-translation-lib)."""
    if spec.csi is not UNSET:
        return value_or(spec.csi, None).driver  # type: ignore[union-attr]
    migrated = {
        "ebs.csi.aws.com": spec.aws_elastic_block_store,
        "pd.csi.storage.gke.io": spec.gce_persistent_disk,
        "disk.csi.azure.com": spec.azure_disk,
        "cinder.csi.openstack.org": spec.cinder,
        "csi.vsphere.vmware.com": spec.vsphere_volume,
        "pxd.portworx.com": spec.portworx_volume,
    }
    return next((driver for driver, source in migrated.items() if source is not UNSET), "")


def _reachable_nodes(volume: PersistentVolume) -> NodeSelector | None:
    """Returns a selector of the nodes that satisfy both the volume's node affinity and the zone or region in its
    labels, or None if every node does."""
    affinity = value_or(volume.spec.node_affinity, None)
    required = value_or(affinity.required, None) if affinity else None
    places = tuple(_zone_requirements(value_or(volume.metadata.labels, {})))
    if not places:
        return required
    if required is None:
        return NodeSelector(node_selector_terms=(NodeSelectorTerm(match_expressions=places),))
    return change(
        required, node_selector_terms=tuple(_narrow_term(term, places) for term in required.node_selector_terms)
    )


def _zone_requirements(labels: Labels) -> Iterator[SelectorRequirement]:
    for label, key in TOPOLOGY_LABELS.items():
        if label in labels:
            # A regional disk names several zones in one label.
            yield SelectorRequirement(key=key, operator="In", values=tuple(sorted(labels[label].split(ZONE_SEPARATOR))))


def _narrow_term(term: NodeSelectorTerm, places: tuple[SelectorRequirement, ...]) -> NodeSelectorTerm:
    """Returns the term with requirements for these zones or regions added. An empty term selects no node, and stays
    empty."""
    if not value_or(term.match_expressions, ()) and not value_or(term.match_fields, ()):
        return term
    return change(term, match_expressions=(*value_or(term.match_expressions, ()), *places))
