"""What pods claim: devices by ResourceClaims, and volumes by PersistentVolumeClaims.

Devices of dynamic resource allocation (DRA): how many a claim holds, and how many each node has. A claim is counted if
it was created from a template for one pod, and requests a number of whole devices of classes that select by driver
alone. Claims with anything else (alternatives, selectors, constraints, sharing, devices that are parts of others) are
not counted, because only the scheduler can evaluate them: a pod with such a claim keeps its node, and no other pod can
have its devices.

Volumes: from which nodes the volume of a claim can be reached, and whether it counts against the number of volumes that
a node can attach.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from trimtab.cluster.api.devices import AllocatedDevice, DeviceClass, DeviceRequest, ResourceClaim, ResourceSlice
from trimtab.cluster.api.meta import UNSET, Labels, SelectorRequirement, change, value_or
from trimtab.cluster.api.pod import NodeSelector, NodeSelectorTerm
from trimtab.cluster.api.storage import PersistentVolume, PersistentVolumeClaim, PersistentVolumeSpec, StorageClass
from trimtab.cluster.kinds import POD
from trimtab.cluster.owner import controller_key, kind_of_reference

DEVICE_PREFIX = "devices:"
"""The prefix of the resource name under which a driver's devices are counted on a node."""
IMPLICIT_RESOURCE_PREFIX = "deviceclass.resource.kubernetes.io/"
"""The prefix of the extended resource that every DeviceClass gives, followed by the name of the class (resource/v1,
ResourceDeviceClassPrefix)."""
DEVICE_KINDS = frozenset({"DeviceClass", "ResourceClaim", "ResourceSlice"})
# Only this one form of a class' CEL expression is recognized: any other may select by more than the driver.
_BY_DRIVER = re.compile(r"""\s*device\.driver\s*==\s*(["'])([a-z0-9.-]+)\1\s*""")

Claimed = Mapping[str, int] | str
"""Resource → number of its devices that a claim holds; or the reason why the claim cannot be counted."""


@dataclass(frozen=True, slots=True)
class DevicePoolUse:
    """How many devices of one pool of a node claims hold, and how many there are."""

    held: int
    devices: int


@dataclass(frozen=True, slots=True)
class Devices:
    """The devices of one cluster."""

    claims: Mapping[tuple[str, str], Claimed] = field(default_factory=dict)
    """(namespace, name) of a ResourceClaim → the devices that it holds."""
    nodes: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Node → resource → number of devices that counted claims can hold. Devices in use are included."""
    pool_uses: Mapping[str, tuple[DevicePoolUse, ...] | None] = field(default_factory=dict)
    """Node with devices → the use of each of its pools of devices, by whatever claims; None if the slices of a pool are
    not complete, or its devices are parts of others, so that its use is not known."""
    classes_by_resource: Mapping[str, str] = field(default_factory=dict)
    """Extended resource → the DeviceClass whose devices a pod gets that requests the resource (KEP-5004)."""
    forbidden: tuple[str, ...] = ()
    """Kinds without which claims cannot be counted and which the user may not list. If there are any, no claim is
    counted."""

    def class_of_resource(self, resource: str) -> str:
        """Returns the name of the DeviceClass whose devices a pod gets that requests this extended resource, on nodes
        without a device plugin for it; an empty string if there is none."""
        if resource.startswith(IMPLICIT_RESOURCE_PREFIX):
            return resource.removeprefix(IMPLICIT_RESOURCE_PREFIX)
        return self.classes_by_resource.get(resource, "")

    def held_by_claims(self, namespace: str, claims: Iterable[str]) -> Claimed:
        """Returns the number of devices that the claims of one pod hold together, or the reason why they cannot be
        counted."""
        total: Counter[str] = Counter()
        for name in claims:
            if self.forbidden:
                return f"claim {name or 'without a name yet'}: you may not list {join_plurals(self.forbidden)}"
            claimed = self.claims.get((namespace, name), "it is not in the snapshot")
            if isinstance(claimed, str):
                return f"claim {name or 'without a name yet'} cannot be counted: {claimed}"
            total.update(claimed)
        return total


def count_devices(
    claims: Iterable[ResourceClaim],
    slices: Iterable[ResourceSlice],
    classes: Iterable[DeviceClass],
    forbidden: Iterable[str] = (),
) -> Devices:
    """Returns the devices of a cluster, counted from its claims, slices and classes. `forbidden` has the kinds that the
    user may not list."""
    claims, classes = tuple(claims), tuple(classes)
    drivers = {device_class.metadata.name: _driver_of_class(device_class) for device_class in classes}
    claimed_by_claim: dict[tuple[str, str], Claimed] = {}
    uncounted: set[tuple[str, str, str]] = set()
    for claim in claims:
        claimed = _count_claim(claim, drivers)
        claimed_by_claim[claim.metadata.namespace, claim.metadata.name] = claimed
        if isinstance(claimed, str):
            uncounted.update((device.driver, device.pool, device.device) for device in _allocated_devices(claim))
    held = {
        (one.driver, one.pool, one.device)
        for claim in claims
        for one in _allocated_devices(claim)
        if not one.admin_access
    }
    pools = _slices_by_pool(slices)
    return Devices(
        claimed_by_claim,
        _devices_by_node(pools, uncounted),
        _pool_uses(pools, held),
        {one.spec.extended_resource_name: one.metadata.name for one in classes if one.spec.extended_resource_name},
        tuple(sorted(set(forbidden) & DEVICE_KINDS)),
    )


def join_plurals(kinds: Iterable[str]) -> str:
    """Returns the plurals of kinds as a list in a sentence: "DeviceClasses, ResourceClaims and ResourceSlices"."""
    *first, last = (kind + ("es" if kind.endswith("s") else "s") for kind in kinds)
    return f"{', '.join(first)} and {last}" if first else last


def _driver_of_class(device_class: DeviceClass) -> str:
    """Returns the driver whose devices the class selects, if it selects by driver alone; otherwise an empty string."""
    if len(device_class.spec.selectors) != 1 or device_class.spec.selectors[0].cel is None:
        return ""
    match = _BY_DRIVER.fullmatch(device_class.spec.selectors[0].cel.expression)
    return match[2] if match else ""


def _count_claim(claim: ResourceClaim, drivers: Mapping[str, str]) -> Claimed:
    """Returns the devices that a claim holds, or the reason why the claim cannot be counted."""
    # Claims from a template are owned by their pod and deleted with it; others may be shared.
    controller = claim.metadata.controller_owner
    if controller is None or kind_of_reference(controller) != POD:
        return "it does not belong to a single pod"
    if claim.spec.devices.constraints:
        return "it has constraints between its devices"
    total: Counter[str] = Counter()
    for request in claim.spec.devices.requests:
        devices_of_driver = _count_request(request, drivers)
        if isinstance(devices_of_driver, str):
            return devices_of_driver
        total.update({f"{DEVICE_PREFIX}{devices_of_driver[0]}": devices_of_driver[1]})
    # The allocation must be exactly what is requested: otherwise the counts of the nodes would not add up.
    allocated = Counter(f"{DEVICE_PREFIX}{one.driver}" for one in _allocated_devices(claim))
    return total if total == allocated else "it has devices other than those that it requests, or none yet"


def _count_request(request: DeviceRequest, drivers: Mapping[str, str]) -> tuple[str, int] | str:
    """Returns (driver, number of devices) of a request, or the reason why the request cannot be counted."""
    exactly = request.exactly
    if exactly is None:
        return f"it requests one of several alternatives ({request.name})"
    if (
        exactly.allocation_mode not in ("", "ExactCount")
        or exactly.admin_access
        or exactly.selectors
        or exactly.capacity
    ):
        return f"it requests devices by more than class and number ({request.name})"
    driver = drivers.get(exactly.device_class_name, "")
    if not driver:
        return f"it requests devices of class {exactly.device_class_name}, which does not select only by driver"
    return driver, exactly.count


def _allocated_devices(claim: ResourceClaim) -> tuple[AllocatedDevice, ...]:
    return claim.status.allocation.devices.results if claim.status.allocation is not None else ()


_PoolKey = tuple[str, str, str]
"""(node, driver, pool) of a pool of devices."""


def _slices_by_pool(slices: Iterable[ResourceSlice]) -> dict[_PoolKey, list[ResourceSlice] | None]:
    """Returns the slices of the newest generation of each pool of a node; None if some of them are missing."""
    pools: dict[_PoolKey, list[ResourceSlice]] = {}
    for piece in slices:
        if piece.spec.node_name:
            pools.setdefault((piece.spec.node_name, piece.spec.driver, piece.spec.pool.name), []).append(piece)
    complete: dict[_PoolKey, list[ResourceSlice] | None] = {}
    for key, pool_slices in pools.items():
        newest = max(part.spec.pool.generation for part in pool_slices)
        current = [part for part in pool_slices if part.spec.pool.generation == newest]
        # The driver writes a new generation slice by slice; until all are present, the pool's content is unknown
        # (KEP-4381).
        is_whole = all(part.spec.pool.resource_slice_count == len(current) for part in current)
        complete[key] = current if is_whole else None
    return complete


def _pool_uses(
    pools: Mapping[_PoolKey, list[ResourceSlice] | None], held: Collection[tuple[str, str, str]]
) -> dict[str, tuple[DevicePoolUse, ...] | None]:
    """Returns the use of the pools of each node, as the cluster autoscaler counts it (simulator/dynamicresources/utils,
    utilization.go)."""
    uses: dict[str, tuple[DevicePoolUse, ...] | None] = {}
    for (node, driver, pool), slices in pools.items():
        former = uses.setdefault(node, ())
        if (
            slices is None
            or former is None
            or any(
                part.spec.shared_counters or any(one.consumes_counters for one in part.spec.devices) for part in slices
            )
        ):
            uses[node] = None
            continue
        names = [one.name for part in slices for one in part.spec.devices]
        use = DevicePoolUse(sum((driver, pool, name) in held for name in names), len(names))
        uses[node] = (*former, use)
    return uses


def _devices_by_node(
    pools: Mapping[_PoolKey, list[ResourceSlice] | None], uncounted: set[tuple[str, str, str]]
) -> dict[str, dict[str, int]]:
    """Returns node → resource → number of devices that counted claims can hold.

    Only complete pools of single devices count: all slices of the newest generation must be present. `uncounted` has
    the (driver, pool, device) of devices that are held by claims which are not counted.
    """
    nodes: dict[str, dict[str, int]] = {}
    for (node, driver, pool), pool_slices in pools.items():
        if pool_slices is not None and all(
            (
                not resource_slice.spec.shared_counters
                and not any(
                    one.consumes_counters or one.taints or one.allow_multiple_allocations or one.node_name
                    for one in resource_slice.spec.devices
                )
            )
            for resource_slice in pool_slices
        ):
            free = sum((driver, pool, one.name) not in uncounted for part in pool_slices for one in part.spec.devices)
            amounts = nodes.setdefault(node, {})
            amounts[f"{DEVICE_PREFIX}{driver}"] = amounts.get(f"{DEVICE_PREFIX}{driver}", 0) + free
    return nodes


TOPOLOGY_LABELS = {
    "topology.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region": "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
}
"""A label of a volume → the label of a node whose value must agree with it (volumezone `topologyLabels`, 1.36)."""
SHARED_ACCESS_MODES = frozenset({"ReadWriteMany", "ReadOnlyMany"})
DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
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
    is_shared: bool = False
    """Whether pods on several nodes may use the claim at the same time (ReadWriteMany or ReadOnlyMany)."""
    is_made_for_pod: bool = False
    """Whether the claim has no volume yet, and one is made on any of `nodes` where the scheduler puts the pod."""


def read_claims(
    shapes: Iterable[PersistentVolumeClaim],
    volumes: Iterable[PersistentVolume],
    classes: Iterable[StorageClass] = (),
    capacity_drivers: Collection[str] = (),
) -> Iterator[tuple[tuple[str, str], Claim]]:
    """Yields ((namespace, name), claim) of each PersistentVolumeClaim. `capacity_drivers`: those that make a volume
    only where they have capacity, which is not known here."""
    volumes_by_name = {volume.metadata.name: volume for volume in volumes}
    waiting = {one.metadata.name: one for one in classes if _waits_for_pod(one)}
    anywhere = {name for name, one in waiting.items() if not value_or(one.allowed_topologies, ())}
    for shape in shapes:
        claim = _bound_claim(shape, volumes_by_name.get(shape.spec.volume_name))
        own_class = waiting.get(value_or(shape.spec.storage_class_name, ""))
        if not shape.spec.volume_name and own_class is not None and own_class.provisioner not in capacity_drivers:
            claim = replace(claim, nodes=_allowed_nodes(own_class), driver=own_class.provisioner, is_made_for_pod=True)
        if _ends_with_pod(shape) and value_or(shape.spec.storage_class_name, "") in anywhere and not claim.is_local:
            # The successor gets a new claim, whose volume is made where the scheduler puts the pod.
            claim = replace(claim, nodes=None)
        yield (shape.metadata.namespace, shape.metadata.name), claim


def _ends_with_pod(shape: PersistentVolumeClaim) -> bool:
    """Returns whether the claim is that of a generic ephemeral volume: a pod controls it, and it is deleted with the
    pod (pkg/controller/volume/ephemeral)."""
    owner = controller_key(shape.metadata, shape.metadata.namespace)
    return owner is not None and owner.kind == POD


def choose_default_class(shape: PersistentVolumeClaim, classes: Iterable[StorageClass]) -> PersistentVolumeClaim:
    """Returns a new claim with the class that the API server gives it if it names none: the newest default class
    (plugin/pkg/admission/storage/persistentvolume/default, 1.36)."""
    if shape.spec.storage_class_name is not UNSET:
        return shape
    defaults = [one for one in classes if value_or(one.metadata.annotations, {}).get(DEFAULT_CLASS) == "true"]
    if not defaults:
        return shape
    newest = max(defaults, key=lambda one: (one.metadata.creation_timestamp or "", one.metadata.name))
    return change(shape, spec=change(shape.spec, storage_class_name=newest.metadata.name))


def _waits_for_pod(storage_class: StorageClass) -> bool:
    """Returns whether a new volume of the class is made where its pod is scheduled:

    - the class waits for the first pod before it makes a volume (WaitForFirstConsumer);
    - a provisioner makes the volumes: those of `no-provisioner` exist already, on their nodes.
    """
    return storage_class.volume_binding_mode == "WaitForFirstConsumer" and storage_class.provisioner not in (
        "",
        NO_PROVISIONER,
    )


def _allowed_nodes(storage_class: StorageClass) -> NodeSelector | None:
    """Returns the nodes on which volumes of the class may be (`allowedTopologies`), or None if every node may have
    them."""
    topologies = value_or(storage_class.allowed_topologies, ())
    if not topologies:
        return None
    return NodeSelector(
        node_selector_terms=tuple(
            NodeSelectorTerm(
                match_expressions=tuple(
                    SelectorRequirement(key=one.key, operator="In", values=one.values)
                    for one in topology.match_label_expressions
                )
            )
            for topology in topologies
        )
    )


def _bound_claim(shape: PersistentVolumeClaim, volume: PersistentVolume | None) -> Claim:
    # The scheduler enforces this mode (VolumeRestrictions plugin).
    alone = "ReadWriteOncePod" in shape.spec.access_modes
    shared = bool(SHARED_ACCESS_MODES.intersection(shape.spec.access_modes))
    # Not bound yet (WaitForFirstConsumer), or the volume is missing in the snapshot: any node may do.
    if volume is None:
        return Claim(volume="", driver="", nodes=None, is_single_pod=alone, is_shared=shared)
    spec = volume.spec
    return Claim(
        volume=shape.spec.volume_name,
        driver=_csi_driver(spec),
        nodes=_reachable_nodes(volume),
        is_single_pod=alone,
        # Without an attaching driver, ReadWriteOnce is not enforced by Kubernetes (NFS, hostPath).
        is_single_node=not shared and _csi_driver(spec) != "",
        is_local=not (spec.local is UNSET and spec.host_path is UNSET),
        is_shared=shared,
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
