"""When is a rise in trouble harm, and when is it chance, or the cluster's?"""

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
    assert str(actual_verdict.reason) == (
        "oom-killed: 3 of 10 pods with a change of policy sizes, but 0 of 20 pods that the policy matches and did "
        "not change"
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
