"""When is a rise in trouble harm, and when is it chance, or the cluster's?"""

from hypothesis import given
from hypothesis import strategies as st

from tests.reasons import assert_reason
from trimtab.admission.audit.harm import Count, FailureComparison, HarmEvidence, Verdict, judge_harm
from trimtab.admission.audit.original_pod import FailureKind
from trimtab.cluster.reason import NotYet, Reason

NONE = Count()


def verdict(before: Count, after: Count, elsewhere: Count = NONE) -> Verdict:
    return judge_harm(
        "sizes", {FailureKind.OOM_KILLED: FailureComparison(before=before, after=after, elsewhere=elsewhere)}
    )


def code(verdict: Verdict) -> str:
    reason = verdict if isinstance(verdict, Reason) else verdict.reason
    return reason.code.name


def test_a_clear_rise_is_harm_and_tells_its_evidence() -> None:
    actual_verdict = verdict(Count(20, 0), Count(10, 3))
    assert isinstance(actual_verdict, HarmEvidence)
    assert_reason(
        actual_verdict.reason,
        "harm-brake",
        failure="oom-killed",
        after="3 of 10 pods",
        policy="policy sizes",
        before="0 of 20 pods",
    )


def test_two_pods_may_be_chance() -> None:
    assert isinstance(verdict(Count(20, 0), Count(10, 2)), NotYet)


def test_a_handful_of_pods_tells_nothing() -> None:
    assert isinstance(verdict(Count(20, 0), Count(4, 4)), NotYet)


def test_where_nothing_is_known_of_before_nothing_is_concluded() -> None:
    assert isinstance(verdict(Count(4, 0), Count(50, 20)), NotYet)


def test_workloads_that_were_killed_before_stay_as_they_are() -> None:
    assert code(verdict(Count(20, 4), Count(20, 6))) == "harm-not-found"


def test_a_rise_too_small_to_matter_is_none() -> None:
    assert code(verdict(Count(1000, 0), Count(1000, 30))) == "harm-not-found"


def test_a_trouble_that_is_everywhere_is_not_the_policys() -> None:
    assert code(verdict(Count(20, 0), Count(10, 3), Count(100, 30))) == "harm-everywhere"


def test_nothing_hit_is_quiet_however_few_there_are() -> None:
    assert code(verdict(Count(), Count(1, 0))) == "harm-not-found"


def test_one_trouble_is_enough() -> None:
    counts = {
        FailureKind.OOM_KILLED: FailureComparison(before=Count(20), after=Count(20)),
        FailureKind.UNSCHEDULABLE: FailureComparison(before=Count(20), after=Count(20, 10)),
    }
    verdict = judge_harm("sizes", counts)
    assert isinstance(verdict, HarmEvidence)
    assert verdict.trouble is FailureKind.UNSCHEDULABLE


def test_failures_in_one_namespace_of_several_are_told_and_brake_nothing() -> None:
    compared = FailureComparison(before=Count(20, 0), after=Count(40, 20), after_in_others=Count(20, 0))
    verdict = judge_harm("sizes", {FailureKind.OOM_KILLED: compared})
    assert isinstance(verdict, HarmEvidence)
    assert (code(verdict), verdict.is_brake_allowed) == ("harm-in-one-namespace", False)


def test_failures_that_rose_in_a_second_namespace_too_are_harm() -> None:
    compared = FailureComparison(before=Count(20, 0), after=Count(40, 21), after_in_others=Count(20, 1))
    verdict = judge_harm("sizes", {FailureKind.OOM_KILLED: compared})
    assert isinstance(verdict, HarmEvidence)
    assert (code(verdict), verdict.is_brake_allowed) == ("harm-brake", True)


def test_a_policy_with_a_required_action_is_never_braked() -> None:
    compared = FailureComparison(before=Count(20, 0), after=Count(40, 40))
    verdict = judge_harm("sandbox", {FailureKind.OOM_KILLED: compared}, has_required_action=True)
    assert isinstance(verdict, HarmEvidence)
    assert (code(verdict), verdict.is_brake_allowed) == ("harm-with-required-action", False)


@given(st.integers(0, 500), st.integers(0, 500), st.integers(5, 100))
def test_no_number_of_failing_pods_in_one_namespace_brakes_a_policy_of_several(
    pods: int, failing: int, others: int
) -> None:
    theirs = Count(pods, min(pods, failing))
    compared = FailureComparison(before=Count(50), after=Count(others) + theirs, after_in_others=Count(others))
    verdict = judge_harm("sizes", {FailureKind.OOM_KILLED: compared})
    assert not (isinstance(verdict, HarmEvidence) and verdict.is_brake_allowed)
