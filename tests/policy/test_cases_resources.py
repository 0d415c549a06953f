"""Acceptance cases, sections D (requests, limits, quality of service) and E (LimitRange, ResourceQuota)."""

import pytest

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
    quota,
    runtime_class,
    stored,
    usage,
)
from tests.reasons import has_facts
from trimtab.admission.apiserver.outcome import PodRejected
from trimtab.admission.json_patch import diff_pods
from trimtab.cluster.api.core import ScopedRequirement, ScopeSelector
from trimtab.cluster.api.meta import UNSET
from trimtab.cluster.quantity import scheduler_value
from trimtab.cluster.resources import QoS, qos_class
from trimtab.policy.load import load_policies

NO_CPU_LIMIT = policies(policy("{limits: {cpu: remove}}"))
HALF_THE_LIMIT = policies(policy("{requests: {memory: {from: limit, percent: 50, when: always}}}"))


def usual(cpu: str = "60m", memory: str = "8Mi"):
    """The recorded use of the owned pod's only container."""
    return usage(cpu=("5m", cpu), memory=("4Mi", memory))


def owned(*containers, **fields):
    return pod(*containers, owner="Deployment/web", **fields)


def requests(result, place: int = 0):
    return result.pod.spec.containers[place].resources.requests


def limits(result, place: int = 0):
    return result.pod.spec.containers[place].resources.limits


def test_d3_a_request_that_stands_by_its_limit_is_not_raised_above_it():
    fill = policies(policy("{requests: {cpu: {from: policy, otherwise: 100m}}}"))
    stored_pod = stored(pod(container(limits={"cpu": "50m"})), fill)
    assert requests(stored_pod) == {"cpu": "50m"}


def test_d4_a_guaranteed_pod_loses_its_cpu_limit_only_where_the_policy_says_so():
    both = {"cpu": "1", "memory": "1Gi"}
    decision = decided(
        pod(container(requests=both, limits=both)), policies(policy("{limits: {cpu: remove}}", guaranteed="change"))
    )
    assert (requests(decision), limits(decision), qos_class(decision.pod.spec)) == (
        both,
        {"memory": "1Gi"},
        QoS.BURSTABLE,
    )


def test_d4_a_guaranteed_pod_is_left_alone_otherwise():
    both = {"cpu": "1", "memory": "1Gi"}
    decision = decided(pod(container(requests=both, limits=both)), NO_CPU_LIMIT)
    assert (changed(decision), codes(decision)) == ({}, {"guaranteed-unchanged"})


def test_d6_limit_and_request_go_in_one_patch():
    rule = policies(policy("{requests: {cpu: {from: usage, when: always}}, limits: {cpu: remove}}"))
    stored_pod = stored(owned(container(limits={"cpu": "1"})), rule, facts(usual()))
    assert (requests(stored_pod), limits(stored_pod)) == ({"cpu": "60m"}, UNSET)


def test_d6_a_request_that_only_stood_by_its_limit_stays_when_the_limit_goes():
    decision = decided(pod(container(limits={"cpu": "1"})), NO_CPU_LIMIT)
    assert (requests(decision), limits(decision)) == ({"cpu": "1"}, UNSET)


def test_d7_a_request_cannot_be_removed_by_policy():
    document = policy("{requests: {cpu: remove}}").encode()
    assert [m.field for m in load_policies([("p.yaml", document)]).mistakes] == ["spec.actions.requests.cpu"]


def test_d8_the_last_limit_takes_the_mapping_with_it():
    came = pod(container(requests={"cpu": "1"}, limits={"cpu": "1"}))
    operations = diff_pods(came, decided(came, NO_CPU_LIMIT).pod)
    assert operations[-1] == {"op": "remove", "path": "/spec/containers/0/resources/limits"}


@pytest.mark.parametrize(("limit", "asked"), [("2Gi", "1Gi"), ("3Mi", "1Mi")])
def test_d9_d10_a_share_of_the_limit_is_rounded_down_to_whole_mebibytes(limit, asked):
    (result,) = (stored(pod(container(limits={"memory": limit})), HALF_THE_LIMIT),)
    assert scheduler_value("memory", requests(result)["memory"]) == scheduler_value("memory", asked)


def test_d11_a_share_of_the_limit_is_raised_to_the_limit_range_min():
    world = facts(limit_range(min={"memory": "4Gi"}))
    stored_pod = stored(pod(container(limits={"memory": "6Gi"})), HALF_THE_LIMIT, world)
    assert requests(stored_pod)["memory"] == "4Gi"


@pytest.mark.parametrize(("written", "asked"), [("0.1G", "100M"), ("100M", "100M"), ("1e3", "1e3"), ("1Ti", "1Ti")])
def test_d16_a_policy_reads_quantities_as_kubernetes_does(written, asked):
    rule = policies(policy(f'{{requests: {{memory: {{from: policy, otherwise: "{written}", round: "1"}}}}}}'))
    assert scheduler_value("memory", requests(decided(pod(), rule))["memory"]) == scheduler_value("memory", asked)


def test_d16_less_than_a_millicore_is_rounded_up_to_one():
    assert (
        requests(decided(pod(), policies(policy('{requests: {cpu: {from: policy, otherwise: "250u"}}}'))))["cpu"]
        == "1m"
    )


@pytest.mark.parametrize("written", ["100mb", "-1", '""', "0", "1..2", "NaN", ".inf", "true", "0.5"])
def test_d17_an_impossible_quantity_is_a_mistake(written):
    document = policy(f"{{requests: {{cpu: {{otherwise: {written}}}}}}}").encode()
    assert [m.field for m in load_policies([("p.yaml", document)]).mistakes] == ["spec.actions.requests.cpu.otherwise"]


def test_d19_containers_that_no_rule_means_are_unchanged():
    rule = policies(policy("{limits: {cpu: remove}}", match="{containers: {names: [app]}}"))
    decision = decided(pod(container("app", limits={"cpu": "1"}), container("log", limits={"cpu": "1"})), rule)
    assert limits(decision, 1) == {"cpu": "1"}


def test_d21_huge_pages_and_devices_are_kept():
    came = {"cpu": "2", "memory": "1Gi", "hugepages-2Mi": "4Mi", "nvidia.com/gpu": "1"}
    rule = policies(policy("{limits: {cpu: remove, memory: remove}}"))
    stored_pod = stored(pod(container(requests={"cpu": "1"}, limits=came)), rule)
    assert limits(stored_pod) == {"hugepages-2Mi": "4Mi", "nvidia.com/gpu": "1"}


def test_d22_a_request_is_clamped_to_the_limit_that_stays():
    rule = policies(policy("{requests: {memory: {from: usage, when: always}}, limits: {memory: keep}}"))
    came = owned(container(requests={"memory": "1Gi"}, limits={"memory": "2Gi"}))
    decision = decided(came, rule, facts(usual(memory="3Gi")))
    assert [(c.after, c.reason.code.name) for c in decision.changes] == [("2Gi", "request-capped")]


def test_d23_local_storage_is_untouched():
    storage = {"ephemeral-storage": "1Gi"}
    rule = policies(policy("{requests: {cpu: {otherwise: 10m}}, limits: {cpu: remove, memory: remove}}"))
    decision = decided(pod(container(requests=storage, limits={**storage, "cpu": "1"})), rule)
    assert limits(decision) == storage


DEFAULTS = limit_range(
    default={"cpu": "75m", "memory": "10Mi"}, default_request={"cpu": "50m", "memory": "5Mi"}, name="abc"
)


def test_e1_what_a_limit_range_gave_is_not_what_the_pods_author_asked_for():
    fill = policies(policy("{requests: {cpu: {from: usage}, memory: {from: usage}}}"))
    stored_pod = stored(owned(), fill, facts(DEFAULTS, usual()))
    assert (requests(stored_pod), stored_pod.calls) == ({"cpu": "60m", "memory": "8Mi"}, 1)


def test_e2_a_limit_that_the_limit_range_brings_back_stays_and_the_reason_is_told():
    rule = policies(policy("{requests: {cpu: {when: always}, memory: {when: always}}, limits: {cpu: remove}}"))
    stored_pod = stored(owned(), rule, facts(DEFAULTS, usual()))
    assert (requests(stored_pod), limits(stored_pod)["cpu"]) == ({"cpu": "60m", "memory": "8Mi"}, "75m")


def test_e2_the_limit_range_is_named():
    came = owned(container(requests={"cpu": "50m"}, limits={"cpu": "75m"}))
    messages = [
        str(kept_field.reason)
        for kept_field in decided(came, NO_CPU_LIMIT, facts(DEFAULTS)).fields_kept
        if kept_field.loud
    ]
    [message] = messages
    assert has_facts(message, "LimitRange abc", "cpu limit")


def test_e6_a_limit_above_the_maximum_is_refused_with_and_without_us():
    stored_pod = stored(pod(container(limits={"cpu": "2500m"})), NO_CPU_LIMIT, facts(limit_range(max={"cpu": "2"})))
    assert (stored_pod.code, stored_pod.plugin) == (403, "LimitRanger")


def test_e7_a_request_is_not_lowered_below_what_the_ratio_asks_for():
    rule = policies(policy("{requests: {cpu: {from: usage, when: always}}}"))
    came = owned(container(requests={"cpu": "500m"}, limits={"cpu": "750m"}))
    stored_pod = stored(came, rule, facts(usual(cpu="250m"), limit_range(max_limit_request_ratio={"cpu": "1500m"})))
    assert requests(stored_pod)["cpu"] == "500m"


def three(limit: str):
    return [container(name, requests={"memory": "1Mi"}, limits={"memory": limit}) for name in "abc"]


@pytest.mark.parametrize(("count", "stands"), [(2, True), (3, False)])
def test_e10_a_limit_range_for_pods_adds_all_containers(count, stands):
    world = facts(limit_range(kind="Pod", max={"memory": "1Gi"}))
    assert isinstance(stored(pod(*three("500Mi")[:count]), NO_CPU_LIMIT, world), PodRejected) is not stands


@pytest.mark.parametrize(("request_", "limit", "stands"), [("300Mi", "450Mi", True), ("250Mi", "500Mi", False)])
def test_e11_a_ratio_for_pods_holds_for_the_sums(request_, limit, stands):
    world = facts(limit_range(kind="Pod", max_limit_request_ratio={"memory": "1.5"}))
    came = pod(container(requests={"memory": request_}, limits={"memory": limit}))
    assert isinstance(stored(came, NO_CPU_LIMIT, world), PodRejected) is not stands


def test_e11_a_request_is_not_lowered_below_the_pods_own_ratio():
    world = facts(limit_range(kind="Pod", max_limit_request_ratio={"memory": "1.5"}), usual(memory="100Mi"))
    rule = policies(policy("{requests: {memory: {when: always}}}"))
    decision = decided(owned(container(requests={"memory": "300Mi"}, limits={"memory": "450Mi"})), rule, world)
    assert (changed(decision), codes(decision, loud=True)) == ({}, {"limitrange-refuses"})


def test_e12_overhead_does_not_count_against_a_limit_range_for_pods():
    world = facts(limit_range(kind="Pod", max={"memory": "1Gi"}), runtime_class("kata", overhead={"memory": "160Mi"}))
    rule = policies(
        policy("{runtimeClass: {name: kata}, requests: {memory: {from: policy, otherwise: 1Gi, when: always}}}")
    )
    stored_pod = stored(pod(container(requests={"memory": "1Mi"}, limits={"memory": "1Gi"})), rule, world)
    assert (requests(stored_pod)["memory"], stored_pod.pod.spec.overhead) == ("1Gi", {"memory": "160Mi"})


def test_e13_a_limit_that_a_quota_counts_stays_and_the_quota_is_named():
    came = pod(container(requests={"cpu": "1"}, limits={"cpu": "2"}))
    decision = decided(came, NO_CPU_LIMIT, facts(quota({"limits.cpu": "10"}, name="team")))
    messages = [str(kept_field.reason) for kept_field in decision.fields_kept if kept_field.loud]
    assert (decision.pod, messages) == (came, ["ResourceQuota team counts limits.cpu"])


@pytest.mark.parametrize(
    "scope",
    [
        {"scopes": ("BestEffort",)},
        {
            "scope_selector": ScopeSelector(
                match_expressions=(ScopedRequirement(scope_name="PriorityClass", operator="In", values=("other",)),)
            )
        },
    ],
)
def test_e14_a_quota_for_other_pods_keeps_no_limit(scope):
    came = pod(container(requests={"cpu": "1"}, limits={"cpu": "2"}))
    assert limits(decided(came, NO_CPU_LIMIT, facts(quota({"limits.cpu": "10"}, **scope)))) is UNSET
