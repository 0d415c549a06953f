"""The walk over replacements accepts a legal one, and finds every planted fault. So do a few generated clusters."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.bench.replace_generated import check_clusters
from tests.bench.verify_replacements import NewNode, Walk
from tests.cluster_of import HOST, ZONE, Item, apart, budget, node, pod

GROUP, PRICE, SPOT = "cloud.google.com/gke-nodepool", "trimtab.dev/price", "karpenter.sh/capacity-type"
Moves = list[tuple[str, str, str, int]]


def machine(name: str, group: str, cpu: int, price: int) -> Item:
    labels = {GROUP: group, ZONE: "z1", PRICE: str(price)}
    return node(name, f"{cpu}000m", f"{cpu * 4096}Mi", labels=labels)


def cluster_items() -> list[Item]:
    """Two dear nodes with two pods each, and a cheap node with a daemon."""
    return [
        machine("a", "big", 16, 900),
        machine("b", "big", 16, 900),
        machine("s", "small", 8, 500),
        pod("web-0", "a", "1500m", "64Mi"),
        pod("web-1", "a", "1500m", "64Mi"),
        pod("api-0", "b", "1500m", "64Mi"),
        pod("db-0", "b", "1500m", "64Mi"),
        pod("agent-s", "s", "500m", "64Mi", owner="DaemonSet", app="agent"),
        budget("web", 1),
    ]


NEW = NewNode("new", "small", "z1", ("a", "b"), 500, 1300)
MOVES: Moves = [
    ("default/web-0", "a", "new", 0),
    ("default/web-1", "a", "new", 1),
    ("default/api-0", "b", "new", 0),
    ("default/db-0", "b", "new", 0),
]


def find(items: list[Item], name: str) -> Any:
    return next(item for item in items if item["metadata"]["name"] == name)


def request_cpu(items: list[Item], name: str, cpu: str) -> None:
    find(items, name)["spec"]["containers"][0]["resources"]["requests"]["cpu"] = cpu


def set_label(items: list[Item], name: str, key: str, value: str) -> None:
    find(items, name)["metadata"]["labels"][key] = value


def set_taint(items: list[Item]) -> None:
    find(items, "s")["spec"]["taints"] = [{"key": "x", "value": "", "effect": "NoSchedule"}]


def keep_apart(items: list[Item]) -> None:
    for name in ("web-0", "web-1"):
        find(items, name)["spec"].update(apart("web"))


def allow_none(items: list[Item]) -> None:
    find(items, "web")["status"]["disruptionsAllowed"] = 0


def select_node(items: list[Item]) -> None:
    find(items, "db-0")["spec"]["nodeSelector"] = {HOST: "b"}


def drop_owner(items: list[Item]) -> None:
    del find(items, "db-0")["metadata"]["ownerReferences"]


def test_a_legal_replacement_is_accepted() -> None:
    path = Walk(cluster_items(), GROUP)
    path.replace(NEW, MOVES)
    assert path.gone == {"a", "b"}


FAULTS: dict[str, Callable[[list[Item]], None]] = {
    "too large beside the daemon": lambda items: request_cpu(items, "db-0", "3100m"),
    "another zone": lambda items: set_label(items, "b", ZONE, "z2"),
    "spot becomes on demand": lambda items: set_label(items, "a", SPOT, "spot"),
    "another architecture": lambda items: set_label(items, "a", "kubernetes.io/arch", "arm64"),
    "a taint": set_taint,
    "pods that keep apart": keep_apart,
    "a budget that allows none": allow_none,
    "a selected node": select_node,
    "a pod that has no owner": drop_owner,
    "another price": lambda items: set_label(items, "s", PRICE, "600"),
}
CLAIMS: dict[str, tuple[NewNode, Moves]] = {
    "savings that are too high": (replace(NEW, saves=1400), MOVES),
    "no savings": (replace(NEW, replaced=("a",), saves=-100), MOVES[:2]),
    "five nodes": (replace(NEW, replaced=("a", "b", "c", "d", "e")), MOVES),
    "one node twice": (replace(NEW, replaced=("a", "a")), MOVES),
    "a group without a node in the zone": (replace(NEW, zone="z9"), MOVES),
    "a pod that stays behind": (NEW, MOVES[:3]),
    "a pod that goes elsewhere": (NEW, [*MOVES[:3], ("default/db-0", "b", "s", 0)]),
    "a budget that is exceeded": (NEW, [*MOVES[:1], ("default/web-1", "a", "new", 0), *MOVES[2:]]),
    "a pod of another node": (NEW, [("default/db-0", "a", "new", 0), *MOVES[1:]]),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_of_the_cluster_is_found(fault: str) -> None:
    items = copy.deepcopy(cluster_items())
    FAULTS[fault](items)
    with pytest.raises(AssertionError):
        Walk(items, GROUP).replace(NEW, MOVES)


@pytest.mark.parametrize("fault", CLAIMS)
def test_a_planted_fault_of_the_replacement_is_found(fault: str) -> None:
    with pytest.raises((AssertionError, KeyError)):
        Walk(cluster_items(), GROUP).replace(*CLAIMS[fault])


def test_generated_clusters_have_no_illegal_state() -> None:
    replacements, moves = check_clusters(12)
    assert replacements > 5
    assert moves > 100
