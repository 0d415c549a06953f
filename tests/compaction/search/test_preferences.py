"""Among places that fit, pods get the one they would rather have; what goes stays the same."""

from collections import Counter

import pytest

from tests.cluster_of import ALL, HOST, NOW, ZONE, Item, cluster, node, pod, spread
from trimtab.compaction.candidates import PlanningContext
from trimtab.compaction.plan import make_plan
from trimtab.compaction.plan_types import Plan
from trimtab.scheduling.cluster_model import build_cluster_model

PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def planned(*items: Item) -> Plan:
    return make_plan(build_cluster_model(cluster(*items)), [ALL], PlanningContext(now=NOW))


def stays(name: str, used: str = "1", **more: object) -> list[Item]:
    """A node that keeps its own pod and takes others. The fuller, the tighter, the sooner it is taken."""
    return [node(name, "4", **more), pod(f"k{name}-1", name, used, annotations={"trimtab.dev/do-not-disrupt": "true"})]


def target(*items: Item) -> str:
    """Where the only moved pod goes."""
    (move,) = planned(*items).all_moves
    return move.target


def likes(*terms: tuple[int, str]) -> Item:
    results = [
        {"weight": weight, "preference": {"matchExpressions": [{"key": "disk", "operator": "In", "values": [value]}]}}
        for weight, value in terms
    ]
    return {"affinity": {"nodeAffinity": {PREFERRED: results}}}


def company(kind: str, app: str, weight: int = 50) -> Item:
    term = {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": HOST}
    return {"affinity": {kind: {PREFERRED: [{"weight": weight, "podAffinityTerm": term}]}}}


TWO = [node("a"), *stays("b", "3", labels={"disk": "slow"}), *stays("c", "1", labels={"disk": "fast"})]
"""b is the tighter place."""


def test_without_wishes_the_tightest_place_is_taken() -> None:
    assert target(*TWO, pod("x-1", "a")) == "b"


def test_a_preferred_node_is_chosen_among_two_that_fit() -> None:
    assert target(*TWO, pod("x-1", "a", spec=likes((1, "fast")))) == "c"


def test_the_larger_weight_wins() -> None:
    assert target(*TWO, pod("x-1", "a", spec=likes((20, "fast"), (30, "slow")))) == "b"


def test_a_preferred_node_that_is_full_keeps_no_node_from_going() -> None:
    assert (
        target(
            *TWO,
            pod("f-1", "c", "3", annotations={"trimtab.dev/do-not-disrupt": "true"}),
            pod("x-1", "a", spec=likes((1, "fast"))),
        )
        == "b"
    )


def test_preferred_company_is_sought() -> None:
    assert target(*TWO, pod("x-1", "a", spec=company("podAffinity", "kc"))) == "c"


def test_company_that_is_not_liked_is_avoided() -> None:
    assert target(*TWO, pod("x-1", "a", spec=company("podAntiAffinity", "kb"))) == "c"


def test_what_a_pod_that_is_there_would_rather_not_have_beside_it_is_avoided() -> None:
    shy = pod(
        "s-1", "b", "100m", spec=company("podAntiAffinity", "x"), annotations={"trimtab.dev/do-not-disrupt": "true"}
    )
    assert target(*TWO, shy, pod("x-1", "a")) == "c"


def test_a_spread_that_says_schedule_anyway_steers() -> None:
    soft = spread("x", whenUnsatisfiable="ScheduleAnyway")
    assert (
        target(
            *TWO,
            pod("x-2", "b", "100m", spec=soft, annotations={"trimtab.dev/do-not-disrupt": "true"}),
            pod("x-1", "a", spec=soft),
        )
        == "c"
    )


def test_replicas_do_not_pile_on_one_node_when_others_have_room() -> None:
    hosts = [item for name in "bcd" for item in stays(name)]
    plan = planned(node("a"), *(pod(f"x-{i}", "a", "100m") for i in range(3)), *hosts)
    assert sorted(move.target for move in plan.all_moves) == ["b", "c", "d"]


def test_replicas_keep_apart_from_those_that_are_there() -> None:
    there = pod("x-2", "b", "100m", annotations={"trimtab.dev/do-not-disrupt": "true"})
    assert target(*TWO, there, pod("x-1", "a")) == "c"


def test_replicas_are_spread_over_zones() -> None:
    zones = {"b": "z1", "c": "z1", "d": "z2"}
    hosts = [item for name, zone in zones.items() for item in stays(name, labels={ZONE: zone})]
    plan = planned(node("a", labels={ZONE: "z1"}), *(pod(f"x-{i}", "a", "100m") for i in range(2)), *hosts)
    assert Counter(zones[move.target] for move in plan.all_moves) == {"z1": 1, "z2": 1}


@pytest.mark.parametrize("wish", [likes((1, "fast")), {}])
def test_steering_changes_neither_what_goes_nor_how_many_pods_move(wish: Item) -> None:
    pods = [pod(f"x-{n}{i}", n, "500m", spec=wish) for n in "def" for i in range(2)]
    plan = planned(*TWO, *(node(n) for n in "def"), *pods)
    assert (sorted(step.node for step in plan.all_steps), len(plan.all_moves)) == (["a", "d", "e", "f"], 6)


def test_a_pod_whose_place_depends_on_the_order_of_moves_is_steered_too() -> None:
    """Required company on the node itself: such pods are placed exactly, one after the other."""
    term = {"labelSelector": {"matchLabels": {"app": "friend"}}, "topologyKey": HOST}
    near = {
        "affinity": {
            "podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]},
            **likes((1, "fast"))["affinity"],
        }
    }
    friends = [pod(f"friend-{n}", n, "100m", annotations={"trimtab.dev/do-not-disrupt": "true"}) for n in "bc"]
    assert target(*TWO, *friends, pod("x-1", "a", spec=near)) == "c"
