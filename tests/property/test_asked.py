"""Laws of asking: what is known of one pod saves work on another and changes nothing."""

from hypothesis import given

from tests.build import NAMESPACE
from tests.property import strategies as some
from trimtab.policy.asked import ask
from trimtab.policy.decide import decide, decided
from trimtab.policy.subject import Subject
from trimtab.policy.turns import possible, turns


@given(some.pods(), some.policies(), some.worlds())
def test_the_check_finds_what_a_whole_second_decision_finds(pod, by, world):
    first, asked = decided(pod, by, world, NAMESPACE)
    again = decided(first.pod, by, world, NAMESPACE, watching=False, like=asked)[0]
    assert again == decide(first.pod, by, world, NAMESPACE, watching=False)


@given(some.pods(), some.pods(), some.policies(), some.worlds())
def test_who_was_asked_about_another_pod_changes_no_decision(pod, other, by, world):
    asked = decided(other, by, world, NAMESPACE)[1]
    assert decided(pod, by, world, NAMESPACE, like=asked)[0] == decide(pod, by, world, NAMESPACE)


@given(some.pods(), some.policies(), some.worlds())
def test_a_policy_that_means_the_pod_is_among_the_possible_ones(pod, by, world):
    subject = Subject(pod=pod, namespace=NAMESPACE, facts=world)
    meant = [turn.name for turn in turns(by) if turn.matches(subject)]
    assert [turn.name for turn in ask(by, subject).meaning] == meant
    assert set(meant) <= {turn.name for turn in possible(by, subject)}
