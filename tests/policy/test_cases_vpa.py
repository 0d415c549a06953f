"""Acceptance cases, section F: a VPA or a policy sizes the container."""

import pytest
from msgspec.structs import replace

from tests.build import (
    changed,
    codes,
    container,
    decided,
    facts,
    limit_range,
    pod,
    policies,
    policy,
    resources,
    usage,
    vpa,
    workload,
)
from trimtab.cluster.api.autoscaling import ContainerPolicy, RecommenderSelector

FROM_USAGE = policies(policy("{requests: {cpu: {when: always}, memory: {when: always}}}"))
SEEN = usage(cpu=("100m", "900m"), memory=("300Mi", "700Mi"))
WEB = workload("Deployment/web", replicas=3)
P5, P95 = "100m", "900m"
TARGET = {"containers[app].requests.cpu": "2", "containers[app].requests.memory": "200Mi"}
CPU, MEMORY = "containers[app].requests.cpu", "containers[app].requests.memory"


def owned(*containers, **fields):
    return pod(*containers, owner="Deployment/web", **fields)


@pytest.mark.parametrize("mode", ["Recreate", "Initial", "InPlaceOrRecreate", ""])
def test_f1_f14_where_a_vpa_recommends_and_nobody_asked_its_target_is_the_request(mode):
    world = facts(SEEN, WEB, vpa(mode=mode, recommends={"app": {"cpu": "2", "memory": "200Mi"}}))
    decision = decided(owned(), FROM_USAGE, world)
    assert (changed(decision), codes(decision)) == (TARGET, set())


def test_a_vpa_without_a_recommendation_takes_over_from_the_fifth_percentile():
    assert changed(decided(owned(), FROM_USAGE, facts(SEEN, WEB, vpa())))[CPU] == P5


def test_without_a_vpa_the_request_is_the_ninety_fifth_percentile():
    assert changed(decided(owned(), FROM_USAGE, facts(SEEN)))[CPU] == P95


@pytest.mark.parametrize("world", [facts(SEEN, vpa(mode="Off")), facts(SEEN, vpa(), vpa_acts=False)])
def test_a_vpa_that_cannot_act_does_not_count(world):
    assert changed(decided(owned(), FROM_USAGE, world))[CPU] == P95


def test_the_first_request_is_not_below_what_the_vpa_would_evict():
    world = facts(SEEN, WEB, vpa(policies=(ContainerPolicy(min_allowed={"cpu": "200m"}),)))
    assert changed(decided(owned(), FROM_USAGE, world))[CPU] == "200m"


def test_the_vpas_own_floor_is_two_hundred_and_fifty_mebibytes_a_pod():
    low = usage(cpu=("1m", "900m"), memory=("10Mi", "700Mi"))
    decision = changed(decided(owned(), FROM_USAGE, facts(low, WEB, vpa())))
    assert (decision[CPU], decision[MEMORY]) == ("25m", "250Mi")


def test_where_trimtab_recommends_for_the_vpa_there_is_no_floor_of_a_pod():
    low = usage(cpu=("1m", "900m"), memory=("10Mi", "700Mi"))
    named = vpa()
    named = replace(named, spec=replace(named.spec, recommenders=(RecommenderSelector(name="trimtab"),)))
    decision = changed(decided(owned(), FROM_USAGE, facts(low, WEB, named)))
    assert (decision[CPU], decision[MEMORY]) == ("1m", "10Mi")


def test_f6_the_ratio_that_a_vpa_keeps_is_not_changed():
    both = {"cpu": "2", "memory": "200Mi"}
    came = owned(container(requests={"cpu": "1"}, limits=both))
    decision = decided(came, FROM_USAGE, facts(SEEN, vpa()))
    assert (changed(decision), codes(decision, loud=True)) == ({}, {"vpa-ratio"})


def test_f10_under_requests_only_the_request_is_capped_at_the_limit_that_stays():
    world = facts(SEEN, WEB, vpa(policies=(ContainerPolicy(controlled_values="RequestsOnly"),)))
    came = owned(container(requests={"cpu": "10m"}, limits={"cpu": "50m"}))
    assert changed(decided(came, FROM_USAGE, world))[CPU] == "50m"


def test_f11_a_limit_that_a_limit_range_would_give_counts_as_the_limit():
    world = facts(SEEN, vpa(), limit_range(default={"cpu": "2"}, default_request={"cpu": "2"}))
    assert CPU not in changed(decided(owned(), FROM_USAGE, world))


def test_f15_of_two_vpas_the_oldest_counts():
    old = vpa(name="old", created="2025-01-01T00:00:00Z", policies=(ContainerPolicy(min_allowed={"cpu": "300m"}),))
    world = facts(SEEN, WEB, vpa(name="new"), old)
    assert changed(decided(owned(), FROM_USAGE, world))[CPU] == "300m"


def test_f17_a_vpa_may_target_a_custom_resource_that_owns_a_replica_set():
    world = facts(
        SEEN,
        workload("ReplicaSet/web-1", owner="Rollout/web"),
        vpa("Rollout/web", min_replicas=1),
        usage("Rollout/web", shard="01", cpu=("100m", "900m")),
    )
    assert changed(decided(pod(owner="ReplicaSet/web-1"), FROM_USAGE, world))[CPU] == P5


def test_f18_a_bare_pod_is_not_managed():
    rule = policies(policy("{requests: {cpu: {otherwise: 50m}}}", match="{vpa: managed}"))
    assert changed(decided(pod(labels={"app": "web"}), rule, facts(SEEN, vpa()))) == {}


def test_f19_what_the_vpa_does_not_control_is_ours():
    recommending = vpa(
        recommends={"app": {"cpu": "2", "memory": "200Mi"}},
        policies=(ContainerPolicy(controlled_resources=("memory",)),),
    )
    assert changed(decided(owned(), FROM_USAGE, facts(SEEN, recommending))) == {CPU: P95, MEMORY: "200Mi"}


def test_a_container_that_the_vpa_is_told_to_leave_is_ours():
    world = facts(SEEN, WEB, vpa(policies=(ContainerPolicy(container_name="app", mode="Off"),)))
    assert changed(decided(owned(), FROM_USAGE, world))[CPU] == P95


def test_f21_a_sidecar_that_the_vpa_has_not_seen_gets_our_request():
    world = facts(vpa(recommends={"app": {"cpu": "2"}}))
    rule = policies(policy("{requests: {cpu: {otherwise: 50m}}}"))
    came = owned(container("app"), container("proxy"), annotations={"vpaObservedContainers": "app"})
    assert changed(decided(came, rule, world)) == {CPU: "2", "containers[proxy].requests.cpu": "50m"}


def test_init_containers_and_sidecars_are_never_the_vpas():
    rule = policies(policy("{requests: {cpu: {from: policy, otherwise: 1m}}}", match="{containers: {roles: [init]}}"))
    decision = decided(owned(init=(container("prepare"),)), rule, facts(vpa()))
    assert changed(decision) == {"initContainers[prepare].requests.cpu": "1m"}


def test_f22_a_container_that_the_vpa_boosts_keeps_its_cpu():
    came = owned(annotations={"vpaCpuStartupBoost/app": "{}"})
    decision = decided(came, FROM_USAGE, facts(SEEN))
    assert (list(changed(decision)), codes(decision)) == ([MEMORY], {"vpa-boosts"})


def test_pod_level_resources_stand_above_both():
    came = owned(resources=resources({"cpu": "1"}, {"cpu": "1"}))
    assert codes(decided(came, FROM_USAGE, facts(SEEN, vpa()))) == {"pod-level-resources"}


def test_a_vpas_maximum_below_what_the_limit_range_requires_leaves_the_request():
    """With a request of 1 below a limit of 3, the API server would refuse the pod."""
    bounded = vpa(policies=(ContainerPolicy(controlled_values="RequestsOnly", max_allowed={"cpu": "1"}),))
    world = facts(SEEN, WEB, bounded, limit_range(max_limit_request_ratio={"cpu": "2"}))
    came = owned(container(requests={"cpu": "2"}, limits={"cpu": "3"}))
    decision = decided(came, FROM_USAGE, world)
    assert (CPU in changed(decision), codes(decision, loud=True)) == (False, {"limitrange-refuses"})
