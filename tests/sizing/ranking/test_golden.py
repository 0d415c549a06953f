"""The worked example, figure by figure: to a thousandth, or to half a unit of the last printed digit."""

import pytest

from tests.sizing.ranking.golden import ETCD, PRICES, TABLE, WORKLOAD, candidate_of
from trimtab.sizing.ranking.capacity import CapacityRules, Limit, measure_capacity
from trimtab.sizing.ranking.rank_types import RankingRules, decide_switch, rank_types
from trimtab.sizing.ranking.score import SurchargeRules, TypeScore, score_type
from trimtab.sizing.ranking.workload import PoolWorkload

ROWS = [line.split() for line in TABLE.strip().splitlines()]


def scored(name: str, workload: PoolWorkload = WORKLOAD) -> TypeScore:
    candidate = candidate_of(name)
    return score_type(workload, candidate, measure_capacity(workload, candidate, CapacityRules()), SurchargeRules())


def blog_key(score: TypeScore) -> float:
    """The key from Gardener's blog, efficiency by the price of a core: the same order at equal speed and weight."""
    candidate = score.candidate
    core_price = PRICES[candidate.name] / (candidate.cores + candidate.gib / candidate.memory_weight)
    return score.efficiency / core_price


def figures(score: TypeScore) -> list[float]:
    capacity = score.capacity
    limits = [capacity.limits[limit] for limit in (Limit.CPU, Limit.MEMORY, Limit.VOLUMES)]
    return [
        capacity.reserved_cores,
        capacity.reserved_gib,
        *limits,
        capacity.usable_gib,
        score.efficiency,
        blog_key(score),
        score.gib_per_dollar,
        score.total_price / 1_000_000,
        score.node_count,
    ]


def is_as_printed(value: float, printed: str) -> bool:
    digits = len(printed.partition(".")[2])
    return abs(value - float(printed)) <= max(0.5 * 10**-digits + 1e-9, 0.001 * float(printed))


@pytest.mark.parametrize("row", ROWS, ids=[row[0] for row in ROWS])
def test_every_figure_of_a_row(row: list[str]) -> None:
    name, reserved, cpu, memory, volumes, bottleneck, *others = row
    score = scored(name)
    printed = [*reserved.split("/"), cpu, memory, volumes, *others]
    wrong = [(v, p) for v, p in zip(figures(score), printed, strict=True) if not is_as_printed(v, p)]
    assert wrong == []
    assert score.capacity.bottleneck == bottleneck


def test_the_order_is_that_of_the_table() -> None:
    ranking = rank_types(WORKLOAD, [candidate_of(row[0]) for row in reversed(ROWS)], RankingRules())
    order = [score.candidate.name for score in ranking.scores]
    # The two of E…s_v5 are equal to the last printed digit.
    assert order[:4] == [row[0] for row in ROWS[:4]]
    assert set(order[4:6]) == {"E8s_v5", "E16s_v5"}
    assert order[6:] == [row[0] for row in ROWS[6:]]


@pytest.mark.parametrize(
    ("name", "usable", "key"),
    [
        ("E8s_v5", 25.67, 37.9),
        ("E16s_v5", 52.33, 38.2),
        ("E8ps_v6", 39.0, 79.0),
        ("D16s_v6", 58.57, 58.9),
        ("E8s_v6", 39.0, 54.6),
    ],
)
def test_many_volumes_make_types_volume_bound(name: str, usable: float, key: float) -> None:
    score = scored(name, ETCD)
    assert score.capacity.bottleneck == (Limit.MEMORY if name == "D16s_v6" else Limit.VOLUMES)
    assert score.capacity.usable_gib == pytest.approx(usable, abs=0.01)
    assert score.gib_per_dollar == pytest.approx(key, abs=0.06)


def test_the_step_by_step_example() -> None:
    score = scored("E8s_v5")
    assert score.capacity.pods == pytest.approx(65.2, abs=0.05)
    assert score.capacity.limits[Limit.PODS] == pytest.approx(260.67, abs=0.005)
    assert score.surcharges.last_node == pytest.approx(0.01322, abs=5e-6)
    # The example rounds 43.48/52.67 before it goes on.
    assert score.surcharges.volumes == pytest.approx(0.00776, abs=1e-5)
    assert score.nodes_per_zone == pytest.approx(23.0, abs=0.01)


@pytest.mark.parametrize(
    ("current", "types", "switches", "gain"),
    [("E8s_v6", ["E8s_v6", "E16s_v6"], False, 0.0015), ("D16s_v5", ["D16s_v5", "E16s_v6"], True, 0.249)],
)
def test_the_hysteresis_examples(current: str, types: list[str], switches: bool, gain: float) -> None:
    ranking = rank_types(WORKLOAD, map(candidate_of, types), RankingRules())
    decision = decide_switch(ranking, current, wins=3)
    assert decision is not None
    assert decision.is_switch is switches
    assert decision.gain == pytest.approx(gain, abs=0.0005)
