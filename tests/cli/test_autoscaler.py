"""`trimtab autoscaler propose` from files."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.report_runs import read_report, run_verb
from tests.cluster_of import node
from tests.reasons import has_facts

START = 1_767_571_200
HOUR, DAY = 3600, 86_400


def pod_name(number: int) -> str:
    """A name as a ReplicaSet gives: five letters of its own alphabet."""
    return "web-7d4b9c6f5d-" + "".join("bcdfghjklm"[int(digit)] for digit in f"{number:05d}")


def pods(replicas: int, *, nodes: int) -> list[dict[str, Any]]:
    """Pods of one Deployment, dealt out over the nodes."""
    return [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "status": {"phase": "Running"},
            "metadata": {
                "name": pod_name(n),
                "namespace": "shop",
                "labels": {"app": "web", "pod-template-hash": "7d4b9c6f5d"},
                "ownerReferences": [
                    {
                        "apiVersion": "apps/v1",
                        "kind": "ReplicaSet",
                        "controller": True,
                        "name": "web-7d4b9c6f5d",
                        "uid": "u",
                    }
                ],
            },
            "spec": {
                "nodeName": f"n{n % nodes}",
                "containers": [{"name": "app", "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}}}],
            },
        }
        for n in range(replicas)
    ]


def write_cluster(folder: Path, *objects: dict[str, Any], name: str = "cluster.json") -> Path:
    (folder / name).write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    return folder / name


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    """Four nodes of 4 cores, each half used."""
    return write_cluster(tmp_path, *(node(f"n{n}", cpu="4", memory="16Gi") for n in range(4)), *pods(16, nodes=4))


def write_usage(folder: Path, lives: dict[str, tuple[int, int]]) -> Path:
    rows = ["timestamp,namespace,pod,container,cpu"]
    for pod, (first, last) in lives.items():
        rows += [f"{START + at},shop,{pod},app,0.2" for at in range(first, last + 1, 300)]
    (folder / "usage.csv").write_text("\n".join(rows))
    return folder / "usage.csv"


def test_a_higher_threshold_is_proposed_for_nodes_that_are_half_used(cluster: Path) -> None:
    report = read_report("autoscaler", "propose", "--cluster", cluster)
    assert report["reason"]["code"] == "autoscaler-flags-save"
    assert report["present"]["flags"][0] == "--scale-down-utilization-threshold=0.5"
    assert (report["present"]["finalNodes"], report["proposed"]["finalNodes"]) == (4, 2)
    assert report["proposed"]["evictions"] >= 8
    assert (report["nodes"], report["pods"], report["hours"]) == (4, 16, 2.0)
    assert any(has_facts(note, "one snapshot", "without usage") for note in report["notes"])


def test_the_pods_over_time_come_from_usage(cluster: Path, tmp_path: Path) -> None:
    """By day 16 pods, by night 4: nodes go at night and come back in the morning."""
    lives = {pod_name(n): (0, DAY) for n in range(4)}
    for n in range(4, 16):
        lives[pod_name(n)] = (0, 8 * HOUR)
        lives[pod_name(n + 100)] = (16 * HOUR, DAY)
    report = read_report("autoscaler", "propose", "--cluster", cluster, "--usage", write_usage(tmp_path, lives))
    assert report["hours"] == 24.0
    assert report["present"]["removed"] >= 2
    assert report["present"]["bought"] >= 1
    assert any("usage of 1 workload;" in note for note in report["notes"])


def test_earlier_snapshots_show_how_many_pods_there_were(tmp_path: Path) -> None:
    def snapshot(name: str, replicas: int, hour: str) -> Path:
        manifest = {"metadata": {"creationTimestamp": f"2026-01-05T{hour}:00:00Z", "name": "mark", "namespace": "shop"}}
        mark = {"apiVersion": "v1", "kind": "ConfigMap", **manifest}
        nodes = [node(f"n{n}", cpu="4", memory="16Gi") for n in range(4)]
        return write_cluster(tmp_path, mark, *nodes, *pods(replicas, nodes=4), name=name)

    first, second, last = snapshot("a.json", 28, "08"), snapshot("b.json", 4, "12"), snapshot("c.json", 4, "20")
    report = read_report("autoscaler", "propose", "--cluster", last, "--earlier", first, "--earlier", second)
    assert (report["hours"], report["pods"]) == (12.0, 28)
    assert report["present"]["removed"] == 3


def test_the_present_flags_are_those_that_are_given(cluster: Path) -> None:
    flags = "--scale-down-utilization-threshold=0.7 --scale-down-unneeded-time=1m30s"
    report = read_report("autoscaler", "propose", "--cluster", cluster, "--autoscaler-flags", flags)
    assert report["present"]["flags"] == [
        "--scale-down-utilization-threshold=0.7",
        "--scale-down-unneeded-time=90s",
        "--scale-down-delay-after-add=10m",
    ]
    assert report["present"]["finalNodes"] == 2


def autoscaler_deployment(*flags: str) -> dict[str, Any]:
    container = {"name": "ca", "image": "ca", "command": ["./cluster-autoscaler", *flags]}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": f"ca-{len(flags)}", "namespace": "kube-system"},
        "spec": {"selector": {}, "template": {"metadata": {}, "spec": {"containers": [container]}}},
    }


def test_a_note_names_the_autoscalers_whose_flags_are_not_replayed(tmp_path: Path) -> None:
    spot = ("--scale-down-utilization-threshold=0.7", "--status-config-map-name=spot")
    objects = [*(node(f"n{n}", cpu="4", memory="16Gi") for n in range(4)), *pods(16, nodes=4)]
    several = write_cluster(tmp_path, *objects, autoscaler_deployment(), autoscaler_deployment(*spot))
    report = read_report("autoscaler", "propose", "--cluster", several)
    assert report["present"]["flags"][0] == "--scale-down-utilization-threshold=0.5"
    assert any(has_facts(note, "2 cluster autoscalers", "kube-system/spot") for note in report["notes"])


def test_the_table_names_the_proposed_flags(cluster: Path) -> None:
    result = run_verb("autoscaler", "propose", "--cluster", cluster)
    assert result.exit_code == 0, result.output
    assert "--scale-down-utilization-threshold=0.6" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((), "--cluster"),
        (("--replay-step", "soon"), "--replay-step"),
        (("--autoscaler-flags", "--scale-down-unneeded-time=ten"), "scale-down-unneeded-time"),
        (("--autoscaler-flags", "--scale-down-utilisation-threshold=0.6"), "did you mean"),
        (("--autoscaler-flags", "--v=4; --status-config-map-name=spot"), "the flags of one autoscaler"),
    ],
)
def test_a_mistake_is_named_and_nothing_is_done(cluster: Path, arguments: tuple[str, ...], expected: str) -> None:
    values = ("--cluster", str(cluster), *arguments) if arguments else ()
    result = run_verb("autoscaler", "propose", *values)
    assert result.exit_code == 2
    assert expected in result.stderr


def status_map(*groups: tuple[str, int, int]) -> dict[str, Any]:
    """The autoscaler's status; each group is (name, number of nodes, minimum)."""
    entries = [
        {
            "name": name,
            "health": {
                "status": "Healthy",
                "nodeCounts": {"registered": {"total": count}},
                "cloudProviderTarget": count,
                "minSize": minimum,
                "maxSize": 10,
            },
        }
        for name, count, minimum in groups
    ]
    status = {"autoscalerStatus": "Running", "clusterWide": {"health": {"status": "Healthy"}}, "nodeGroups": entries}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "data": {"status": json.dumps(status)},
        "metadata": {"name": "cluster-autoscaler-status", "namespace": "kube-system"},
    }


def final_nodes(folder: Path, *objects: dict[str, Any], flags: str = "") -> int:
    """The nodes at the end of a replay of two used nodes and two empty ones, of two groups."""
    nodes = [node(f"{g}{n}", cpu="4", memory="16Gi", labels={"asg": f"{g}-asg"}) for g in "ab" for n in range(2)]
    path = write_cluster(folder, *nodes, *objects)
    arguments = ("--autoscaler-flags", flags) if flags else ()
    [flag_set] = [read_report("autoscaler", "propose", "--cluster", path, *arguments)["present"]]
    return int(flag_set["finalNodes"])


@pytest.mark.parametrize(("minimums", "remaining"), [((0, 0), 0), ((2, 1), 3), ((1, 0), 1), ((2, 2), 4)])
def test_the_replay_keeps_the_minimums_of_the_status_and_of_the_flags(
    tmp_path: Path, minimums: tuple[int, int], remaining: int
) -> None:
    groups = [(f"{name}-asg", 2, minimum) for name, minimum in zip("ab", minimums, strict=True)]
    flags = " ".join(f"--nodes={minimum}:10:{name}" for name, _, minimum in groups)
    assert final_nodes(tmp_path, status_map(*groups)) == remaining
    assert final_nodes(tmp_path, flags=flags) == remaining


def test_nodes_that_match_no_group_stay_as_the_tightest_group_requires(tmp_path: Path) -> None:
    assert final_nodes(tmp_path, status_map(("x", 2, 1), ("y", 2, 0))) == 3


def test_minimums_that_are_not_known_are_named(tmp_path: Path) -> None:
    path = write_cluster(tmp_path, node("n0"), node("n1"))
    discovery = "--node-group-auto-discovery=asg:tag=k8s.io/cluster-autoscaler/enabled"
    report = read_report("autoscaler", "propose", "--cluster", path, "--autoscaler-flags", discovery)
    assert any("--node-group-auto-discovery" in note and "--min-nodes" in note for note in report["notes"])
    report = read_report("autoscaler", "propose", "--cluster", path, "--autoscaler-flags", "--nodes=1:3:workers")
    assert not any("--min-nodes" in note for note in report["notes"])
