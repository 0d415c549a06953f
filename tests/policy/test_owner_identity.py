"""An owner, a VPA's target and an HPA's target are known by their group, too."""

import json
import re

import pytest

from tests.build import codes, decided, facts, owner_key, pod, policies, policy, usage, vpa, workload
from trimtab.policy.autoscalers import find_managing_vpa
from trimtab.policy.compiled.match_conditions import build_match
from trimtab.policy.match import owner_test
from trimtab.policy.pod_context import PodContext

OURS, THEIRS = "StatefulSet/cache", "StatefulSet.apps.kruise.io/cache"
SELECTED = [
    ("StatefulSet", OURS, True),
    ("StatefulSet", THEIRS, False),
    ("StatefulSet.apps.kruise.io", THEIRS, True),
    ("StatefulSet.apps.kruise.io", OURS, False),
    ("StatefulSet/ca*", OURS, True),
    ("StatefulSet/ca*", THEIRS, False),
    ("Kafka", "Kafka.kafka.strimzi.io/main", True),
    ("Kafka/m*", "Kafka.kafka.strimzi.io/main", True),
    ("Kafka", "Kafka/main", True),
    ("Kafka", "KafkaConnect.kafka.strimzi.io/main", False),
    ("Rollout", "Rollout/web", True),
    ("Rollout", "Rollout.example.com/web", False),
]


@pytest.mark.parametrize(("pattern", "owner", "is_selected"), SELECTED)
def test_a_pattern_selects_owners_of_the_group_that_its_kind_means(pattern: str, owner: str, is_selected: bool) -> None:
    assert owner_test((pattern,))(owner) is is_selected


VERSIONS = {
    OURS: "apps/v1",
    THEIRS: "apps.kruise.io/v1beta1",
    "Kafka.kafka.strimzi.io/main": "kafka.strimzi.io/v1",
    "KafkaConnect.kafka.strimzi.io/main": "kafka.strimzi.io/v1",
    "Rollout/web": "argoproj.io/v1alpha1",
    "Rollout.example.com/web": "example.com/v1",
}


@pytest.mark.parametrize(("pattern", "owner", "is_selected"), [case for case in SELECTED if case[1] in VERSIONS])
def test_a_compiled_policy_selects_the_same_owners(pattern: str, owner: str, is_selected: bool) -> None:
    rule = policies(policy("{labels: {add: {a: b}}}", match=f"{{owners: ['{pattern}']}}")).all[0]
    expressions = " ".join(map(str, build_match(rule, knows_autoscalers=False).conditions))
    literal = re.search(r"o\.name\)\.matches\((\"(?:[^\"\\]|\\.)*\")\)", expressions)
    assert literal is not None
    kind, _, name = owner.partition("/")
    text = f"{VERSIONS[owner]} {kind.partition('.')[0]}/{name}"
    assert (re.fullmatch(json.loads(literal[1]), text) is not None) is is_selected


@pytest.mark.parametrize(("target", "owner"), [(OURS, THEIRS), (THEIRS, OURS)])
def test_a_vpa_of_a_kind_of_another_group_does_not_manage_the_pods(target: str, owner: str) -> None:
    world = facts(vpa(OURS), workload(OURS)) if target == OURS else facts(workload(OURS))
    subject = PodContext(pod=pod(owner=owner), namespace="team-a", facts=world)
    assert find_managing_vpa(subject) is None


REQUESTS = policies(policy("{requests: {cpu: {from: usage, otherwise: 50m}}}"))


def requested(owner: str, seen: str) -> str:
    """The cpu that a pod of this owner requests, where the usage of another workload is published."""
    result = decided(pod(owner=owner), REQUESTS, facts(usage(seen, cpu=("100m", "900m"))))
    return str(result.pod.spec.containers[0].resources.requests["cpu"])


def test_usage_of_a_kind_of_another_group_is_not_used() -> None:
    assert requested(THEIRS, OURS) == "50m"


def test_usage_that_an_earlier_version_stored_without_a_group_is_still_read() -> None:
    assert requested("Kafka.kafka.strimzi.io/main", "Kafka/main") == "900m"
    assert requested("Kafka.kafka.strimzi.io/main", "Kafka.kafka.strimzi.io/main") == "900m"


def test_an_owner_of_another_group_has_the_same_place_in_a_rollout_as_before() -> None:
    rule = policies(policy("{labels: {add: {cost: low}}}", rollout=50))
    pairs = [(f"Kafka.kafka.strimzi.io/k{n}", f"Kafka/k{n}") for n in range(50)]
    assert all(codes(decided(pod(owner=one), rule)) == codes(decided(pod(owner=other), rule)) for one, other in pairs)


def test_the_owner_of_a_pod_is_found_by_its_group() -> None:
    world = facts(workload(OURS, replicas=5))
    assert world.replicas.keys() == {owner_key(OURS)}
