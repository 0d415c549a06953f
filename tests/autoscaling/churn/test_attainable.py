"""What perfect knowledge could attain: core hours against purchases."""

from hypothesis import given, settings
from hypothesis import strategies as st

from trimtab.autoscaling.churn.attainable import (
    MINUTE,
    NeededMachines,
    add_frontiers,
    count_needed_machines,
    find_frontier,
    least_core_hours,
    least_purchases,
)
from trimtab.autoscaling.churn.churn_script import (
    Churn,
    ChurnEvent,
    ChurnKind,
    ChurnOptions,
    ChurnWorkload,
    draw_churn,
)
from trimtab.autoscaling.churn.pod_shapes import ChurnPodShape, generate_shapes
from trimtab.cli.simulate.churn_run import ALONE, FOLLOW, run_variant

FOUR_CORES = ChurnPodShape(millicores=4000, mebibytes=1024, seconds=600)


def path(needed: list[int], *, first: int, losses: dict[int, int] | None = None) -> NeededMachines:
    """Machines of sixty cores, so that a machine costs a core hour a minute."""
    per_minute = tuple((losses or {}).get(minute, 0) for minute in range(len(needed)))
    return NeededMachines(cores=60.0, first=first, needed=tuple(needed), losses=per_minute, warm_up=0)


def best(needed: list[int], price: float, *, first: int, losses: dict[int, int] | None = None) -> tuple[float, int]:
    (point,) = find_frontier(path(needed, first=first, losses=losses), [price])
    return point.core_hours, point.bought


def test_a_gap_is_left_only_if_it_is_longer_than_a_purchase_costs() -> None:
    gap = [2, 1, 1, 1, 2]
    assert best(gap, 2, first=2) == (7, 1)
    assert best(gap, 4, first=2) == (10, 0)


def test_what_is_taken_away_is_bought_again_only_when_it_is_needed() -> None:
    assert best([1, 1, 1, 2], 9, first=3, losses={1: 1, 2: 1}) == (3 + 2 + 1 + 2, 1)
    assert best([1, 1, 1, 1], 9, first=3, losses={1: 1, 2: 1})[1] == 0


def test_nothing_is_counted_before_the_measurement() -> None:
    needed = NeededMachines(cores=60.0, first=1, needed=(5, 5, 3, 3), losses=(0, 0, 0, 0), warm_up=2)
    (point,) = find_frontier(needed, [1])
    assert (point.core_hours, point.bought) == (6, 0)


def test_a_churn_needs_what_is_requested_during_the_whole_minute() -> None:
    workload = ChurnWorkload(name="web", shape=FOUR_CORES, replicas=2, max_unavailable=None)
    churn = Churn(
        options=ChurnOptions(hours=5 / 60, warm_up_seconds=0),
        workloads=(workload,),
        events=(
            ChurnEvent(at=70, kind=ChurnKind.SCALE, workload="web", amount=5),
            ChurnEvent(at=130, kind=ChurnKind.JOB, workload="j", shape=FOUR_CORES),
            ChurnEvent(at=200, kind=ChurnKind.NODE_DIES, share=0.5),
            ChurnEvent(at=250, kind=ChurnKind.JOB_ENDS, workload="j"),
        ),
        nodes=("small", "large"),
    )
    needed = count_needed_machines(churn)
    # A small machine holds one pod of four cores, and almost a second one.
    assert needed.needed == (2, 2, 3, 4, 3)
    assert needed.losses == (0, 0, 0, 1, 0)
    assert needed.first == 4


@settings(max_examples=30)
@given(
    st.lists(st.integers(1, 6), min_size=2, max_size=9),
    st.integers(1, 6),
    st.sampled_from([0.5, 1.0, 2.0, 3.0, 5.0]),
    st.dictionaries(st.integers(0, 8), st.integers(1, 2), max_size=2),
    st.lists(st.integers(0, 2), min_size=9, max_size=9),
)
def test_no_other_plan_is_beyond_the_frontier(
    needed: list[int], first: int, price: float, losses: dict[int, int], extra: list[int]
) -> None:
    frontier = find_frontier(path(needed, first=first, losses=losses), [price])
    count, core_hours, bought = first, 0, 0
    for minute, machines in enumerate(needed):
        count = max(0, count - losses.get(minute, 0))
        wanted = machines + extra[minute]
        bought += max(0, wanted - count)
        count = wanted
        core_hours += count
    assert core_hours >= least_core_hours(frontier, bought) - 1e-6
    assert bought >= least_purchases(frontier, core_hours) - 1e-6


def test_no_run_of_a_churn_is_beyond_its_frontier() -> None:
    churn = draw_churn(ChurnOptions(hours=2, cores=60), generate_shapes())
    frontier = add_frontiers([find_frontier(count_needed_machines(churn))])
    for variant in (ALONE, FOLLOW):
        outcome = run_variant(churn, variant).outcome
        assert outcome.core_hours > least_core_hours(frontier, outcome.bought)
    assert count_needed_machines(churn).warm_up == churn.options.warm_up_seconds // MINUTE
