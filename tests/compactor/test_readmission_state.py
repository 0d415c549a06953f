"""Are successors planned with what policies of today would give them?"""

from tests.admission.test_readmission import RAISE, half_a_core, managed, policies
from tests.cluster_of import ALL, cluster, node, pod
from trimtab.cluster.api.meta import change
from trimtab.cluster.api.pod import Condition, Resources
from trimtab.cluster.api.workload import PodTemplateSpec, Templated, TemplatedSpec, TemplatedStatus
from trimtab.cluster.next_pod import keep_template
from trimtab.cluster.reason import Unreadable
from trimtab.compaction.plan import make_plan
from trimtab.compaction.plan_types import Plan
from trimtab.compactor.readmission_state import TEMPLATE_KINDS, ReadmissionState
from trimtab.kube.watch_state import ChangeType, WatchEvent
from trimtab.policy.facts_index import RetainedNamespace
from trimtab.policy.pod_context import AdmissionSettings
from trimtab.scheduling.cluster_model import build_cluster_model
from trimtab.scheduling.reasons import NO_SUCCESSOR

TERMS = AdmissionSettings(own_namespace="trimtab-system")


def heard(*changes: WatchEvent) -> ReadmissionState:
    readmission_state = ReadmissionState(TERMS, policies(RAISE))
    for event in changes:
        readmission_state.apply_change(event)
    return readmission_state


def requesting(cpu: str) -> PodTemplateSpec:
    spec = half_a_core().spec
    resources = Resources(requests={"cpu": cpu})
    return PodTemplateSpec(spec=change(spec, containers=(change(spec.containers[0], resources=resources),)))


def of_web(made: PodTemplateSpec | None) -> WatchEvent:
    return WatchEvent(ChangeType.ADDED, "ReplicaSetTemplate", ("team", "web"), None, made)


def two_half_empty(again=None) -> Plan:
    """Two nodes of two cores, two pods of half a core on each."""
    pods = [pod(f"web-{number}", on=f"n{number % 2}", namespace="team") for number in range(4)]
    return make_plan(build_cluster_model(cluster(node("n0", cpu="2"), node("n1", cpu="2"), *pods), again), [ALL])


def test_what_would_fit_as_it_is_does_not_go_where_a_policy_would_raise_it():
    assert len(two_half_empty().all_steps) == 1
    assert two_half_empty(heard(of_web(half_a_core())).requests_lookup()).all_steps == ()


def test_an_owner_without_a_template_we_read_is_taken_as_it_is():
    assert len(two_half_empty(heard().requests_lookup()).all_steps) == 1
    gone = WatchEvent(ChangeType.DELETED, "ReplicaSetTemplate", ("team", "web"), half_a_core(), None)
    assert len(two_half_empty(heard(of_web(half_a_core()), gone).requests_lookup()).all_steps) == 1


def test_while_everything_is_paused_policies_raise_nothing():
    ours = WatchEvent(ChangeType.ADDED, "Namespace", ("", "trimtab-system"), None, RetainedNamespace(paused=True))
    assert len(two_half_empty(heard(of_web(half_a_core()), ours).requests_lookup()).all_steps) == 1


def test_a_policy_that_came_or_went_counts_at_once():
    one = ReadmissionState(TERMS)
    [policy] = policies(RAISE).all
    assert one.in_force.all == ()
    one.apply_change(WatchEvent(ChangeType.ADDED, "PodPolicy", ("", "one"), None, policy))
    one.apply_change(of_web(half_a_core()))
    assert two_half_empty(one.requests_lookup()).all_steps == ()
    one.apply_change(WatchEvent(ChangeType.DELETED, "PodPolicy", ("", "one"), policy, None))
    assert one.in_force.all == ()


def test_a_pod_whose_successor_nobody_can_speak_for_keeps_its_node():
    plan = two_half_empty(lambda pod: Unreadable("the next pod", "a policy would deny the pod"))
    assert plan.all_steps == ()
    world = build_cluster_model(
        cluster(node("n0"), pod("web-0", on="n0")), lambda pod: Unreadable("the next pod", "denied")
    )
    assert [kind.unjudged_reason for kind in world.successor_class_of] == [NO_SUCCESSOR("the next pod: denied")]


def test_a_vpa_alone_is_reason_enough_to_ask() -> None:
    one = ReadmissionState(TERMS)
    assert not one.is_needed
    vpas = managed().vpas["team", "ReplicaSet", "web-5d4"]
    one.apply_change(WatchEvent(ChangeType.ADDED, "VerticalPodAutoscaler", ("team", "web"), None, vpas[0]))
    assert one.is_needed


def test_without_policies_a_template_that_requests_more_counts() -> None:
    one = ReadmissionState(TERMS)
    assert len(two_half_empty(one.requests_lookup()).all_steps) == 1
    one.apply_change(of_web(half_a_core()))
    assert len(two_half_empty(one.requests_lookup()).all_steps) == 1
    one.apply_change(of_web(requesting("1500m")))
    assert two_half_empty(one.requests_lookup()).all_steps == ()


def test_a_template_is_read_of_each_kind_of_owner_that_creates_pods_on_any_node() -> None:
    assert {"ReplicaSet", "StatefulSet", "ReplicationController", "Job"} == {
        kind.removesuffix("Template") for kind in TEMPLATE_KINDS
    }


def test_what_creates_no_more_pods_has_no_template() -> None:
    spec = TemplatedSpec(template=half_a_core())
    ended = TemplatedStatus(conditions=(Condition(type="Complete", status="True"),))
    assert keep_template(Templated(spec=spec)) is not None
    assert keep_template(Templated(spec=change(spec, replicas=0))) is None
    assert keep_template(Templated(spec=spec, status=ended)) is None
