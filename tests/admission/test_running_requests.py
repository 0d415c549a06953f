"""What do policies want running pods to request?"""

from typing import Any

import msgspec
import pytest

from tests.admission.test_readmission import WEB
from tests.build import admission_context
from trimtab.admission.running_requests import requests_of_running_pods
from trimtab.cluster.api.autoscaling import HorizontalPodAutoscaler, VerticalPodAutoscaler
from trimtab.cluster.api.pod import Container, PodSpec, Resources
from trimtab.cluster.api.workload import PodTemplateSpec
from trimtab.cluster.reason import Unreadable
from trimtab.cluster.recommendation import ContainerUsage, Percentiles, Recommendations
from trimtab.cluster.wanted_requests import NOTHING_WANTED, WantedRequests
from trimtab.policy.actions.requests_of_policies import policies_that_resize
from trimtab.policy.cluster_facts import ClusterFacts
from trimtab.policy.load import load_policies
from trimtab.policy.podpolicy import Policies

NOW = 1_800_000_000
KEY = "team/ReplicaSet/web-5d4"


def policies(cpu: str = "{running: resize}", mode: str = "apply", memory: str = "") -> Policies:
    memory = f", memory: {memory}" if memory else ""
    text = (
        "apiVersion: trimtab.dev/v1alpha1\nkind: PodPolicy\nmetadata: {name: one}\nspec:\n"
        f"  mode: {mode}\n  match: {{namespaces: {{include: [team]}}}}\n"
        f"  actions: {{requests: {{cpu: {cpu}{memory}}}}}\n"
    )
    loaded = load_policies([("one.yaml", text.encode())])
    assert not loaded.mistakes, loaded.mistakes
    return loaded.policies


def template(**requests: str) -> PodTemplateSpec:
    resources = Resources(requests=requests) if requests else Resources()
    return PodTemplateSpec(spec=PodSpec(containers=(Container(name="main", image="pause", resources=resources),)))


def facts(cpu: str = "120m", **more: Any) -> ClusterFacts:
    amounts = Percentiles(
        p5="10m", p50="50m", p95=cpu, max="400m", confidence=more.pop("confidence", 1.0), young=more.pop("young", False)
    )
    memory = Percentiles(p5="10Mi", p95="100Mi", max="150Mi", confidence=1.0)
    usage = ContainerUsage(cpu=amounts, memory=memory, days=14, ends_at=more.pop("ends_at", NOW + 86400))
    return ClusterFacts(recommendations=Recommendations({KEY: {"main": usage}}), **more)


def wanted(policies: Policies, facts_then: ClusterFacts, of: PodTemplateSpec | None = None) -> WantedRequests:
    answer = requests_of_running_pods(
        of or template(memory="64Mi"), WEB, admission_context(policies, facts_then), now=NOW
    )
    assert isinstance(answer, WantedRequests)
    return answer


def test_a_policy_that_resizes_wants_what_a_new_pod_would_get():
    request = wanted(policies(), facts()).requests["main", "cpu"]
    assert (request.amount, request.policy, request.used) == (120, "one", 400)


def test_without_the_word_nothing_is_wanted():
    assert wanted(policies("{from: usage}"), facts()) == NOTHING_WANTED


@pytest.mark.parametrize("mode", ["audit", "warn"])
def test_a_policy_that_does_not_apply_wants_nothing(mode: str):
    assert not policies_that_resize(policies(mode=mode))
    assert wanted(policies(mode=mode), facts()) == NOTHING_WANTED


def test_what_an_author_wrote_stays_unless_the_policy_replaces_it():
    assert wanted(policies(), facts(), template(cpu="500m")) == NOTHING_WANTED
    always = wanted(policies("{running: resize, when: always}"), facts(), template(cpu="500m"))
    assert always.requests["main", "cpu"].amount == 120


def test_the_policys_minimum_is_handed_on_as_the_floor():
    request = wanted(policies("{running: resize, min: 200m}"), facts()).requests["main", "cpu"]
    assert (request.amount, request.floor) == (200, 200)


def test_the_largest_memory_that_was_recorded_is_handed_on():
    request = wanted(policies(memory="{running: resize}"), facts(), template(cpu="1")).requests["main", "memory"]
    assert (request.amount, request.used) == (100 << 20, 150 << 20)


def refusal(policies: Policies, facts_then: ClusterFacts) -> str:
    answer = wanted(policies, facts_then)
    assert not answer.requests
    return answer.refusals["main", "cpu"].code.name


def test_a_mere_otherwise_resizes_nothing():
    assert refusal(policies("{running: resize, otherwise: 50m}"), ClusterFacts()) == "resize-not-measured"


@pytest.mark.parametrize("more", [{"young": True}, {"confidence": 0.3}, {"ends_at": NOW - 1}])
def test_a_recommendation_that_is_not_good_enough_resizes_nothing(more: dict[str, Any]):
    assert refusal(policies(), facts(**more)) == "resize-not-measured"


def vpa(mode: str) -> VerticalPodAutoscaler:
    shape = {
        "metadata": {"name": "web", "namespace": "team"},
        "spec": {"targetRef": {"kind": "ReplicaSet", "name": "web-5d4"}, "updatePolicy": {"updateMode": mode}},
    }
    return msgspec.convert(shape, VerticalPodAutoscaler)


@pytest.mark.parametrize("mode", ["Initial", "Recreate", "InPlaceOrRecreate"])
def test_what_a_vpa_manages_is_left_to_it(mode: str):
    facts_then = facts(vpas={("team", "ReplicaSet", "web-5d4"): (vpa(mode),)}, vpa_reach=())
    assert refusal(policies(), facts_then) == "resize-vpa-manages"


def test_a_vpa_that_only_informs_is_no_obstacle():
    facts_then = facts(vpas={("team", "ReplicaSet", "web-5d4"): (vpa("Off"),)})
    assert wanted(policies(), facts_then).requests


def hpa(*metrics: dict[str, Any]) -> ClusterFacts:
    shape = {
        "metadata": {"name": "web", "namespace": "team"},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-5d4"},
            "maxReplicas": 5,
            "metrics": metrics,
        },
    }
    return facts(hpas={("team", "ReplicaSet", "web-5d4"): (msgspec.convert(shape, HorizontalPodAutoscaler),)})


def metric(name: str, target: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "Resource", "resource": {"name": name, "target": target, **more}}


UTILIZATION = {"type": "Utilization", "averageUtilization": 80}


def test_a_resource_by_whose_utilization_an_hpa_scales_is_left_alone():
    assert refusal(policies(), hpa(metric("cpu", UTILIZATION))) == "resize-hpa-divides"
    assert refusal(policies(), hpa()) == "resize-hpa-divides"
    in_container = {
        "type": "ContainerResource",
        "containerResource": {"name": "cpu", "container": "main", "target": UTILIZATION},
    }
    assert refusal(policies(), hpa(in_container)) == "resize-hpa-divides"


@pytest.mark.parametrize(
    "spec",
    [
        metric("memory", UTILIZATION),
        metric("cpu", {"type": "AverageValue", "averageValue": "300m"}),
        {"type": "External"},
        {
            "type": "ContainerResource",
            "containerResource": {"name": "cpu", "container": "sidecar", "target": UTILIZATION},
        },
    ],
)
def test_an_hpa_that_does_not_divide_by_the_request_is_no_obstacle(spec: dict[str, Any]):
    assert wanted(policies(), hpa(spec)).requests


def test_while_autoscalers_are_not_listed_nothing_is_resized():
    facts_then = facts(listed_kinds=ClusterFacts().listed_kinds - {"HorizontalPodAutoscaler"})
    assert refusal(policies(), facts_then) == "resize-autoscalers-unknown"


def test_a_pod_that_would_be_denied_wants_nothing():
    text = (
        b"apiVersion: trimtab.dev/v1alpha1\nkind: PodPolicy\nmetadata: {name: one}\nspec:\n"
        b"  match: {namespaces: {include: [team]}}\n"
        b"  actions: {overhead: {stray: deny}, requests: {cpu: {running: resize}}}\n"
    )
    stray = msgspec.structs.replace(
        template(memory="64Mi"), spec=msgspec.structs.replace(template().spec, overhead={"cpu": "1"})
    )
    policies = load_policies([("one.yaml", text)]).policies
    assert isinstance(requests_of_running_pods(stray, WEB, admission_context(policies, facts()), now=NOW), Unreadable)


def test_the_word_is_only_valid_with_usage():
    text = (
        b"apiVersion: trimtab.dev/v1alpha1\nkind: PodPolicy\nmetadata: {name: one}\nspec:\n"
        b"  actions: {requests: {cpu: {from: policy, otherwise: 1, running: resize}}}\n"
    )
    assert "running: resize" in str(load_policies([("one.yaml", text)]).mistakes)
