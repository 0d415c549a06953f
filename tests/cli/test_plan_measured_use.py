"""Pods that request nothing count with what they use now, where that is known."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.cli.recommending import kubeconfig
from tests.cli.snapshots import snapshot, told, trimtab
from tests.cluster_of import Item, node, pod
from tests.reasons import has_facts
from tests.usage.fake_prometheus import Answer, Asked, serving

KEEP = {"trimtab.dev/do-not-disrupt": "true"}
BARE = [pod(f"x-{number}", "a", "") for number in range(20)]
"""With what is assumed for each, two cores together: node b has room for all."""
CLUSTER = (node("a"), node("b"), *BARE, pod("y-1", "b", annotations=KEEP))
PLURALS = {"/api/v1/nodes": "Node", "/api/v1/pods": "Pod"}


def use(name: str, cpu: str, memory: str = "10Mi") -> Item:
    """As `kubectl get podmetrics -o yaml` prints it: two containers that use the same."""
    containers = [{"name": name, "usage": {"cpu": cpu, "memory": memory}} for name in ("c", "beside")]
    return {
        "apiVersion": "metrics.k8s.io/v1beta1",
        "kind": "PodMetrics",
        "timestamp": "2026-01-02T00:00:00Z",
        "metadata": {"name": name, "namespace": "default"},
        "containers": containers,
    }


def planned(folder: Path, *items: Item) -> Item:
    return told("plan", "--cluster", snapshot(folder, *items), "--preset", "all=keen")


NOT_SERVED: Answer = (404, {"kind": "Status", "reason": "NotFound", "message": "not served"})
NOT_ALLOWED: Answer = (403, {"kind": "Status", "reason": "Forbidden", "message": "pods.metrics.k8s.io is forbidden"})


def served(used: Sequence[Item]) -> Answer:
    return 200, {"kind": "PodMetricsList", "items": used}


def api(metrics: Answer) -> Callable[[Asked], Answer]:
    """An API server with the same cluster, and this answer of the metrics API."""

    def answer(request: Asked) -> Answer:
        if request[0].startswith("/apis/metrics.k8s.io"):
            return metrics
        items = [item for item in CLUSTER if item["kind"] == PLURALS.get(request[0])]
        return 200, {"kind": "List", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": items}

    return answer


def planned_live(folder: Path, metrics: Answer) -> Item:
    with serving(api(metrics)) as server:
        login = ("--cluster", "live", "--kubeconfig", kubeconfig(folder, server.url))
        return told("plan", *login, "--preset", "all=keen")


def test_without_a_measurement_the_assumed_amounts_count(tmp_path: Path) -> None:
    report = planned(tmp_path, *CLUSTER)
    assert report["evictions"] == 20
    assert not any("present usage" in note for note in report["notes"])


def test_what_one_pod_of_an_owner_uses_counts_for_each_of_them(tmp_path: Path) -> None:
    report = planned(tmp_path, *CLUSTER, use("x-7", "100m"), use("x-8", "20m"))
    assert report["evictions"] == 0
    assert any(has_facts(note, "2 of 21 pods", "without a request") for note in report["notes"])


def test_a_moment_of_little_use_makes_no_pod_small(tmp_path: Path) -> None:
    many = [pod(f"x-{number}", "a", "") for number in range(50)]
    pod_metrics = [use(f"x-{number}", "1m", "1Mi") for number in range(50)]
    assert (
        planned(tmp_path, node("a"), node("b"), *many, pod("y-1", "b", annotations=KEEP), *pod_metrics)["evictions"]
        == 0
    )


def test_the_use_of_pods_that_stay_is_room_that_nobody_gets(tmp_path: Path) -> None:
    held_pod = pod("z-1", "b", "", annotations=KEEP)
    items = (node("a"), node("b"), pod("w-1", "a", "3"), held_pod)
    assert planned(tmp_path, *items)["evictions"] == 1
    assert planned(tmp_path, *items, use("z-1", "1"))["evictions"] == 0


def test_a_request_counts_whatever_is_used(tmp_path: Path) -> None:
    items = (node("a"), node("b"), pod("w-1", "a", "1", "1Gi"), pod("y-1", "b", "1", "1Gi", annotations=KEEP))
    assert planned(tmp_path, *items, use("w-1", "60"), use("y-1", "60"))["evictions"] == 1


def test_a_live_cluster_is_asked_for_it(tmp_path: Path) -> None:
    assert planned_live(tmp_path, served([use("x-7", "100m")]))["evictions"] == 0


def test_a_live_cluster_without_a_metrics_api_is_planned_as_a_file_and_that_is_a_note(tmp_path: Path) -> None:
    report = planned_live(tmp_path, NOT_SERVED)
    assert report["evictions"] == 20
    assert any(has_facts(note, "no metrics API", "metrics-server") for note in report["notes"])


def captured(folder: Path, metrics: Answer, *options: str) -> tuple[Path, str]:
    """The file that `trimtab capture` wrote, and what it said."""
    path = folder / "capture.json"
    with serving(api(metrics)) as server:
        done = trimtab("capture", "-O", path, "--kubeconfig", kubeconfig(folder, server.url), *options)
    assert done.exit_code == 0, done.output
    return path, done.stderr


@pytest.mark.parametrize("options", [(), ("--hash-names",)])
def test_a_capture_has_it_and_is_planned_as_the_live_cluster_is(tmp_path: Path, options: tuple[str, ...]) -> None:
    metrics = served([use("x-7", "100m"), {"metadata": {"name": "x-8", "namespace": "default"}, "containers": None}])
    path, text = captured(tmp_path, metrics, *options)
    report = told("plan", "--cluster", path, "--preset", "all=keen")
    assert report["evictions"] == 0
    live = planned_live(tmp_path, metrics)
    assert [note for note in report["notes"] if "uses now" in note] == [
        note for note in live["notes"] if "uses now" in note
    ]
    assert report["waves"] == live["waves"]
    assert "metrics" not in text


@pytest.mark.parametrize(
    ("metrics", "said"), [(NOT_SERVED, "this cluster serves no metrics API"), (NOT_ALLOWED, "forbidden")]
)
def test_a_capture_without_it_says_why(tmp_path: Path, metrics: Answer, said: str) -> None:
    path, told_of = captured(tmp_path, metrics)
    assert said in told_of
    assert has_facts(told_of, "without requests", "not known")
    assert "PodMetrics" not in path.read_text()
