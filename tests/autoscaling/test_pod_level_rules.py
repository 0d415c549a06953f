"""HPAs and old kubelets beside requests of pods as a whole."""

from dataclasses import replace

import pytest

from tests.autoscaling.rule_cases_of import snapshot_of
from trimtab.autoscaling.lint_snapshot import LintSnapshot
from trimtab.autoscaling.rules.hpa_settings import missing_request
from trimtab.autoscaling.rules.whole_pod_requests import unusable_pod_level
from trimtab.cluster.api.autoscaling import (
    HorizontalPodAutoscaler,
    HPASpec,
    MetricSpec,
    MetricTarget,
    ResourceMetric,
    ScaleTargetRef,
)
from trimtab.cluster.api.meta import Metadata, change
from trimtab.cluster.api.pod import Resources


def beside(metric: str, resource: str, container: str = "") -> LintSnapshot:
    source = ResourceMetric(name=resource, container=container, target=MetricTarget(average_utilization=80))
    metrics = (MetricSpec(type=metric, **{"container_resource" if container else "resource": source}),)
    target = ScaleTargetRef(kind_name="Deployment", name="web", api_version="apps/v1")
    hpa = HorizontalPodAutoscaler(
        metadata=Metadata(name="web", namespace="shop"), spec=HPASpec(scale_target_ref=target, metrics=metrics)
    )
    return replace(snapshot_of("L50", "good.yaml"), hpas=(hpa,), limit_ranges=())


@pytest.mark.parametrize(
    ("metric", "resource", "container", "count"),
    [
        ("Resource", "cpu", "", 0),
        ("Resource", "ephemeral-storage", "", 1),
        ("ContainerResource", "cpu", "web", 1),
    ],
)
def test_an_hpa_reads_the_request_of_the_pod_or_that_of_its_container(
    metric: str, resource: str, container: str, count: int
) -> None:
    assert len(list(missing_request.find_problems(beside(metric, resource, container)))) == count


@pytest.mark.parametrize(("minor", "count"), [(None, 0), (36, 0), (34, 0), (33, 2)])
def test_a_kubelet_that_is_too_old_is_found(minor: int | None, count: int) -> None:
    snapshot = replace(snapshot_of("L50", "good.yaml"), minor=minor, limit_ranges=())
    assert len(list(unusable_pod_level.find_problems(snapshot))) == count


@pytest.mark.parametrize(("cpu", "count"), [("100m", 0), ("200m", 0), ("201m", 1)])
def test_containers_that_request_more_than_the_pod_are_found_without_a_limit_range(cpu: str, count: int) -> None:
    snapshot = replace(snapshot_of("L50", "good.yaml"), minor=36, limit_ranges=())
    [workload] = snapshot.workloads
    first = change(workload.spec.containers[0], resources=Resources(requests={"cpu": cpu}))
    spec = change(workload.spec, containers=(first, *workload.spec.containers[1:]))
    spec = change(spec, resources=Resources(requests={"cpu": "200m"}))
    snapshot = replace(snapshot, workloads=(replace(workload, spec=spec),))
    assert len(list(unusable_pod_level.find_problems(snapshot))) == count
