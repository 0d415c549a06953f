"""A DaemonSet's pod that does not exist yet has its place on the node that lacks it."""

import pytest

from tests.cluster_of import ALL, Item, node, pod
from tests.compaction.plans import goes, planned
from trimtab.compaction.plan_types import Plan

KEPT = {"trimtab.dev/do-not-disrupt": "true"}


def daemon_set(cpu: str = "300m", desired: int = 3, **spec: object) -> Item:
    container = {"name": "c", "resources": {"requests": {"cpu": cpu}}}
    template = {"metadata": {"labels": {"app": "log"}}, "spec": {"containers": [container], **spec}}
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "log", "namespace": "default"},
        "spec": {"template": template},
        "status": {"desiredNumberScheduled": desired},
    }


def log_pod(on: str) -> Item:
    return pod(f"log-{on}", on, "300m", owner="DaemonSet", app="log")


def with_room_for_one_move(*others: Item, **of_b: object) -> list[Item]:
    """Node b has room for web-0, but not for it and a DaemonSet's pod; node c is full."""
    return [
        node("a"),
        node("b", **of_b),
        node("c"),
        pod("web-0", "a", "1900m"),
        pod("web-1", "b", "1900m"),
        pod("big-0", "c", "3500m", annotations=KEPT),
        *others,
    ]


def notes_of(made: Plan) -> str:
    return " ".join(made.notes)


def test_the_room_of_a_missing_daemon_pod_is_kept() -> None:
    items = with_room_for_one_move(log_pod("a"), log_pod("c"))
    assert goes(*items) != []
    made = planned(*items, daemon_set(), pool=ALL)
    assert ([step.node for step in made.all_steps], "DaemonSet default/log" in notes_of(made)) == ([], True)


@pytest.mark.parametrize(
    ("spec", "of_b"),
    [
        ({"nodeSelector": {"disk": "ssd"}}, {}),
        ({}, {"taints": [{"key": "own", "value": "x", "effect": "NoSchedule"}]}),
        ({"cpu": "0"}, {}),
    ],
)
def test_a_daemon_set_that_does_not_run_there_keeps_no_room(spec: dict[str, object], of_b: dict[str, object]) -> None:
    tolerant = {"tolerations": [{"key": "own", "operator": "Exists"}]}
    items = with_room_for_one_move(log_pod("a"), log_pod("c"), **of_b)
    for item in items:
        if item["kind"] == "Pod" and of_b:
            item["spec"].update(tolerant)
    cpu = str(spec.pop("cpu", "300m"))
    assert goes(*items, daemon_set(cpu, **spec)) != []


def test_a_daemon_set_that_has_all_its_pods_keeps_no_more_room() -> None:
    items = with_room_for_one_move(log_pod("a"), log_pod("c"))
    assert goes(*items, daemon_set(desired=2)) != []


def test_a_pod_that_waits_for_its_node_is_not_counted_twice() -> None:
    field = {"key": "metadata.name", "operator": "In", "values": ["b"]}
    required = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    waiting = log_pod("")
    waiting["metadata"]["name"] = "log-b"
    waiting["spec"]["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    waiting["status"]["phase"] = "Pending"
    made = planned(*with_room_for_one_move(log_pod("a"), log_pod("c"), waiting), daemon_set(desired=4), pool=ALL)
    assert "capacity on 1 node" not in notes_of(made)


def test_the_room_is_kept_also_where_the_image_may_not_run() -> None:
    arch = "kubernetes.io/arch"
    nodes = [node("a", labels={arch: "amd64"}), node("b", labels={arch: "arm64"})]
    spec = {"nodeSelector": {arch: "arm64"}}
    mixed = [pod("web-0", "a", "1900m"), pod("fix-0", "b", "1900m", spec=spec, annotations=KEPT)]
    mixed[0]["spec"]["affinity"] = {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchExpressions": [{"key": arch, "operator": "Exists"}]}]
            }
        }
    }
    assert goes(*nodes, *mixed, log_pod("a")) == ["a"]
    assert goes(*nodes, *mixed, log_pod("a"), daemon_set(desired=2)) == []
