"""Where can the data of a PersistentVolumeClaim be reached, and what does it hold on a node?"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from trimtab.cluster.api.meta import UNSET, Labels, SelectorRequirement, change, get
from trimtab.cluster.api.pod import NodeSelector, NodeSelectorTerm
from trimtab.cluster.api.storage import PersistentVolume, PersistentVolumeClaim, PersistentVolumeSpec

PLACES = {
    "topology.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region": "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
}
"""A volume's label → the node's label that must agree (volumezone `topologyLabels`, 1.36)."""
MANY = frozenset({"ReadWriteMany", "ReadOnlyMany"})
BETWEEN = "__"
"""Parts several zones in one label (volume/helpers `LabelZonesToSet`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A PersistentVolumeClaim with the volume it is bound to."""

    volume: str
    """Empty while it is not bound, or the volume is not in the snapshot."""
    driver: str
    """The CSI driver that attaches it, also of a volume from before CSI; empty where none does."""
    nodes: NodeSelector | None
    """Where the volume can be reached; None is everywhere."""
    alone: bool
    """ReadWriteOncePod."""
    one_node: bool = False
    """Only one node at a time can attach it (ReadWriteOnce, by a CSI driver): pods that share it must stay together."""
    local: bool = False
    """The volume lives on one node: a `local` or `hostPath` PersistentVolume."""


def claims(
    shapes: Iterable[PersistentVolumeClaim], volumes: Iterable[PersistentVolume]
) -> Iterator[tuple[tuple[str, str], Claim]]:
    """((namespace, name), claim) of each."""
    known = {volume.metadata.name: volume for volume in volumes}
    for shape in shapes:
        yield (shape.metadata.namespace, shape.metadata.name), _claim(shape, known.get(shape.spec.volume_name))


def _claim(shape: PersistentVolumeClaim, volume: PersistentVolume | None) -> Claim:
    alone = "ReadWriteOncePod" in shape.spec.access_modes
    if volume is None:
        return Claim(volume="", driver="", nodes=None, alone=alone)
    spec = volume.spec
    return Claim(
        volume=shape.spec.volume_name, driver=_driver(spec), nodes=_reached(volume), alone=alone,
        one_node=not MANY.intersection(shape.spec.access_modes) and _driver(spec) != "",
        local=not (spec.local is UNSET and spec.host_path is UNSET),
    )  # fmt: skip


def _driver(spec: PersistentVolumeSpec) -> str:
    """The scheduler counts volumes of the old kinds against the driver that took them over (csi-translation-lib)."""
    if spec.csi is not UNSET:
        return get(spec.csi, None).driver  # type: ignore[union-attr]
    old = {
        "ebs.csi.aws.com": spec.aws_elastic_block_store, "pd.csi.storage.gke.io": spec.gce_persistent_disk,
        "disk.csi.azure.com": spec.azure_disk, "cinder.csi.openstack.org": spec.cinder,
        "csi.vsphere.vmware.com": spec.vsphere_volume, "pxd.portworx.com": spec.portworx_volume,
    }  # fmt: skip
    return next((driver for driver, source in old.items() if source is not UNSET), "")


def _reached(volume: PersistentVolume) -> NodeSelector | None:
    """Node affinity, and the zone or region that its labels name: both must hold."""
    affinity = get(volume.spec.node_affinity, None)
    written = get(affinity.required, None) if affinity else None
    places = tuple(_places(get(volume.metadata.labels, {})))
    if not places:
        return written
    if written is None:
        return NodeSelector(node_selector_terms=(NodeSelectorTerm(match_expressions=places),))
    return change(written, node_selector_terms=tuple(_narrowed(term, places) for term in written.node_selector_terms))


def _places(labels: Labels) -> Iterator[SelectorRequirement]:
    for label, key in PLACES.items():
        if label in labels:
            yield SelectorRequirement(key=key, operator="In", values=tuple(sorted(labels[label].split(BETWEEN))))


def _narrowed(term: NodeSelectorTerm, places: tuple[SelectorRequirement, ...]) -> NodeSelectorTerm:
    """An empty term selects nothing, and goes on to."""
    if not get(term.match_expressions, ()) and not get(term.match_fields, ()):
        return term
    return change(term, match_expressions=(*get(term.match_expressions, ()), *places))
