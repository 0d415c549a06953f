"""The pods that a policy's match selects, and the share of owners that its rollout selects."""

from tests.build import codes, decided, facts, pod, policies, policy, workload
from trimtab.policy.match import match_dependencies


def rolled_out(share: int) -> set[int]:
    rule = policies(policy("{labels: {add: {cost: low}}}", rollout=share))
    return {n for n in range(200) if decided(pod(owner=f"Deployment/web-{n}"), rule).changes}


def test_a_rollout_keeps_its_owners_as_it_grows():
    assert rolled_out(0) < rolled_out(25) < rolled_out(50) < rolled_out(100) == set(range(200))


def test_a_rollout_is_about_its_share():
    assert 30 <= len(rolled_out(25)) <= 70


def test_all_revisions_of_one_deployment_are_in_or_out_together():
    rule = policies(policy("{labels: {add: {cost: low}}}", rollout=50))
    world = facts(*(workload(f"ReplicaSet/web-{n}", owner="Deployment/web") for n in range(20)))
    assert len({bool(decided(pod(owner=f"ReplicaSet/web-{n}"), rule, world).changes) for n in range(20)}) == 1


def test_an_owner_outside_the_rollout_is_told():
    rule = policies(policy("{labels: {add: {cost: low}}}", rollout=0))
    assert codes(decided(pod(), rule)) == {"not-in-rollout"}


def test_a_namespace_that_is_not_known_is_not_guessed_at():
    match = "{namespaces: {selector: {matchExpressions: [{key: team, operator: DoesNotExist}]}}}"
    assert decided(pod(), policies(policy("{labels: {add: {cost: low}}}", match=match))).matched == ()


def test_pods_of_daemons_are_placed_only_by_policies_that_name_daemons():
    place, match = "{placement: {nodeSelector: {a: b}}}", "{owners: [DaemonSet]}"
    agent = pod(owner="DaemonSet/agent")
    assert codes(decided(agent, policies(policy(place)))) == {"daemonset-pod"}
    assert decided(agent, policies(policy(place, match=match))).pod.spec.node_selector == {"a": "b"}


def test_policies_ask_for_the_annotations_that_a_match_or_what_it_excludes_names():
    """Policies are evaluated again only where one of these annotations changes."""
    asking = policy("{labels: {add: {a: b}}}", match="{annotations: {x/y: '*'}, exclude: [{annotations: {z: low}}]}")
    silent = policy("{annotations: {add: {other: yes!}}}", name="silent")
    assert match_dependencies(policies(asking, silent)).annotations == {"x/y", "z"}
