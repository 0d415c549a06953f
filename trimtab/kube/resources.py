"""Where the API server has the kinds of a `Snapshot`: paths, selectors, and the types into which objects are decoded.

Of ConfigMaps, only Trimtab's own (by label) and the cluster autoscaler's status (by name) are requested, because others
may hold secrets.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal
from urllib.parse import quote

from trimtab.cluster.api.admissionregistration import SERVICE_LABEL, Custom, EndpointSlice, MutatingWebhookConfiguration
from trimtab.cluster.api.core import DatedRuntimeClass, Lease
from trimtab.cluster.api.meta import ApiObject
from trimtab.cluster.api.pod import ScrapedPod
from trimtab.cluster.api.workload import Templated
from trimtab.cluster.cluster_autoscaler import STATUS_NAME, STATUS_NAMESPACE
from trimtab.cluster.next_pod import TEMPLATED_OWNERS
from trimtab.cluster.recommendation import RECOMMENDATIONS_LABEL as RECOMMENDATIONS
from trimtab.cluster.snapshot import SHAPES_BY_KIND, ConfigMap

CONFIG_MAP_LABELS = (RECOMMENDATIONS, "trimtab.dev/pool", "trimtab.dev/state")
"""The labels of Trimtab's own ConfigMaps."""
OWNER_TEMPLATES = tuple(f"{kind}Template" for kind in TEMPLATED_OWNERS)
"""Lists of owners that are read for the owners' pod templates. (The kind PodTemplate is not among them.)"""
SHAPES: dict[str, type[ApiObject]] = {
    **SHAPES_BY_KIND,
    "MutatingWebhookConfiguration": MutatingWebhookConfiguration,
    "EndpointSlice": EndpointSlice,
    "PodPolicy": Custom,
    "PoolStatus": Custom,
    "DrainOrder": Custom,
    "RuntimeClass": DatedRuntimeClass,
    "AutoscalerStatus": ConfigMap,
    "Lease": Lease,
    "ScrapedPod": ScrapedPod,
    **dict.fromkeys(OWNER_TEMPLATES, Templated),
}
"""Kind → the type into which its objects are decoded. It has more kinds than a Snapshot."""
AUTOSCALER_STATUS = f"metadata.namespace={STATUS_NAMESPACE},metadata.name={STATUS_NAME}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ListSource:
    """What to list: the objects of one kind, all of them or those that selectors choose."""

    kind: str
    group_version: str
    plural: str
    namespaced: bool = True
    optional: bool = False
    """Whether the server may not serve the kind, because its CustomResourceDefinition is not installed."""
    label_selector: str = ""
    field_selector: str = ""
    """The field selector; like `label_selector`, it selects everything if it is empty."""
    namespace: str = ""
    """The namespace of the list; empty means all namespaces."""
    metadata_only: bool = False
    """Whether only the metadata of objects is requested, because only their names and owners are needed. The response
    has a tenth of the bytes."""

    @property
    def list_path(self) -> str:
        """The path from which the list is read."""
        return collection_path(self, self.namespace)

    @property
    def selector_query(self) -> dict[str, str | None]:
        """The selectors as parameters of a request."""
        return {"labelSelector": self.label_selector or None, "fieldSelector": self.field_selector or None}

    def accept_header(self, kind: Literal["PartialObjectMetadataList", "PartialObjectMetadata"]) -> str:
        """Returns the media type to request: for a list, or for the objects of a watch."""
        return f"application/json;as={kind};g=meta.k8s.io;v=v1" if self.metadata_only else "application/json"

    def __str__(self) -> str:
        selector = self.label_selector or self.field_selector
        return f"{self.plural} ({selector})" if selector else self.plural


def path_segment(name: str) -> str:
    """Returns a name, escaped for use as a segment of a path."""
    return quote(name, safe="")


def collection_path(source: ListSource, namespace: str = "") -> str:
    """Returns the path of a list, which is also the path for creating objects in it."""
    root = f"/apis/{source.group_version}" if "/" in source.group_version else f"/api/{source.group_version}"
    inside = f"/namespaces/{path_segment(namespace)}" if source.namespaced and namespace else ""
    return f"{root}{inside}/{source.plural}"


def object_path(source: ListSource, namespace: str, name: str, sub: str = "") -> str:
    """Returns the path of an object or of one of its subresources."""
    return "/".join(part for part in (collection_path(source, namespace), path_segment(name), sub) if part)


def _sources_of_group(
    group_version: str, *names: str, namespaced: bool = True, optional: bool = False
) -> Iterable[ListSource]:
    for name in names:
        # Kinds with another plural, such as NetworkPolicy, are added below one by one.
        plural = name.lower() + ("es" if name.endswith("s") else "s")
        yield ListSource(
            kind=name, group_version=group_version, plural=plural, namespaced=namespaced, optional=optional
        )


LIST_SOURCES: dict[str, ListSource] = {
    source.kind: source
    for group in (
        _sources_of_group(
            "v1", "Pod", "LimitRange", "ResourceQuota", "ConfigMap", "ReplicationController", "PersistentVolumeClaim"
        ),
        _sources_of_group("v1", "Node", "Namespace", "PersistentVolume", namespaced=False),
        _sources_of_group("apps/v1", "Deployment", "ReplicaSet", "StatefulSet", "DaemonSet"),
        _sources_of_group("batch/v1", "Job", "CronJob"),
        _sources_of_group("policy/v1", "PodDisruptionBudget"),
        _sources_of_group("autoscaling/v2", "HorizontalPodAutoscaler"),
        _sources_of_group("autoscaling.k8s.io/v1", "VerticalPodAutoscaler", optional=True),
        _sources_of_group("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration", namespaced=False),
        _sources_of_group("discovery.k8s.io/v1", "EndpointSlice"),
        _sources_of_group("node.k8s.io/v1", "RuntimeClass", namespaced=False),
        _sources_of_group("storage.k8s.io/v1", "StorageClass", "CSINode", "CSIDriver", namespaced=False),
        _sources_of_group("coordination.k8s.io/v1", "Lease"),
        _sources_of_group("events.k8s.io/v1", "Event"),
        _sources_of_group("v1", "Secret", "Service", "ServiceAccount"),
        _sources_of_group("rbac.authorization.k8s.io/v1", "Role", "RoleBinding"),
        _sources_of_group("rbac.authorization.k8s.io/v1", "ClusterRole", "ClusterRoleBinding", namespaced=False),
        _sources_of_group("apiextensions.k8s.io/v1", "CustomResourceDefinition", namespaced=False),
        _sources_of_group("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", namespaced=False),
        _sources_of_group("autoscaling.x-k8s.io/v1beta1", "CapacityBuffer", optional=True),
        _sources_of_group("v1", "PodTemplate"),
        _sources_of_group("resource.k8s.io/v1", "ResourceClaim", optional=True),
        _sources_of_group("resource.k8s.io/v1", "ResourceSlice", namespaced=False, optional=True),
        _sources_of_group("cert-manager.io/v1", "Issuer", "Certificate", optional=True),
    )
    for source in group
}
LIST_SOURCES["PriorityClass"] = ListSource(
    kind="PriorityClass", group_version="scheduling.k8s.io/v1", plural="priorityclasses", namespaced=False
)
LIST_SOURCES |= {
    kind: ListSource(kind=kind, group_version="admissionregistration.k8s.io/v1", plural=plural, namespaced=False)
    for kind, plural in (
        ("ValidatingAdmissionPolicy", "validatingadmissionpolicies"),
        ("ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings"),
    )
}
LIST_SOURCES |= {
    kind: ListSource(
        kind=kind, group_version="admissionregistration.k8s.io/v1", plural=plural, namespaced=False, optional=True
    )
    for kind, plural in (
        ("MutatingAdmissionPolicy", "mutatingadmissionpolicies"),
        ("MutatingAdmissionPolicyBinding", "mutatingadmissionpolicybindings"),
    )
}
LIST_SOURCES["DeviceClass"] = ListSource(
    kind="DeviceClass", group_version="resource.k8s.io/v1", plural="deviceclasses", namespaced=False, optional=True
)
LIST_SOURCES["NetworkPolicy"] = ListSource(
    kind="NetworkPolicy", group_version="networking.k8s.io/v1", plural="networkpolicies", namespaced=True
)

LIST_SOURCES["PodPolicy"] = ListSource(
    kind="PodPolicy", group_version="trimtab.dev/v1alpha1", plural="podpolicies", namespaced=False, optional=True
)
LIST_SOURCES["PoolStatus"] = ListSource(
    kind="PoolStatus", group_version="trimtab.dev/v1alpha1", plural="poolstatuses", optional=True
)

LIST_SOURCES["DrainOrder"] = ListSource(
    kind="DrainOrder", group_version="trimtab.dev/v1alpha1", plural="drainorders", optional=True
)

LIST_SOURCES |= {name: replace(LIST_SOURCES[name.removesuffix("Template")], kind=name) for name in OWNER_TEMPLATES}
"""The same lists, read for the pod templates of the owners."""


LIST_SOURCES["ScrapedPod"] = replace(LIST_SOURCES["Pod"], kind="ScrapedPod", field_selector="status.phase=Running")
"""Running pods, of which only what scraping needs is read."""
LIST_SOURCES["APIService"] = ListSource(
    kind="APIService", group_version="apiregistration.k8s.io/v1", plural="apiservices", namespaced=False
)


def autoscaler_status(namespace: str = STATUS_NAMESPACE, name: str = STATUS_NAME) -> ListSource:
    """Returns a list with only the cluster autoscaler's status ConfigMap, under a kind of its own."""
    return ListSource(
        kind="AutoscalerStatus",
        group_version="v1",
        plural="configmaps",
        namespace=namespace,
        field_selector=f"metadata.name={name}",
    )


def list_sources(kinds: Iterable[str] = tuple(SHAPES_BY_KIND), config_maps_in: str = "") -> tuple[ListSource, ...]:
    """Returns all lists from which these kinds of a Snapshot are read. `config_maps_in`: the only namespace of which
    ConfigMaps are read, so that the status of a cluster autoscaler is left out; empty: those of all namespaces."""
    lists: list[ListSource] = []
    for kind in kinds:
        lists += _config_maps(config_maps_in) if kind == "ConfigMap" else [LIST_SOURCES[kind]]
    return tuple(lists)


def _config_maps(namespace: str) -> list[ListSource]:
    common = replace(LIST_SOURCES["ConfigMap"], namespace=namespace)
    ours = [replace(common, label_selector=label) for label in CONFIG_MAP_LABELS]
    return ours if namespace else [*ours, replace(common, field_selector=AUTOSCALER_STATUS)]


def fact_list_sources(
    kinds: Iterable[str], owners: Iterable[str], counted: Iterable[str], own_namespace: str
) -> tuple[ListSource, ...]:
    """Returns the lists on which decisions about pods depend.

    For kinds of owners that are not `counted` (ReplicaSets, CronJobs), only the metadata is requested; of ConfigMaps,
    only Trimtab's recommendations.
    """
    shards = ListSource(
        kind="ConfigMap",
        group_version="v1",
        plural="configmaps",
        namespace=own_namespace,
        label_selector=f"{RECOMMENDATIONS}=v1",
    )
    whole, read_as_objects = [LIST_SOURCES[kind] for kind in sorted(kinds)], frozenset(counted)
    return (
        *whole,
        *(replace(LIST_SOURCES[kind], metadata_only=kind not in read_as_objects) for kind in owners),
        shards,
    )


def sources_by_name(services: Iterable[tuple[str, str]], leases: Iterable[tuple[str, str]]) -> tuple[ListSource, ...]:
    """Returns the lists of the EndpointSlices of these Services, and of these Leases, each given as (namespace, name).

    Which Services and Leases are needed follows from other objects: the VPA's webhook configuration, and policies that
    set a scheduler.
    """
    return (*map(endpoint_slices, sorted(services)), *map(single_lease, sorted(leases)))


def endpoint_slices(service: tuple[str, str]) -> ListSource:
    """Returns the list of the EndpointSlices of one Service, given as (namespace, name)."""
    namespace, name = service
    return replace(LIST_SOURCES["EndpointSlice"], namespace=namespace, label_selector=f"{SERVICE_LABEL}={name}")


def single_lease(lease: tuple[str, str]) -> ListSource:
    """Returns a list with only one Lease, given as (namespace, name)."""
    namespace, name = lease
    return replace(LIST_SOURCES["Lease"], namespace=namespace, field_selector=f"metadata.name={name}")
