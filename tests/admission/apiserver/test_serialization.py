import msgspec
from hypothesis import given, settings

from tests.admission.apiserver.worlds import pods
from tests.build import container, pod, toleration
from trimtab.admission.apiserver import serialization
from trimtab.cluster.api.meta import UNSET, LabelSelector
from trimtab.cluster.api.pod import Affinity, ContainerPort, Pod, PodAffinity, TopologySpreadConstraint


def test_empty_maps_and_lists_do_not_survive_and_empty_objects_do():
    given_pod = pod(
        container(requests={}), labels={}, node_selector={}, tolerations=(), overhead={}, affinity=Affinity()
    )
    round_trip = serialization.round_trip(given_pod)
    assert (round_trip.spec.overhead, round_trip.metadata.labels, round_trip.spec.tolerations) == (UNSET, UNSET, UNSET)
    assert (round_trip.spec.containers[0].resources.requests, round_trip.spec.affinity) == (UNSET, Affinity())


def test_pods_are_the_same_by_value():
    assert serialization.is_semantically_equal(
        pod(container(requests={"cpu": "0.1"}), labels={}), pod(container(requests={"cpu": "100m"}))
    )


def test_an_absent_field_is_not_a_zero():
    assert not serialization.is_semantically_equal(pod(), pod(priority=0))


def test_changes_are_told_by_field_and_container():
    before = pod(container(requests={"cpu": "1"}, limits={"cpu": "1"}))
    after = pod(container(requests={"cpu": "500m"}), tolerations=(toleration("a", operator="Exists"),))
    assert serialization.describe_changes(before, after) == (
        "spec.containers[app].resources.requests.cpu: 1 → 500m",
        'spec.tolerations[{"key":"a","operator":"Exists"}] added',
        "spec.containers[app].resources.limits.cpu removed, was 1",
    )


def test_a_default_written_out_is_no_change():
    # Two readings of the same JSON hold equal text, not the same text.
    protocol = "".join(["T", "CP"])
    before, after = (pod(container(ports=(ContainerPort(container_port=80, protocol=p),))) for p in ("TCP", protocol))
    assert serialization.describe_changes(before, after) == ()


@settings(deadline=None)
@given(pods())
def test_what_was_sent_is_the_same_and_sent_again_unchanged(given_pod):
    once = serialization.round_trip(given_pod)
    assert serialization.is_semantically_equal(once, given_pod)
    assert serialization.round_trip(once) is once


def test_selectors_and_pod_affinity_come_back_from_json_as_they_were_sent():
    selector = LabelSelector(match_labels={"app": "web"})
    spread = TopologySpreadConstraint(
        max_skew=1, topology_key="zone", when_unsatisfiable="ScheduleAnyway", label_selector=selector
    )
    came = pod(topology_spread_constraints=(spread,), affinity=Affinity(pod_anti_affinity=PodAffinity()))
    assert msgspec.json.decode(
        msgspec.json.encode(serialization.round_trip(came)), type=Pod
    ) == serialization.round_trip(came)
