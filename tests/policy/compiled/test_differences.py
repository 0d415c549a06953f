"""Which differences from the webhook concern a policy, so that the command names them when it compiles the policy."""

import pytest

from tests.build import policies, policy
from trimtab.policy.compiled.differences import DIFFERENCES, list_differences

ALWAYS = "{requests: {cpu: {from: usage, when: always}}}"


def codes_of(actions: str) -> set[str]:
    return {one.code for one in list_differences(policies(policy(actions, name="one")).all[0])}


@pytest.mark.parametrize(
    ("actions", "named", "not_named"),
    [
        (
            ALWAYS,
            {"namespace-rules", "limit-reached", "managed-by-vpa", "job-of-a-cron-job", "applied"},
            {"read-limit"},
        ),
        ("{requests: {cpu: {from: usage}}}", {"namespace-rules", "largest-node"}, {"limit-reached", "applied"}),
        ("{requests: {cpu: {from: policy, otherwise: 50m}}}", {"namespace-rules"}, {"job-of-a-cron-job"}),
        ("{requests: {extended: {example.com/licence: 1}}}", {"namespace-rules", "capacity"}, {"largest-node"}),
        ("{limits: {cpu: remove}}", {"namespace-rules", "zero-request", "read-limit"}, {"limit-reached"}),
        ("{limits: {cpu: keep}}", {"namespace-rules"}, {"zero-request", "read-limit", "applied"}),
        ("{runtimeClass: {name: gvisor, override: true}}", {"old-class", "applied", "capacity"}, {"namespace-rules"}),
        ("{overhead: {stray: strip}}", {"named-class"}, {"old-class"}),
        ("{placement: {nodeSelector: {pool: batch}}}", {"own-contradiction", "capacity"}, {"namespace-rules"}),
        ("{labels: {add: {team: a}}}", {"paused"}, {"capacity", "applied"}),
    ],
)
def test_a_policy_has_the_differences_of_its_actions(actions: str, named: set[str], not_named: set[str]) -> None:
    assert named <= codes_of(actions)
    assert not not_named & codes_of(actions)


def test_each_difference_but_that_of_pairs_concerns_some_policy() -> None:
    every = ALWAYS, "{limits: {cpu: remove}}", "{runtimeClass: {name: a, override: true}}", "{overhead: {stray: strip}}"
    named = set[str]().union(*map(codes_of, (*every, "{placement: {nodeSelector: {pool: batch}}}")))
    assert named == {one.code for one in DIFFERENCES} - {"order"}
