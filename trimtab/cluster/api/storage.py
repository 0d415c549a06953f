"""Volumes: PersistentVolumes, their claims, storage classes, and the CSI drivers of a node."""

from typing import Any

from trimtab.cluster.api.meta import UNSET, ApiObject, Metadata, UnsetType
from trimtab.cluster.api.pod import NodeSelector


class CSISource(ApiObject, frozen=True, kw_only=True):
    driver: str = ""
    volume_handle: str = ""


class VolumeNodeAffinity(ApiObject, frozen=True, kw_only=True):
    required: NodeSelector | UnsetType = UNSET


class VolumeSource(ApiObject, frozen=True, kw_only=True):
    """A volume source whose content is not read. Only its presence in the volume matters."""


class PersistentVolumeSpec(ApiObject, frozen=True, kw_only=True):
    csi: CSISource | UnsetType = UNSET
    local: Any = UNSET
    host_path: Any = UNSET
    # The in-tree types, which CSI drivers have replaced; clusters still have volumes of them.
    aws_elastic_block_store: VolumeSource | UnsetType = UNSET
    gce_persistent_disk: VolumeSource | UnsetType = UNSET
    azure_disk: VolumeSource | UnsetType = UNSET
    cinder: VolumeSource | UnsetType = UNSET
    vsphere_volume: VolumeSource | UnsetType = UNSET
    portworx_volume: VolumeSource | UnsetType = UNSET
    node_affinity: VolumeNodeAffinity | UnsetType = UNSET
    access_modes: tuple[str, ...] = ()
    storage_class_name: str = ""


class PersistentVolume(ApiObject, frozen=True, kw_only=True):
    metadata: Metadata = Metadata()
    spec: PersistentVolumeSpec = PersistentVolumeSpec()


class PersistentVolumeClaimSpec(ApiObject, frozen=True, kw_only=True):
    volume_name: str = ""
    access_modes: tuple[str, ...] = ()
    storage_class_name: str | UnsetType = UNSET


class PersistentVolumeClaimStatus(ApiObject, frozen=True, kw_only=True):
    phase: str = ""


class PersistentVolumeClaim(ApiObject, frozen=True, kw_only=True):
    metadata: Metadata = Metadata()
    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()
    status: PersistentVolumeClaimStatus = PersistentVolumeClaimStatus()


class TopologyRequirement(ApiObject, frozen=True, kw_only=True):
    key: str = ""
    values: tuple[str, ...] = ()


class AllowedTopology(ApiObject, frozen=True, kw_only=True):
    match_label_expressions: tuple[TopologyRequirement, ...] = ()


class StorageClass(ApiObject, frozen=True, kw_only=True):
    metadata: Metadata = Metadata()
    provisioner: str = ""
    volume_binding_mode: str = ""
    allowed_topologies: tuple[AllowedTopology, ...] | UnsetType = UNSET


class CSIDriverSpec(ApiObject, frozen=True, kw_only=True):
    prevent_pod_scheduling_if_missing: bool = False
    """Whether kube-scheduler places no pod with a volume of this driver on a node where the driver is not registered
    (Kubernetes 1.36)."""
    storage_capacity: bool = False
    """Whether kube-scheduler places a pod with a new volume only where the driver reports enough capacity
    (CSIStorageCapacity)."""


class CSIDriver(ApiObject, frozen=True, kw_only=True):
    metadata: Metadata = Metadata()
    spec: CSIDriverSpec = CSIDriverSpec()


class DriverCount(ApiObject, frozen=True, kw_only=True):
    count: int | UnsetType = UNSET
    """The largest number of this driver's volumes that can be attached to the node; UNSET: no limit."""


class NodeDriver(ApiObject, frozen=True, kw_only=True):
    name: str
    allocatable: DriverCount | UnsetType = UNSET


class CSINodeSpec(ApiObject, frozen=True, kw_only=True):
    drivers: tuple[NodeDriver, ...] = ()


class CSINode(ApiObject, frozen=True, kw_only=True):
    metadata: Metadata = Metadata()
    spec: CSINodeSpec = CSINodeSpec()
