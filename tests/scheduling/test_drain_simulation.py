"""If this node went, where would all its pods go, together?"""

from tests.bench.node_drains import DrainSimulation
from tests.cluster_of import HOST, Item, cluster, node, pod, spread
from trimtab.scheduling.cluster_model import build_cluster_model
from trimtab.scheduling.drain_simulation import DrainPlacement, NoPlacement


def asked(name: str, *items: Item) -> tuple[DrainSimulation, DrainPlacement | NoPlacement]:
    drains = DrainSimulation(build_cluster_model(cluster(*items)))
    number = drains.model.node_numbers[name]
    placement = drains.place_pods(number, drains.model.pods_on_node[number])
    assert drains.can_drain(number, drains.model.pods_on_node[number]) is isinstance(placement, DrainPlacement)
    return drains, placement


def test_all_pods_find_a_place_together_the_largest_first_in_the_tightest() -> None:
    items = [node("a"), node("b", "2"), node("c", "4"), pod("x-1", "a", "500m"), pod("x-2", "a", "1500m")]
    drains, drain_placement = asked("a", *items)
    assert isinstance(drain_placement, DrainPlacement)
    names = [(drains.model.pods[p].name, drains.model.nodes[n].name) for p, n in drain_placement.moves]
    assert names == [("x-2", "b"), ("x-1", "b")]


def test_room_promised_to_one_pod_is_not_promised_to_the_next() -> None:
    _, drain_placement = asked("a", node("a"), node("b", "1"), pod("x-1", "a", "600m"), pod("x-2", "a", "600m"))
    assert isinstance(drain_placement, NoPlacement)
    assert drain_placement.reason.code.name == "no-room"


def test_asking_changes_nothing() -> None:
    items = [node("a"), node("b"), pod("x-1", "a", spec=spread("x", HOST, nodeTaintsPolicy="Honor")), pod("x-2", "b")]
    drains, first = asked("a", *items)
    number = drains.model.node_numbers["a"]
    before = (
        drains.capacity.major[:],
        [c.copy() for c in drains.capacity.group_counts],
        bytes(drains.capacity.closed_nodes),
    )
    assert drains.place_pods(number, drains.model.pods_on_node[number]) == first
    assert (drains.capacity.major, drains.capacity.group_counts, bytes(drains.capacity.closed_nodes)) == before


def test_an_empty_node_needs_no_place() -> None:
    assert asked("a", node("a"), node("b"))[1] == DrainPlacement(())


def test_memory_light_pods_go_where_memory_is_short() -> None:
    items = [
        node("a", "4", "16Gi"),
        node("poor", "8", "8Gi"),
        node("rich", "8", "64Gi"),
        pod("x-1", "a", "1", "100Mi"),
        pod("y-1", "a", "1", "8Gi"),
    ]
    drains, drain_placement = asked("a", *items)
    assert isinstance(drain_placement, DrainPlacement)
    went = {drains.model.pods[p].name: drains.model.nodes[n].name for p, n in drain_placement.moves}
    assert went == {"x-1": "poor", "y-1": "rich"}


def test_a_node_with_terabytes_free_takes_pods_where_memory_is_the_scarcer() -> None:
    items = [node("a", "400", "64Gi"), node("vast", "400", "12Ti"), pod("x-1", "a", "1", "48Gi")]
    drains, drain_placement = asked("a", *items)
    assert drains.model.main_resources == ("memory", "cpu")
    assert isinstance(drain_placement, DrainPlacement)


def test_a_drained_node_is_no_reason_why_the_others_take_no_pod() -> None:
    """Three replicas, one per node and `DoNotSchedule`: without its node, the third has no place."""
    items = [*(node(name, "8") for name in "abc"), *(pod(f"x-{name}", name, spec=spread("x", HOST)) for name in "abc")]
    _, placement = asked("a", *items)
    assert isinstance(placement, NoPlacement)
    assert placement.reason.code.name == "topology-spread"
    assert "node a " not in str(placement.reason)
