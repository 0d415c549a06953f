"""Pods alike are decided about once, in bounded steps, and again only when something changed."""

from tests.admission.audit.worlds import SIZES, admitted, held
from tests.build import container, facts, limit_range, namespace, pod, policies, policy, usage
from trimtab.admission.audit.drift import AuditInputs, Auditor
from trimtab.policy.cluster_facts import ClusterFacts

POLICY = policies(SIZES)
WORLD = AuditInputs(policies=POLICY, facts=ClusterFacts())


def kinds(count: int) -> list[object]:
    return [admitted(pod(container(limits={"memory": f"{n + 1}Mi"})), number=n) for n in range(count)]


def test_a_thousand_pods_of_one_template_are_one_decision() -> None:
    audit_state = Auditor().audit_pods(held(*(admitted(pod(), number=n) for n in range(8))), WORLD)
    assert (audit_state.decided, audit_state.pod_count, len(audit_state.groups)) == (1, 8, 1)


def test_the_second_look_decides_nothing() -> None:
    survey, pods = Auditor(), held(*kinds(4))  # type: ignore[arg-type]
    survey.audit_pods(pods, WORLD)
    assert survey.audit_pods(pods, WORLD).decided == 0


def test_another_policy_has_all_decided_again() -> None:
    survey, pods = Auditor(), held(*kinds(4))  # type: ignore[arg-type]
    survey.audit_pods(pods, WORLD)
    other = AuditInputs(policies=policies(policy("{labels: {add: {team: a}}}")), facts=WORLD.facts)
    audit_state = survey.audit_pods(pods, other)
    assert audit_state.decided == 4
    assert all("p" in state.lacks for state in audit_state.results.values())


def test_a_step_does_no_more_than_it_may_and_tells_what_is_left() -> None:
    survey, pods = Auditor(most=3), held(*kinds(8))  # type: ignore[arg-type]
    steps = [survey.audit_pods(pods, WORLD) for _ in range(4)]
    assert [(step.decided, step.behind) for step in steps] == [(3, 5), (3, 2), (2, 0), (0, 0)]
    assert len(steps[0].results) == 3


def test_facts_that_no_decision_read_have_nothing_decided_again() -> None:
    survey, pods = Auditor(), held(*kinds(4))  # type: ignore[arg-type]
    survey.audit_pods(pods, WORLD)
    elsewhere = facts(namespace("other"), usage("Deployment/other", cpu=("1m", "2m")))
    assert survey.audit_pods(pods, AuditInputs(policies=POLICY, facts=elsewhere)).decided == 0


def test_facts_that_a_decision_read_have_it_made_again() -> None:
    survey, pods = Auditor(), held(*kinds(4))  # type: ignore[arg-type]
    survey.audit_pods(pods, WORLD)
    here = facts(limit_range(max={"cpu": "10m"}))
    assert survey.audit_pods(pods, AuditInputs(policies=POLICY, facts=here)).decided == 4


def test_what_was_found_stands_until_its_turn_comes_again() -> None:
    survey, pods = Auditor(most=2), held(*kinds(4))  # type: ignore[arg-type]
    survey.audit_pods(pods, WORLD)
    survey.audit_pods(pods, WORLD)
    audit_state = survey.audit_pods(pods, AuditInputs(policies=POLICY, facts=facts(namespace("new"))))
    assert len(audit_state.results) == 4


def test_pods_that_are_gone_are_forgotten() -> None:
    survey, pods = Auditor(), held(*kinds(2))  # type: ignore[arg-type]
    survey.audit_pods(pods, WORLD)
    survey.audit_pods(pods[:1], WORLD)
    assert survey.result_of(pods[1].alike) is None
    assert survey.result_of(pods[0].alike) is not None
