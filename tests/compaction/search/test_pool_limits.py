"""The last node of a zone that something needs stays."""

from tests.cluster_of import ALL, NOW, ZONE, Item, cluster, node, pod, spread
from trimtab.compaction.candidates import PlanningContext
from trimtab.compaction.plan import make_plan
from trimtab.scheduling.cluster_model import build_cluster_model


def in_zone(name: str, zone: str, **more: object) -> Item:
    return node(name, labels={ZONE: zone}, **more)


def refusals(*items: Item) -> dict[str, str]:
    plan = make_plan(build_cluster_model(cluster(*items)), [ALL], PlanningContext(now=NOW))
    return {name: reason.code.name for name, reason in plan.refusals.items()}


def stored(zone: str) -> list[Item]:
    """A volume that can be reached from one zone, and its claim, which no pod uses."""
    term = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]}
    return [
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": "data", "namespace": "default"},
            "spec": {"volumeName": "pv"},
            "status": {"phase": "Bound"},
        },
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": "pv"},
            "spec": {"csi": {"driver": "d"}, "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}}},
        },
    ]


TWO = [
    in_zone("a1", "a"),
    in_zone("b1", "b"),
    in_zone("b2", "b"),
    pod("k-1", "b2", annotations={"trimtab.dev/do-not-disrupt": "true"}),
]


def test_a_zone_that_nothing_needs_may_go_altogether() -> None:
    assert "a1" not in refusals(*TWO)


def test_a_volume_keeps_the_last_node_of_its_zone_even_while_no_pod_uses_it() -> None:
    assert refusals(*TWO, *stored("a"))["a1"] == "last-node-of-zone"
    assert "a1" not in refusals(*TWO, *stored("b"))


def test_a_spread_over_zones_keeps_one_node_in_each() -> None:
    assert refusals(*TWO, pod("x-1", "b2", "100m", spec=spread("x", ZONE)))["a1"] == "last-node-of-zone"


def test_of_two_nodes_of_the_zone_one_may_go() -> None:
    assert list(refusals(*TWO, in_zone("a2", "a"), *stored("a")).values()).count("last-node-of-zone") == 1
