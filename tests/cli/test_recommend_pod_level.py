"""`trimtab recommend --pod-level`: two containers that peak at different times, and what stands in the way."""

from pathlib import Path
from typing import Any

import pytest

from tests.cli.recommending import START, WEB, hpa, vpa, web
from tests.cli.snapshots import snapshot, told, trimtab
from tests.cluster_of import Item, node

DEPLOYMENT: Item = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "namespace": "shop"},
    "spec": {"replicas": 3},
}


def usage(folder: Path, *, together: bool = False, sidecar: bool = True) -> Path:
    """Two weeks of a value every ten minutes. `app` is busy in the first half of each hour, `proxy` in the second."""
    rows = []
    for number in range(14 * 144):
        is_first = number % 6 < 3
        busy = {"app": is_first, "proxy": is_first if together else not is_first}
        for container in ("app", "proxy") if sidecar else ("app",):
            cpu, memory = (0.8, 800) if busy[container] else (0.1, 100)
            rows.append(f"{START + number * 600},shop,{WEB},{container},{cpu},{memory}Mi")
    path = folder / "usage.csv"
    path.write_text("timestamp,namespace,pod,container,cpu,memory\n" + "\n".join(rows) + "\n")
    return path


def pod(*more: Item) -> Item:
    shape = web()
    resources = {"requests": {"cpu": "1", "memory": "1Gi"}}
    shape["spec"]["containers"] += [{"name": "proxy", "resources": resources}, *more]
    return shape


def kubelet(version: str = "v1.36.2", name: str = "a") -> Item:
    shape = node(name)
    shape["status"]["nodeInfo"] = {"kubeletVersion": version}
    return shape


def cordoned(shape: Item) -> Item:
    return {**shape, "spec": {**shape.get("spec", {}), "unschedulable": True}}


def placed_by(scheduler: str) -> Item:
    shape = pod()
    shape["spec"]["schedulerName"] = scheduler
    return shape


def pods(folder: Path, *items: Item, path: Path | None = None) -> list[dict[str, Any]]:
    world = snapshot(folder, *(items or (pod(), DEPLOYMENT, kubelet())))
    report = told("recommend", "--usage", path or usage(folder), "--cluster", world, "--pod-level", "--rule", "p95")
    result: list[dict[str, Any]] = report["pods"]
    return result


def test_containers_that_take_turns_request_less_as_a_whole(tmp_path: Path) -> None:
    [row] = pods(tmp_path)
    assert (row["workload"], row["containers"]) == ("web", 2)
    assert row["cpu"]["separate"] in ("1600m", "1610m", "1620m", "1630m", "1624m")
    assert float(row["cpu"]["proposed"].removesuffix("m")) == pytest.approx(900, rel=0.03)
    assert row["cpu"]["reason"]["code"] == "from-sum-of-containers"
    assert row["monthlySaved"] > 0


def test_containers_that_peak_together_save_nothing(tmp_path: Path) -> None:
    [row] = pods(tmp_path, path=usage(tmp_path, together=True))
    assert row["cpu"]["proposed"] is None
    assert row["cpu"]["reason"]["code"] == "pod-level-saves-nothing"
    assert row["monthlySaved"] == 0


@pytest.mark.parametrize(
    ("items", "code"),
    [
        ((pod(), DEPLOYMENT, kubelet("v1.33.9")), "pod-level-needs-kubelet"),
        ((pod(), DEPLOYMENT, kubelet(), kubelet("v1.33.9", "b")), "pod-level-needs-kubelet"),
        ((pod(), DEPLOYMENT, kubelet("")), "pod-level-needs-kubelet"),
        ((pod(), DEPLOYMENT), "pod-level-needs-kubelet"),
        ((pod(), DEPLOYMENT, kubelet(), cordoned(kubelet("v1.33.9", "b"))), "pod-level-needs-kubelet"),
        ((placed_by("volcano"), DEPLOYMENT, kubelet()), "pod-level-other-scheduler"),
        ((pod(), DEPLOYMENT, kubelet(), hpa(60)), "pod-level-next-to-hpa"),
        ((pod(), DEPLOYMENT, kubelet(), vpa()), "pod-level-next-to-vpa"),
    ],
)
def test_what_stands_in_the_way_is_named(tmp_path: Path, items: tuple[Item, ...], code: str) -> None:
    [row] = pods(tmp_path, *items)
    assert (row["cpu"]["proposed"], row["cpu"]["reason"]["code"]) == (None, code)


def limit_range_of_pods(minimum: Item) -> Item:
    limits = [{"type": "Pod", "min": minimum}]
    return {
        "apiVersion": "v1",
        "kind": "LimitRange",
        "metadata": {"name": "sizes", "namespace": "shop"},
        "spec": {"limits": limits},
    }


def limited_pod(limit: str, **memory: str) -> Item:
    """Each container has a limit of memory, which the API server takes for its request if it has none."""
    shape = pod()
    for container in shape["spec"]["containers"]:
        container["resources"] = {"requests": {"cpu": "1", **memory}, "limits": {"memory": limit}}
    return shape


def with_init_container(cpu: str) -> Item:
    shape = pod()
    shape["spec"]["initContainers"] = [{"name": "migrate", "resources": {"requests": {"cpu": cpu}}}]
    return shape


@pytest.mark.parametrize(
    ("resource", "items"),
    [
        ("memory", (limited_pod("2Gi"),)),
        ("memory", (limited_pod("2Gi", memory="500Mi"),)),
        ("cpu", (with_init_container("4"),)),
        ("cpu", (pod(), limit_range_of_pods({"cpu": "1200m"}))),
    ],
)
def test_what_the_api_server_would_refuse_is_not_proposed(
    tmp_path: Path, resource: str, items: tuple[Item, ...]
) -> None:
    [row] = pods(tmp_path, DEPLOYMENT, kubelet(), *items)
    assert (row[resource]["proposed"], row[resource]["reason"]["code"]) == (None, "request-refused")
    other = {"cpu": "memory", "memory": "cpu"}[resource]
    assert row[other]["reason"]["code"] == "from-sum-of-containers"


def test_containers_that_keep_small_requests_below_their_limits_are_no_obstacle(tmp_path: Path) -> None:
    [row] = pods(tmp_path, DEPLOYMENT, kubelet(), limited_pod("2Gi", memory="200Mi"))
    assert (row["memory"]["proposed"], row["memory"]["reason"]["code"]) == ("900Mi", "from-sum-of-containers")


@pytest.mark.parametrize(
    "items",
    [
        (limited_pod("300Mi"),),
        (with_init_container("500m"),),
        (pod(), limit_range_of_pods({"cpu": "200m"})),
    ],
)
def test_what_the_api_server_accepts_is_proposed(tmp_path: Path, items: tuple[Item, ...]) -> None:
    [row] = pods(tmp_path, DEPLOYMENT, kubelet(), *items)
    assert row["cpu"]["reason"]["code"] == "from-sum-of-containers"


def test_a_pod_of_which_one_container_is_not_measured_is_not_summed(tmp_path: Path) -> None:
    [row] = pods(tmp_path, path=usage(tmp_path, sidecar=False))
    assert row["cpu"]["reason"]["code"] == "no-usage"


def test_a_single_container_has_no_row_and_without_the_option_none_has(tmp_path: Path) -> None:
    assert pods(tmp_path, web(), DEPLOYMENT, kubelet()) == []
    world = snapshot(tmp_path, pod(), DEPLOYMENT, kubelet())
    assert told("recommend", "--usage", usage(tmp_path), "--cluster", world)["pods"] == []


def test_it_needs_a_cluster_and_series(tmp_path: Path) -> None:
    result = trimtab("recommend", "--usage", usage(tmp_path), "--pod-level")
    assert result.exit_code == 2
    assert "--pod-level" in result.output


def test_the_table_shows_the_sum_before_and_after(tmp_path: Path) -> None:
    world = snapshot(tmp_path, pod(), DEPLOYMENT, kubelet())
    result = trimtab("recommend", "--usage", usage(tmp_path), "--cluster", world, "--pod-level", "--rule", "p95")
    assert result.exit_code == 0
    assert "Whole pods" in result.output or "WHOLE PODS" in result.output.upper()
