"""Which pods have to move so that others fit, and why is there no room?"""

from dataclasses import replace
from typing import Any

import pytest

from tests.cluster_of import ALL, ZONE, Item, apart, budget, cluster, node, pod
from trimtab.compaction.room.make_room import free_node, make_room
from trimtab.compaction.room.room_plan import NoRoom, RoomPlan

GPU = "nvidia.com/gpu"
KEPT = {"trimtab.dev/do-not-disrupt": "true"}


def room(items: list[Item], *wanted: Item, within: str = "") -> RoomPlan | NoRoom:
    return make_room(cluster(*items), cluster(*wanted).pods, within=within)


def moves(plan: RoomPlan | NoRoom) -> dict[str, str]:
    assert isinstance(plan, RoomPlan), plan
    return {move.pod.partition("/")[2]: move.target for move in plan.moves}


def places(plan: RoomPlan | NoRoom) -> dict[str, str]:
    assert isinstance(plan, RoomPlan), plan
    return {place.pod.partition("/")[2]: place.node for place in plan.places}


def code(plan: RoomPlan | NoRoom) -> str:
    assert isinstance(plan, NoRoom), plan
    return plan.reason.code.name


def gpu_node(name: str, **more: Any) -> Item:
    return node(name, "32", extra={GPU: "8"}, **more)


def gpu_pod(name: str, on: str, count: int, **more: Any) -> Item:
    return pod(name, on, "1", extra={GPU: str(count)}, **more)


TWO = [gpu_node("a"), gpu_node("b"), gpu_pod("x-0", "a", 4), gpu_pod("y-0", "b", 2), gpu_pod("z-0", "b", 1)]


def test_without_need_no_pod_moves() -> None:
    plan = room(TWO, gpu_pod("big-0", "", 5))
    assert (places(plan), moves(plan)) == ({"big-0": "b"}, {})


def test_the_fewest_pods_move() -> None:
    plan = room(TWO, gpu_pod("big-0", "", 8))
    assert (places(plan), moves(plan)) == ({"big-0": "a"}, {"x-0": "b"})


def test_a_gang_gets_several_nodes() -> None:
    items = [*TWO, gpu_node("c"), gpu_pod("v-0", "c", 1)]
    plan = room(items, *(gpu_pod(f"big-{n}", "", 8) for n in (0, 1)))
    assert len(set(places(plan).values())) == 2
    assert len(moves(plan)) == 2


def test_a_gang_may_have_to_be_in_one_zone() -> None:
    zones = [gpu_node(name, labels={ZONE: zone}) for name, zone in (("a", "1"), ("b", "2"), ("c", "2"))]
    items = [*zones, gpu_pod("x-0", "b", 1)]
    wanted = [gpu_pod(f"big-{n}", "", 8) for n in (0, 1)]
    assert moves(room([*items], *wanted)) == {}
    plan = room([*items, gpu_node("d", labels={ZONE: "3"})], *wanted, within=ZONE)
    assert set(places(plan).values()) == {"b", "c"}
    assert set(moves(plan)) == {"x-0"}


def test_an_evicted_pod_may_displace_another_one() -> None:
    """The two pods of b leave room for x only if one of them goes to c."""
    items = [
        *(gpu_node(name) for name in "abc"),
        gpu_pod("x-0", "a", 5),
        gpu_pod("y-0", "b", 3, annotations=KEPT),
        gpu_pod("z-0", "b", 1),
        gpu_pod("v-0", "c", 6, annotations=KEPT),
    ]
    plan = room(items, gpu_pod("big-0", "", 8))
    assert (places(plan), moves(plan)) == ({"big-0": "a"}, {"x-0": "b", "z-0": "c"})


@pytest.mark.parametrize(
    ("items", "wanted", "expected"),
    [
        ([*TWO], gpu_pod("big-0", "", 9), "room-too-little"),
        ([gpu_node("a"), gpu_pod("x-0", "a", 4)], gpu_pod("big-0", "", 8), "room-no-other-place"),
        ([*TWO], gpu_pod("big-0", "", 8, spec={"nodeSelector": {"x": "y"}}), "room-no-node-admits"),
        ([*TWO[:3], gpu_pod("y-0", "b", 8)], gpu_pod("big-0", "", 8), "room-no-other-place"),
        ([*TWO[:2], gpu_pod("x-0", "a", 4, annotations=KEPT), *TWO[3:]], gpu_pod("big-0", "", 8), None),
        ([*TWO[:2], *(gpu_pod(f"{n}-0", n, 4, owner="") for n in "ab")], gpu_pod("big-0", "", 8), "room-too-little"),
        ([*TWO, budget("x", 0), budget("y", 0)], gpu_pod("big-0", "", 8), "room-too-little"),
        ([*TWO, budget("x", 1)], gpu_pod("big-0", "", 8), None),
        (
            [*TWO[:2], *(gpu_pod(f"{n}-0", n, 4, spec={"priority": 9}) for n in "ab")],
            gpu_pod("big-0", "", 8),
            "room-too-little",
        ),
    ],
)
def test_why_there_is_no_room(items: list[Item], wanted: Item, expected: str | None) -> None:
    plan = room(items, wanted)
    assert (code(plan) if isinstance(plan, NoRoom) else None) == expected


def test_pods_that_keep_apart_are_counted_on_their_new_nodes() -> None:
    items = [*TWO[:2], *(gpu_pod(f"x-{n}", on, 3, spec=apart("x")) for n, on in enumerate("ab"))]
    assert code(room(items, gpu_pod("big-0", "", 8))) == "room-no-other-place"
    assert len(moves(room([*items, gpu_node("c", labels={"x": "y"})], gpu_pod("big-0", "", 8)))) == 0


def test_a_budget_takes_turns() -> None:
    items = [gpu_node("a"), gpu_node("b"), *(gpu_pod(f"x-{n}", "a", 2) for n in (0, 1)), budget("x", 1)]
    plan = room([*items, gpu_pod("y-0", "b", 4, annotations=KEPT)], gpu_pod("big-0", "", 8))
    assert isinstance(plan, RoomPlan)
    assert sorted(move.turn for move in plan.moves) == [0, 1]
    assert {move.budget for move in plan.moves} == {"default/x"}


def freed(items: list[Item], *names: str) -> RoomPlan | NoRoom:
    return free_node(cluster(*items), names)


def test_the_node_with_the_fewest_pods_is_made_free() -> None:
    plan = freed(TWO, "a", "b")
    assert isinstance(plan, RoomPlan)
    assert (plan.freed_node, moves(plan)) == ("a", {"x-0": "b"})


def test_only_nodes_of_the_pool_are_made_free() -> None:
    plan = freed(TWO, "b")
    assert isinstance(plan, RoomPlan)
    assert (plan.freed_node, moves(plan)) == ("b", {"y-0": "a", "z-0": "a"})


def test_a_node_whose_pod_stays_is_passed_over() -> None:
    kept = [gpu_node("a"), gpu_node("b"), gpu_pod("x-0", "a", 4, annotations=KEPT), *TWO[3:]]
    plan = freed(kept, "a", "b")
    assert isinstance(plan, RoomPlan)
    assert plan.freed_node == "b"


def test_pods_of_others_may_move_aside() -> None:
    items = [gpu_node("a"), gpu_node("b"), gpu_node("c"), gpu_pod("x-0", "a", 7)]
    items += [gpu_pod("y-0", "b", 2), gpu_pod("z-0", "c", 3)]
    plan = freed(items, "a")
    assert set(moves(plan)) == {"x-0", "y-0"}


@pytest.mark.parametrize(
    "items",
    [
        [gpu_node("a"), gpu_node("b"), gpu_pod("x-0", "a", 4, annotations=KEPT)],
        [gpu_node("a"), gpu_node("b"), gpu_pod("x-0", "a", 5), gpu_pod("y-0", "b", 5)],
        [gpu_node("a", ready=False), gpu_node("b")],
    ],
)
def test_there_is_a_reason_why_no_node_can_be_free(items: list[Item]) -> None:
    assert code(freed(items, "a")) == "room-no-node-can-be-free"


def test_an_empty_node_is_free_already() -> None:
    plan = freed([gpu_node("a"), gpu_node("b"), gpu_pod("y-0", "b", 5)], "a", "b")
    assert isinstance(plan, RoomPlan)
    assert (plan.freed_node, plan.moves) == ("a", ())


CELL = "example.com/cell"


def test_pods_of_a_group_that_a_pool_names_do_not_move_alone() -> None:
    items = [*TWO, gpu_node("c"), gpu_pod("v-0", "c", 8)]
    for item in items[2:]:
        item["metadata"]["labels"] |= {CELL: "one"} if item["metadata"]["name"] in ("x-0", "v-0") else {}
    large_pod = cluster(gpu_pod("big-0", "", 8)).pods
    named = replace(ALL, group_labels=(CELL,))
    assert moves(make_room(cluster(*items), large_pod)) == {"x-0": "b"}
    assert "x-0" not in moves(make_room(cluster(*items), large_pod, pools=(named,)))
    assert code(free_node(cluster(*items), {"a"}, pools=(named,))) == "room-no-node-can-be-free"


def test_a_group_on_one_node_is_not_split() -> None:
    """One of the two pods of the group on a would make room."""
    items = [gpu_node("a"), gpu_node("b"), *(gpu_pod(f"x-{n}", "a", 3) for n in (0, 1))]
    items.append(gpu_pod("y-0", "b", 5, annotations=KEPT))
    assert len(moves(room(items, gpu_pod("big-0", "", 5)))) == 1
    for item in items[2:4]:
        item["metadata"]["labels"] |= {"scheduling.x-k8s.io/pod-group": "x"}
    assert code(room(items, gpu_pod("big-0", "", 5))) == "room-too-little"
    # Of a node that is to be free, all pods of the group leave.
    assert set(moves(freed([*items, gpu_node("c")], "a"))) == {"x-0", "x-1"}


def test_a_pod_moves_aside_no_later_than_the_pod_that_takes_its_place() -> None:
    """The budget permits one eviction of b at a time, and a-0 has a place only when b-1 has left c."""
    items = [*(gpu_node(name) for name in "abc"), gpu_pod("a-0", "a", 6), gpu_pod("b-0", "a", 1)]
    items += [gpu_pod("z-0", "b", 5, annotations=KEPT), gpu_pod("k-0", "c", 1, annotations=KEPT)]
    items += [gpu_pod("b-1", "c", 3), budget("b", 1)]
    plan = room(items, gpu_pod("big-0", "", 8))
    assert moves(plan) == {"a-0": "c", "b-0": "c", "b-1": "b"}
    assert isinstance(plan, RoomPlan)
    turns = {move.pod.partition("/")[2]: move.turn for move in plan.moves}
    assert turns["b-0"] != turns["b-1"] <= turns["a-0"]
    assert [*turns].index("b-1") < [*turns].index("a-0")


PORT = {"ports": [{"hostPort": 80, "containerPort": 80}]}
TWO_SMALL = [node("a"), node("b")]


def test_the_pod_with_the_port_moves_and_not_one_that_requests_as_much() -> None:
    items = [*TWO_SMALL, pod("w-0", "a", "100m"), pod("x-0", "a", "100m", **PORT), pod("z-0", "b", "3900m")]
    plan = room(items, pod("big-0", "", "1", **PORT))
    assert (places(plan), moves(plan)) == ({"big-0": "a"}, {"x-0": "b"})


def test_a_pod_of_another_node_of_the_zone_moves_if_it_keeps_the_pod_away() -> None:
    """Pod x is on b, and the large pod fits only on a. Both are in one zone."""
    nodes = [node("a", "8", labels={ZONE: "1"}), node("b", labels={ZONE: "1"}), node("c", labels={ZONE: "2"})]
    items = [*nodes, pod("x-0", "b", "100m"), pod("y-0", "a", "3")]
    plan = room(items, pod("big-0", "", "8", spec=apart("x", ZONE)))
    assert (places(plan), moves(plan)["x-0"], set(moves(plan))) == ({"big-0": "a"}, "c", {"x-0", "y-0"})
    items[-2]["metadata"]["annotations"] = KEPT
    assert code(room(items, pod("big-0", "", "8", spec=apart("x", ZONE)))) == "room-kept-away"


def test_an_affinity_that_no_pod_satisfies_is_named() -> None:
    term = {"labelSelector": {"matchLabels": {"app": "nobody"}}, "topologyKey": ZONE}
    affinity = {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}
    items = [node("a", labels={ZONE: "1"}), pod("x-0", "a", "1")]
    assert code(room(items, pod("big-0", "", "1", spec=affinity))) == "room-kept-away"


def test_of_as_many_pods_those_of_the_lowest_priority_move() -> None:
    def of_priority(name: str, on: str, priority: int) -> Item:
        return pod(name, on, "3", spec={"priority": priority})

    items = [*TWO_SMALL, node("c"), of_priority("h-0", "a", 1000), of_priority("l-0", "b", 0), pod("k-0", "c", "1")]
    assert set(moves(room(items, pod("big-0", "", "4", spec={"priority": 9999})))) == {"l-0"}
    one = [node("a", "5"), node("b"), *(pod(f"{n}-0", "a", "2", spec={"priority": p}) for n, p in (("h", 9), ("l", 0)))]
    full = [*one, pod("k-0", "b", "2", annotations=KEPT)]
    assert set(moves(room(full, pod("big-0", "", "3", spec={"priority": 9999})))) == {"l-0"}


@pytest.mark.parametrize(("priority", "expected"), [(-100, ("default/p-0",)), (-10, None)])
def test_pods_that_only_keep_room_free_are_preempted(priority: int, expected: tuple[str, ...] | None) -> None:
    items = [node("a"), pod("p-0", "a", "2", spec={"priority": priority}), pod("q-0", "a", "1", annotations=KEPT)]
    plan = room(items, pod("big-0", "", "3"))
    assert (plan.preempted if isinstance(plan, RoomPlan) else None) == expected
    plan = room(items, pod("big-0", "", "1"))
    assert isinstance(plan, RoomPlan)
    assert plan.preempted == ()


def test_devices_decide_the_order_and_the_node_of_pods_that_request_them() -> None:
    """The pods with one device request more cpu, and the node with two devices is the smallest."""
    nodes = [node("x", "6", extra={GPU: "2"}), *(node(name, "8", extra={GPU: "1"}) for name in "yz")]
    small = [pod(f"a-{n}", "", "2", extra={GPU: "1"}) for n in (0, 1)]
    assert places(room(nodes, small[0]))["a-0"] in ("y", "z")
    assert places(room(nodes, *small, pod("b-0", "", "1", extra={GPU: "2"})))["b-0"] == "x"


def test_no_pod_moves_to_a_node_that_another_pod_can_have_alone() -> None:
    """Each wanted pod has one node, and the pods that leave are not in the way of each other."""
    items = [*(node(name, labels={"n": name}) for name in "abc"), node("z", "20")]
    items += [pod(f"{name}x-0", name, "2") for name in "abc"]
    wanted = [pod(f"w-{name}", "", "3", spec={"nodeSelector": {"n": name}}) for name in "abc"]
    plan = room(items, *wanted)
    assert (sorted(places(plan).values()), set(moves(plan).values())) == (["a", "b", "c"], {"z"})
