"""How many decisions may one pod cost, when the outcome must not stand?"""

import msgspec

from tests.build import before_and_after
from tests.hostile import world
from tests.hostile.pods import container, pod
from trimtab.admission.pod_decision import find_obstacle, withhold_harmful_actions
from trimtab.cluster.api.pod import Pod
from trimtab.policy.applicable_policies import ApplicablePolicies
from trimtab.policy.decide import Decision, decide_with_policies
from trimtab.policy.pod_context import PodContext, Withheld


def _trials(count: int) -> int:
    """Decisions that are tried for a pod with so many containers that a quota would refuse beside its siblings."""
    sized = {"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"cpu": "1", "memory": "128Mi"}}
    containers = [container(f"c-{at}", resources=sized) for at in range(count)]
    came, facts, tried = msgspec.convert(pod({"containers": containers}), Pod), world.facts(), list[Withheld]()
    subject = PodContext(pod=came, namespace=world.NAMESPACE, facts=facts)

    def without(withheld: Withheld, watching: bool) -> tuple[Decision, ApplicablePolicies | None]:
        if not watching:
            tried.append(withheld)
        return decide_with_policies(subject.with_withheld(withheld), world.policies(), watching=watching)

    def has_obstacle(decision: Decision) -> bool:
        return find_obstacle(before_and_after(came, decision.pod, facts, world.NAMESPACE)) is not None

    first, applicable_policies = without({}, True)
    assert has_obstacle(first)
    last, _ = withhold_harmful_actions(subject, first, applicable_policies, without)
    assert not has_obstacle(last)
    return len(tried)


def test_a_small_pod_loses_as_little_as_possible_and_a_large_one_costs_no_more_than_it() -> None:
    assert _trials(2) > 2
    assert _trials(100) <= 2
