"""VPAs under a LimitRange's maxLimitRequestRatio, and over pods with pod-level resources."""

from typing import Any

import pytest

from trimtab.autoscaling.fixes import change_value, plan_fixes
from trimtab.autoscaling.lint_snapshot import LintSnapshot
from trimtab.autoscaling.read_snapshot import read_lint_snapshot
from trimtab.autoscaling.rules import RULES_BY_CODE
from trimtab.cluster.yaml_documents import Document

TARGET = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
SMALL = {"name": "app", "image": "i", "resources": {"requests": {"cpu": "600m"}, "limits": {"cpu": "1"}}}
LARGE = {"name": "proxy", "image": "i", "resources": {"requests": {"cpu": "3"}, "limits": {"cpu": "4"}}}


def named(version: str, kind: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": "web", "namespace": "shop"}, "spec": spec}


def deployment(*containers: Any, **pod: Any) -> dict[str, Any]:
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": list(containers), **pod}}
    return named("apps/v1", "Deployment", {"replicas": 2, "template": template})


def vpa(*policies: Any) -> dict[str, Any]:
    spec = {"targetRef": TARGET, "resourcePolicy": {"containerPolicies": list(policies)}}
    return named("autoscaling.k8s.io/v1", "VerticalPodAutoscaler", spec)


def ratio(most: str = "2", **bounds: Any) -> dict[str, Any]:
    item = {"type": "Container", "maxLimitRequestRatio": {"cpu": most}, **bounds}
    return named("v1", "LimitRange", {"limits": [item]})


def snapshot_of(*items: dict[str, Any]) -> LintSnapshot:
    documents = [Document(file="all.yaml", index=index, value=item) for index, item in enumerate(items)]
    return read_lint_snapshot(documents, is_live=False).snapshot


def fixed_policies(code: str, *items: dict[str, Any]) -> list[dict[str, Any]]:
    """The policies of the VPA, the last of the items, after the fixes of one rule. They bring no error of L47."""
    plan = plan_fixes(snapshot_of(*items), RULES_BY_CODE[code].find_problems, lambda before, after: True)
    changes = next((changes for subject, changes in plan.changes.items() if subject.kind.startswith("Vert")), ())
    value = change_value(items[-1], changes)
    policies: list[dict[str, Any]] = value["spec"]["resourcePolicy"]["containerPolicies"]
    assert problems("L47", *items[:-1], value) == []
    return policies


def problems(code: str, *items: dict[str, Any]) -> list[str]:
    return [finding.sentence for finding in RULES_BY_CODE[code].find_problems(snapshot_of(*items))]


def test_the_fix_of_multiplied_limits_keeps_the_ratio() -> None:
    (policy,) = fixed_policies("L14", deployment(SMALL), ratio(), vpa())
    assert policy == {"containerName": "app", "controlledValues": "RequestsOnly", "minAllowed": {"cpu": "500m"}}


def test_each_container_gets_its_own_minimum() -> None:
    policies = fixed_policies("L14", deployment(SMALL, LARGE), ratio(), vpa({"containerName": "*", "mode": "Auto"}))
    assert {one["containerName"]: one.get("minAllowed") for one in policies} == {
        "*": None,
        "app": {"cpu": "500m"},
        "proxy": {"cpu": "2"},
    }


def test_limits_stay_multiplied_where_the_maximum_is_below_the_minimum() -> None:
    policy = {"containerName": "app", "maxAllowed": {"cpu": "400m"}}
    assert fixed_policies("L14", deployment(SMALL), ratio(), vpa(policy)) == [policy]


def test_without_a_ratio_the_fix_is_the_policy_for_all_containers() -> None:
    assert fixed_policies("L14", deployment(SMALL), vpa()) == [
        {"containerName": "*", "controlledValues": "RequestsOnly"}
    ]


@pytest.mark.parametrize("least", [None, "499m"])
def test_a_minimum_below_the_limit_divided_by_the_ratio_is_raised(least: str | None) -> None:
    policy = {"containerName": "app", "controlledValues": "RequestsOnly"}
    policy |= {} if least is None else {"minAllowed": {"cpu": least}}  # type: ignore[dict-item]
    (raised,) = fixed_policies("L47", deployment(SMALL), ratio(), vpa(policy))
    assert raised["minAllowed"] == {"cpu": "500m"}


def test_the_default_limit_of_the_limit_range_counts() -> None:
    bare = {"name": "app", "image": "i", "resources": {"requests": {"cpu": "600m"}}}
    policy = {"containerName": "app", "controlledValues": "RequestsOnly"}
    (raised,) = fixed_policies("L47", deployment(bare), ratio(default={"cpu": "1"}), vpa(policy))
    assert raised["minAllowed"] == {"cpu": "500m"}


@pytest.mark.parametrize(("most", "count"), [(None, 2), ("600m", 1), ("500m", 0)])
def test_a_vpa_of_pods_with_pod_level_resources_stays_within_them(most: str | None, count: int) -> None:
    items = [{"name": name, "image": "i", "resources": {"requests": {"cpu": "300m"}}} for name in ("app", "proxy")]
    resources = {"requests": {"cpu": "1", "memory": "1Gi"}}
    maxima = {} if most is None else {"maxAllowed": {"cpu": most, "memory": "512Mi"}}
    policy = {"containerName": "*", "controlledValues": "RequestsOnly", **maxima}
    assert len(problems("L47", deployment(*items, resources=resources), vpa(policy))) == count
