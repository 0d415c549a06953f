"""`trimtab recommend` for a workload whose leader uses more than its other replicas."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.recommending import START
from tests.cli.snapshots import snapshot, trimtab
from tests.cluster_of import Item, node

ROLE = "cnpg.io/instanceRole"


def database(number: int, role: str = "", *, kind: str = "StatefulSet", index: bool = False) -> Item:
    labels = {"app": "db"}
    if role:
        labels[ROLE] = role
    if index:
        labels["apps.kubernetes.io/pod-index"] = str(number)
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"db-{number}",
            "namespace": "shop",
            "labels": labels,
            "ownerReferences": [{"kind": kind, "name": "db", "controller": True, "apiVersion": "apps/v1", "uid": "db"}],
        },
        "spec": {
            "nodeName": "a",
            "containers": [{"name": "db", "resources": {"requests": {"cpu": "2", "memory": "4Gi"}}}],
        },
        "status": {"phase": "Running"},
    }


def usage(folder: Path, *cores: float, memory: int = 900) -> Path:
    """Two weeks of a value every ten minutes, one amount of cores for each pod."""
    rows = [
        f"{START + number * 600},shop,db-{pod},db,{amount},{memory}Mi"
        for number in range(14 * 144)
        for pod, amount in enumerate(cores)
    ]
    path = folder / "usage.csv"
    path.write_text("timestamp,namespace,pod,container,cpu,memory\n" + "\n".join(rows) + "\n")
    return path


def roles_of(folder: Path, used: Path, *pods: Item) -> list[dict[str, Any]]:
    cluster = snapshot(folder, node("a", "16"), *pods)
    report = json.loads(trimtab("recommend", "--usage", str(used), "--cluster", str(cluster), "-o", "json").output)
    return list(report["roles"])


def test_a_leader_by_its_label_is_sized_apart(tmp_path: Path) -> None:
    pods = (database(0, "replica"), database(1, "primary"), database(2, "replica"))
    [difference] = roles_of(tmp_path, usage(tmp_path, 0.2, 1.5, 0.2), *pods)
    assert (difference["label"], difference["leaderValue"], difference["leaders"], difference["others"]) == (
        ROLE,
        "primary",
        1,
        2,
    )
    [cpu] = difference["resources"]
    assert (cpu["resource"], difference["monthlySaved"] > 0) == ("cpu", True)


def test_followers_may_need_more_than_their_leader(tmp_path: Path) -> None:
    pods = (database(0, "primary"), database(1, "replica"))
    [difference] = roles_of(tmp_path, usage(tmp_path, 0.2, 1.5), *pods)
    [cpu] = difference["resources"]
    assert (cpu["leader"], cpu["other"]) == ("221m", "1624m")


@pytest.mark.parametrize("index", [True, False])
def test_an_ordinal_tells_the_first_replica_apart(tmp_path: Path, index: bool) -> None:
    pods = (database(0, index=index), database(1, index=index))
    [difference] = roles_of(tmp_path, usage(tmp_path, 1.5, 0.2), *pods)
    assert (difference["label"], difference["leaderValue"]) == ("apps.kubernetes.io/pod-index", "0")


@pytest.mark.parametrize(
    ("cores", "pods"),
    [
        ((0.5, 0.45), (database(0, "primary"), database(1, "replica"))),
        ((0.02, 0.08), (database(0, "primary"), database(1, "replica"))),
        ((1.5, 0.2), (database(0, "replica"), database(1, "replica"))),
        ((1.5, 0.2), (database(0, "primary"), database(1))),
        ((1.5, 0.2), (database(0, kind="Etcd"), database(1, kind="Etcd"))),
    ],
)
def test_no_difference_or_no_role_is_no_finding(
    tmp_path: Path, cores: tuple[float, ...], pods: tuple[Item, ...]
) -> None:
    assert roles_of(tmp_path, usage(tmp_path, *cores), *pods) == []
