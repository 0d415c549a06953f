"""What holds for every workload and every set of types."""

from dataclasses import replace
from itertools import pairwise

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from trimtab.sizing.ranking.capacity import Candidate, CapacityRules, Limit, NodeReservation, measure_capacity
from trimtab.sizing.ranking.rank_types import Ranking, RankingRules, rank_types
from trimtab.sizing.ranking.type_sets import find_cheapest_sets
from trimtab.sizing.ranking.workload import DaemonShare, PoolWorkload

amounts = st.floats(0.5, 5000)
workloads = st.builds(
    PoolWorkload,
    cores=amounts,
    gib=amounts,
    pods=st.integers(1, 5000).map(float),
    volumes=st.integers(0, 1000).map(float),
    zones=st.integers(1, 3),
    daemons=st.builds(DaemonShare, cores=st.floats(0, 0.5), gib=st.floats(0, 2), pods=st.floats(0, 8)),
)
reservations = st.builds(
    NodeReservation,
    cores=st.floats(0, 0.3),
    gib=st.floats(0, 1),
    cores_per_pod=st.floats(0, 0.01),
    gib_per_pod=st.floats(0, 0.03),
    eviction_gib=st.just(0.1),
    is_measured=st.booleans(),
)


@st.composite
def candidates(draw: st.DrawFn, name: str = "type") -> Candidate:
    cores, ratio = draw(st.sampled_from([2.0, 4.0, 8.0, 16.0, 32.0, 96.0])), draw(st.sampled_from([1, 2, 4, 8]))
    return Candidate(
        name=name,
        family=name,
        architecture="amd64",
        cores=cores,
        gib=cores * ratio,
        visible_gib=cores * ratio * 0.96,
        price=draw(st.integers(10_000, 9_000_000)),
        reservation=draw(reservations),
        max_pods=draw(st.integers(20, 250)),
        max_volumes=draw(st.one_of(st.none(), st.integers(4, 127))),
        performance=draw(st.floats(0.8, 1.5)),
    )


several = st.lists(candidates(), min_size=1, max_size=8).map(
    lambda result: [replace(one, name=f"type-{number}", family=f"family-{number}") for number, one in enumerate(result)]
)


def ranked(workload: PoolWorkload, types: list[Candidate]) -> Ranking:
    return rank_types(workload, types, RankingRules())


@given(workloads, several, st.integers(2, 50))
def test_a_scale_of_all_prices_keeps_the_order(workload: PoolWorkload, types: list[Candidate], scale: int) -> None:
    dearer = [replace(one, price=one.price * scale) for one in types]
    keys = [score.gib_per_dollar for score in ranked(workload, types).scores]
    # Keys that differ by rounding alone have no order.
    assume(all(abs(a - b) > 1e-9 * a for a, b in pairwise(keys)))
    names = [score.candidate.name for score in ranked(workload, types).scores]
    assert [score.candidate.name for score in ranked(workload, dearer).scores] == names


@given(workloads, candidates(), st.floats(1, 2), st.integers(0, 50), st.integers(0, 100_000))
def test_a_dominated_type_never_wins(
    workload: PoolWorkload, worse: Candidate, larger: float, volumes: int, dearer: int
) -> None:
    assume(larger > 1.001 or dearer)
    better = replace(
        worse,
        name="z-better",
        visible_gib=worse.visible_gib * larger,
        cores=worse.cores * larger,
        gib=worse.gib * larger,
        max_volumes=None if worse.max_volumes is None else worse.max_volumes + volumes,
    )
    dominated = replace(worse, name="a-worse", price=worse.price + dearer)
    ranking = ranked(workload, [dominated, better])
    assume(ranking.best is not None)
    assert ranking.best is not None
    assert ranking.best.candidate.name == "z-better"


@given(candidates(), st.integers(2, 8))
def test_a_larger_type_does_not_win_by_room_that_nothing_fills(small: Candidate, times: int) -> None:
    """Both hold the whole workload on one node, and the larger one has a better price for its size."""
    little = PoolWorkload(cores=0.5, gib=0.5, pods=1, volumes=0, zones=1, daemons=DaemonShare(cores=0, gib=0, pods=0))
    large = replace(
        small,
        name="large",
        cores=small.cores * times,
        gib=small.gib * times,
        visible_gib=small.visible_gib * times,
        price=small.price * times - 1,
    )
    assume(measure_capacity(little, small, CapacityRules()).usable_gib >= little.gib)
    best = ranked(little, [small, large]).best
    assert best is not None
    assert best.candidate.name == small.name


@given(workloads, candidates())
def test_efficiency_is_at_most_one(workload: PoolWorkload, candidate: Candidate) -> None:
    best = ranked(workload, [candidate]).best
    assert best is None or 0 < best.efficiency <= 1


@given(workloads, candidates(), st.sampled_from(["max_pods", "max_volumes", "visible_gib", "cores"]))
def test_a_larger_limit_never_holds_less(workload: PoolWorkload, candidate: Candidate, limit: str) -> None:
    assume(getattr(candidate, limit) is not None)
    larger = replace(candidate, **{limit: getattr(candidate, limit) * 2})
    before, after = (measure_capacity(workload, one, CapacityRules()).usable_gib for one in (candidate, larger))
    assert after >= before - 1e-6


@given(workloads, candidates())
def test_the_reservation_is_that_of_the_pods_it_holds(workload: PoolWorkload, candidate: Candidate) -> None:
    capacity = measure_capacity(workload, candidate, CapacityRules())
    total = capacity.pods + workload.daemons.pods
    assert abs(capacity.reserved_gib - candidate.reservation.reserved_gib(total)) < 1e-6
    assert capacity.usable_gib == min(capacity.limits.values())
    assert capacity.limits[Limit.LOAD] == float("inf")


@settings(max_examples=30)
@given(workloads, several)
def test_a_set_covers_the_workload_and_costs_no_more_than_one_type(
    workload: PoolWorkload, types: list[Candidate]
) -> None:
    ranking = ranked(workload, types)
    sets = find_cheapest_sets(ranking, 0.0)
    assert bool(sets) == bool(ranking.scores)
    for one in sets:
        for need, free in ((workload.cores, "free_cores"), (workload.gib, "free_gib"), (workload.pods, "free_pods")):
            have = sum(n * getattr(s.capacity, free) for n, s in zip(one.node_counts, one.types, strict=True))
            assert have >= need * (1 - 1e-5)
    if sets:
        assert sets[0].total_price <= min(score.total_price for score in ranking.scores) * (1 + 1e-9)
