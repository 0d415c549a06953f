"""`trimtab recommend` counts kills for want of memory, from a snapshot and from Prometheus."""

from pathlib import Path
from typing import Any

import pytest

from tests.cli.recommending import DAY, START, WEB, codes, only, prometheus, web
from tests.cli.snapshots import snapshot, told
from tests.reasons import has_facts
from tests.usage.fake_prometheus import Answer, Asked, matrix, serving


def killed_web(at: str = "2026-01-18T12:00:00Z", **more: Any) -> dict[str, Any]:
    pod = web(**more)
    ended = {"terminated": {"reason": "OOMKilled", "exitCode": 137, "finishedAt": at}}
    pod["status"]["containerStatuses"] = [{"name": "app", "lastState": ended}]
    return pod


def test_a_kill_that_the_snapshot_tells_is_a_floor_and_is_said(tmp_path: Path) -> None:
    memory = only(tmp_path, killed_web())["memory"]
    assert memory["proposed"] == "906Mi"  # three times what it was seen to use: its request of 1Gi says nothing of that
    assert codes(memory)[0] in ("oom-killed", "from-usage")
    plain = only(tmp_path, web())["memory"]
    assert plain["proposed"] == "346Mi"


def test_a_kill_that_the_request_does_not_cover_is_severe(tmp_path: Path) -> None:
    for request, severity in (("512Mi", "high"), ("1Gi", "low")):
        pod = killed_web()
        pod["spec"]["containers"][0]["resources"]["requests"]["memory"] = request
        assert only(tmp_path, pod)["memory"]["severity"] == severity


@pytest.mark.parametrize("cpu", [{}, {"cpu": "1"}], ids=["burstable", "guaranteed"])
def test_a_kill_at_the_limit_is_severe_and_says_that_the_limit_has_to_be_raised(
    tmp_path: Path, cpu: dict[str, str]
) -> None:
    pod, code = killed_web(), "limit-below-need"
    pod["spec"]["containers"][0]["resources"] = {
        "requests": {"cpu": "1", "memory": "512Mi"},
        "limits": {"memory": "512Mi", **cpu},
    }
    memory = only(tmp_path, pod)["memory"]
    assert (memory["proposed"], memory["severity"], codes(memory)) == (None, "high", [code])
    assert has_facts(memory["reasons"][0]["text"], "615Mi", "limit", "512Mi")
    pod["spec"]["containers"][0]["resources"]["requests"]["memory"] = "256Mi"
    raised = only(tmp_path, pod)["memory"]
    assert (raised["proposed"], raised["severity"], codes(raised)[-1]) == ("512Mi", "high", code)


def test_a_guaranteed_pod_that_was_killed_gets_a_limit_that_holds_what_it_needs(tmp_path: Path) -> None:
    pod = killed_web()
    same = {"cpu": "1", "memory": "512Mi"}
    pod["spec"]["containers"][0]["resources"] = {"requests": same, "limits": same}
    memory = only(tmp_path, pod, options=("--guaranteed",))["memory"]
    assert (memory["proposed"], memory["proposedLimit"]) == ("615Mi", "615Mi")
    assert "limit-below-need" not in codes(memory)


def test_a_kill_of_weeks_ago_is_no_floor(tmp_path: Path) -> None:
    assert only(tmp_path, killed_web("2026-01-02T12:00:00Z"))["memory"]["proposed"] == "346Mi"


def test_plain_percentiles_keep_the_floor_too(tmp_path: Path) -> None:
    memory = only(tmp_path, killed_web(), options=("--rule", "p95"))["memory"]
    assert (memory["proposed"], codes(memory)) == ("906Mi", ["from-usage", "oom-killed"])


@pytest.mark.parametrize(
    "pod",
    [web(), killed_web("2026-01-17T23:20:00Z", requests={"memory": "256Mi"}, limits={"memory": "512Mi"})],
    ids=["prometheus", "both"],
)
def test_kills_that_prometheus_tells_count_and_those_that_the_snapshot_tells_too_count_once(
    tmp_path: Path, pod: dict[str, Any]
) -> None:
    metric = {"namespace": "shop", "pod": WEB, "container": "app"}
    at = START + 13 * DAY

    def answer(request: Asked) -> Answer:
        text = request[1].get("query", "")
        if "kube_pod_container_status" in text:
            return 200, matrix((metric, [(float(at), 1.0)]))
        if "kube_pod_container_resource_limits" in text:
            return 200, matrix((metric, [(float(at), 512.0 * (1 << 20))]))
        return prometheus(request)

    with serving(answer) as server:
        report = told(
            "recommend",
            "--prometheus",
            server.url,
            "--now",
            "2026-01-19T00:00:00Z",
            "--step",
            "3600",
            "--cluster",
            snapshot(tmp_path, pod),
        )
    (container,) = report["containers"]
    assert container["memory"]["reasons"][0]["code"] == "oom-killed"
    assert "is 615Mi" in container["memory"]["reasons"][0]["text"]
    assert has_facts(container["memory"]["reasons"][0]["text"], "killed", "memory", "once", "2026-01-18")
