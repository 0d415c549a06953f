"""The age and the confidence that a recommendation needs to be used."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.build import changed, codes, container, decided, facts, pod, policies, policy, usage, workload
from tests.reasons import has_facts
from trimtab.cluster.timestamps import format_timestamp
from trimtab.policy.load import load_policies
from trimtab.policy.recommendation_age import RecommendationAges, count_recommendation_ages

DAY = 86400
MARCH = 1_772_323_200
"""2026-03-01: the last sample."""
END = MARCH + 14 * DAY
CPU = "containers[app].requests.cpu"
ALWAYS = policies(policy("{requests: {cpu: {when: always, otherwise: 55m}}}"))
SEEN = usage(cpu=("100m", "900m"), last=MARCH, ends=END, confidence=1.0)


def web(created: int | None = None):
    return workload("Deployment/web", created=None if created is None else format_timestamp(created))


def owned(*containers):
    return pod(*containers, owner="Deployment/web")


def test_a_recommendation_says_up_to_when_usage_was_seen():
    decision = decided(owned(), ALWAYS, facts(SEEN, web(MARCH - DAY)))
    assert changed(decision)[CPU] == "900m"
    assert has_facts(" ".join(str(c.reason) for c in decision.changes), "P95", "14 days", "2026-03-01", "900m")


def test_a_workload_made_after_the_end_gets_the_default():
    decision = decided(owned(), ALWAYS, facts(SEEN, web(END + 1)))
    assert changed(decision)[CPU] == "55m"
    assert has_facts(" ".join(str(c.reason) for c in decision.changes), "ended on 2026-03-15", "Deployment", "created")


@pytest.mark.parametrize("created", [0, MARCH, END, None])
def test_a_workload_that_stood_before_the_end_keeps_what_it_was_given(created):
    assert changed(decided(owned(), ALWAYS, facts(SEEN, web(created))))[CPU] == "900m"


def test_an_owner_that_no_watch_knows_keeps_what_it_was_given():
    assert changed(decided(owned(), ALWAYS, facts(SEEN)))[CPU] == "900m"


@pytest.mark.parametrize(("age", "request_"), [("36h", "55m"), ("30d", "900m")])
def test_a_policy_may_demand_another_age(age, request_):
    asks = policies(policy(f"{{requests: {{cpu: {{when: always, otherwise: 55m, maxAge: {age}}}}}}}"))
    created = MARCH + 2 * DAY if age == "36h" else END + DAY
    assert changed(decided(owned(), asks, facts(SEEN, web(created))))[CPU] == request_


def test_a_recommendation_without_dates_has_no_end():
    world = facts(usage(cpu=("100m", "900m")), web(END + DAY))
    assert changed(decided(owned(), ALWAYS, world))[CPU] == "900m"


@given(created=st.integers(0, 2 * END), confidence=st.floats(0, 1), written_=st.sampled_from(["10m", "900m", "2"]))
def test_a_raise_needs_no_confidence_and_lowering_half(created, confidence, written_):
    recorded_usage = usage(cpu=("100m", "900m"), last=MARCH, ends=END, confidence=confidence)
    decision = decided(owned(container(requests={"cpu": written_})), ALWAYS, facts(recorded_usage, web(created)))
    expected = {} if created > END or written_ == "900m" or (written_ == "2" and confidence < 0.5) else {CPU: "900m"}
    assert changed(decision) == expected
    assert ("low-confidence" in codes(decision)) is (created <= END and written_ == "2" and confidence < 0.5)


@pytest.mark.parametrize(
    ("least", "asked", "request_"),
    [
        (0.9, None, "55m"),
        (0.7, None, "900m"),
        (0.9, "2", None),
        (0.7, "2", "900m"),
        (0.9, "10m", None),
        (0.7, "10m", "900m"),
    ],
)
def test_a_policy_may_demand_another_confidence(least, asked, request_):
    asks = policies(policy(f"{{requests: {{cpu: {{when: always, otherwise: 55m, minConfidence: {least}}}}}}}"))
    recorded_usage = usage(cpu=("100m", "900m"), last=MARCH, ends=END, confidence=0.8)
    containers = (container(requests={"cpu": asked} if asked else {}),)
    assert changed(decided(owned(*containers), asks, facts(recorded_usage, web(MARCH)))).get(CPU) == request_


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("{maxAge: fortnight}", "an age such as 14d, 36h or 90m"),
        ("{minConfidence: 50}", "a number from 0 to 1"),
        ("{minConfidence: '0.5'}", "a number from 0 to 1"),
        ("{from: limit, maxAge: 3d}", "only with `from: usage`"),
    ],
)
def test_what_is_no_age_and_no_confidence_is_named(rule, expected):
    load_result = load_policies([("p.yaml", policy(f"{{requests: {{cpu: {rule}}}}}").encode())])
    assert expected in str(load_result.mistakes[0])


@pytest.mark.parametrize(
    ("days", "rule", "age"),
    [
        (7, "{}", "fresh"),
        (8, "{}", "aging"),
        (14, "{}", "aging"),
        (15, "{}", "ended"),
        (8, "{maxAge: 30d}", "fresh"),
        (3, "{maxAge: 4d}", "aging"),
        (5, "{maxAge: 4d}", "ended"),
    ],
)
def test_recommendations_of_standing_workloads_are_counted_by_their_age(days, rule, age):
    by = policies(policy(f"{{requests: {{cpu: {rule}}}}}"))
    counted = count_recommendation_ages(facts(SEEN, web(MARCH)), by, MARCH + days * DAY)
    assert {name: getattr(counted, name) for name in ("fresh", "aging", "ended")} == {
        "fresh": 0,
        "aging": 0,
        "ended": 0,
        age: 1,
    }


def test_a_recommendation_of_a_workload_that_is_gone_grows_old_for_nobody():
    assert count_recommendation_ages(facts(SEEN), ALWAYS, END + DAY) == RecommendationAges()
