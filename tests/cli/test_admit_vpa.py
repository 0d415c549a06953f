"""`trimtab admit` says what the VPA's own webhook sets in the same request, and whether the pod is admitted with it."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from trimtab.cli.main import cli

NONE = {
    "apiVersion": "trimtab.dev/v1alpha1",
    "kind": "PodPolicy",
    "metadata": {"name": "none"},
    "spec": {"actions": {"limits": {"cpu": "remove"}}, "enabled": False},
}
RESOURCES = {"requests": {"cpu": "100m", "memory": "256Mi"}, "limits": {"memory": "1Gi"}}


def named(kind: str, version: str, spec: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": "web", "namespace": "shop"}, "spec": spec, **more}


def deployment(resources: dict[str, Any] = RESOURCES) -> dict[str, Any]:
    container = {"name": "app", "image": "registry.example.com/web:1", "resources": resources}
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container]}}
    return named("Deployment", "apps/v1", {"selector": {"matchLabels": {"app": "web"}}, "template": template})


def vpa(mode: str = "Recreate", controlled: str = "RequestsAndLimits", **target: str) -> dict[str, Any]:
    policy = {"containerName": "*", "maxAllowed": {"memory": "1536Mi"}, "controlledValues": controlled}
    spec = {
        "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        "updatePolicy": {"updateMode": mode},
        "resourcePolicy": {"containerPolicies": [policy]},
    }
    recommended = [{"containerName": "app", "target": target or {"cpu": "250m", "memory": "2Gi"}}]
    status = {"recommendation": {"containerRecommendations": recommended}}
    return named("VerticalPodAutoscaler", "autoscaling.k8s.io/v1", spec, status=status)


def quota(memory: str) -> dict[str, Any]:
    hard = {"limits.memory": memory}
    return named("ResourceQuota", "v1", {"hard": hard}, status={"hard": hard, "used": {"limits.memory": "2Gi"}})


def limit_range(**bounds: Any) -> dict[str, Any]:
    return named("LimitRange", "v1", {"limits": [{"type": "Container", **bounds}]})


def admit(tmp_path: Path, *objects: dict[str, Any], options: tuple[str, ...] = ()) -> Result:
    for name, content in (("all", {"apiVersion": "v1", "kind": "List", "items": list(objects)}), ("policy", NONE)):
        (tmp_path / f"{name}.json").write_text(json.dumps(content))
    files = ("-f", str(tmp_path / "all.json"), "--policies", str(tmp_path / "policy.json"))
    return CliRunner().invoke(cli, ["admit", *files, *options])


def sizing(tmp_path: Path, *objects: dict[str, Any], options: tuple[str, ...] = ()) -> Any:
    result = admit(tmp_path, *objects, options=("-o", "json", *options))
    return json.loads(result.stdout)["pods"][0]["vpa"]


def amounts(tmp_path: Path, *objects: dict[str, Any]) -> dict[str, tuple[str, str | None]]:
    """Resource → (request, limit)."""
    return {one["resource"]: (one["request"], one["limit"]) for one in sizing(tmp_path, *objects)["amounts"]}


def test_an_active_vpa_sets_requests_and_limits_in_proportion(tmp_path: Path) -> None:
    assert amounts(tmp_path, deployment(), vpa()) == {"cpu": ("250m", None), "memory": ("1536Mi", "6Gi")}


def test_requests_alone_leave_the_limit(tmp_path: Path) -> None:
    assert amounts(tmp_path, deployment(), vpa(controlled="RequestsOnly"))["memory"] == ("1536Mi", "1Gi")


def test_a_limit_without_a_request_counts_as_the_request(tmp_path: Path) -> None:
    limited = deployment({"limits": {"memory": "1Gi"}})
    assert amounts(tmp_path, limited, vpa(memory="512Mi")) == {"memory": ("512Mi", "512Mi")}


def test_the_terminal_shows_it_in_one_line(tmp_path: Path) -> None:
    [line] = [line for line in admit(tmp_path, deployment(), vpa()).stdout.splitlines() if "VPA web" in line]
    assert [text for text in ("100m → 250m", "256Mi → 1536Mi", "1Gi → 6Gi") if text not in line] == []


@pytest.mark.parametrize(
    ("objects", "options"),
    [
        ((deployment(), vpa("Off")), ()),
        ((deployment(),), ()),
        ((deployment(), vpa()), ("--no-vpa-webhook",)),
        ((deployment(), vpa(cpu="100m")), ()),
    ],
)
def test_nothing_is_said_where_no_vpa_changes_a_request(
    tmp_path: Path, objects: tuple[dict[str, Any], ...], options: tuple[str, ...]
) -> None:
    assert sizing(tmp_path, *objects, options=options) is None


@pytest.mark.parametrize(("hard", "is_refused"), [("4Gi", True), ("9Gi", False)])
def test_a_quota_is_judged_with_the_amounts_of_the_vpa(tmp_path: Path, hard: str, is_refused: bool) -> None:
    objects = deployment(), vpa(), quota(hard)
    refused = sizing(tmp_path, *objects)["refused"]
    strict = admit(tmp_path, *objects, options=("--strict",))
    assert ((refused or {}).get("by"), bool(strict.exit_code)) == ("ResourceQuota" if is_refused else None, is_refused)


def test_a_maximum_of_a_limit_range_caps_the_vpa(tmp_path: Path) -> None:
    capped = sizing(tmp_path, deployment(), vpa(), quota("4Gi"), limit_range(max={"memory": "2Gi"}))
    assert (capped["isCapped"], capped["refused"]) == (True, None)


def test_a_ratio_of_a_limit_range_does_not(tmp_path: Path) -> None:
    """The pod is refused after the VPA has evicted the former one."""
    ratio = limit_range(maxLimitRequestRatio={"memory": "4"})
    lower = vpa(controlled="RequestsOnly", memory="128Mi")
    refused = sizing(tmp_path, deployment(), lower, ratio)
    assert (refused["isCapped"], refused["refused"]["by"]) == (False, "LimitRanger")
