"""HorizontalPodAutoscalers that scale by utilization count replicas by requests."""

from dataclasses import replace

import pytest

from tests.policies.runner import pods, world
from trimtab.policy.autoscalers import KIND, is_scaled_by_utilization
from trimtab.policy.cluster_facts import ALL_KINDS, ClusterFacts
from trimtab.policy.pod_context import PodContext

DEPLOYMENT = b"""
kind: Deployment
metadata: {name: web, namespace: shop}
spec: {template: {spec: {containers: [{name: app}]}}}
"""
CPU = "[{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 60}}}]"
CONTAINER = (
    "[{type: ContainerResource, containerResource: "
    "{name: cpu, container: app, target: {type: Utilization, averageUtilization: 60}}}]"
)
AVERAGE = "[{type: Resource, resource: {name: cpu, target: {type: AverageValue, averageValue: 500m}}}]"
RATE = "[{type: Pods, pods: {metric: {name: requests}, target: {type: AverageValue, averageValue: '10'}}}]"


def subject(facts: ClusterFacts) -> PodContext:
    ((pod, namespace),) = pods(DEPLOYMENT)
    return PodContext(pod=pod, namespace=namespace, facts=facts)


def hpa(rest: str, *, name: str = "web", namespace: str = "shop") -> ClusterFacts:
    target = f"scaleTargetRef: {{apiVersion: apps/v1, kind: Deployment, name: {name}}}"
    text = f"kind: {KIND}\nmetadata: {{name: x, namespace: {namespace}}}\nspec: {{{target}{rest}}}\n"
    return world(text.encode())


@pytest.mark.parametrize("metrics", [CPU, CONTAINER])
def test_utilization_of_a_resource_is_measured_against_requests(metrics: str) -> None:
    assert is_scaled_by_utilization(subject(hpa(f", metrics: {metrics}")))


@pytest.mark.parametrize("metrics", [AVERAGE, RATE])
def test_other_metrics_do_not_care_for_requests(metrics: str) -> None:
    assert not is_scaled_by_utilization(subject(hpa(f", metrics: {metrics}")))


def test_the_old_version_and_an_hpa_without_metrics_count_by_cpu_utilization() -> None:
    assert is_scaled_by_utilization(subject(hpa(", targetCPUUtilizationPercentage: 70")))
    assert is_scaled_by_utilization(subject(hpa("")))


@pytest.mark.parametrize("version", ["", "apiVersion: '', ", "apiVersion: v1, ", "apiVersion: apps.kruise.io/v1, "])
def test_an_hpa_that_names_another_group_or_none_scales_no_deployment(version: str) -> None:
    text = (
        f"kind: {KIND}\nmetadata: {{name: x, namespace: shop}}\nspec: {{scaleTargetRef: {{{version}kind: Deployment, "
    )
    assert not is_scaled_by_utilization(subject(world(f"{text}name: web}}}}\n".encode())))


def test_an_hpa_of_another_workload_says_nothing_of_this_one() -> None:
    assert not is_scaled_by_utilization(subject(hpa("", name="api")))
    assert not is_scaled_by_utilization(subject(hpa("", namespace="other")))


def test_while_hpas_are_not_listed_yet_the_cautious_reading_holds() -> None:
    assert is_scaled_by_utilization(subject(replace(ClusterFacts(), listed_kinds=ALL_KINDS - {KIND})))
