"""From usage to a request (W…: the numbers of the acceptance cases)."""

import pytest

from tests.sizing.worlds import MI, asks, measured, used, vpa, window
from trimtab.cluster.advice import Advice
from trimtab.cluster.reason import NotYet
from trimtab.cluster.resources import QoS, Role
from trimtab.sizing.enough import Seen, confidence, seen
from trimtab.sizing.request import Hpa, Proposal, Stays, Terms, propose
from trimtab.sizing.rule import LEAN, STEADY
from trimtab.sketch.hours import DAY
from trimtab.sketch.window import Window

FREE = Terms(least_cpu=1, least_memory=MI)


def proposed(found: object) -> Proposal:
    assert isinstance(found, Proposal), found
    return found


def codes(found: object) -> list[str]:
    return [reason.code.name for reason in proposed(found).reasons]


def stays(found: object) -> str:
    assert isinstance(found, Stays), found
    return found.reason.code.name


# ── which percentile ─────────────────────────────────────────────────────
def test_w4_a_static_container_asks_for_its_p95_rounded_up() -> None:
    ramp = measured("cpu", [n / 1000 for n in range(1, 101)], step=872)
    assert proposed(propose(asks(request=None), ramp, FREE)).request == 96


def test_a_container_a_vpa_takes_over_asks_for_its_p5() -> None:
    found = proposed(propose(asks(vpa=vpa()), used(p5=0.1, p95=2.0), FREE))
    assert found.request == 100
    assert "VPA web takes over" in found.reasons[0].sentence


def test_a_vpa_that_recommends_decides() -> None:
    assert stays(propose(asks(vpa=vpa(recommends=True)), used())) == "vpa-decides"


def test_w2_never_below_the_vpas_min_allowed() -> None:
    found = propose(asks(vpa=vpa(floor=50)), used(p5=0.037), FREE)
    assert (proposed(found).request, codes(found)) == (50, ["from-usage", "request-raised"])


@pytest.mark.parametrize("floor", [25, 10])
def test_w3_never_below_the_recommenders_own_minimum(floor: int) -> None:
    assert proposed(propose(asks(vpa=vpa(floor=floor)), used(p5=0.004), FREE)).request == floor


def test_w13_with_the_vpas_webhook_down_it_is_p95_again() -> None:
    found = propose(asks(vpa_down="web"), used(p5=0.1, p95=2.0), FREE)
    assert (proposed(found).request, codes(found)) == (2000, ["from-usage", "vpa-webhook-down"])


def test_w5_a_limit_that_a_vpa_would_multiply_leaves_the_request() -> None:
    assert stays(propose(asks(request=500, limit=1000, vpa=vpa(keeps_ratio=True)), used(p5=0.02))) == "vpa-ratio"


def test_memory_is_told_as_a_percentile_of_peaks() -> None:
    found = proposed(propose(asks("memory", request=None), used("memory", p95=200.5 * MI)))
    assert (found.request, found.reasons[0].sentence) == (201 * MI, "P95 of peaks over 14 days is 201Mi")


# ── enough history ───────────────────────────────────────────────────────
@pytest.mark.parametrize(("hours", "points"), [(23, 276), (24, 99)])
def test_w7_too_little_history_proposes_nothing(hours: int, points: int) -> None:
    found = seen("cpu", window([0.1] * points, step=hours * 3600 // (points - 1)))
    assert isinstance(found, NotYet)
    answer = propose(asks(), found)
    assert isinstance(answer, NotYet)
    assert answer.reason.code.name == "insufficient-history"
    assert f"{points} samples" in answer.have


def test_a_day_is_enough() -> None:
    assert isinstance(seen("cpu", window([0.1] * 288)), Seen)


def runs(days: int, minutes: int, gap: int = DAY, step: int = 60) -> Window:
    """Some minutes of each day, or of whatever lies between two runs."""
    found = Window()
    for run in range(days):
        for minute in range(minutes):
            found.add(20_000 * DAY + run * gap + minute * step, 0.1)
    return found


@pytest.mark.parametrize("gap", [3600 * 26, 12 * DAY])
def test_what_lies_between_two_short_looks_is_no_history(gap: int) -> None:
    found = seen("cpu", runs(2, minutes=75, gap=gap))
    assert isinstance(found, NotYet)
    assert found.have == "4.0 hours, 150 samples"


def test_hours_of_three_days_are_not_three_days() -> None:
    found = seen("cpu", runs(3, minutes=50))
    assert isinstance(found, NotYet)
    assert (found.have, found.need) == ("3.0 hours on 3 days, 150 samples", "24 hours or 7 days, 100 samples")


def test_a_nightly_job_is_known_by_its_runs() -> None:
    assert isinstance(seen("cpu", runs(6, minutes=20)), NotYet)
    found = seen("cpu", runs(7, minutes=20))
    assert isinstance(found, Seen)
    assert (found.span, found.confidence) == ("7 hours on 7 days", 0.04)


@pytest.mark.parametrize(("kind", "known"), [("CronJob", True), ("Deployment", False)])
def test_the_short_runs_of_a_cron_job_are_enough_after_twenty_samples(kind: str, known: bool) -> None:
    assert isinstance(seen("cpu", runs(7, minutes=3, step=300), kind=kind), Seen) == known


def test_confidence_grows_with_history_and_fades_with_age() -> None:
    grown = [confidence("cpu", days * DAY, days * 288) for days in (1, 3, 7, 14)]
    faded = [confidence("cpu", 14 * DAY, 4032, age=days * DAY) for days in (1, 2, 4)]
    assert (grown, faded) == ([0.14, 0.43, 1.0, 1.0], [1.0, 0.5, 0.12])


# ── what bounds it ───────────────────────────────────────────────────────
def test_w8_never_more_than_the_largest_node_holds() -> None:
    found = propose(asks(), used(p95=64.0), Terms(most=(("cpu", 15_000),)))
    assert (proposed(found).request, codes(found)) == (15_000, ["from-usage", "usage-above-node"])


def test_w9_never_more_than_the_limit() -> None:
    found = propose(asks(limit=1500), used(p95=2.0))
    assert (proposed(found).request, codes(found)) == (1500, ["from-usage", "request-capped"])


def test_never_more_than_the_vpas_max_allowed() -> None:
    assert proposed(propose(asks(vpa=vpa(ceiling=300)), used(p5=0.4))).request == 300


def test_never_less_than_the_floor_that_was_asked_for() -> None:
    assert proposed(propose(asks(), used(p95=0.0001))).request == 10


def test_what_is_close_enough_stays() -> None:
    assert stays(propose(asks(request=1000), used(p95=1.05))) == "close-enough"


# ── who else has a say ───────────────────────────────────────────────────
def test_w11_an_hpa_that_counts_by_the_request_keeps_cpu() -> None:
    assert stays(propose(asks(hpa=Hpa(name="web", target=80)), used(p95=0.25))) == "hpa-counts-by-request"


def test_w11_what_another_request_does_to_an_hpa_is_told() -> None:
    terms = Terms(allow_hpa=True)
    found = proposed(propose(asks(replicas=3, hpa=Hpa(name="web", target=80)), used(p95=0.25), terms))
    assert found.reasons[-1].sentence == "HPA web aims at 80 % of the request: 3 replicas become about 12"


def test_a_first_request_wakes_an_hpa_and_that_is_told() -> None:
    found = propose(asks(request=None, hpa=Hpa(name="web", target=80)), used(p95=0.25), Terms(allow_hpa=True))
    assert "begins to" in proposed(found).reasons[-1].sentence


def test_w12_a_guaranteed_pod_changes_whole_or_not_at_all() -> None:
    it, usage = asks(limit=1000, qos=QoS.GUARANTEED), used(p95=0.25)
    assert stays(propose(it, usage)) == "guaranteed-left-alone"
    found = proposed(propose(it, usage, Terms(guaranteed=True)))
    assert (found.request, found.limit) == (250, 250)


def test_a_guaranteed_container_gets_no_memory_limit_that_would_have_killed_it() -> None:
    it = asks(resource="memory", request=2 << 30, limit=2 << 30, qos=QoS.GUARANTEED)
    found = proposed(propose(it, used("memory", p95=100 << 20, max=900 << 20), Terms(guaranteed=True)))
    assert (found.request, found.limit) == (900 << 20, 900 << 20)
    assert [reason.code.name for reason in found.reasons] == ["from-usage", "request-raised"]


def test_an_init_container_is_left_as_it_is_and_a_sidecar_is_not() -> None:
    assert stays(propose(asks(role=Role.INIT), used(p95=0.25))) == "init-container"
    assert proposed(propose(asks(role=Role.SIDECAR), used(p95=0.25))).request == 250


# ── another rule ─────────────────────────────────────────────────────────
def test_steady_leaves_bursts_of_cpu_to_what_is_idle() -> None:
    found = proposed(propose(asks(), used(p90=0.1, p95=0.8), Terms(rule=STEADY)))
    assert found.request == 132
    assert found.reasons[0].sentence.startswith("1.25 times P90 and 5% over 14 days")
    even = proposed(propose(asks(), used(p90=0.75, p95=0.8), Terms(rule=STEADY)))
    assert even.reasons[0].sentence.startswith("P95 and 5% over 14 days")


def test_lean_gives_cpu_its_p90_and_a_little() -> None:
    found = proposed(propose(asks(), used(p90=0.1, p95=0.8), Terms(rule=LEAN)))
    assert found.request == 105
    assert found.reasons[0].sentence.startswith("P90 and 5% over 14 days")


def test_steady_gives_memory_its_peaks_and_a_little() -> None:
    assert proposed(propose(asks("memory"), used("memory", p95=100.0 * MI), Terms(rule=STEADY))).request == 105 * MI


# ── what a VPA advises ───────────────────────────────────────────────────
def test_advice_counts_where_too_little_was_seen_and_is_bounded_as_usage_is() -> None:
    little = seen("cpu", window([0.1] * 12, 600))
    assert isinstance(little, NotYet)
    advised = asks(request=100, limit=200, advice=Advice("web", 250))
    found = propose(advised, little, FREE)
    assert (proposed(found).request, codes(found)) == (200, ["from-vpa", "request-capped"])
    assert codes(propose(advised, used(p95=0.3), FREE))[0] == "from-usage"
    assert propose(asks(), little, FREE) is little
