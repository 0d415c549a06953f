"""`trimtab plan --for`: what has to move so that pods fit, as a table, as JSON, and as commands."""

import json
from pathlib import Path

import pytest

from tests.cli.snapshots import snapshot, told, trimtab
from tests.cluster_of import Item, node, pod

GPU = "nvidia.com/gpu"
TAINT = {"key": GPU, "value": "present", "effect": "NoSchedule"}


def gpu_nodes() -> list[Item]:
    taints = [TAINT]
    tolerations = {"tolerations": [{"key": GPU, "operator": "Exists"}]}
    return [
        *(node(name, "32", extra={GPU: "8"}, taints=taints) for name in "ab"),
        pod("x-0", "a", "1", extra={GPU: "3"}, spec=tolerations),
        pod("y-0", "b", "1", extra={GPU: "2"}, spec=tolerations),
    ]


@pytest.fixture
def gpus(tmp_path: Path) -> Path:
    return snapshot(tmp_path, *gpu_nodes())


def test_amounts_tolerate_the_taint_of_their_devices(gpus: Path) -> None:
    report = told("plan", "--cluster", gpus, "--for", f"cpu=4,{GPU}=8")
    assert (report["kind"], report["isPossible"], report["refused"]) == ("RoomReport", True, None)
    assert [(move["pod"], move["target"]) for move in report["moves"]] == [("default/x-0", "b")]


def test_a_manifest_has_all_its_replicas(gpus: Path, tmp_path: Path) -> None:
    template = {
        "spec": {
            "containers": [
                {"name": "c", "image": "c:1", "resources": {"requests": {"cpu": "1"}, "limits": {GPU: "5"}}}
            ],
            "restartPolicy": "Never",
            "tolerations": [{"operator": "Exists"}],
        }
    }
    path = tmp_path / "train.json"
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "train", "namespace": "ml"}}
    path.write_text(json.dumps({**job, "spec": {"parallelism": 2, "completions": 2, "template": template}}))
    report = told("plan", "--cluster", gpus, "--for", path)
    assert len(report["places"]) == 2
    assert {place["node"] for place in report["places"]} == {"a", "b"}
    assert {place["pod"].partition("/")[0] for place in report["places"]} == {"ml"}


def test_pods_that_wait_are_served(tmp_path: Path) -> None:
    waiting = pod("big-0", "", "1", extra={GPU: "8"}, phase="Pending", spec={"tolerations": [{"operator": "Exists"}]})
    report = told("plan", "--cluster", snapshot(tmp_path, *gpu_nodes(), waiting), "--for-pending")
    assert [place["pod"] for place in report["places"]] == ["default/big-0"]
    assert len(report["moves"]) == 1


def test_commands_are_printed_on_request(gpus: Path) -> None:
    [command] = told("plan", "--cluster", gpus, "--for", f"{GPU}=8", "--as-order")["order"]
    assert "/api/v1/namespaces/default/pods/x-0/eviction" in command
    assert "eviction" in trimtab("plan", "--cluster", gpus, "--for", f"{GPU}=8", "--as-order").stdout
    assert told("plan", "--cluster", gpus, "--for", f"{GPU}=8")["order"] == []


def test_pods_that_move_aside_are_evicted_before_the_node_is_drained(tmp_path: Path) -> None:
    """Pod x fits on b or c only if the pod there moves to the other one."""
    nodes = [node(name, "4", labels={"agentpool": pool}) for name, pool in (("a", "p"), ("b", "q"), ("c", "q"))]
    items = [*nodes, pod("x-0", "a", "3500m"), pod("y-0", "b", "1"), pod("z-0", "c", "1500m")]
    commands = told("plan", "--cluster", snapshot(tmp_path, *items), "--for-node-of", "p", "--as-order")["order"]
    assert ["pods/y-0/eviction" in commands[0], *commands[1:]] == [True, "trimtab drain a"]


def test_why_there_is_no_room(gpus: Path) -> None:
    report = told("plan", "--cluster", gpus, "--for", f"{GPU}=9")
    assert (report["isPossible"], report["refused"]["code"]) == (False, "room-too-little")


@pytest.mark.parametrize(
    "options",
    [
        ("--for", "cpu=much"),
        ("--for", "cpu=1,count=x"),
        ("--for", "count=2"),
        ("--for", "no-such-file.yaml"),
        ("--for", "cpu=1,count=201"),
        ("--for", "cpu=1", "--for-pending"),
        ("--for-pending",),
        ("--as-order",),
    ],
)
def test_mistakes_are_named(gpus: Path, options: tuple[str, ...]) -> None:
    assert trimtab("plan", "--cluster", gpus, *options).exit_code == 2
