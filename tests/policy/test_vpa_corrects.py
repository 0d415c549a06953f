"""P5 only where the VPA corrects it on this very pod, and the VPA's own target where nobody wrote a request.

The tables are what the real recommender, updater and admission controller of VPA 1.7.1 did on a real control plane
with Kubernetes 1.36.3: five minutes after pods were created with P5, those of which the updater said "Skipping VPA
object because its mode is not …" or "Too few replicas" still had it.
"""

from dataclasses import replace

import pytest

from tests.build import (
    NAMESPACE,
    changed,
    codes,
    container,
    decided,
    facts,
    limit_range,
    namespace,
    node,
    pod,
    policies,
    policy,
    usage,
    vpa,
    workload,
)
from tests.reasons import has_facts
from trimtab.cluster.api.autoscaling import ContainerPolicy, EvictionRequirement
from trimtab.cluster.api.meta import LabelSelector, change
from trimtab.policy.vpa_webhook import WebhookReach

RULE = policies(policy("{requests: {cpu: {when: always}, memory: {when: always}}}"))
SEEN = usage(cpu=("40m", "300m"), memory=("260Mi", "400Mi"))
CPU, MEMORY = "containers[app].requests.cpu", "containers[app].requests.memory"
P5, P95 = {CPU: "40m", MEMORY: "260Mi"}, {CPU: "300m", MEMORY: "400Mi"}
TARGET = {"app": {"cpu": "271m", "memory": "380Mi"}}


def web(kind="ReplicaSet", **fields):
    return pod(owner=f"{kind}/web-1" if kind == "ReplicaSet" else f"{kind}/web", **fields)


def world(*objects, replicas=3, **more):
    return facts(
        SEEN,
        workload("ReplicaSet/web-1", owner="Deployment/web"),
        workload("Deployment/web", replicas=replicas),
        *objects,
        **more,
    )


@pytest.mark.parametrize(
    ("mode", "replicas", "first"),
    [
        ("Off", 3, P95),
        ("Initial", 3, P95),
        ("Recreate", 1, P95),
        ("Recreate", 3, P5),
        ("Auto", 3, P5),
        ("InPlaceOrRecreate", 3, P5),
        ("InPlaceOrRecreate", 1, P95),
    ],
)
def test_the_first_request_is_p5_exactly_where_the_real_updater_raised_it(mode, replicas, first):
    decision = decided(web(), RULE, world(vpa(mode=mode), replicas=replicas))
    assert changed(decision) == first


@pytest.mark.parametrize(("least", "first"), [(1, P5), (2, P95), (None, P95)])
def test_the_vpas_own_least_number_of_replicas_counts(least, first):
    assert changed(decided(web(), RULE, world(vpa(min_replicas=least), replicas=1))) == first


def test_replicas_that_nobody_tells_are_not_taken_for_enough():
    listed_facts = facts(
        SEEN,
        workload("ReplicaSet/web-1", owner="Rollout/web"),
        vpa("Rollout/web"),
        usage("Rollout/web", shard="01", cpu=("40m", "300m"), memory=("260Mi", "400Mi")),
    )
    assert changed(decided(web(), RULE, listed_facts)) == P95


@pytest.mark.parametrize("kind", ["Job", "CronJob"])
def test_pods_of_jobs_get_p95(kind):
    owners = [workload("Job/web", owner="CronJob/web" if kind == "CronJob" else "")]
    recorded_usage = usage(f"{kind}/web", cpu=("40m", "300m"), memory=("260Mi", "400Mi"))
    decision = decided(web("Job"), RULE, facts(recorded_usage, *owners, vpa(f"{kind}/web", min_replicas=1)))
    assert changed(decision) == P95
    assert any(has_facts(str(c.reason), "not evict", "Job") for c in decision.changes)


def test_a_vpa_that_may_only_lower_requests_does_not_correct_p5():
    lowers = EvictionRequirement(resources=("cpu",), change_requirement="TargetLowerThanRequests")
    assert changed(decided(web(), RULE, world(vpa(eviction_requirements=(lowers,))))) == P95


@pytest.mark.parametrize(("team", "first"), [("a", P5), ("b", P95)])
def test_a_namespace_that_the_vpas_webhook_leaves_out_gets_p95(team, first):
    reach = (WebhookReach(namespaces=LabelSelector(match_labels={"team": "a"})),)
    known_facts = replace(world(vpa(), namespace(NAMESPACE, team=team)), vpa_reach=reach)
    assert changed(decided(web(), RULE, known_facts)) == first


def test_a_namespace_of_which_nothing_is_known_is_not_taken_for_included():
    reach = (WebhookReach(namespaces=LabelSelector(match_labels={"team": "a"})),)
    assert changed(decided(web(), RULE, replace(world(vpa()), vpa_reach=reach))) == P95


@pytest.mark.parametrize("mode", ["Initial", "Recreate", "Auto"])
@pytest.mark.parametrize("replicas", [1, 3])
def test_a_container_without_a_request_gets_the_target_of_a_vpa_that_recommends(mode, replicas):
    """Of 120 such pods 33 were stored with nothing, where the VPA's webhook was called first and did not know their
    ReplicaSet yet."""
    decision = decided(web(), RULE, world(vpa(mode=mode, recommends=TARGET), replicas=replicas))
    assert changed(decision) == {CPU: "271m", MEMORY: "380Mi"}
    assert {c.reason.code.name for c in decision.changes} == {"vpa-target"}


def test_the_target_counts_also_where_no_usage_is_known_and_before_the_policys_default():
    listed_facts = facts(workload("Deployment/web", replicas=3), vpa(recommends=TARGET))
    rule = policies(policy("{requests: {cpu: {otherwise: 10m}, memory: {from: policy, otherwise: 64Mi}}}"))
    assert changed(decided(web("Deployment"), rule, listed_facts)) == {CPU: "271m", MEMORY: "380Mi"}


def test_a_request_that_is_written_stays_beside_a_vpa_that_recommends():
    came = web()
    own = change(came, spec=change(came.spec, containers=(container(requests={"cpu": "7m", "memory": "7Mi"}),)))
    decision = decided(own, RULE, world(vpa(recommends=TARGET)))
    assert (changed(decision), codes(decision)) == ({}, {"vpa-decides"})


def test_a_vpa_in_mode_off_gives_no_target():
    assert changed(decided(web(), RULE, world(vpa(mode="Off", recommends=TARGET)))) == P95


def test_the_target_stays_within_the_vpas_own_bounds_and_within_what_it_controls():
    bounded = ContainerPolicy(min_allowed={"cpu": "500m"}, max_allowed={"cpu": "600m"}, controlled_resources=("cpu",))
    decision = decided(web(), RULE, world(vpa(recommends=TARGET, policies=(bounded,))))
    assert changed(decision) == {CPU: "500m", MEMORY: "400Mi"}


def test_the_target_stays_within_a_limit_range_and_the_largest_node():
    bounds = limit_range(min={"cpu": "300m"}, default_request={"cpu": "300m"})
    decision = decided(web(), RULE, world(bounds, node(cpu="8", memory="300Mi"), vpa(recommends=TARGET)))
    assert changed(decision) == {CPU: "300m", MEMORY: "300Mi"}


def test_no_target_where_a_limit_stays_whose_ratio_the_vpa_would_multiply():
    both = world(limit_range(default={"cpu": "1"}), vpa(recommends=TARGET))
    decision = decided(web(), RULE, both)
    assert (CPU in changed(decision), "vpa-ratio" in codes(decision, loud=True)) == (False, True)


@pytest.mark.parametrize("known", [facts(SEEN), world()])
def test_what_a_vpa_wrote_stays_also_before_any_vpa_is_known(known):
    wrote = {"vpaUpdates": "Pod resources updated by web: container 0: cpu request, memory request, cpu limit"}
    came = pod(container(requests={"cpu": "271m", "memory": "380Mi"}), owner="Deployment/web", annotations=wrote)
    assert changed(decided(came, RULE, known)) == {}


def test_what_a_vpa_did_not_write_is_decided_as_ever():
    wrote = {"vpaUpdates": "Pod resources updated by web: container 0: memory request; container 1: cpu request"}
    came = pod(container(requests={"cpu": "271m", "memory": "380Mi"}), owner="Deployment/web", annotations=wrote)
    assert changed(decided(came, RULE, facts(SEEN))) == {CPU: "300m"}


def test_one_word_gives_p95_from_the_beginning():
    rule = policies(policy("{requests: {cpu: {underVpa: p95, when: always}, memory: {when: always}}}"))
    assert changed(decided(web(), rule, world(vpa()))) == {CPU: "300m", MEMORY: "260Mi"}
