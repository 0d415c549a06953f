import pytest

from tests.build import NAMESPACE, container, facts, pod, quota, resources
from trimtab.admission.apiserver.outcome import PodRejected
from trimtab.admission.apiserver.resourcequota import check_quotas, quota_usage
from trimtab.cluster.api.pod import Pod

FULL = container(requests={"cpu": "100m", "memory": "1Gi"}, limits={"cpu": "200m", "memory": "1Gi"})


def refusal(given_pod: Pod, *quotas) -> str | None:
    pod = check_quotas(given_pod, facts(*quotas), NAMESPACE)
    return f"{pod.code} {pod.message}" if isinstance(pod, PodRejected) else None


def test_e13_a_quota_of_limits_makes_every_container_name_them():
    both = quota({"limits.cpu": "4", "limits.memory": "4Gi"})
    assert refusal(pod(container("c")), both) == (
        "403 failed quota: q: must specify limits.cpu for: c; limits.memory for: c"
    )


def test_containers_without_are_listed_by_name_init_containers_too():
    given_pod = pod(container("b"), FULL, init=(container("a"),))
    assert refusal(given_pod, quota({"requests.cpu": "4"})) == "403 failed quota: q: must specify requests.cpu for: a,b"


def test_e14_a_quota_for_other_pods_is_ignored():
    best_effort = quota({"pods": "0"}, used={"pods": "0"}, scopes=("BestEffort",))
    assert refusal(pod(FULL), best_effort) is None


def test_pod_level_resources_free_the_containers():
    given_pod = pod(container("c"), resources=resources(limits={"cpu": "1"}))
    assert refusal(given_pod, quota({"limits.memory": "1Gi"})) is None


def test_a_quota_from_a_file_refuses_nothing_for_its_use():
    assert refusal(pod(FULL), quota({"requests.cpu": "1m"})) is None


def test_what_is_used_is_counted_with_what_is_asked():
    tight = quota({"requests.cpu": "1", "pods": "9"}, used={"requests.cpu": "0.95", "pods": "3"})
    assert refusal(pod(FULL), tight) == (
        "403 exceeded quota: q, requested: requests.cpu=100m, used: requests.cpu=950m, limited: requests.cpu=1"
    )


def test_several_exceeded_resources_are_told_together():
    tight = quota({"pods": "1", "memory": "1Gi"}, used={"pods": "1", "memory": "1Mi"})
    assert refusal(pod(FULL), tight) == (
        "403 exceeded quota: q, requested: memory=1Gi,pods=1, used: memory=1Mi,pods=1, limited: memory=1Gi,pods=1"
    )


def test_a_quota_exactly_filled_is_not_exceeded():
    assert refusal(pod(FULL), quota({"cpu": "1"}, used={"cpu": "900m"})) is None


def test_a_quota_whose_use_is_not_counted_yet_refuses():
    fresh = quota({"pods": "5", "cpu": "1"}, used={"pods": "0"})
    assert refusal(pod(FULL), fresh) == "403 status unknown for quota: q, resources: cpu,pods"


def test_a_quota_of_services_is_none_of_a_pods_business():
    assert refusal(pod(), quota({"services": "0"}, used={"services": "0"})) is None


@pytest.mark.parametrize(
    ("given_pod", "charged"),
    [
        (pod(), {}),
        (pod(container(requests={"cpu": "0"})), {}),
        (
            pod(container(requests={"cpu": "100m", "ephemeral-storage": "1Gi"}, limits={"ephemeral-storage": "2Gi"})),
            {
                "cpu": "100m",
                "requests.cpu": "100m",
                "ephemeral-storage": "1Gi",
                "requests.ephemeral-storage": "1Gi",
                "limits.ephemeral-storage": "2Gi",
            },
        ),
        (
            pod(container(requests={"nvidia.com/gpu": "1"}, limits={"nvidia.com/gpu": "1"})),
            {"requests.nvidia.com/gpu": "1"},
        ),
        (pod(container(requests={"hugepages-2Mi": "4Mi"})), {"hugepages-2Mi": "4Mi", "requests.hugepages-2Mi": "4Mi"}),
    ],
)
def test_a_pod_charges_by_the_quotas_names(given_pod, charged):
    assert quota_usage(given_pod) == {"pods": "1", "count/pods": "1"} | charged


def test_overhead_is_charged_on_top_and_limits_only_where_there_are_any():
    resource_list = quota_usage(
        pod(container(requests={"cpu": "100m"}, limits={"cpu": "200m"}), overhead={"cpu": "300m", "memory": "1Mi"})
    )
    assert (
        resource_list["requests.cpu"],
        resource_list["limits.cpu"],
        resource_list["memory"],
        "limits.memory" in resource_list,
    ) == ("400m", "500m", "1Mi", False)
