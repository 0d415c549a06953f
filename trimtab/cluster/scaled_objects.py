"""KEDA's ScaledObjects as the HPAs that KEDA creates from them (kedacore/keda, controllers/keda/hpa.go, and
pkg/scalers/cpu_memory_scaler.go, v2.17).

In a cluster the HPA exists beside its ScaledObject. Manifests have only the ScaledObject, but what happens to the
workload depends on the HPA. A ScaledJob has no HPA.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from trimtab.cluster.kinds import scale_target_kind
from trimtab.cluster.owner import OwnerKey
from trimtab.cluster.yaml_documents import Document

KIND = "ScaledObject"
GROUP = "keda.sh"
HPA_KIND = "HorizontalPodAutoscaler"
HPA_PREFIX = "keda-hpa-"
DEFAULT_MAX_REPLICAS = 100
_RESOURCE_TRIGGERS = ("cpu", "memory")
_PAUSED = "autoscaling.keda.sh/paused"
_PAUSED_REPLICAS = "autoscaling.keda.sh/paused-replicas"


def add_keda_hpas(documents: Iterable[Document]) -> Iterator[Document]:
    """Yields the documents, and after them the HPA of each ScaledObject. There is none if the documents contain that
    HPA already, or another one of the same target."""
    scaled: list[Document] = []
    hpas: list[Document] = []
    for document in documents:
        yield document
        if document.kind == KIND:
            scaled.append(document)
        elif document.kind == HPA_KIND:
            hpas.append(document)
    if not scaled:
        return
    names, targets = set(map(_name_of, map(_fields_of, hpas))), set(map(_target_of, map(_fields_of, hpas)))
    for document in scaled:
        hpa = render_keda_hpa(_fields_of(document))
        if hpa is not None and _name_of(hpa) not in names and _target_of(hpa) not in targets:
            yield document.with_derived_value(hpa)


DEFAULT_TARGET: Mapping[str, str] = {"apiVersion": "apps/v1", "kind": "Deployment"}
"""What KEDA sets for absent fields of `scaleTargetRef` (kedacore/keda, pkg/scaling/resolver: ParseGVKR)."""


def render_keda_hpa(manifest: Mapping[str, Any]) -> dict[str, Any] | None:
    """Returns the HPA that KEDA creates from a ScaledObject; None for another kind, for a paused ScaledObject, and for
    one without a trigger that KEDA can use."""
    if manifest.get("kind") != KIND or str(manifest.get("apiVersion", "")).partition("/")[0] != GROUP:
        return None
    metadata, spec = _mapping(manifest.get("metadata")), _mapping(manifest.get("spec"))
    annotations, target = _mapping(metadata.get("annotations")), _mapping(spec.get("scaleTargetRef"))
    metrics = [metric for metric in map(_render_metric, _list(spec.get("triggers"))) if metric]
    # Whether KEDA keeps no HPA, because an annotation pauses the ScaledObject.
    written = annotations.get(_PAUSED)
    if (
        (_PAUSED_REPLICAS in annotations or (written is not None and str(written).lower() not in ("false", "0", "f")))
        or not metrics
        or not target.get("name")
    ):
        return None
    options = _mapping(_mapping(spec.get("advanced")).get("horizontalPodAutoscalerConfig"))
    minimum, maximum = spec.get("minReplicaCount"), spec.get("maxReplicaCount")
    hpa_spec: dict[str, Any] = {
        "scaleTargetRef": {
            **DEFAULT_TARGET,
            **{key: target[key] for key in ("apiVersion", "kind", "name") if target.get(key)},
        },
        # KEDA itself scales between 0 and 1.
        "minReplicas": minimum if isinstance(minimum, int) and minimum > 0 else 1,
        "maxReplicas": maximum if isinstance(maximum, int) else DEFAULT_MAX_REPLICAS,
        "metrics": metrics,
    }
    if isinstance(options.get("behavior"), dict):
        hpa_spec["behavior"] = options["behavior"]
    named = {key: metadata[key] for key in ("namespace", "annotations") if metadata.get(key)}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": HPA_KIND,
        "metadata": {"name": options.get("name") or f"{HPA_PREFIX}{metadata.get('name', '')}", **named},
        "spec": hpa_spec,
    }


def read_idle_replicas(document: Document) -> tuple[OwnerKey, int] | None:
    """Returns the target of a ScaledObject, and how many replicas KEDA gives it while no trigger is active; None if the
    ScaledObject has no `idleReplicaCount`.

    The HPA's minimum then holds only while a trigger is active (pkg/scaling/executor/scale_scaledobjects.go).
    """
    manifest = _fields_of(document)
    idle = _mapping(manifest.get("spec")).get("idleReplicaCount")
    return (_target_of(manifest), idle) if isinstance(idle, int) and not isinstance(idle, bool) else None


def _render_metric(trigger: Any) -> dict[str, Any] | None:
    """Returns the HPA's metric of one trigger, or None for a cpu or memory trigger that KEDA refuses."""
    fields = _mapping(trigger)
    settings, resource = _mapping(fields.get("metadata")), fields.get("type")
    if resource not in _RESOURCE_TRIGGERS:
        return {
            "type": "External",
            "external": {"metric": {"name": f"{resource}"}, "target": {"type": "AverageValue", "averageValue": "1"}},
        }
    kind, value = fields.get("metricType") or settings.get("type"), str(settings.get("value", ""))
    if kind == "Utilization" and value.isdecimal():
        target: dict[str, Any] = {"type": "Utilization", "averageUtilization": int(value)}
    elif kind == "AverageValue" and value:
        target = {"type": "AverageValue", "averageValue": value}
    else:
        return None
    if settings.get("containerName"):
        source = {"name": resource, "container": settings["containerName"], "target": target}
        return {"type": "ContainerResource", "containerResource": source}
    return {"type": "Resource", "resource": {"name": resource, "target": target}}


def _fields_of(document: Document) -> Mapping[str, Any]:
    return _mapping(document.value)


def _name_of(manifest: Mapping[str, Any]) -> tuple[str, str]:
    metadata = _mapping(manifest.get("metadata"))
    return metadata.get("namespace") or "default", str(metadata.get("name", ""))


def _target_of(manifest: Mapping[str, Any]) -> OwnerKey:
    target = _mapping(_mapping(manifest.get("spec")).get("scaleTargetRef"))
    if manifest.get("kind") == KIND:
        target = {**DEFAULT_TARGET, **{key: value for key, value in target.items() if value}}
    kind = scale_target_kind(str(target.get("apiVersion") or ""), str(target.get("kind", "")))
    return OwnerKey(_name_of(manifest)[0], kind, str(target.get("name", "")))


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
