"""Laws of asking: what is known of one pod saves work on another and changes nothing."""

from hypothesis import given
from hypothesis import strategies as st

from tests.build import NAMESPACE
from tests.property import strategies as some
from trimtab.admission.reasons import NO_NODE
from trimtab.policy.applicable_policies import compile_policies, find_applicable_policies, find_candidate_policies
from trimtab.policy.decide import decide, decide_with_policies
from trimtab.policy.pod_context import PodContext


@given(some.pods(), some.policies(), some.worlds())
def test_the_check_finds_what_a_whole_second_decision_finds(pod, by, world):
    subject = PodContext(pod=pod, namespace=NAMESPACE, facts=world)
    first, applicable_policies = decide_with_policies(subject, by)
    now = (applicable_policies.subject if applicable_policies is not None else subject).with_pod(first.pod)
    second_result = decide_with_policies(now, by, watching=False, like=applicable_policies)[0]
    assert second_result == decide(first.pod, by, world, NAMESPACE, watching=False)


@given(some.pods(), some.pods(), some.policies(), some.worlds())
def test_who_was_asked_about_another_pod_changes_no_decision(pod, other, by, world):
    request = decide_with_policies(PodContext(pod=other, namespace=NAMESPACE, facts=world), by)[1]
    result = decide_with_policies(PodContext(pod=pod, namespace=NAMESPACE, facts=world), by, like=request)[0]
    assert result == decide(pod, by, world, NAMESPACE)


@given(some.pods(), some.policies(), some.worlds(), st.data())
def test_what_is_known_of_a_pod_changes_no_decision_without_some_of_its_actions(pod, by, world, data):
    subject = PodContext(pod=pod, namespace=NAMESPACE, facts=world)
    request = decide_with_policies(subject, by)[1]
    actions = [(turn.name, name) for turn in (request.in_effect if request else ()) for name, _, _ in turn.actions]
    withheld = dict.fromkeys(data.draw(st.sets(st.sampled_from(actions))) if actions else (), NO_NODE("none"))
    anew = PodContext(pod=pod, namespace=NAMESPACE, facts=world, withheld=withheld)
    assert decide_with_policies(subject.with_withheld(withheld), by)[0] == decide_with_policies(anew, by)[0]


@given(some.pods(), some.policies(), some.worlds())
def test_a_policy_that_means_the_pod_is_among_the_possible_ones(pod, by, world):
    subject = PodContext(pod=pod, namespace=NAMESPACE, facts=world)
    meant = [turn.name for turn in compile_policies(by) if turn.in_namespace(subject) and turn.matches(subject)]
    assert [turn.name for turn in find_applicable_policies(by, subject).matching] == meant
    assert set(meant) <= {turn.name for turn in find_candidate_policies(by, subject)}
