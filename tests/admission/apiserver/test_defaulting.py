import pytest
from hypothesis import given, settings

from tests.admission.apiserver.worlds import pods
from tests.build import NAMESPACE, container, facts, pod, resources
from trimtab.admission.apiserver import defaulting
from trimtab.cluster.api.meta import UNSET
from trimtab.cluster.api.pod import ContainerPort, Pod, PodSecurityContext, Resources


def default(given_pod: Pod) -> Pod:
    pod = defaulting.set_defaults(given_pod, facts(), NAMESPACE)
    assert isinstance(pod, Pod)
    return pod


def of_first(given_pod: Pod) -> Resources:
    return default(given_pod).spec.containers[0].resources


@pytest.mark.parametrize(
    ("requests", "limits", "becomes"),
    [
        (None, {"cpu": "1"}, {"cpu": "1"}),
        ({}, {"cpu": "1", "memory": "1Gi"}, {"cpu": "1", "memory": "1Gi"}),
        ({"cpu": "100m"}, {"cpu": "1", "memory": "1Gi"}, {"cpu": "100m", "memory": "1Gi"}),
        ({"cpu": "100m"}, None, {"cpu": "100m"}),
        (None, {"nvidia.com/gpu": 1}, {"nvidia.com/gpu": 1}),
        (None, None, UNSET),
    ],
)
def test_a_request_is_made_of_its_limit_where_it_is_missing(requests, limits, becomes):
    assert of_first(pod(container(requests=requests, limits=limits))).requests == becomes


def test_d6_a_cpu_limit_alone_becomes_the_request():
    assert of_first(pod(container(limits={"cpu": "1"}))) == resources({"cpu": "1"}, {"cpu": "1"})


def test_init_containers_get_theirs_too():
    created_pod = default(pod(init=(container("init", limits={"memory": "1Gi"}),)))
    assert created_pod.spec.init_containers[0].resources.requests == {"memory": "1Gi"}


def test_a_container_always_has_resources_when_a_webhook_sees_it():
    assert of_first(pod()) == Resources()


def test_a_stored_pod_has_its_restart_policy_scheduler_and_grace():
    spec = default(pod()).spec
    assert (spec.restart_policy, spec.scheduler_name, spec.termination_grace_period_seconds) == (
        "Always",
        "default-scheduler",
        30,
    )
    assert spec.security_context == PodSecurityContext()


def test_on_the_host_network_every_port_is_a_host_port():
    created_pod = default(pod(container(ports=(ContainerPort(container_port=80),)), host_network=True))
    assert created_pod.spec.containers[0].ports[0].host_port == 80


def test_pod_level_limits_bring_requests_from_the_containers_or_the_limit():
    asking = [container("a", requests={"cpu": "100m"}), container("b", requests={"cpu": "0.3"})]
    created_pod = default(pod(*asking, resources=resources(limits={"cpu": "1", "memory": "1Gi"})))
    assert created_pod.spec.resources.requests == {"cpu": "400m", "memory": "1Gi"}


def test_a_pods_request_is_the_unrounded_sum_rounded_up():
    asking = [container(name, requests={"cpu": "250u"}) for name in ("a", "b")]
    created_pod = default(pod(*asking, resources=resources(limits={"cpu": "1"})))
    assert created_pod.spec.resources.requests == {"cpu": "1m"}


def test_pod_level_requests_alone_bring_nothing():
    own = resources(requests={"cpu": "1"})
    assert default(pod(container(requests={"memory": "1Gi"}), resources=own)).spec.resources == own


def test_huge_pages_of_containers_become_the_pods_limit_and_request():
    pages = container(limits={"hugepages-2Mi": "4Mi", "cpu": "1"})
    actual_resources = default(pod(pages, resources=resources(limits={"cpu": "2"}))).spec.resources
    assert actual_resources == resources({"hugepages-2Mi": "4Mi", "cpu": "1"}, {"cpu": "2", "hugepages-2Mi": "4Mi"})


@settings(deadline=None)
@given(pods())
def test_defaulting_twice_is_defaulting_once(given_pod):
    once = default(given_pod)
    assert default(once) == once
