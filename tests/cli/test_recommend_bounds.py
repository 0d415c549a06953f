"""`trimtab recommend` within what the namespace and the whole pod allow."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.recommending import codes, only, usage, web
from tests.cli.snapshots import snapshot, told, trimtab
from tests.cluster_of import Item


def bounds(kind: str = "Container", **limits: dict[str, str]) -> Item:
    return {
        "apiVersion": "v1",
        "kind": "LimitRange",
        "metadata": {"name": "small", "namespace": "shop"},
        "spec": {"limits": [{"type": kind, **limits}]},
    }


def asking(request: str = "1", limit: str = "") -> Item:
    """The pod with another cpu request, and perhaps a limit."""
    requests = {"requests": {"cpu": request, "memory": "1Gi"}}
    return web(**requests, **({"limits": {"cpu": limit}} if limit else {}))


def grouped(**level: dict[str, str]) -> Item:
    """The pod with pod-level resources, asking for little cpu."""
    item = asking("50m")
    item["spec"]["resources"] = level
    return item


@pytest.mark.parametrize(
    ("pod", "limit_range", "proposed", "code"),
    [
        (asking(limit="1500m"), bounds(maxLimitRequestRatio={"cpu": "2"}), "750m", "request-raised"),
        (asking(), bounds(min={"cpu": "400m"}), "400m", "request-raised"),
        (asking("50m"), bounds(default={"cpu": "150m"}), "150m", "request-capped"),
        (asking("50m"), bounds(max={"cpu": "120m"}), "120m", "request-capped"),
        (asking(limit="1"), bounds("Pod", min={"cpu": "500m"}), None, "request-refused"),
        (asking(limit="2"), bounds(min={"cpu": "3"}), None, "limitrange-refuses"),
    ],
    ids=["ratio", "min", "default", "max", "pod", "none"],
)
def test_a_limit_range_bounds_the_request(
    pod: Item, limit_range: Item, proposed: str | None, code: str, tmp_path: Path
) -> None:
    cpu = only(tmp_path, pod, limit_range)["cpu"]
    assert (cpu["proposed"], code in codes(cpu)) == (proposed, True)


def test_a_default_limit_is_named_with_its_limit_range(tmp_path: Path) -> None:
    cpu = only(tmp_path, asking("50m"), bounds(default={"cpu": "150m"}))["cpu"]
    assert any("LimitRange small" in reason["text"] for reason in cpu["reasons"])


def report_and_patch(folder: Path, *items: Item) -> tuple[Any, Any]:
    arguments = ("--usage", usage(folder), "--cluster", snapshot(folder, *items))
    report = told("recommend", *arguments, "--patch", folder / "patches")
    file = folder / "patches" / "shop-deployment-web.yaml"
    return report, yaml.safe_load(file.read_text())["spec"]["template"]["spec"] if file.exists() else None


def test_the_pod_level_request_rises_with_its_containers(tmp_path: Path) -> None:
    report, patch = report_and_patch(tmp_path, grouped(requests={"cpu": "100m", "memory": "2Gi"}))
    (container,) = patch["containers"]
    assert patch["resources"] == {"requests": {"cpu": container["resources"]["requests"]["cpu"]}}
    assert report["total"]["cpuNow"] == 0.1
    assert any("pod-level cpu request" in note for note in report["notes"])


def test_a_lower_request_below_the_pod_level_saves_nothing(tmp_path: Path) -> None:
    """The scheduler counts the pod-level request."""
    item = asking()
    item["spec"]["resources"] = {"requests": {"cpu": "2", "memory": "2Gi"}}
    report, patch = report_and_patch(tmp_path, item)
    total = report["total"]
    assert (total["cpuNow"], total["cpuProposed"], total["memoryNow"], report["saved"]) == (2.0, 2.0, 2.0, 0.0)
    assert "resources" not in patch


def test_the_pod_level_limit_caps_the_containers(tmp_path: Path) -> None:
    report, patch = report_and_patch(tmp_path, grouped(limits={"cpu": "100m", "memory": "2Gi"}))
    (container,) = report["containers"]
    assert (container["cpu"]["proposed"], "pod-level-limit" in codes(container["cpu"])) == ("100m", True)
    assert patch["containers"][0]["resources"]["requests"]["cpu"] == "100m"


def test_a_container_that_a_webhook_adds_gets_no_patch(tmp_path: Path) -> None:
    template = {"spec": {"containers": [{"name": "main", "image": "i"}]}}
    owner = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"replicas": 1, "template": template},
    }
    arguments = ("--usage", usage(tmp_path), "--cluster", snapshot(tmp_path, web(), owner), "--patch", tmp_path / "p")
    result = trimtab("recommend", *arguments)
    assert "shop/web/app" in result.stderr
    assert yaml.safe_load((tmp_path / "p" / "kustomization.yaml").read_text())["patches"] == []
