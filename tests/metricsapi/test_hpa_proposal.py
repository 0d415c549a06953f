"""A threshold from history: requests per core, or what is missing for one."""

import random

import pytest

from trimtab.cluster.reason import NotYet
from trimtab.metricsapi.hpa_proposal import HpaProposal, LoadPoint, ProposalTerms, propose_hpa, render_hpa
from trimtab.metricsapi.reasons import CPU_UNRELATED, HISTORY_TOO_FLAT, REQUEST_TOO_SMALL, TOO_LITTLE_HISTORY

TERMS = ProposalTerms(namespace="shop", deployment="web", metric="requests", cpu_request=0.5, utilization=0.7)


def day(per_core: float = 200, base: float = 0.05, noise: float = 0.0) -> list[LoadPoint]:
    """Three pods over a day: 5 to 60 requests per second each."""
    chance = random.Random(1)
    points = []
    for step in range(96):
        rate = 5 + 55 * (1 - abs(step - 48) / 48)
        points += [LoadPoint(step * 900, rate, base + rate / per_core + chance.uniform(0, noise)) for _ in range(3)]
    return points


def proposed(points: list[LoadPoint], terms: ProposalTerms = TERMS) -> HpaProposal | str:
    hpa_proposal = propose_hpa(points, terms)
    return hpa_proposal.reason.code.name if isinstance(hpa_proposal, NotYet) else hpa_proposal


def test_the_threshold_is_the_rate_at_the_wanted_utilization() -> None:
    hpa_proposal = proposed(day())
    assert isinstance(hpa_proposal, HpaProposal)
    assert hpa_proposal.requests_per_core == pytest.approx(200)
    assert hpa_proposal.base_cores == pytest.approx(0.05)
    assert hpa_proposal.threshold == pytest.approx((0.5 * 0.7 - 0.05) * 200)


def test_replicas_reach_from_the_quietest_to_beyond_the_busiest_time() -> None:
    hpa_proposal = proposed(day())
    assert isinstance(hpa_proposal, HpaProposal)
    assert (hpa_proposal.min_replicas, hpa_proposal.max_replicas) == (2, 5)


@pytest.mark.parametrize(
    ("points", "code"),
    [
        (day()[:90], TOO_LITTLE_HISTORY.name),
        ([LoadPoint(n, 10 + n % 3, 0.1) for n in range(200)], HISTORY_TOO_FLAT.name),
        ([LoadPoint(n, 1 + n % 50, 0.1) for n in range(200)], CPU_UNRELATED.name),
        (day(base=0.4), REQUEST_TOO_SMALL.name),
    ],
)
def test_what_is_missing_has_a_name(points: list[LoadPoint], code: str) -> None:
    assert proposed(points) == code


def test_noise_does_not_change_the_threshold_much() -> None:
    hpa_proposal = proposed(day(noise=0.02))
    assert isinstance(hpa_proposal, HpaProposal)
    assert hpa_proposal.threshold == pytest.approx(60, rel=0.1)


def test_the_hpa_has_an_average_value_and_scales_down_slowly() -> None:
    hpa_proposal = proposed(day())
    assert isinstance(hpa_proposal, HpaProposal)
    spec = render_hpa(hpa_proposal, TERMS)["spec"]
    assert spec["metrics"][0]["pods"]["target"]["type"] == "AverageValue"
    assert spec["behavior"]["scaleDown"]["stabilizationWindowSeconds"] == 300
    assert spec["behavior"]["scaleUp"]["stabilizationWindowSeconds"] == 0
