import pytest
from hypothesis import given, settings

from tests.admission.apiserver.worlds import limit_ranges, pods
from tests.build import NAMESPACE, container, facts, item, limit_range, pod, resources
from trimtab.admission.apiserver import limitranger
from trimtab.admission.apiserver.limitranger import ANNOTATION
from trimtab.admission.apiserver.outcome import PodRejected
from trimtab.cluster.api.pod import Pod

MIB = {"requests": {"memory": "300Mi"}, "limits": {"memory": "450Mi"}}


def admit(given_pod: Pod, *ranges) -> Pod:
    pod = limitranger.apply_limit_ranges(given_pod, facts(*ranges), NAMESPACE)
    assert isinstance(pod, Pod)
    return pod


def refusal(given_pod: Pod, *ranges) -> str | None:
    pod = limitranger.check_limit_ranges(given_pod, facts(*ranges), NAMESPACE)
    return pod.message if isinstance(pod, PodRejected) else None


def both(**amounts: str) -> dict:
    return {"requests": amounts, "limits": amounts}


def test_e1_an_empty_container_gets_the_default_request_and_limit():
    defaults = limit_range(default={"cpu": "75m", "memory": "10Mi"}, default_request={"cpu": "50m", "memory": "5Mi"})
    created_pod = admit(pod(), defaults)
    assert created_pod.spec.containers[0].resources == resources(
        {"cpu": "50m", "memory": "5Mi"}, {"cpu": "75m", "memory": "10Mi"}
    )


def test_the_annotation_lists_requests_before_limits_and_containers_before_init_containers():
    given_pod = pod(container("app", limits={"cpu": "1"}, requests={"cpu": "1"}), init=(container("init"),))
    created_pod = admit(given_pod, limit_range(default={"cpu": "1", "memory": "1Gi"}))
    assert created_pod.metadata.annotations == {
        ANNOTATION: "LimitRanger plugin set: memory request for container app; memory limit for container app; "
        "cpu, memory request for init container init; cpu, memory limit for init container init"
    }


def test_the_annotation_tells_only_what_was_set_this_time():
    message = {ANNOTATION: "LimitRanger plugin set: cpu request for container app; cpu limit for container app"}
    second_pod = pod(container(requests={"cpu": "1"}), annotations=message)
    created_pod = admit(second_pod, limit_range(default={"cpu": "1"}))
    assert created_pod.metadata.annotations == {ANNOTATION: "LimitRanger plugin set: cpu limit for container app"}


def test_nothing_to_set_leaves_a_stale_annotation_alone():
    given_pod = pod(container(**both(cpu="1")), annotations={ANNOTATION: "old"})
    assert admit(given_pod, limit_range(default={"cpu": "1"})) is given_pod


def test_a_maximum_alone_is_the_default_limit_and_request():
    created_pod = admit(pod(), limit_range(max={"cpu": "2"}, min={"memory": "16Mi"}))
    assert created_pod.spec.containers[0].resources == resources({"cpu": "2", "memory": "16Mi"}, {"cpu": "2"})


def test_a_default_finer_than_a_thousandth_is_kept_rounded_up():
    assert admit(pod(), limit_range(default={"cpu": "250u"})).spec.containers[0].resources.limits == {"cpu": "1m"}


def test_of_two_items_the_later_default_counts_and_of_two_ranges_the_first():
    later = limit_range(item(default={"cpu": "1"}), item(default={"cpu": "2"}), name="a")
    created_pod = admit(pod(), later, limit_range(default={"cpu": "3"}, name="b"))
    assert created_pod.spec.containers[0].resources.limits == {"cpu": "2"}


def test_another_namespace_has_its_own_ranges():
    assert admit(pod(), limit_range(default={"cpu": "1"}, namespace="other")) == pod()


BOUNDS = [
    ({"max": {"cpu": "1"}}, {}, "maximum cpu usage per Container is 1.  No limit is specified"),
    ({"max": {"cpu": "1"}}, both(cpu="2"), "maximum cpu usage per Container is 1, but limit is 2"),
    (
        {"max": {"cpu": "1"}},
        {"requests": {"cpu": "1500m"}, "limits": {"cpu": "1"}},
        "maximum cpu usage per Container is 1, but request is 1500m",
    ),
    ({"min": {"cpu": "0.1"}}, {}, "minimum cpu usage per Container is 100m.  No request is specified"),
    ({"min": {"cpu": "100m"}}, both(cpu="50m"), "minimum cpu usage per Container is 100m, but request is 50m"),
    (
        {"min": {"cpu": "100m"}},
        {"requests": {"cpu": "100m"}, "limits": {"cpu": "50m"}},
        "minimum cpu usage per Container is 100m, but limit is 50m",
    ),
    (
        {"max_limit_request_ratio": {"memory": "2"}},
        {"requests": {"memory": "100Mi"}, "limits": {"memory": "1Gi"}},
        "memory max limit to request ratio per Container is 2, but provided ratio is 10.240000",
    ),
    (
        {"max_limit_request_ratio": {"cpu": "2"}},
        {"limits": {"cpu": "1"}},
        "cpu max limit to request ratio per Container is 2, but no request is specified or request is 0",
    ),
    (
        {"max_limit_request_ratio": {"cpu": "2"}},
        {"requests": {"cpu": "1"}},
        "cpu max limit to request ratio per Container is 2, but no limit is specified or limit is 0",
    ),
    ({"max": {"cpu": "1"}, "min": {"cpu": "1"}}, both(cpu="1000m"), None),
]


@pytest.mark.parametrize(("bounds", "asked", "message"), BOUNDS)
def test_bounds_are_told_in_the_servers_words(bounds, asked, message):
    assert refusal(pod(container(**asked)), limit_range(**bounds)) == message


def test_init_containers_are_bound_too():
    given_pod = pod(container(**both(cpu="1")), init=(container("init", **both(cpu="2")),))
    assert refusal(given_pod, limit_range(max={"cpu": "1"})) == "maximum cpu usage per Container is 1, but limit is 2"


def test_several_complaints_come_in_brackets_and_equal_ones_once():
    two = pod(container("a", **both(cpu="2")), container("b", **both(cpu="2", memory="1")))
    assert refusal(two, limit_range(max={"cpu": "1"}, min={"cpu": "3"})) == (
        "[minimum cpu usage per Container is 3, but request is 2, maximum cpu usage per Container is 1, but limit is 2]"
    )


def test_e6_a_limit_above_the_maximum_is_refused():
    assert "but limit is 2500m" in (
        refusal(pod(container(limits={"cpu": "2500m"})), limit_range(max={"cpu": "2"})) or ""
    )


@pytest.mark.parametrize(("count", "refused"), [(2, False), (3, True)])
def test_e10_a_pods_limits_are_summed_against_the_pod_maximum(count, refused):
    given_pod = pod(*(container(f"c{n}", **both(memory="500Mi")) for n in range(count)))
    message = refusal(given_pod, limit_range(kind="Pod", max={"memory": "1Gi"}))
    assert message == ("maximum memory usage per Pod is 1Gi, but limit is 1500Mi" if refused else None)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (MIB, None),
        (
            {"requests": {"memory": "250Mi"}, "limits": {"memory": "500Mi"}},
            "memory max limit to request ratio per Pod is 1500m, but provided ratio is 2.000000",
        ),
    ],
)
def test_e11_a_pods_ratio_is_bound(asked, message):
    assert (
        refusal(pod(container(**asked)), limit_range(kind="Pod", max_limit_request_ratio={"memory": "1.5"})) == message
    )


def test_e12_overhead_does_not_count_against_the_pod_maximum():
    given_pod = pod(container(**both(memory="1Gi")), overhead={"memory": "160Mi"})
    assert refusal(given_pod, limit_range(kind="Pod", max={"memory": "1Gi"})) is None


def test_a_pod_asks_for_the_larger_of_starting_and_running():
    given_pod = pod(container(**both(cpu="1")), init=(container("init", **both(cpu="3")),))
    assert refusal(given_pod, limit_range(kind="Pod", max={"cpu": "2"})) == (
        "maximum cpu usage per Pod is 2, but limit is 3"
    )


def test_pod_level_resources_stand_in_for_the_sum():
    own = resources(requests={"cpu": "1"}, limits={"cpu": "4"})
    assert refusal(pod(resources=own), limit_range(kind="Pod", max={"cpu": "2"})) == (
        "maximum cpu usage per Pod is 2, but limit is 4"
    )


@settings(deadline=None)
@given(pods(), limit_ranges())
def test_limitranger_twice_is_limitranger_once(given_pod, ranges):
    once = admit(given_pod, ranges)
    assert admit(once, ranges) == once
