"""Which running pods came through without what policy says, and why?"""

from tests.admission.audit.worlds import DAY, NOTHING, SIZES, admitted, held, looked, registered
from tests.build import container, facts, namespace, node, pod, policies, policy, runtime_class, usage
from trimtab.admission.audit.causes import UNREGISTERED_UNKNOWN, ChangeTimes
from trimtab.admission.audit.drift import AuditInputs, Auditor
from trimtab.admission.audit.findings import Findings, build_findings

POLICY = policies(SIZES)


def lacking(findings: Findings) -> list[tuple[str, str, int]]:
    return [(one.policy, one.reason.code.name, len(one.pods)) for one in findings.unpatched]


def test_a_pod_that_came_through_us_lacks_nothing() -> None:
    audit_state = looked(held(admitted(pod(), POLICY)), POLICY, since=registered(sizes=DAY - 10))
    assert lacking(audit_state) == []
    assert audit_state.tallies["sizes"].changed == audit_state.tallies["sizes"].matched == 1


def test_a_pod_made_while_the_webhook_was_away_is_missed() -> None:
    audit_state = looked(held(admitted(pod())), POLICY, since=registered(sizes=DAY - 10))
    assert lacking(audit_state) == [("sizes", "missed-by-webhook", 1)]
    assert audit_state.unpatched[0].changes[0].after == "50m"


def test_a_pod_made_before_the_policy_is_told_as_such() -> None:
    audit_state = looked(held(admitted(pod())), POLICY, since=registered(sizes=DAY + 10))
    assert lacking(audit_state) == [("sizes", "created-before-policy", 1)]


def test_pods_alike_of_both_ages_are_told_apart() -> None:
    pods = held(admitted(pod(), created=DAY - 50), admitted(pod(), created=DAY, number=2))
    audit_state = looked(pods, POLICY, since=registered(sizes=DAY - 10))
    assert sorted(lacking(audit_state)) == [("sizes", "created-before-policy", 1), ("sizes", "missed-by-webhook", 1)]


def test_a_pod_made_before_the_webhook_was_registered() -> None:
    since = ChangeTimes(policies={"sizes": DAY - 10.0}, webhook=DAY + 5.0)
    assert lacking(looked(held(admitted(pod())), POLICY, since=since)) == [("sizes", "created-before-webhook", 1)]


def test_without_a_webhook_there_is_no_other_cause() -> None:
    since = ChangeTimes(policies={"sizes": DAY - 10.0})
    assert lacking(looked(held(admitted(pod())), POLICY, since=since)) == [("sizes", "webhook-not-registered", 1)]


def test_a_policy_from_a_folder_carries_no_time() -> None:
    since = ChangeTimes(webhook=UNREGISTERED_UNKNOWN)
    assert lacking(looked(held(admitted(pod())), POLICY, since=since)) == [("sizes", "cause-unknown", 1)]


def test_a_pod_we_saw_and_would_decide_about_otherwise_now() -> None:
    both = policies(SIZES, policy("{labels: {add: {team: a}}}", name="teams", match="{vpa: unmanaged}"))
    audit_state = looked(held(admitted(pod(), POLICY)), both, since=registered(sizes=DAY - 10, teams=DAY - 10))
    assert lacking(audit_state) == [("teams", "decision-changed-since", 1)]


def test_a_recommendation_that_moved_makes_no_marked_pod_lack_it() -> None:
    by = policies(policy("{requests: {cpu: {from: usage, otherwise: 50m, when: always}}}", name="sizes"))
    pods = held(admitted(pod(), by, facts(usage("ReplicaSet/web-5d8f", cpu=("10m", "100m")))))
    now = facts(usage("ReplicaSet/web-5d8f", cpu=("10m", "900m")))
    assert lacking(looked(pods, by, now, registered(sizes=DAY - 10))) == []


def test_opted_out_pods_are_skipped() -> None:
    audit_state = looked(held(admitted(pod(labels={"trimtab.dev/opt-out": "true"}))), POLICY)
    assert lacking(audit_state) == []
    assert [one.reason.code.name for one in audit_state.left_out] == ["opted-out"]
    assert audit_state.tallies["sizes"].skipped == 1


def test_pods_outside_the_rollout_are_skipped() -> None:
    none_yet = policies(policy("{labels: {add: {team: a}}}", rollout="0%"))
    audit_state = looked(held(admitted(pod())), none_yet)
    assert [one.reason.code.name for one in audit_state.left_out] == ["not-in-rollout"]
    assert audit_state.tallies["p"].matched == 0


def test_policies_that_only_watch_are_told_apart() -> None:
    warn = policies(policy("{labels: {add: {team: a}}}", mode="warn"))
    audit_state = looked(held(admitted(pod())), warn)
    assert lacking(audit_state) == []
    assert [one.reason.code.name for one in audit_state.watching] == ["policy-not-in-apply-mode"]
    assert (audit_state.tallies["p"].would, audit_state.tallies["p"].unpatched) == (1, 0)


def test_the_policy_that_came_second_is_overruled() -> None:
    two = policies(
        policy("{labels: {add: {team: a}}}", name="first", priority=10),
        policy("{labels: {add: {team: b}}}", name="second"),
    )
    audit_state = looked(held(admitted(pod(), two)), two)
    assert audit_state.tallies["second"].overruled == 1
    assert audit_state.tallies["first"].overruled == 0


def test_an_annotation_that_a_policy_gave_is_not_missed_though_its_value_is_not_held() -> None:
    by = policies(policy("{annotations: {add: {example.com/by: policy}, override: true}}"))
    audit_state = looked(held(admitted(pod(), by)), by)
    assert lacking(audit_state) == []


def test_what_the_limit_range_filled_in_is_what_the_webhook_saw() -> None:
    from tests.build import limit_range

    world = facts(limit_range(default={"cpu": "500m"}, default_request={"cpu": "100m"}), namespace())
    assert lacking(looked(held(admitted(pod(), NOTHING, world)), POLICY, world)) == []


def test_the_classs_overhead_is_no_reason_to_be_unpatched() -> None:
    world = facts(runtime_class("kata", overhead={"cpu": "250m"}))
    by = policies(SIZES, policy("{overhead: {stray: deny, contradicting: deny}}", name="overheads"))
    sandboxed = pod(container(requests={"cpu": "1"}), runtime_class_name="kata")
    assert lacking(looked(held(admitted(sandboxed, by, world)), by, world)) == []


def test_a_pod_that_would_be_denied_now_is_told() -> None:
    """It brought overhead of its own while nobody looked."""
    strict = policies(policy("{overhead: {stray: deny}}"))
    brought = pod(container(requests={"cpu": "1"}), overhead={"cpu": "250m"})
    audit_state = looked(held(admitted(brought, runtime_class_admission=False)), strict)
    assert [one.reason.code.name for one in audit_state.refused] == ["overhead-without-class"]


def test_a_pod_of_the_compiled_policy_was_not_missed_by_the_webhook() -> None:
    there = pod(annotations={"compiled.trimtab.dev/sizes": "labels[a]=b"})
    for since in (registered(sizes=DAY - 10), ChangeTimes(policies={"sizes": DAY - 10.0})):
        audit_state = looked(held(admitted(there)), POLICY, since=since)
        assert lacking(audit_state) == [("sizes", "compiled-policy-decided-otherwise", 1)]


def test_what_the_compiled_policy_gave_is_not_lacking_whether_or_not_there_is_a_webhook() -> None:
    field = "containers[app].requests.cpu=50m"
    there = pod(container("app", requests={"cpu": "50m"}), annotations={"compiled.trimtab.dev/sizes": field})
    for since in (registered(sizes=DAY - 10), ChangeTimes(policies={"sizes": DAY - 10.0})):
        assert lacking(looked(held(admitted(there)), POLICY, since=since)) == []


SPOT = policy("{placement: {nodeSelector: {pool: spot}}}", name="spot")


def test_a_placement_that_no_node_meets_is_not_lacking() -> None:
    """The webhook takes such a change back; a pod that it admitted without the change is as the policy has it."""
    audited = looked(held(admitted(pod())), policies(SPOT), facts(node(cpu="4")), since=registered(spot=DAY - 10))
    assert lacking(audited) == []
    assert audited.tallies["spot"].unpatched == 0
    assert [(one.policy, one.reason.code.name) for one in audited.withheld] == [("spot", "no-node-could-run-it")]


def test_only_the_action_that_no_node_meets_is_not_lacking() -> None:
    both = policies(SPOT, SIZES)
    audited = looked(held(admitted(pod(), POLICY)), both, facts(node(cpu="4")), since=registered(spot=DAY - 10))
    assert lacking(audited) == []
    missed = looked(held(admitted(pod())), both, facts(node(cpu="4")), since=registered(spot=DAY - 10, sizes=DAY - 10))
    assert lacking(missed) == [("sizes", "missed-by-webhook", 1)]
    assert [one.policy for one in missed.withheld] == ["spot"]


def test_a_node_that_appears_makes_the_placement_lacking() -> None:
    auditor, pods = Auditor(), held(admitted(pod()))
    before = AuditInputs(policies=policies(SPOT), facts=facts(node(cpu="4")))
    assert not build_findings(auditor.audit_pods(pods, before), before, registered()).unpatched
    spot_node = node("s", labels={"pool": "spot"}, cpu="4")
    after = AuditInputs(policies=before.policies, facts=facts(node(cpu="4"), spot_node))
    state = auditor.audit_pods(pods, after)
    assert state.decided == 1
    assert len(build_findings(state, after, registered()).unpatched) == 1
