"""Where does a pod's data live, and which nodes can reach it?"""

from typing import Any

from trimtab.cluster.api.meta import UNSET, Metadata, Shape, UnsetType
from trimtab.cluster.api.pod import NodeSelector


class CSISource(Shape, frozen=True, kw_only=True):
    driver: str = ""
    volume_handle: str = ""


class VolumeNodeAffinity(Shape, frozen=True, kw_only=True):
    required: NodeSelector | UnsetType = UNSET


class Source(Shape, frozen=True, kw_only=True):
    """That a volume is of this kind decides; nothing of it does."""


class PersistentVolumeSpec(Shape, frozen=True, kw_only=True):
    csi: CSISource | UnsetType = UNSET
    local: Any = UNSET
    host_path: Any = UNSET
    aws_elastic_block_store: Source | UnsetType = UNSET
    gce_persistent_disk: Source | UnsetType = UNSET
    azure_disk: Source | UnsetType = UNSET
    cinder: Source | UnsetType = UNSET
    vsphere_volume: Source | UnsetType = UNSET
    portworx_volume: Source | UnsetType = UNSET
    node_affinity: VolumeNodeAffinity | UnsetType = UNSET
    access_modes: tuple[str, ...] = ()
    storage_class_name: str = ""


class PersistentVolume(Shape, frozen=True, kw_only=True):
    metadata: Metadata = Metadata()
    spec: PersistentVolumeSpec = PersistentVolumeSpec()


class ClaimSpec(Shape, frozen=True, kw_only=True):
    volume_name: str = ""
    access_modes: tuple[str, ...] = ()
    storage_class_name: str | UnsetType = UNSET


class ClaimStatus(Shape, frozen=True, kw_only=True):
    phase: str = ""


class PersistentVolumeClaim(Shape, frozen=True, kw_only=True):
    metadata: Metadata = Metadata()
    spec: ClaimSpec = ClaimSpec()
    status: ClaimStatus = ClaimStatus()


class StorageClass(Shape, frozen=True, kw_only=True):
    metadata: Metadata = Metadata()
    provisioner: str = ""
    volume_binding_mode: str = ""


class DriverCount(Shape, frozen=True, kw_only=True):
    count: int | UnsetType = UNSET
    """How many volumes of this driver the node can hold; absent is without limit."""


class NodeDriver(Shape, frozen=True, kw_only=True):
    name: str
    allocatable: DriverCount | UnsetType = UNSET


class CSINodeSpec(Shape, frozen=True, kw_only=True):
    drivers: tuple[NodeDriver, ...] = ()


class CSINode(Shape, frozen=True, kw_only=True):
    metadata: Metadata = Metadata()
    spec: CSINodeSpec = CSINodeSpec()
