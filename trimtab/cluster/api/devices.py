"""Dynamic resource allocation (resource.k8s.io/v1): slices of devices on nodes, device classes, and claims."""

from typing import Any

from trimtab.cluster.api.meta import ApiObject, Metadata


# The field `exactly` of a device request in resource.k8s.io/v1.
class Exactly(ApiObject, frozen=True, kw_only=True):
    device_class_name: str = ""
    allocation_mode: str = ""
    """How devices are allocated: ExactCount or All; empty means ExactCount."""
    count: int = 1
    admin_access: bool | None = None
    selectors: tuple[Any, ...] = ()
    capacity: Any = None


class DeviceRequest(ApiObject, frozen=True, kw_only=True):
    name: str = ""
    exactly: Exactly | None = None
    """What the request demands, or None if it lists alternatives (`firstAvailable`)."""


class ClaimedDevices(ApiObject, frozen=True, kw_only=True):
    requests: tuple[DeviceRequest, ...] = ()
    constraints: tuple[Any, ...] = ()


class ResourceClaimSpec(ApiObject, frozen=True, kw_only=True):
    devices: ClaimedDevices = ClaimedDevices()


class AllocatedDevice(ApiObject, frozen=True, kw_only=True):
    driver: str = ""
    pool: str = ""
    device: str = ""
    admin_access: bool | None = None
    """Whether the claim only administers the device, so that it does not hold it."""


class AllocatedDevices(ApiObject, frozen=True, kw_only=True):
    results: tuple[AllocatedDevice, ...] = ()


class Allocation(ApiObject, frozen=True, kw_only=True):
    devices: AllocatedDevices = AllocatedDevices()


class ResourceClaimStatus(ApiObject, frozen=True, kw_only=True):
    allocation: Allocation | None = None


class ResourceClaim(ApiObject, frozen=True, kw_only=True):
    metadata: Metadata = Metadata()
    spec: ResourceClaimSpec = ResourceClaimSpec()
    status: ResourceClaimStatus = ResourceClaimStatus()


class DevicePool(ApiObject, frozen=True, kw_only=True):
    name: str = ""
    generation: int = 0
    resource_slice_count: int = 0


class Device(ApiObject, frozen=True, kw_only=True):
    name: str = ""
    consumes_counters: tuple[Any, ...] = ()
    taints: tuple[Any, ...] = ()
    allow_multiple_allocations: bool = False
    node_name: str = ""


class SliceSpec(ApiObject, frozen=True, kw_only=True):
    driver: str = ""
    pool: DevicePool = DevicePool()
    node_name: str = ""
    devices: tuple[Device, ...] = ()
    shared_counters: tuple[Any, ...] = ()


class ResourceSlice(ApiObject, frozen=True, kw_only=True):
    metadata: Metadata = Metadata()
    spec: SliceSpec = SliceSpec()


class CELDeviceSelector(ApiObject, frozen=True, kw_only=True):
    expression: str = ""


class DeviceSelector(ApiObject, frozen=True, kw_only=True):
    cel: CELDeviceSelector | None = None


class ClassSpec(ApiObject, frozen=True, kw_only=True):
    selectors: tuple[DeviceSelector, ...] = ()
    extended_resource_name: str = ""


class DeviceClass(ApiObject, frozen=True, kw_only=True):
    metadata: Metadata = Metadata()
    spec: ClassSpec = ClassSpec()
