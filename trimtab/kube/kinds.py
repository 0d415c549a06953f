"""Where does the API server keep what a `Snapshot` holds?

Of ConfigMaps only ours are ever asked for (by label), and the autoscaler's status (by name): others may hold secrets.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from trimtab.cluster.api.meta import Shape
from trimtab.cluster.api.rules import DatedRuntimeClass
from trimtab.cluster.api.webhooks import Custom, EndpointSlice, MutatingWebhookConfiguration
from trimtab.cluster.api.workload import Templated
from trimtab.cluster.recommendation import LABEL as RECOMMENDATIONS
from trimtab.cluster.snapshot import KINDS
from trimtab.kube.client import segment

OUR_CONFIG_MAPS = (RECOMMENDATIONS, "trimtab.dev/pool", "trimtab.dev/state")
"""Labels of the ConfigMaps that are ours."""
SHAPES: dict[str, type[Shape]] = {
    **KINDS,
    "MutatingWebhookConfiguration": MutatingWebhookConfiguration,
    "EndpointSlice": EndpointSlice,
    "PodPolicy": Custom,
    "RuntimeClass": DatedRuntimeClass,
    **{f"{kind}Template": Templated for kind in ("ReplicaSet", "StatefulSet", "ReplicationController")},
}
"""Kind → the shape it is decoded into; more than a Snapshot holds."""
AUTOSCALER_STATUS = "metadata.namespace=kube-system,metadata.name=cluster-autoscaler-status"


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """One list of one kind."""

    kind: str
    group_version: str
    plural: str
    namespaced: bool = True
    optional: bool = False
    """The server may well not serve it: a CustomResourceDefinition that is not installed."""
    labels: str = ""
    fields: str = ""
    """Label and field selector; empty is everything."""
    namespace: str = ""
    """Only this one; empty is all of them."""
    slim: bool = False
    """Ask for nothing but the metadata: a tenth of the bytes, where only names and owners count."""

    @property
    def path(self) -> str:
        return collection(self, self.namespace)

    @property
    def query(self) -> dict[str, str | None]:
        return {"labelSelector": self.labels or None, "fieldSelector": self.fields or None}

    def accept(self, kind: Literal["PartialObjectMetadataList", "PartialObjectMetadata"]) -> str:
        """The answer's form: a list's, or that of a watch's objects."""
        return f"application/json;as={kind};g=meta.k8s.io;v=v1" if self.slim else "application/json"

    def __str__(self) -> str:
        chosen = self.labels or self.fields
        return f"{self.plural} ({chosen})" if chosen else self.plural


def collection(source: Source, namespace: str = "") -> str:
    """The path of a list, or of what is created in it."""
    root = f"/apis/{source.group_version}" if "/" in source.group_version else f"/api/{source.group_version}"
    inside = f"/namespaces/{segment(namespace)}" if source.namespaced and namespace else ""
    return f"{root}{inside}/{source.plural}"


def one(source: Source, namespace: str, name: str, sub: str = "") -> str:
    """The path of an object, or of a subresource of it."""
    return "/".join(part for part in (collection(source, namespace), segment(name), sub) if part)


def _of(group_version: str, *names: str, namespaced: bool = True, optional: bool = False) -> Iterable[Source]:
    for name in names:
        plural = name.lower() + ("es" if name.endswith("s") else "s")
        yield Source(
            kind=name, group_version=group_version, plural=plural, namespaced=namespaced, optional=optional
        )  # fmt: skip


PLACES: dict[str, Source] = {
    source.kind: source
    for found in (
        _of("v1", "Pod", "LimitRange", "ResourceQuota", "ConfigMap", "ReplicationController", "PersistentVolumeClaim"),
        _of("v1", "Node", "Namespace", "PersistentVolume", namespaced=False),
        _of("apps/v1", "Deployment", "ReplicaSet", "StatefulSet", "DaemonSet"),
        _of("batch/v1", "Job", "CronJob"),
        _of("policy/v1", "PodDisruptionBudget"),
        _of("autoscaling/v2", "HorizontalPodAutoscaler"),
        _of("autoscaling.k8s.io/v1", "VerticalPodAutoscaler", optional=True),
        _of("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration", namespaced=False),
        _of("discovery.k8s.io/v1", "EndpointSlice"),
        _of("node.k8s.io/v1", "RuntimeClass", namespaced=False),
        _of("storage.k8s.io/v1", "StorageClass", "CSINode", namespaced=False),
        _of("coordination.k8s.io/v1", "Lease"),
        _of("events.k8s.io/v1", "Event"),
        _of("v1", "Secret", "Service", "ServiceAccount"),
        _of("rbac.authorization.k8s.io/v1", "Role", "RoleBinding"),
        _of("rbac.authorization.k8s.io/v1", "ClusterRole", "ClusterRoleBinding", namespaced=False),
        _of("apiextensions.k8s.io/v1", "CustomResourceDefinition", namespaced=False),
        _of("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", namespaced=False),
        _of("cert-manager.io/v1", "Issuer", "Certificate", optional=True),
    )
    for source in found
}
PLACES["PriorityClass"] = Source(
    kind="PriorityClass", group_version="scheduling.k8s.io/v1", plural="priorityclasses", namespaced=False
)
PLACES["NetworkPolicy"] = Source(
    kind="NetworkPolicy", group_version="networking.k8s.io/v1", plural="networkpolicies", namespaced=True
)

PLACES["PodPolicy"] = Source(
    kind="PodPolicy", group_version="trimtab.dev/v1alpha1", plural="podpolicies", namespaced=False, optional=True
)

PLACES |= {
    name: replace(PLACES[name.removesuffix("Template")], kind=name) for name in SHAPES if name.endswith("Template")
}
"""The same lists, read for the pods that their owners make."""


def sources(kinds: Iterable[str] = tuple(KINDS)) -> tuple[Source, ...]:
    """Everything to be listed for these kinds of a Snapshot."""
    found: list[Source] = []
    for kind in kinds:
        found += _config_maps() if kind == "ConfigMap" else [PLACES[kind]]
    return tuple(found)


def _config_maps() -> list[Source]:
    common = {"kind": "ConfigMap", "group_version": "v1", "plural": "configmaps"}
    ours = [Source(**common, labels=label) for label in OUR_CONFIG_MAPS]  # type: ignore[arg-type]
    return [*ours, Source(**common, fields=AUTOSCALER_STATUS)]  # type: ignore[arg-type]
