import pytest

from tests.build import container, pod, resources
from trimtab.cluster.resources import QoS, Role, pod_limits, pod_requests, qos_class, requests_without_overhead, role_of


def asks(cpu: str, name: str = "app", **fields):
    return container(name, requests={"cpu": cpu}, **fields)


def cpu(*containers, **fields) -> int:
    return pod_requests(pod(*containers, **fields).spec)["cpu"]


def test_containers_are_added():
    assert cpu(asks("1"), asks("500m", "b")) == 1500


def test_the_largest_init_container_counts_where_it_is_more():
    assert cpu(asks("1"), init=(asks("3", "i"), asks("2", "j"))) == 3000


def test_a_sidecar_runs_beside_the_containers_and_the_init_containers_after_it():
    sidecar = asks("1", "mesh", restart_policy="Always")
    assert cpu(asks("1"), init=(asks("2", "before"), sidecar, asks("2", "after"))) == 3000


def test_an_init_container_before_the_sidecar_runs_without_it():
    sidecar = asks("1", "mesh", restart_policy="Always")
    assert cpu(asks("1"), init=(asks("2500m", "before"), sidecar)) == 2500


def test_overhead_comes_on_top_of_either():
    assert cpu(asks("1"), init=(asks("3", "i"),), overhead={"cpu": "250m"}) == 3250


def test_pod_level_requests_stand_instead_of_the_sum():
    assert cpu(asks("1"), resources=resources({"cpu": "5"}), overhead={"cpu": "1"}) == 6000


def test_overhead_is_added_only_to_limits_that_are_there():
    limited = pod(container(limits={"cpu": "1"}), overhead={"cpu": "250m", "memory": "1Mi"})
    assert pod_limits(limited.spec) == {"cpu": 1250}


BOTH = {"cpu": "1", "memory": "1Gi"}


@pytest.mark.parametrize(
    ("requests", "limits", "expected"),
    [
        (None, None, QoS.BEST_EFFORT),
        ({}, {}, QoS.BEST_EFFORT),
        ({"cpu": "0"}, {"cpu": "0"}, QoS.BEST_EFFORT),
        ({"nvidia.com/gpu": "1"}, {"nvidia.com/gpu": "1"}, QoS.BEST_EFFORT),
        (BOTH, BOTH, QoS.GUARANTEED),
        ({"cpu": "1000m", "memory": "1024Mi"}, BOTH, QoS.GUARANTEED),
        (BOTH, {"cpu": "1"}, QoS.BURSTABLE),
        ({"cpu": "1"}, BOTH, QoS.BURSTABLE),
        ({"cpu": "1"}, None, QoS.BURSTABLE),
        ({"cpu": "500m", "memory": "1Gi"}, BOTH, QoS.BURSTABLE),
    ],
)
def test_quality_of_service_by_kubernetes_own_rule(requests, limits, expected):
    assert qos_class(pod(container(requests=requests, limits=limits)).spec) is expected


def test_one_plain_init_container_makes_a_pod_burstable():
    full = container(requests=BOTH, limits=BOTH)
    assert qos_class(pod(full, init=(container("i"),)).spec) is QoS.BURSTABLE


def test_overhead_does_not_count_for_the_class_of_service():
    assert qos_class(pod(overhead={"cpu": "1"}).spec) is QoS.BEST_EFFORT


def test_pod_level_resources_decide_the_class_of_service():
    assert qos_class(pod(container(), resources=resources(BOTH, BOTH)).spec) is QoS.GUARANTEED


def test_roles():
    roles = [role_of(c, init=True) for c in (container("i"), container("s", restart_policy="Always"))]
    assert [*roles, role_of(container(), init=False)] == [Role.INIT, Role.SIDECAR, Role.MAIN]


def test_of_one_resource_the_sum_is_what_it_is_among_all():
    sidecar = asks("1", "mesh", restart_policy="Always")
    both = container("app", requests={"cpu": "1", "memory": "1Gi"})
    spec = pod(both, init=(asks("2", "before"), sidecar, asks("2", "after"))).spec
    assert requests_without_overhead(spec, only="cpu") == {"cpu": requests_without_overhead(spec)["cpu"]}
    assert requests_without_overhead(spec, only="memory") == {"memory": 1 << 30}
    assert requests_without_overhead(spec, only="example.com/gpu") == {}
