"""From usage to a request (W…: the numbers of the acceptance cases)."""

from dataclasses import replace
from decimal import Decimal

import pytest

from tests.reasons import assert_reason, has_facts
from tests.sizing.worlds import MI, asks, measured, used, vpa, window
from trimtab.cluster.reason import NotYet
from trimtab.cluster.recommendation import VpaRecommendation
from trimtab.cluster.resources import QoS, Role
from trimtab.cluster.usage_rule import parse
from trimtab.histogram.daily_window import DailyHistograms
from trimtab.histogram.time_buckets import DAY
from trimtab.sizing.request import P95, Hpa, Proposal, SizingSettings, Unchanged, propose_request
from trimtab.sizing.statistics import UsageStatistics, compute_confidence, summarize_usage

FREE = SizingSettings(min_cpu=1, min_memory=MI)


def proposed(result: object) -> Proposal:
    assert isinstance(result, Proposal), result
    return result


def codes(result: object) -> list[str]:
    return [reason.code.name for reason in proposed(result).reasons]


def stays(result: object) -> str:
    assert isinstance(result, Unchanged), result
    return result.reason.code.name


# ── which percentile ─────────────────────────────────────────────────────
def test_w4_a_static_container_asks_for_its_p95_rounded_up() -> None:
    ramp = measured("cpu", [n / 1000 for n in range(1, 101)], step=872)
    assert proposed(propose_request(asks(request=None), ramp, replace(FREE, rule=P95))).request == 96


def test_a_container_a_vpa_takes_over_asks_for_its_p5() -> None:
    proposal = proposed(propose_request(asks(vpa=vpa()), used(p5=0.1, p95=2.0), FREE))
    assert proposal.request == 100
    assert has_facts(proposal.reasons[0].sentence, "VPA web", "later")


def test_a_vpa_that_recommends_decides() -> None:
    assert stays(propose_request(asks(vpa=vpa(target=100)), used())) == "vpa-decides"


def test_w2_never_below_the_vpas_min_allowed() -> None:
    proposal = propose_request(asks(vpa=vpa(floor=50)), used(p5=0.037), FREE)
    assert (proposed(proposal).request, codes(proposal)) == (50, ["from-usage", "request-raised"])


@pytest.mark.parametrize("floor", [25, 10])
def test_w3_never_below_the_recommenders_own_minimum(floor: int) -> None:
    assert proposed(propose_request(asks(vpa=vpa(floor=floor)), used(p5=0.004), FREE)).request == floor


def test_w13_with_the_vpas_webhook_down_it_is_p95_again() -> None:
    proposal = propose_request(asks(vpa_down="web"), used(p5=0.1, p95=2.0), FREE)
    assert (proposed(proposal).request, codes(proposal)) == (2000, ["from-usage", "vpa-webhook-down"])


def test_w5_a_limit_that_a_vpa_would_multiply_leaves_the_request() -> None:
    assert (
        stays(propose_request(asks(request=500, limit=1000, vpa=vpa(keeps_ratio=True)), used(p5=0.02))) == "vpa-ratio"
    )


def test_memory_is_told_as_a_percentile_of_peaks() -> None:
    proposal = proposed(propose_request(asks("memory", request=None), used("memory", p95=200.5 * MI)))
    assert proposal.request == 201 * MI
    assert has_facts(proposal.reasons[0].sentence, "P95", "peaks", "14 days", "201Mi")


# ── enough history ───────────────────────────────────────────────────────
def test_less_than_an_hour_proposes_nothing() -> None:
    statistics = summarize_usage("cpu", window([0.1] * 50, step=60))
    assert isinstance(statistics, NotYet)
    answer = propose_request(asks(), statistics)
    assert isinstance(answer, NotYet)
    assert answer.reason.code.name == "insufficient-history"
    assert (answer.have, answer.need) == ("0.8 hours, 50 samples", "an hour, 10 samples")


@pytest.mark.parametrize(("hours", "points"), [(1.1, 14), (23, 276), (24, 99)])
def test_w7_a_history_of_less_than_a_day_fills_or_raises_and_never_lowers(hours: float, points: int) -> None:
    little = summarize_usage("cpu", window([0.1] * points, step=int(hours * 3600 / (points - 1))))
    assert isinstance(little, UsageStatistics)
    assert little.is_young
    filled = proposed(propose_request(asks(request=None), little))
    assert 120 <= filled.request <= 300  # wide: little is known of how much it changes
    assert [reason.code.name for reason in filled.reasons] == ["from-usage", "short-history"]
    assert proposed(propose_request(asks(request=50), little)).request == filled.request
    assert stays(propose_request(asks(request=110), little)) == "short-history"
    assert stays(propose_request(asks(request=5000), little)) == "short-history"


def is_enough(statistics: UsageStatistics | NotYet) -> bool:
    """Whether it is known well enough to lower a request."""
    return isinstance(statistics, UsageStatistics) and not statistics.is_young


def test_a_day_is_enough() -> None:
    assert isinstance(summarize_usage("cpu", window([0.1] * 288)), UsageStatistics)


def runs(days: int, minutes: int, gap: int = DAY, step: int = 60) -> DailyHistograms:
    """Some minutes of each day, or of whatever lies between two runs."""
    histograms = DailyHistograms()
    for run in range(days):
        for minute in range(minutes):
            histograms.add_value(20_000 * DAY + run * gap + minute * step, 0.1)
    return histograms


@pytest.mark.parametrize("gap", [3600 * 26, 12 * DAY])
def test_what_lies_between_two_short_looks_is_no_history(gap: int) -> None:
    statistics = summarize_usage("cpu", runs(2, minutes=75, gap=gap))
    assert isinstance(statistics, UsageStatistics)
    assert statistics.is_young
    assert has_facts(statistics.span_text, "4 hours", "2 days")


def test_hours_of_three_days_are_not_three_days() -> None:
    statistics = summarize_usage("cpu", runs(3, minutes=50))
    assert isinstance(statistics, UsageStatistics)
    assert statistics.is_young
    assert has_facts(statistics.span_text, "3 hours", "3 days")


def test_a_nightly_job_is_known_by_its_runs() -> None:
    assert not is_enough(summarize_usage("cpu", runs(6, minutes=20)))
    statistics = summarize_usage("cpu", runs(7, minutes=20))
    assert isinstance(statistics, UsageStatistics)
    assert is_enough(statistics)
    assert (statistics.span_text, statistics.confidence) == ("7 hours on 7 days", 0.04)


@pytest.mark.parametrize(("kind", "known"), [("CronJob", True), ("Deployment", False)])
def test_the_short_runs_of_a_cron_job_are_enough_after_twenty_samples(kind: str, known: bool) -> None:
    assert is_enough(summarize_usage("cpu", runs(7, minutes=3, step=300), kind=kind)) == known


def test_confidence_grows_with_history_and_fades_with_age() -> None:
    grown = [compute_confidence("cpu", days * DAY, days * 288) for days in (1, 3, 7, 14)]
    faded = [compute_confidence("cpu", 14 * DAY, 4032, age=days * DAY) for days in (1, 2, 4)]
    assert (grown, faded) == ([0.14, 0.43, 1.0, 1.0], [1.0, 0.5, 0.12])


# ── what bounds it ───────────────────────────────────────────────────────
def test_w8_never_more_than_the_largest_node_holds() -> None:
    proposal = propose_request(asks(most=15_000), used(p95=64.0))
    assert (proposed(proposal).request, codes(proposal)) == (15_000, ["from-usage", "usage-above-node"])


def test_w9_never_more_than_the_limit() -> None:
    proposal = propose_request(asks(limit=1500), used(p95=2.0))
    assert (proposed(proposal).request, codes(proposal)) == (1500, ["from-usage", "request-capped"])


def test_never_more_than_the_vpas_max_allowed() -> None:
    assert proposed(propose_request(asks(vpa=vpa(ceiling=300)), used(p5=0.4))).request == 300


def test_never_less_than_the_floor_that_was_asked_for() -> None:
    assert proposed(propose_request(asks(), used(p95=0.0001))).request == 10


def test_what_is_close_enough_stays() -> None:
    assert stays(propose_request(asks(request=1000), used(p95=0.95))) == "within-tolerance"
    assert stays(propose_request(asks(request=1000), used(p95=1.0))) == "within-tolerance"


def test_a_limit_that_keeps_the_request_as_it_is_is_named() -> None:
    result = propose_request(asks(request=1500, limit=1500), used(p95=2.0))
    assert isinstance(result, Unchanged)
    assert has_facts(str(result.reason), "the limit is 1500m", "current request")


def test_a_small_difference_never_withholds_a_raise() -> None:
    assert proposed(propose_request(asks(request=1000), used(p95=1.01))).request == 1010


# ── who else has a say ───────────────────────────────────────────────────
def test_w11_an_hpa_that_counts_by_the_request_keeps_cpu() -> None:
    assert stays(propose_request(asks(hpa=Hpa(name="web", target=80)), used(p95=0.25))) == "hpa-uses-request"


def test_w11_what_another_request_does_to_an_hpa_is_told() -> None:
    terms = SizingSettings(allow_hpa=True)
    proposal = proposed(propose_request(asks(replicas=3, hpa=Hpa(name="web", target=80)), used(p95=0.25), terms))
    assert_reason(proposal.reasons[-1], "hpa-uses-request", target="80 %", before="3 replicas", after=12)


def test_a_first_request_wakes_an_hpa_and_that_is_told() -> None:
    proposal = propose_request(
        asks(request=None, hpa=Hpa(name="web", target=80)), used(p95=0.25), SizingSettings(allow_hpa=True)
    )
    assert has_facts(proposed(proposal).reasons[-1].sentence, "scale", "without a request")


def test_w12_a_guaranteed_pod_changes_whole_or_not_at_all() -> None:
    it, usage = asks(limit=1000, qos=QoS.GUARANTEED), used(p95=0.25)
    assert stays(propose_request(it, usage)) == "guaranteed-unchanged"
    proposal = proposed(propose_request(it, usage, SizingSettings(guaranteed=True)))
    assert (proposal.request, proposal.limit) == (250, 250)


def test_a_guaranteed_container_gets_no_memory_limit_that_would_have_killed_it() -> None:
    it = asks(resource="memory", request=2 << 30, limit=2 << 30, qos=QoS.GUARANTEED)
    proposal = proposed(
        propose_request(it, used("memory", p95=100 << 20, max=900 << 20), SizingSettings(guaranteed=True))
    )
    assert (proposal.request, proposal.limit) == (900 << 20, 900 << 20)
    assert [reason.code.name for reason in proposal.reasons] == ["from-usage", "request-raised"]


def test_an_init_container_is_left_as_it_is_and_a_sidecar_is_not() -> None:
    assert stays(propose_request(asks(role=Role.INIT), used(p95=0.25))) == "init-container"
    assert proposed(propose_request(asks(role=Role.SIDECAR), used(p95=0.25))).request == 250


# ── a rule of one's own ──────────────────────────────────────────────────
def test_a_percentile_and_headroom_of_ones_own_are_the_grammar_of_policies() -> None:
    cpu = proposed(propose_request(asks(), used(p99=0.5), SizingSettings(rule=parse("p99 +20%"))))
    assert cpu.request == 600
    assert_reason(cpu.reasons[0], "from-usage", percentile="P99", headroom="20%", span="14 days", request="600m")
    memory = SizingSettings(rule=P95, memory_rule=parse("max +15%"))
    proposal = proposed(propose_request(asks("memory"), used("memory", p95=100.0 * MI, max=200.0 * MI), memory))
    assert proposal.request == 230 * MI
    assert has_facts(proposal.reasons[0].sentence, "largest peak", "15%", "14 days", "230Mi")


def test_a_percentile_that_no_recommendation_holds_is_taken_of_the_usage_itself() -> None:
    ramp = summarize_usage("cpu", window([n / 1000 for n in range(1, 101)], 872), percentiles=(Decimal(70),))
    proposal = proposed(propose_request(asks(request=None), ramp, replace(FREE, rule=parse("p70"))))
    assert proposal.request == pytest.approx(70, abs=2)


def test_headroom_alone_is_on_top_of_the_adaptive_request() -> None:
    steady = measured("cpu", [0.4] * 4032)
    plain, more = (
        proposed(propose_request(asks(request=None), steady, SizingSettings(rule=parse(r))))
        for r in ("adaptive", "+50%")
    )
    assert more.request == pytest.approx(plain.request * 1.5, abs=2)
    assert_reason(more.reasons[0], "from-usage", headroom="50%", span="14 days")


# ── what a VPA advises ───────────────────────────────────────────────────
def test_advice_counts_where_too_little_was_seen_and_is_bounded_as_usage_is() -> None:
    little = summarize_usage("cpu", window([0.1] * 12, 600))
    assert isinstance(little, UsageStatistics)
    assert little.is_young
    advised = asks(request=100, limit=200, advice=VpaRecommendation("web", 250))
    proposal = propose_request(advised, little, FREE)
    assert (proposed(proposal).request, codes(proposal)) == (200, ["from-vpa", "request-capped"])
    assert codes(propose_request(advised, used(p95=0.3), FREE))[0] == "from-usage"
    nothing = summarize_usage("cpu", window([0.1] * 5, 600))
    assert propose_request(asks(), nothing, FREE) is nothing
    assert codes(propose_request(advised, nothing, FREE))[0] == "from-vpa"
