"""How many evictions a budget allows with more pods: by the disruption controller's own formula."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.cluster.api.workload import BudgetMetadata, BudgetSpec, BudgetStatus, PodDisruptionBudget
from trimtab.cluster.pdb import Pdb, pdb_from_api
from trimtab.compaction.surge.disruptions import disruptions_allowed, needed_extra


def budget(scale: int, healthy: int | None = None, **spec: Any) -> Pdb:
    ready = scale if healthy is None else healthy
    return pdb_from_api(
        PodDisruptionBudget(
            metadata=BudgetMetadata(name="x", namespace="default", generation=1),
            spec=BudgetSpec(**spec),
            status=BudgetStatus(observed_generation=1, current_healthy=ready, expected_pods=scale),
        )
    )


@pytest.mark.parametrize(
    ("pdb", "extra"),
    [
        (budget(1, min_available=1), 1),
        (budget(3, min_available=3), 1),
        (budget(1, min_available=2), 2),
        (budget(3, 2, min_available=2), 1),
        (budget(1, min_available="50%"), 1),
        (budget(5, min_available="90%"), 5),
        (budget(3, min_available="90%"), 7),
        (budget(2, min_available="50%"), 0),
        (budget(3, min_available="100%"), None),
        (budget(3, max_unavailable=0), None),
        (budget(3, max_unavailable="0%"), None),
        (budget(3, max_unavailable=1), 0),
        (budget(3, 2, max_unavailable=1), None),
        (budget(3), None),
        (budget(3, min_available="many"), None),
        (budget(0, min_available=1), 2),
    ],
)
def test_the_smallest_number_of_more_pods(pdb: Pdb, extra: int | None) -> None:
    assert needed_extra(pdb) == extra


SPECS = st.one_of(
    st.builds(lambda n: {"min_available": n}, st.integers(0, 20)),
    st.builds(lambda n: {"min_available": f"{n}%"}, st.integers(0, 100)),
    st.builds(lambda n: {"max_unavailable": n}, st.integers(0, 20)),
    st.builds(lambda n: {"max_unavailable": f"{n}%"}, st.integers(0, 100)),
)


@given(st.integers(1, 20), st.data(), SPECS)
def test_it_is_the_smallest_for_which_the_formula_allows_one(scale: int, data: Any, spec: dict[str, Any]) -> None:
    healthy = data.draw(st.integers(0, scale))
    pdb = budget(scale, healthy, **spec)
    extra = needed_extra(pdb)
    tried = [k for k in range(101) if (allowed := disruptions_allowed(pdb, k)) is not None and allowed >= 1]
    assert extra == (tried[0] if tried else None)


@given(st.integers(1, 99), st.integers(1, 40))
def test_a_percentage_below_a_hundred_always_has_one_and_it_is_that_of_the_formula(percent: int, scale: int) -> None:
    extra = needed_extra(budget(scale, min_available=f"{percent}%"))
    assert extra is not None
    assert math.ceil(percent * (scale + extra) / 100) <= scale + extra - 1
    assert extra == 0 or math.ceil(percent * (scale + extra - 1) / 100) > scale + extra - 2
