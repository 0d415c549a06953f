"""Which nodes have soft taints: those that go next have two, and those that are reserved for pods of later waves have
one."""

from dataclasses import replace

from tests.compactor.played import ACT, Played, process, run
from trimtab.compactor.loop import Loop
from trimtab.compactor.soft_taint import BOTH, LEAVING, RESERVED, SOFT_TAINTS

KEPT = {"annotations": {"trimtab.dev/do-not-disrupt": "true"}}


def small_first() -> Played:
    """Node `first` goes with a small pod, then `later` with a large one that has room only on `whole`."""
    played = Played().with_nodes("first", cpu="16").with_nodes("later", cpu="8").with_nodes("whole", "narrow", cpu="12")
    played.with_app("stays", "whole", cpu="8", **KEPT).with_app("keeps", "narrow", cpu="10500m", **KEPT)
    played.with_app("small", "first", cpu="1").with_app("large", "later", cpu="4")
    # Both pods have one budget that allows one disruption.
    for app in ("small", "large"):
        [histogram] = played.of(app)
        histogram["metadata"]["labels"]["app"] = "web"
        histogram["metadata"]["ownerReferences"][0]["name"] = "web"
    played.wanted = {"stays": 1, "keeps": 1, "web": 2}
    played.budgets["web"] = 1
    return played


def taints(played: Played) -> dict[str, tuple[str, ...]]:
    return {
        name: keys
        for name, item in played.nodes.items()
        if (keys := tuple(taint["key"] for taint in item["spec"]["taints"] if taint["key"] in SOFT_TAINTS))
    }


def planned(played: Played) -> Loop:
    loop = process(played)
    loop.run_round()
    return loop


def test_nodes_of_the_plan_have_both_taints_and_targets_of_its_later_waves_have_one() -> None:
    played = small_first()
    planned(played)
    assert taints(played) == {"first": BOTH, "later": BOTH, "whole": (RESERVED,)}


def test_a_pod_that_fits_on_no_other_node_runs_on_a_reserved_target_and_not_on_a_node_of_the_plan() -> None:
    played = small_first()
    planned(played)
    # The node of the plan has more free capacity, so that the scheduler would prefer it at an equal number of taints.
    played.nodes["later"]["status"]["allocatable"]["cpu"] = "32"
    played.wanted["other"] = 1
    played._make("other", "", "3", ready=False)
    played._bind()
    assert [pod["spec"]["nodeName"] for pod in played.of("other")] == ["whole"]


def test_a_process_that_stops_removes_both() -> None:
    played = small_first()
    planned(played).shut_down()
    assert taints(played) == {}


def test_a_pool_that_only_rehearses_reserves_nothing() -> None:
    played = small_first()
    played.pools = (replace(ACT, dry_run=True),)
    planned(played)
    assert taints(played) == {}


def test_without_the_setting_no_node_has_a_taint() -> None:
    played = small_first()
    loop = process(played)
    loop.soft_taints.is_enabled = False
    loop.run_round()
    assert taints(played) == {}


def test_a_target_outside_of_the_pools_is_not_touched() -> None:
    played = small_first()
    for name in ("first", "later"):
        played.nodes[name]["metadata"]["labels"]["pool"] = "mine"
    played.pools = (replace(ACT, everything=False, labels={"pool": "mine"}),)
    planned(played)
    assert taints(played) == {"first": BOTH, "later": BOTH}


def test_a_node_has_one_or_both_of_them_and_none_is_left_at_the_end() -> None:
    played = small_first()
    played.takes_after = 4
    loop = planned(played)
    for _ in range(60):
        run(played, 1, loop)
        assert set(taints(played).values()) <= {BOTH, (RESERVED,)}
    assert "first" not in played.nodes
    assert taints(played) == {}


def test_a_node_with_the_taint_of_an_earlier_version_alone_gets_the_other_one_too() -> None:
    played = small_first()
    played.nodes["later"]["spec"]["taints"].append({"key": LEAVING, "effect": "PreferNoSchedule"})
    planned(played)
    assert taints(played)["later"] == BOTH


def test_a_taint_that_a_killed_process_left_is_removed_where_no_plan_wants_it() -> None:
    played = small_first()
    played.nodes["narrow"]["spec"]["taints"].append({"key": RESERVED, "effect": "PreferNoSchedule"})
    planned(played)
    assert "narrow" not in taints(played)
