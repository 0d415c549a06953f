"""HVPA's failings, as scenarios of the advice of lint: one decision, from one snapshot, for both directions.

X8, X11 and X12 are about HVPA's own update policies and maintenance windows; no rule decides about the like.
"""

from itertools import permutations
from typing import Any

import pytest

from tests.build import owner_key
from tests.reasons import has_facts
from trimtab.autoscaling.lint import check_snapshot
from trimtab.autoscaling.read_snapshot import read_lint_snapshot
from trimtab.autoscaling.replica_prediction import settle_on_average_value
from trimtab.autoscaling.rule import RuleFinding
from trimtab.autoscaling.rules import ALL_RULES
from trimtab.autoscaling.usage_history import ResourceUsage, UsageHistory
from trimtab.cluster.yaml_documents import Document

CORE = 1000
VALUE_OF_A_CORE = 0.8 * CORE
"""80 % of a request of one core: what the fix of L01 writes."""
TARGET = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}


def deployment(replicas: int = 2, **resources: dict[str, str]) -> dict[str, Any]:
    container = {"name": "web", "image": "registry.example.com/web:1", "resources": resources}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container]}},
        },
    }


def vpa(**policy: Any) -> dict[str, Any]:
    policies = {"containerPolicies": [{"containerName": "*", **policy}]}
    return {
        "apiVersion": "autoscaling.k8s.io/v1",
        "kind": "VerticalPodAutoscaler",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"targetRef": TARGET, "updatePolicy": {"updateMode": "Recreate"}, "resourcePolicy": policies},
    }


def hpa(percent: int) -> dict[str, Any]:
    metric = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": percent}}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {
            "scaleTargetRef": TARGET,
            "minReplicas": 1,
            "maxReplicas": 20,
            "metrics": [{"type": "Resource", "resource": metric}],
        },
    }


def cpu_usage(p95: float, mean: float | None = None) -> UsageHistory:
    mean = p95 / 2 if mean is None else mean
    usage = ResourceUsage(p5=p95 / 4, p50=mean, p90=p95 * 0.95, p95=p95, max=p95 * 1.2, mean=mean)
    return UsageHistory(containers={(owner_key("Deployment/web", "shop"), "web"): {"cpu": usage}})


def lint(*manifests: dict[str, Any], usage: UsageHistory | None = None) -> tuple[RuleFinding, ...]:
    documents = [Document(file="web.yaml", index=n, value=manifest) for n, manifest in enumerate(manifests)]
    return check_snapshot(read_lint_snapshot(documents, usage=usage).snapshot, ALL_RULES).findings


def rules_of(findings: tuple[RuleFinding, ...]) -> set[str]:
    return {finding.rule for finding in findings}


def test_x1_a_demand_of_five_cores_is_met_with_less_than_six() -> None:
    """HVPA multiplies three replicas by three cores: nine."""
    settled = settle_on_average_value(total=5 * CORE, average_value=VALUE_OF_A_CORE)
    assert 5 * CORE <= settled.replicas * settled.request <= 6 * CORE


@pytest.mark.parametrize(("cores", "replicas"), [(0.7, 1), (1.5, 2), (2.1, 3)])
def test_x2_the_advice_names_the_count_and_the_size_that_result(cores: float, replicas: int) -> None:
    """HVPA's weights of 50 to 50 end at 100 % horizontal, and nothing says so."""
    usage = cpu_usage(p95=cores * CORE, mean=cores * CORE * 0.9)
    [finding] = [f for f in lint(deployment(1, requests={"cpu": "1"}), hpa(80), vpa(), usage=usage) if f.rule == "L01"]
    settled = settle_on_average_value(
        total=cores * CORE * 0.9, average_value=VALUE_OF_A_CORE, mean_to_p90=0.9 / 0.95, max_replicas=20
    )
    assert settled.replicas == replicas
    count = f"{replicas} pod{'' if replicas == 1 else 's'}"
    assert has_facts(finding.fix, "replica count", "stays", count, f"{settled.request}m")


def test_x3_large_pods_shrink_also_where_the_count_is_at_its_minimum() -> None:
    """HVPA turns vertical scaling off at a low count, and keeps large idle pods for ever."""
    settled = settle_on_average_value(total=0.3 * CORE, average_value=4 * CORE, min_replicas=2)
    assert (settled.replicas, settled.request) == (2, 172)


def test_x4_a_request_that_is_too_small_is_found_however_little_is_missing() -> None:
    """HVPA's MinChange leaves a pod short of 1.5 cores for ever; a threshold is for savings only."""
    assert "L37" in rules_of(lint(deployment(requests={"cpu": "2"}), usage=cpu_usage(2001)))


@pytest.mark.parametrize(
    ("request_text", "p95", "is_found"),
    [("2", 1400, False), ("2", 1300, True), ("60m", 30, False), ("90m", 30, True)],
    ids=["a third too much", "more than half", "half, but 30m", "two thirds, and 60m"],
)
def test_x5_a_saving_must_pass_both_thresholds(request_text: str, p95: float, is_found: bool) -> None:
    """More than 1.5 times P95, and more than 50m: never the smaller of two."""
    findings = lint(deployment(requests={"cpu": request_text}), usage=cpu_usage(p95))
    assert ("L38" in rules_of(findings)) is is_found


def test_x6_the_order_of_objects_and_controllers_changes_nothing() -> None:
    manifests = (deployment(3, requests={"cpu": "1"}), hpa(50), vpa())
    first, *others = (lint(*order, usage=cpu_usage(800)) for order in permutations(manifests))
    assert all(other == first for other in others)


def test_x7_a_limit_that_would_grow_with_the_request_is_an_error_with_its_fix() -> None:
    """HVPA scales 5G to 33G in proportion."""
    findings = lint(deployment(requests={"memory": "200M"}, limits={"memory": "5G"}), vpa())
    [actual_finding] = [finding for finding in findings if finding.rule == "L14"]
    assert "25 times" in actual_finding.sentence
    assert [change.value for change in actual_finding.changes] == ["RequestsOnly"]  # type: ignore[union-attr]


def test_x9_limits_that_equal_requests_stay_equal() -> None:
    """The VPA keeps a ratio of one, so that a Guaranteed pod stays one: no error."""
    amounts = {"cpu": "1", "memory": "500M"}
    assert "L14" not in rules_of(lint(deployment(requests=amounts, limits=amounts), vpa()))


def test_x10_requests_alone_are_sized_where_the_limit_is_to_stay() -> None:
    """The VPA then caps the request at the limit, and nothing multiplies the limit."""
    manifests = deployment(requests={"memory": "300M"}, limits={"memory": "600M"}), vpa(controlledValues="RequestsOnly")
    assert "L14" not in rules_of(lint(*manifests))
