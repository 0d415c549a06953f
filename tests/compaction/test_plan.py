"""Which nodes go, and where does everything go? The cases of §5.3 and §5.4."""

from dataclasses import replace

import pytest

from tests.cluster_of import ALL, NOW, ZONE, Item, apart, budget, cluster, node, pod, spread
from tests.compaction.plans import goes, keeper, planned
from tests.reasons import has_facts
from trimtab.cluster.pool import Goal
from trimtab.cluster.reason import Reason
from trimtab.compaction.candidates import PlanningContext
from trimtab.compaction.drain.start import steps_within_pace
from trimtab.compaction.plan_types import DrainStep, Observations
from trimtab.compaction.recheck import Recheck
from trimtab.scheduling.cluster_model import build_cluster_model


def rejection_of(step: DrainStep, *items: Item) -> Reason | None:
    """Why this step alone may not be executed in a cluster of these items."""
    return Recheck.prepare(build_cluster_model(cluster(*items)), [ALL], PlanningContext(now=NOW)).rejection_reason(step)


def test_case_36_an_empty_node_goes() -> None:
    assert goes(node("a"), keeper("k-1", "b", "1"), node("b")) == ["a"]


def test_case_37_two_pods_and_no_free_node() -> None:
    result = planned(node("a"), pod("x-1", "a"), pod("x-2", "a"))
    assert result.refusals["a"].code.name == "no-place"


@pytest.mark.parametrize(("used", "expected"), [("100m", ["a"]), ("3900m", [])])
def test_case_38_the_other_node_is_nearly_empty_or_full(used: str, expected: list[str]) -> None:
    items = [node("a"), node("b"), pod("x-1", "a"), pod("x-2", "a"), keeper("k-1", "b", used)]
    assert goes(*items) == expected


@pytest.mark.parametrize(("policy", "count"), [("", 0), ("Ignore", 0), ("Honor", 1)])
def test_case_39_a_node_being_emptied_is_a_domain_unless_taints_are_honoured(policy: str, count: int) -> None:
    constraint = spread("x", minDomains=2, nodeTaintsPolicy=policy)
    items = [*(node(n) for n in "abc"), *(pod(f"x-{n}", n, spec=constraint) for n in "abc")]
    assert len(goes(*items)) == count


def test_case_40_a_node_that_is_gone_at_the_recheck_has_that_reason() -> None:
    items = [node("a"), node("b"), pod("x-1", "a"), pod("x-2", "b", "1"), pod("x-3", "b", "1")]
    step = planned(*items).all_steps[0]
    assert step.node == "a"
    reason = rejection_of(step, *items[1:])
    assert reason is not None
    assert reason.code.name == "node-not-found"


def test_case_42_two_small_nodes_into_a_third() -> None:
    small = [node(n, "1000m") for n in ("n1", "n2")]
    pods = [pod(f"x-{n}{i}", n, "500m") for n in ("n1", "n2") for i in (1, 2)]
    assert goes(*small, *pods, node("n3", "4"), keeper("k-1", "n3", "2")) == ["n1", "n2"]
    assert goes(*small, *pods, node("n3", "4"), keeper("k-1", "n3", "3500m")) == []


def test_case_43_only_the_node_whose_pods_all_fit() -> None:
    pods = [*(pod(f"x-{i}", "n1", "1000m") for i in (1, 2)), *(pod(f"y-{i}", "n2", "500m") for i in (1, 2))]
    assert goes(node("n1", "2"), node("n2", "1"), node("n3", "2"), keeper("k-1", "n3", "1"), *pods) == ["n2"]


def owner(ready: int, name: str = "gone") -> Item:
    return {
        "kind": "ReplicaSet",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"replicas": 2},
        "status": {"replicas": ready, "readyReplicas": ready},
    }


def test_case_44_room_is_kept_for_pods_that_are_about_to_come_back() -> None:
    items = [node("a"), node("b", "1"), pod("x-1", "a"), keeper("k-1", "b", "500m"), keeper("gone-1", "c", "500m")]
    items += [node("c", "500m"), owner(2, "x"), pod("x-2", "c", "0")]
    back = keeper("gone-2", "c", "0")
    assert goes(*items, back, owner(2)) == ["a"]
    # The 500m that x-1 would need are what the second pod of "gone" will need.
    assert goes(*items, owner(1)) == []


def test_room_is_kept_for_pods_that_still_have_to_leave_a_node_that_is_being_emptied() -> None:
    """Its own plan gave them places; now one of them may not be planned with, and the room is not given away again."""
    going = node("a") | {"spec": {**node("a")["spec"], "unschedulable": True}}
    items = [going, node("b"), node("c"), keeper("k-1", "c", "1"), pod("x-1", "a", "2500m"), pod("y-1", "b", "2500m")]
    items.append(keeper("late-1", "a", "100m"))
    now = PlanningContext(now=NOW, observations=Observations(under_since={"b": 0}, draining={"a": "all"}))
    idle = PlanningContext(now=NOW, observations=Observations(under_since={"b": 0}))
    assert [step.node for step in planned(*items, now=idle).all_steps] == ["b"]
    assert [step.node for step in planned(*items, now=now).all_steps] == []


def test_case_46_a_waiting_pod_too_large_for_every_node_is_ignored() -> None:
    assert goes(node("a"), node("b"), pod("x-1", "a"), pod("x-2", "b"), pod("x-3", "b"), pod("huge-1", cpu="64")) == [
        "a"
    ]


def test_case_47_without_effort_the_plan_is_what_the_first_pass_found() -> None:
    items = [node(n) for n in "abcd"] + [pod(f"x-{n}", n) for n in "abcd"]
    result = planned(*items, effort=0)
    assert len(result.all_steps) == 3


def test_case_48_a_cordoned_node_is_no_destination() -> None:
    items = [node("a"), node("b"), node("c", cordoned=True), pod("x-1", "a"), pod("x-2", "b"), keeper("k-1", "c", "2")]
    moves = planned(*items).all_moves
    assert len(moves) == 1
    assert moves[0].target in ("a", "b")


def test_case_50_nothing_moves_unless_the_whole_node_fits() -> None:
    items = [
        node("a", "2"),
        node("b", "2"),
        *(pod(f"x-{i}", "a", "400m") for i in range(4)),
        keeper("k-1", "b", "1500m"),
    ]
    assert not planned(*items).all_moves


TWO_AND_ONE = [node("n1", "4"), node("n2", "4"), pod("x-1", "n1"), pod("y-1", "n2"), pod("y-2", "n2"), pod("x-0", "n3")]


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ((), ["n1"]),  # case 54
        ((budget("x", 0),), ["n2"]),  # case 55
    ],
)
def test_cases_54_and_55_the_node_with_fewer_pods_goes_unless_a_budget_keeps_it(
    more: tuple[Item, ...], expected: list[str]
) -> None:
    assert goes(*TWO_AND_ONE, *more) == expected


def test_case_56_do_not_disrupt_on_the_other_node_or_its_pod() -> None:
    text = {"karpenter.sh/do-not-disrupt": "true"}
    on_node = [node("n1"), node("n2", annotations=text), *TWO_AND_ONE[2:]]
    on_pod = [*TWO_AND_ONE[:3], pod("y-1", "n2", annotations=text), pod("y-2", "n2"), TWO_AND_ONE[5]]
    assert goes(*on_node) == goes(*on_pod) == ["n1"]


@pytest.mark.parametrize("spec", [{"schedulingGates": [{"name": "queue"}]}, {"priority": -11}])
def test_a_pod_that_is_held_back_or_holds_a_place_for_others_waits_for_no_node(spec: Item) -> None:
    assert goes(node("a"), node("b"), pod("x-1", "a"), pod("x-2", "b"), pod("w-1", cpu="4", spec=spec)) == ["a"]


def test_case_60_a_destination_that_is_not_whole_or_too_young_takes_nothing() -> None:
    pool = replace(ALL, receiver_age=60, quiet=0, keep_nodes=("stay",))
    starting = [{"key": "node.cloudprovider.kubernetes.io/uninitialized", "effect": "PreferNoSchedule"}]

    def with_b(**more: object) -> list[str]:
        return goes(
            node("a"), node("b", annotations={"stay": "true"}, **more), pod("x-1", "a"), pod("x-2", "b"), pool=pool
        )

    assert with_b(taints=starting) == []
    assert with_b(created="2026-01-02T23:59:30Z") == []
    assert with_b(created="2026-01-02T23:58:00Z") == ["a"]


def test_case_64_arithmetic_over_all_nodes_is_not_enough() -> None:
    items = [item for n in "abc" for item in (node(n, "16"), pod(f"x-{n}", n, "9"))]
    assert goes(*items) == []


def test_case_65_places_by_what_is_free() -> None:
    from trimtab.scheduling.cluster_model import FreeCapacity as Room
    from trimtab.scheduling.filters import place_pods

    spots = [node("s1", "1"), node("s2", "1"), node("s3", "1")]
    used = [keeper("k-1", "s1", "900m"), keeper("k-2", "s2", "800m"), keeper("k-3", "s3", "300m")]

    def fits(*sizes: int) -> bool:
        world = build_cluster_model(
            cluster(*spots, *used, *(pod(f"w-{i}", cpu=f"{size}m") for i, size in enumerate(sizes)))
        )
        return None not in place_pods(Room(world), [kind for _, kind in world.pending_pods], range(3))

    assert [fits(size) for size in (100, 200, 700, 2200)] == [True, True, True, False]
    assert fits(500, 300, 100) is False
    assert fits(500, 200, 100, 100) is True


# ── §5.4 limits and budgets ──────────────────────────────────────────────


def test_case_67_a_node_whose_budget_cannot_pay_for_all_its_pods_at_once_goes_in_turns() -> None:
    items = [node("a"), node("b"), pod("x-1", "a"), pod("x-2", "a"), pod("x-3", "b"), pod("x-4", "b"), pod("x-5", "b")]
    result = planned(*items, budget("x", 1))
    assert [(move.pod, move.turn) for move in result.all_steps[0].moves] == [("default/x-1", 0), ("default/x-2", 1)]


def test_case_69_the_second_node_under_a_spent_budget_waits_for_the_next_wave() -> None:
    items = [*(node(n) for n in "abc"), *(pod(f"x-{n}", n) for n in "abc"), keeper("k-1", "c", "1")]
    result = planned(*items, budget("x", 1))
    assert [[step.node for step in wave.steps] for wave in result.waves] == [["a"], ["b"]]
    assert len(planned(*items, budget("x", 2)).waves) == 1


def test_case_70_and_71_drains_at_a_time_count_those_in_progress() -> None:
    items = [node(f"n{i:02}") for i in range(12)]
    wave = planned(*items, pool=replace(ALL, min_nodes=1)).waves[0]
    pool = replace(ALL, drains=10)
    assert len(wave.steps) == 11
    assert len(steps_within_pace(wave, pool, Observations(), NOW)) == 10
    assert len(steps_within_pace(wave, pool, Observations(draining={"x": "all", "y": "all"}), NOW)) == 8


def test_evictions_per_hour_are_a_ceiling_but_one_large_node_may_go_alone() -> None:
    items = [node(n) for n in "abc"] + [pod(f"x-{n}{i}", n, "100m") for n in "abc" for i in range(3)]
    wave = planned(*items).waves[0]
    pool = replace(ALL, drains=5, evictions_per_hour=4)
    assert len(steps_within_pace(wave, pool, Observations(), NOW)) == 1
    assert len(steps_within_pace(wave, replace(pool, evictions_per_hour=2), Observations(), NOW)) == 1
    assert steps_within_pace(wave, pool, Observations(evictions=(NOW - 60,) * 3), NOW) == ()


def test_case_71b_a_minimum_leaves_only_the_empty_node() -> None:
    items = [node("a"), node("b"), node("c"), pod("x-1", "b"), pod("x-2", "c"), pod("x-3", "c")]
    result = planned(*items, pool=replace(ALL, min_nodes=2))
    assert [step.node for step in result.all_steps] == ["a"]
    assert result.refusals["b"].code.name == "pool-at-minimum"


def test_case_78_four_empty_nodes_and_a_minimum_of_three() -> None:
    assert len(goes(*(node(n) for n in "abcd"), pool=replace(ALL, min_nodes=3))) == 1


def test_a_minimum_per_zone() -> None:
    nodes = [node(n, labels={ZONE: n[0]}) for n in ("a1", "a2", "b1", "b2")]
    assert len(goes(*nodes, pool=replace(ALL, min_per_zone=1))) == 2


# ── what the plan is for ─────────────────────────────────────────────────


def test_ten_nodes_at_55_percent_are_compacted_where_a_threshold_of_half_finds_nothing() -> None:
    items = [
        item for i in range(10) for item in (node(f"n{i}", "2"), *(pod(f"x-{i}{j}", f"n{i}", "550m") for j in (1, 2)))
    ]
    result = planned(*items)
    assert len(result.all_steps) == 3
    assert result.bound.nodes == 4


def test_the_goal_decides_between_one_dear_and_two_cheap_nodes() -> None:
    items = [
        node("big", "16"),
        node("s1", "4"),
        node("s2", "4"),
        node("rest", "16"),
        keeper("k-1", "rest", "12"),
        *(pod(f"x-{i}", "big", "1") for i in range(4)),
        pod("y-1", "s1", "2"),
        pod("y-2", "s2", "2"),
    ]
    assert "big" in goes(*items, pool=replace(ALL, goal=Goal.COST))
    assert {"s1", "s2"} <= set(goes(*items, pool=replace(ALL, goal=Goal.NODES)))


def test_prices_from_settings_decide_when_all_are_known() -> None:
    kinds = (
        {"labels": {"node.kubernetes.io/instance-type": "old"}},
        {"labels": {"node.kubernetes.io/instance-type": "new"}},
    )
    items = [node("a", **kinds[0]), node("b", **kinds[1]), pod("x-1", "a", "3"), pod("x-2", "b", "1")]
    result = planned(*items, pool=replace(ALL, prices={"old": 100, "new": 900}))
    assert (result.unit, [step.node for step in result.all_steps]) == ("micro-dollars an hour", ["b"])


def test_a_node_without_a_price_is_taken_for_as_dear_as_the_others_by_its_cores() -> None:
    items = [node("a", "8"), node("b", "4", labels={"node.kubernetes.io/instance-type": "old"}), pod("x-1", "a", "1")]
    result = planned(*items, pool=replace(ALL, prices={"old": 100}))
    assert (result.unit, result.bound.unpinned_saves >= 200) == ("micro-dollars an hour", True)


def test_a_cluster_of_daemons_alone_is_planned_though_one_may_not_go() -> None:
    items = [node("a"), pod("d-1", "a", owner="DaemonSet", annotations={"trimtab.dev/do-not-disrupt": "true"})]
    assert planned(*items).refusals["a"].code.name == "pod-must-stay"


def test_a_plan_that_saves_too_little_for_its_evictions_is_none() -> None:
    items = [node("a"), node("b"), *(pod(f"x-{i}", "a", "100m") for i in range(5)), keeper("k-1", "b", "1")]
    assert goes(*items, pool=replace(ALL, least_gain=100)) == ["a"]
    result = planned(*items, pool=replace(ALL, least_gain=300))
    assert result.refusals["a"].code.name == "not-worth-it"


def test_a_pod_that_was_moved_is_left_in_peace() -> None:
    items = [node("a"), node("b"), pod("x-1", "a", "1"), keeper("k-1", "b", "1")]
    result = planned(*items, now=PlanningContext(now=NOW, moved_pods=frozenset({"default/x-1"})))
    assert result.pods["default/x-1"].code.name == "moved-before"


def test_a_step_does_not_hold_when_a_new_pod_arrived() -> None:
    items = [node("a"), node("b"), pod("x-1", "a", "1"), keeper("k-1", "b", "1")]
    step = planned(*items).all_steps[0]
    assert rejection_of(step, *items) is None
    reason = rejection_of(step, *items, pod("x-2", "a", "1"))
    assert reason is not None
    assert reason.code.name == "node-changed"


def test_every_node_is_in_a_wave_or_has_a_reason() -> None:
    items = [node(n) for n in "abcd"] + [pod(f"x-{n}", n, "3", spec=apart("x")) for n in "abc"]
    result = planned(*items)
    assert {step.node for step in result.all_steps} | set(result.refusals) == set("abcd")


def test_an_offline_plan_says_what_it_assumed() -> None:
    notes = " ".join(planned(node("a"), now=PlanningContext()).notes)
    assert has_facts(notes, "no pod", "moving")
    assert has_facts(notes, "without a time", "--now")
