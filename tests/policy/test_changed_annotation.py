"""Values of LimitRanger do not count as the author's, a limit that a container reads stays, and critical pods stay."""

import pytest

from tests.build import changed, codes, container, decided, facts, limit_range, pod, policies, policy, stored, usage
from trimtab.cluster.api.meta import change
from trimtab.cluster.api.pod import (
    DownwardAPI,
    DownwardItem,
    Env,
    EnvSource,
    Projected,
    ProjectedSource,
    ResourceField,
    Volume,
)

CPU, MEMORY = "containers[app].requests.cpu", "containers[app].requests.memory"
DEFAULTS = limit_range(default_request={"cpu": "100m"}, default={"cpu": "2"})
SEEN = usage(cpu=("50m", "300m"), memory=("100Mi", "400Mi"))
MISSING = policies(policy("{requests: {cpu: {from: usage, otherwise: 10m}}}"))
SET = {"kubernetes.io/limit-ranger": "LimitRanger plugin set: cpu request for container app"}


def requests(result):
    return result.pod.spec.containers[0].resources.requests


def test_usage_replaces_a_request_that_only_a_limit_range_gave():
    """Most namespaces that several teams share have a default request: without this rule usage would never set a first
    one."""
    assert requests(stored(pod(owner="Deployment/web"), MISSING, facts(SEEN, DEFAULTS))) == {"cpu": "300m"}


def test_a_mere_default_of_the_policy_does_not_replace_the_namespaces_own():
    stored_pod = stored(pod(owner="Deployment/web"), MISSING, facts(DEFAULTS))
    assert requests(stored_pod) == {"cpu": "100m"}
    came = pod(container(requests={"cpu": "100m"}), annotations=SET)
    assert "limitrange-default" in codes(decided(came, MISSING))


def test_what_the_author_wrote_beside_it_stays():
    came = pod(container(requests={"cpu": "100m", "memory": "1Gi"}), owner="Deployment/web", annotations=SET)
    rule = policies(policy("{requests: {cpu: {from: usage}, memory: {from: usage}}}"))
    assert changed(decided(came, rule, facts(SEEN))) == {CPU: "300m"}


def test_the_annotation_speaks_of_the_container_that_it_names():
    text = {
        "kubernetes.io/limit-ranger": "LimitRanger plugin set: cpu, memory request for init container app; "
        "cpu limit for container app; cpu request for container other"
    }
    came = pod(container(requests={"cpu": "100m"}), owner="Deployment/web", annotations=text)
    assert changed(decided(came, MISSING, facts(SEEN))) == {}


def test_nothing_known_and_no_default_is_told():
    decision = decided(pod(owner="Deployment/web"), policies(policy("{requests: {cpu: {from: usage}}}")), facts())
    assert (changed(decision), codes(decision)) == ({}, {"no-recommendation"})


def read(resource="limits.cpu", container=""):
    return ResourceField(container_name=container, resource=resource)


LIMITED = container(requests={"cpu": "1", "memory": "1Gi"}, limits={"cpu": "2", "memory": "1Gi"})
ENV = change(LIMITED, env=(Env(), Env(value_from=EnvSource(resource_field_ref=read()))))
FILE = DownwardAPI(items=(DownwardItem(), DownwardItem(resource_field_ref=read(container="app"))))
BY_FILE = pod(LIMITED, volumes=(Volume(name="info", downward_api=FILE),))
BY_PROJECTION = pod(
    LIMITED, volumes=(Volume(name="info", projected=Projected(sources=(ProjectedSource(downward_api=FILE),))),)
)
NO_LIMITS = policies(policy("{limits: {cpu: remove, memory: remove}}"))


@pytest.mark.parametrize("came", [pod(ENV), BY_FILE, BY_PROJECTION])
def test_a_limit_that_a_container_reads_stays(came):
    decision = decided(came, NO_LIMITS)
    assert (changed(decision), "container-reads-limit" in codes(decision)) == (
        {"containers[app].limits.memory": None},
        True,
    )


def test_a_memory_limit_that_a_program_reads_stays():
    """A program that reads it as GOMEMLIMIT would otherwise count on the memory of the whole node."""
    reading = change(LIMITED, env=(Env(value_from=EnvSource(resource_field_ref=read("limits.memory"))),))
    decision = decided(pod(reading), NO_LIMITS)
    assert (changed(decision), "container-reads-limit" in codes(decision)) == (
        {"containers[app].limits.cpu": None},
        True,
    )


def test_a_limit_of_which_another_containers_is_read_goes():
    other = change(container("other"), env=(Env(value_from=EnvSource(resource_field_ref=read())),))
    assert "containers[app].limits.cpu" in changed(decided(pod(LIMITED, other), NO_LIMITS))


def test_a_limit_of_which_only_the_request_is_read_goes():
    reading = change(LIMITED, env=(Env(value_from=EnvSource(resource_field_ref=read("requests.cpu"))),))
    assert "containers[app].limits.cpu" in changed(decided(pod(reading), NO_LIMITS))


@pytest.mark.parametrize("name", ["system-node-critical", "system-cluster-critical"])
def test_critical_pods_are_left_alone_wherever_they_run(name):
    decision = decided(pod(LIMITED, priority_class_name=name), NO_LIMITS)
    assert (changed(decision), str(decision.skipped and decision.skipped.code.name)) == ({}, "critical-pod")


def test_a_policy_that_names_a_critical_class_means_it():
    rule = policies(policy("{limits: {cpu: remove}}", match="{priorityClasses: [system-node-*]}"))
    assert changed(decided(pod(LIMITED, priority_class_name="system-node-critical"), rule))
    assert not changed(decided(pod(LIMITED, priority_class_name="system-cluster-critical"), rule))


def test_every_class_is_no_name():
    rule = policies(policy("{limits: {cpu: remove}}", match='{priorityClasses: ["*"]}'))
    assert not changed(decided(pod(LIMITED, priority_class_name="system-node-critical"), rule))


def test_none_of_it_exempts_a_pod_from_what_is_required():
    rule = policies(policy("{limits: {cpu: remove, required: true}}", match="{namespaces: {include: [team-a]}}"))
    came = pod(ENV, priority_class_name="system-node-critical")
    assert "containers[app].limits.cpu" in changed(decided(came, rule))
