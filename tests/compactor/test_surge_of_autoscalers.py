"""A HorizontalPodAutoscaler writes the count: its `minReplicas` is raised for a while, and is as before afterwards."""

from dataclasses import replace

import pytest

from tests.compactor.played import ACT, Killed, process, run
from tests.compactor.played_autoscaler import PlayedAutoscaler
from trimtab.compactor.loop import Loop

SURGES = replace(ACT, surge=1)


def three(**more: int) -> PlayedAutoscaler:
    """Three pods whose budget wants three, one of them alone on node n1; the metrics ask for three."""
    played = PlayedAutoscaler(**more)
    played.with_nodes("n1", "n2", "n3")
    played.with_app("web", "n1", "n2", "n3", cpu="500m", minimum=3).with_app("big", "n2", "n3", cpu="1500m")
    played.pools = (SURGES,)
    return played


def floor_rises(played: PlayedAutoscaler, loop: Loop) -> None:
    """Lets time pass until `minReplicas` was raised."""
    for _ in range(30):
        if played.lowest:
            return
        loop.run_round()
        played.tick()
    raise AssertionError(played.writes)


def ended(played: PlayedAutoscaler) -> tuple[int, list[str], list[str]]:
    """What holds whatever happened: minReplicas as before, no budget broken, nothing bought."""
    return played.least, played.short, played.bought


def test_min_replicas_rises_above_the_present_count_and_is_as_before_afterwards() -> None:
    played = three()
    loop, fewest = process(played), 3
    for _ in range(60):
        loop.run_round()
        played.tick()
        fewest = min(fewest, len(played.healthy("web")))
    assert "web-0" not in played.on("n1")
    assert (played.lowest, fewest, played.refused) == ([4, 2], 3, 0)
    assert ended(played) == (2, [], [])
    assert played.wanted["web"] == 3, "the count came down by the autoscaler's own rules"
    assert loop.pool_states.state_of("all").surged == {}


def test_where_the_maximum_leaves_no_room_nothing_is_written() -> None:
    played = three(most=3)
    run(played, 60)
    assert played.lowest == []
    assert "web-0" in played.on("n1")


@pytest.mark.parametrize(
    "marks",
    [
        {"ownerReferences": [{"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "name": "web", "uid": "u"}]},
        {"annotations": {"argocd.argoproj.io/tracking-id": "shop:autoscaling/HorizontalPodAutoscaler:default/web"}},
        {"labels": {"kustomize.toolkit.fluxcd.io/name": "shop"}},
        {
            "managedFields": [
                {"manager": "ci", "operation": "Apply", "fieldsV1": {"f:spec": {"f:minReplicas": {}}}},
            ]
        },
        {
            "managedFields": [
                {"manager": "argocd-controller", "operation": "Update", "fieldsV1": {"f:spec": {"f:minReplicas": {}}}},
            ]
        },
        {"managedFields": []},
    ],
    ids=["owned", "argo cd", "flux", "server-side apply", "a manager", "not known"],
)
def test_what_another_controller_keeps_is_not_written(marks: dict[str, object]) -> None:
    played = three()
    played.marks = marks
    run(played, 60)
    assert played.lowest == []
    assert "web-0" in played.on("n1")


def test_who_writes_min_replicas_back_each_time_keeps_the_pod() -> None:
    played = three()
    loop = process(played)
    for _ in range(60):
        loop.run_round()
        played.least = 2
        played.tick()
    assert played.told("released") == ["drain-surge-reverted"], "it is not tried again"
    assert len(played.lowest) <= 15
    assert not [write for write in played.writes if write.startswith("evict default/web")]
    assert played.least == 2


def test_another_value_that_somebody_writes_meanwhile_stays() -> None:
    played = three()
    loop = process(played)
    floor_rises(played, loop)
    played.least = 3
    run(played, 60, loop)
    assert played.least == 3


def test_the_load_may_grow_in_the_middle() -> None:
    played = three()
    loop = process(played)
    floor_rises(played, loop)
    played.load = 6
    run(played, 60, loop)
    assert ended(played) == (2, [], [])
    assert played.wanted["web"] == 6


def test_where_the_load_falls_before_the_write_nothing_breaks() -> None:
    played = three()
    played.load = 2
    run(played, 120)
    assert ended(played)[0] == 2


def writes_of_a_drain() -> list[str]:
    played = three()
    run(played, 60)
    return played.writes


def test_the_process_may_die_after_any_write() -> None:
    for number, write in enumerate(writes_of_a_drain()):
        for fault in ("killed", "lost"):
            played = three()
            played.faults[number] = fault
            run(played, 120)
            assert ended(played) == (2, [], []), (number, write, fault)
            assert set(played.lowest) <= {2, 4}, (number, write, fault, played.lowest)


def test_nothing_is_left_where_the_node_goes_in_the_middle() -> None:
    played = three()
    loop = process(played)
    floor_rises(played, loop)
    for name in played.cordoned:
        del played.nodes[name]
        played.pods = {uid: p for uid, p in played.pods.items() if p["spec"]["nodeName"] != name}
    run(played, 20, loop)
    assert (played.least, loop.pool_states.state_of("all").surged) == (2, {})


def test_an_autoscaler_that_scales_down_at_once_is_set_back_when_it_knows_the_usage_of_the_new_pods() -> None:
    played = three()
    played.window = 0
    loop = process(played)
    floor_rises(played, loop)
    raised_at = played.now
    run(played, 60, loop)
    assert played.lowest == [4, 2]
    assert played.set_back_at - raised_at >= 60


def test_a_death_before_the_write_is_no_revert_however_late_the_next_leader_is() -> None:
    played = three()
    number = next(n for n, write in enumerate(writes_of_a_drain()) if write.startswith("min ")) - 1
    played.faults[number] = "killed"
    loop = process(played)
    for _ in range(120):
        try:
            loop.run_round()
        except Killed:
            played.tick(90)
            loop = process(played)
        played.tick()
    assert played.told("released") == []
    assert played.lowest == [4, 2]
