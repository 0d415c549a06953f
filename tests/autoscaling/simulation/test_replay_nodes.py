"""The cluster autoscaler on small clusters: what goes, when, and what comes back."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from trimtab.autoscaling.simulation.propose_autoscaler import (
    ReplayedFlags,
    candidate_flags,
    choose_flags,
    propose_flags,
)
from trimtab.autoscaling.simulation.replay_nodes import (
    NodeHistory,
    ReplayResult,
    ReplayShape,
    ReplayWorkload,
    ScaleDownFlags,
    replay_history,
)

GIB, MINUTE, HOUR = 1 << 30, 60, 3600
BIG = ReplayShape(name="big", cpu=4000, memory=16 * GIB, pods=100, price=200_000)
WEB = ReplayWorkload(name="web", cpu=500, memory=GIB, shapes=frozenset({"big"}))
DEFAULT = ScaleDownFlags()


def history(
    nodes: Sequence[Mapping[str, int]],
    moments: Sequence[tuple[int, Mapping[str, int]]] | None = None,
    workload: ReplayWorkload = WEB,
    shape: ReplayShape = BIG,
    min_nodes: int = 0,
) -> NodeHistory:
    constant = [(n * 5 * MINUTE, {}) for n in range(25)]
    return NodeHistory(
        shapes={shape.name: shape},
        workloads={workload.name: workload},
        nodes=[(shape.name, pods) for pods in nodes],
        moments=constant if moments is None else moments,
        min_nodes={shape.name: min_nodes},
    )


def demand(*pods: int, step: int = 5 * MINUTE) -> list[tuple[int, Mapping[str, int]]]:
    return [(n * step, {"web": count}) for n, count in enumerate(pods)]


def test_an_empty_node_goes_after_the_unneeded_time() -> None:
    result = replay_history(history([{}, {"web": 6}]), DEFAULT)
    assert (result.removed, result.evictions, result.final_nodes) == (1, 0, 1)
    # Ten minutes of two nodes, then one.
    assert result.node_seconds == 2 * 10 * MINUTE + 110 * MINUTE
    assert result.dollars is not None
    assert round(result.dollars, 6) == round(0.2 * result.node_seconds / HOUR, 6)


def test_a_node_above_the_threshold_stays_until_the_threshold_is_higher() -> None:
    world = history([{"web": 4}, {"web": 4}])
    assert replay_history(world, DEFAULT).removed == 0
    result = replay_history(world, replace(DEFAULT, threshold=0.6))
    assert (result.removed, result.evictions) == (1, 4)


def test_a_node_whose_pods_fit_nowhere_stays() -> None:
    assert replay_history(history([{"web": 1}, {"web": 8}]), DEFAULT).removed == 0


def test_two_nodes_do_not_count_on_the_same_room() -> None:
    result = replay_history(history([{"web": 3}, {"web": 3}, {"web": 3}]), DEFAULT)
    assert (result.final_nodes, result.pending_pod_seconds, result.bought) == (2, 0, 0)


def test_a_pod_that_blocks_keeps_its_node() -> None:
    assert replay_history(history([{"web": 1}, {"web": 1}], workload=replace(WEB, blocks=True)), DEFAULT).removed == 0


def test_daemons_count_in_the_utilization() -> None:
    shape = replace(BIG, cpu=2000, daemon_cpu=2000)
    assert replay_history(history([{"web": 1}, {"web": 1}], shape=shape), DEFAULT).removed == 0


def test_the_minimum_of_a_group_stays() -> None:
    assert replay_history(history([{}, {}, {}], min_nodes=2), DEFAULT).final_nodes == 2


def test_pods_without_room_buy_a_node_and_wait_for_it() -> None:
    result = replay_history(history([{"web": 8}], demand(8, 9, 9, 9)), DEFAULT)
    assert (result.bought, result.final_nodes) == (1, 2)
    assert result.pending_pod_seconds == 5 * MINUTE


def test_a_node_that_is_bought_soon_after_a_removal_was_bought_back() -> None:
    swing = demand(16, *([6] * 6), *([16] * 6))
    result = replay_history(history([{"web": 8}, {"web": 8}], swing), DEFAULT)
    assert (result.removed, result.bought, result.bought_back) == (1, 1, 1)
    patient = replay_history(history([{"web": 8}, {"web": 8}], swing), replace(DEFAULT, unneeded_seconds=HOUR))
    assert (patient.removed, patient.bought_back) == (0, 0)


def test_nothing_goes_for_a_while_after_a_node_was_bought() -> None:
    swing = demand(8, 9, *([2] * 8))
    slow = replay_history(history([{"web": 8}], swing), replace(DEFAULT, delay_after_add_seconds=HOUR))
    assert (slow.bought, slow.removed) == (1, 0)


def test_an_unknown_price_gives_no_dollars() -> None:
    assert replay_history(history([{}], shape=replace(BIG, price=None)), DEFAULT).dollars is None


@given(
    st.lists(st.integers(0, 8), min_size=1, max_size=6),
    st.lists(st.integers(0, 30), min_size=2, max_size=12),
    st.sampled_from(candidate_flags(DEFAULT)),
)
def test_nodes_and_pods_add_up(nodes: list[int], pods: list[int], flags: ScaleDownFlags) -> None:
    result = replay_history(history([{"web": count} for count in nodes], demand(*pods)), flags)
    assert result.final_nodes == len(nodes) + result.bought - result.removed
    assert result.bought_back <= min(result.bought, result.removed)
    assert result.final_nodes * 8 >= pods[-1]


def test_the_proposal_saves_without_buying_back() -> None:
    autoscaler_proposal = propose_flags(history([{"web": 4}, {"web": 4}, {"web": 4}, {"web": 4}]), DEFAULT)
    assert autoscaler_proposal.reason.code.name == "autoscaler-flags-save"
    assert autoscaler_proposal.chosen.flags.threshold > 0.5
    assert autoscaler_proposal.chosen.result.final_nodes == 2


def test_the_present_flags_stay_where_nothing_is_saved() -> None:
    autoscaler_proposal = propose_flags(history([{"web": 8}, {"web": 8}]), DEFAULT)
    assert (autoscaler_proposal.chosen, autoscaler_proposal.reason.code.name) == (
        autoscaler_proposal.present,
        "autoscaler-flags-fit",
    )


def test_flags_that_remove_in_vain_are_not_chosen() -> None:
    present = ReplayedFlags(DEFAULT, ReplayResult(node_seconds=1000, dollars=None))
    hasty = ReplayedFlags(
        replace(DEFAULT, threshold=0.9), ReplayResult(node_seconds=500, dollars=None, removed=10, bought_back=5)
    )
    assert choose_flags(present, [present, hasty]).chosen is present


def test_of_equal_costs_the_one_with_fewer_evictions_is_chosen() -> None:
    present = ReplayedFlags(DEFAULT, ReplayResult(node_seconds=1000, dollars=None))
    rough, gentle = (
        ReplayedFlags(
            replace(DEFAULT, threshold=threshold), ReplayResult(node_seconds=cost, dollars=None, evictions=count)
        )
        for threshold, cost, count in ((0.9, 500, 90), (0.7, 504, 10))
    )
    assert choose_flags(present, [present, rough, gentle]).chosen is gentle


def test_flags_are_written_as_arguments() -> None:
    assert replace(DEFAULT, threshold=0.7, unneeded_seconds=90).format_arguments() == (
        "--scale-down-utilization-threshold=0.7",
        "--scale-down-unneeded-time=90s",
        "--scale-down-delay-after-add=10m",
    )


def test_the_minimum_of_a_node_group_holds_over_all_its_shapes() -> None:
    shapes = [replace(BIG, name=name, group="workers") for name in "ab"]
    grouped = NodeHistory(
        shapes={shape.name: shape for shape in shapes},
        workloads={},
        nodes=[("a", {}), ("a", {}), ("b", {})],
        moments=[(second, {}) for second in range(0, 3600, 300)],
        group_minimums={"workers": 2},
    )
    assert replay_history(grouped, DEFAULT).final_nodes == 2
