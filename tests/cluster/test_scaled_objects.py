"""A ScaledObject counts as the HPA that KEDA creates from it, once."""

from typing import Any

import pytest

from trimtab.cluster.api.autoscaling import HorizontalPodAutoscaler
from trimtab.cluster.scaled_objects import render_keda_hpa
from trimtab.cluster.snapshot import build_snapshot
from trimtab.cluster.utilization_metrics import utilization_metrics
from trimtab.cluster.yaml_documents import Document

CPU = {"type": "cpu", "metricType": "Utilization", "metadata": {"value": "60"}}


def scaled_object(*triggers: dict[str, Any], annotations: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    metadata = {"name": "web", "namespace": "shop", "annotations": annotations or {}}
    fields = {"scaleTargetRef": {"name": "web"}, "triggers": list(triggers), **spec}
    return {"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "metadata": metadata, "spec": fields}


def hpas_of(*manifests: dict[str, Any]) -> tuple[HorizontalPodAutoscaler, ...]:
    documents = [Document(file="f", index=index, value=manifest) for index, manifest in enumerate(manifests)]
    return build_snapshot(documents).snapshot.objects_of(HorizontalPodAutoscaler)


def test_a_cpu_trigger_is_an_hpa_on_a_deployment() -> None:
    (hpa,) = hpas_of(scaled_object(CPU, minReplicaCount=0, maxReplicaCount=20))
    target = hpa.spec.scale_target_ref
    assert (hpa.metadata.name, target.kind_name, target.name) == ("keda-hpa-web", "Deployment", "web")
    assert (hpa.spec.min_replicas, hpa.spec.max_replicas) == (1, 20)
    assert [(metric.resource, metric.percent) for metric in utilization_metrics(hpa)] == [("cpu", 60)]


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ({"kind": "StatefulSet"}, ("apps/v1", "StatefulSet")),
        ({"kind": "Rollout", "apiVersion": ""}, ("apps/v1", "Rollout")),
        ({"kind": "Rollout", "apiVersion": "argoproj.io/v1alpha1"}, ("argoproj.io/v1alpha1", "Rollout")),
    ],
)
def test_a_target_without_a_version_is_of_the_group_that_keda_assumes(
    target: dict[str, str], expected: tuple[str, str]
) -> None:
    (hpa,) = hpas_of(scaled_object(CPU, scaleTargetRef={**target, "name": "web"}))
    assert (hpa.spec.scale_target_ref.api_version, hpa.spec.scale_target_ref.kind_name) == expected


@pytest.mark.parametrize(
    ("trigger", "expected"),
    [
        ({"type": "memory", "metadata": {"type": "Utilization", "value": "70"}}, [("memory", 70, "")]),
        ({**CPU, "metadata": {"value": "60", "containerName": "app"}}, [("cpu", 60, "app")]),
        ({**CPU, "metricType": "AverageValue"}, []),
        ({"type": "cron", "metadata": {}}, []),
    ],
)
def test_a_trigger_divides_by_requests_if_it_is_a_utilization(
    trigger: dict[str, Any], expected: list[tuple[str, int, str]]
) -> None:
    (hpa,) = hpas_of(scaled_object(trigger))
    assert [(metric.resource, metric.percent, metric.container) for metric in utilization_metrics(hpa)] == expected


@pytest.mark.parametrize(
    "manifest",
    [
        scaled_object(),
        scaled_object({**CPU, "metadata": {"value": "much"}}),
        scaled_object(CPU, annotations={"autoscaling.keda.sh/paused": "true"}),
        scaled_object(CPU, annotations={"autoscaling.keda.sh/paused-replicas": "0"}),
        {**scaled_object(CPU), "kind": "ScaledJob"},
        {**scaled_object(CPU), "apiVersion": "example.com/v1"},
    ],
)
def test_no_hpa_without_a_usable_trigger_nor_while_it_is_paused_nor_for_another_kind(manifest: dict[str, Any]) -> None:
    assert render_keda_hpa(manifest) is None


def test_the_hpa_of_a_cluster_and_its_scaled_object_count_once() -> None:
    hpa = render_keda_hpa(scaled_object(CPU))
    assert hpa is not None
    other = {**hpa, "metadata": {"name": "renamed", "namespace": "shop"}}
    assert [len(hpas_of(scaled_object(CPU), one)) for one in (hpa, other)] == [1, 1]


def test_options_of_the_hpa_are_kept() -> None:
    config = {"name": "web-hpa", "behavior": {"scaleDown": {"stabilizationWindowSeconds": 5}}}
    (hpa,) = hpas_of(scaled_object(CPU, advanced={"horizontalPodAutoscalerConfig": config}))
    down = hpa.spec.behavior.scale_down
    assert (hpa.metadata.name, down is not None and down.stabilization_window_seconds) == ("web-hpa", 5)
