from collections.abc import Callable
from dataclasses import dataclass, field

from hypothesis import given, settings

from tests.admission.apiserver.worlds import objects, pods
from tests.build import (
    NAMESPACE,
    container,
    facts,
    limit_range,
    pod,
    priority_class,
    quota,
    resources,
    runtime_class,
    toleration,
)
from trimtab.admission.apiserver import limitranger, serialization
from trimtab.admission.apiserver.admission_chain import run_admission_chain
from trimtab.admission.apiserver.outcome import PodAdmitted, PodRejected
from trimtab.cluster.api.meta import UNSET, change
from trimtab.cluster.api.pod import Pod
from trimtab.cluster.resources import limits_of, requests_of

KATA = runtime_class(
    overhead={"cpu": "250m", "memory": "160Mi"},
    node_selector={"pool": "kata"},
    tolerations=(toleration("kata", operator="Exists"),),
)
DEFAULTS = limit_range(default={"cpu": "500m", "memory": "512Mi"}, default_request={"cpu": "100m", "memory": "128Mi"})


@dataclass
class Hook:
    """A webhook that remembers what it was shown."""

    decide: Callable[[Pod], Pod] = lambda pod: pod
    seen: list[Pod] = field(default_factory=list)

    def __call__(self, given_pod: Pod) -> Pod:
        self.seen.append(given_pod)
        return self.decide(given_pod)


def with_spec(**fields):
    return Hook(lambda given_pod: change(given_pod, spec=change(given_pod.spec, **fields)))


def with_resources(decide):
    """A webhook that gives every container what `decide` makes of its resources."""

    def decided(given_pod: Pod) -> Pod:
        containers = tuple(change(c, resources=decide(c.resources)) for c in given_pod.spec.containers)
        return change(given_pod, spec=change(given_pod.spec, containers=containers))

    return Hook(decided)


def no_limits(*names: str) -> Hook:
    return with_resources(lambda r: change(r, limits={n: v for n, v in limits_of(r).items() if n not in names}))


def stored(admission: PodAdmitted | PodRejected) -> Pod:
    assert isinstance(admission, PodAdmitted), admission
    return admission.pod


def refusal(admission: PodAdmitted | PodRejected) -> str:
    assert isinstance(admission, PodRejected), admission
    return str(admission)


def limits(admission: PodAdmitted | PodRejected):
    return limits_of(stored(admission).spec.containers[0].resources)


# --- RuntimeClass and overhead ---


def test_a1_a_pod_that_names_its_class_is_shown_with_overhead_and_needs_nothing():
    hook = Hook()
    admission = run_admission_chain(pod(runtime_class_name="kata"), facts(KATA), NAMESPACE, hook)
    assert [p.spec.overhead for p in hook.seen] == [KATA.overhead.pod_fixed]
    assert stored(admission).spec.overhead == KATA.overhead.pod_fixed


def test_a3_a_wrong_overhead_is_refused_before_the_webhook_is_called():
    hook = Hook()
    admission = run_admission_chain(pod(runtime_class_name="kata", overhead={"cpu": "1"}), facts(KATA), NAMESPACE, hook)
    assert (refusal(admission).startswith("403"), hook.seen) == (True, [])


def test_a5_stray_overhead_is_refused_unless_the_webhook_strips_it():
    given_pod = pod(overhead={"cpu": "100m", "memory": "1"})
    assert "without corresponding" in refusal(run_admission_chain(given_pod, facts(), NAMESPACE, Hook()))
    assert stored(run_admission_chain(given_pod, facts(), NAMESPACE, with_spec(overhead=UNSET))).spec.overhead is UNSET


def test_a8_an_empty_overhead_is_refused_unless_any_patch_rewrites_the_pod():
    # cases/webhook.md A8 says accepted; measured on 1.36.3: 403, and 201 after a webhook changed anything at all,
    # because the empty map is not in the JSON that the patch is applied to.
    assert "without corresponding" in refusal(run_admission_chain(pod(overhead={}), facts(), NAMESPACE, Hook()))
    labelled = Hook(lambda p: change(p, metadata=change(p.metadata, labels={"a": "b"})))
    assert stored(run_admission_chain(pod(overhead={}), facts(), NAMESPACE, labelled)).spec.overhead is UNSET


def test_a9_setting_the_class_alone_brings_the_rest_and_a_second_call():
    hook = with_spec(runtime_class_name="kata")
    created_pod = stored(run_admission_chain(pod(), facts(KATA), NAMESPACE, hook))
    assert [p.spec.overhead for p in hook.seen] == [UNSET, KATA.overhead.pod_fixed]
    assert (created_pod.spec.overhead, created_pod.spec.node_selector) == (KATA.overhead.pod_fixed, {"pool": "kata"})
    assert [t.key for t in created_pod.spec.tolerations] == [
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
        "kata",
    ]


def test_a13_a_class_that_conflicts_with_the_selector_is_refused_in_the_second_pass():
    admission = run_admission_chain(
        pod(node_selector={"pool": "web"}), facts(KATA), NAMESPACE, with_spec(runtime_class_name="kata")
    )
    assert refusal(admission) == (
        "403 conflict: runtimeClass.scheduling.nodeSelector[pool] = kata; pod.spec.nodeSelector[pool] = web"
    )


def test_a_missing_class_set_by_the_webhook_is_refused_by_the_plugin():
    admission = run_admission_chain(pod(), facts(), NAMESPACE, with_spec(runtime_class_name="nope"))
    assert refusal(admission) == '403 pod rejected: RuntimeClass "nope" not found'


def test_changing_the_class_without_removing_the_overhead_is_refused():
    given_pod, plain = pod(runtime_class_name="kata"), runtime_class("plain")
    admission = run_admission_chain(given_pod, facts(KATA, plain), NAMESPACE, with_spec(runtime_class_name="plain"))
    assert "without corresponding" in refusal(admission)


def test_changing_the_class_and_removing_the_overhead_leaves_the_old_scheduling():
    given_pod, plain = pod(runtime_class_name="kata"), runtime_class("plain")
    hook = with_spec(runtime_class_name="plain", overhead=UNSET)
    assert stored(run_admission_chain(given_pod, facts(KATA, plain), NAMESPACE, hook)).spec.node_selector == {
        "pool": "kata"
    }


def test_overhead_taken_away_in_both_passes_is_refused():
    # knowledge/webhook.md 1.4 #17 says stored without; measured on 1.36.3: 403.
    admission = run_admission_chain(pod(runtime_class_name="kata"), facts(KATA), NAMESPACE, with_spec(overhead=UNSET))
    assert "doesn't match" in refusal(admission)


def test_without_the_plugin_the_class_brings_nothing_and_overhead_is_believed():
    hook = with_spec(runtime_class_name="nope", overhead={"cpu": "1"})
    admission = run_admission_chain(pod(), facts(KATA), NAMESPACE, hook, runtime_class_admission=False)
    assert (stored(admission).spec.overhead, len(hook.seen)) == ({"cpu": "1"}, 1)


# --- one call or two ---


def test_b1_nothing_to_do_is_one_call_and_no_second_pass():
    hook = Hook()
    admission = run_admission_chain(pod(), facts(), NAMESPACE, hook)
    assert isinstance(admission, PodAdmitted)
    assert (admission.calls, len(hook.seen), {step.number for step in admission.steps}) == (1, 1, {1})


def test_b2_a_change_of_its_own_is_one_call_without_reinvocation():
    hook = with_spec(runtime_class_name="kata")
    created_pod = stored(run_admission_chain(pod(), facts(KATA), NAMESPACE, hook, reinvocation=False))
    assert (len(hook.seen), created_pod.spec.overhead) == (1, KATA.overhead.pod_fixed)


def test_a_change_that_no_plugin_reacts_to_is_one_call_even_with_reinvocation():
    hook = with_spec(node_selector={"pool": "a"})
    assert stored(run_admission_chain(pod(), facts(), NAMESPACE, hook)).spec.node_selector == {"pool": "a"}
    assert len(hook.seen) == 1


def test_b3_a_change_that_a_plugin_reacts_to_is_two_calls():
    hook = with_spec(runtime_class_name="kata")
    admission = run_admission_chain(pod(), facts(KATA), NAMESPACE, hook)
    assert isinstance(admission, PodAdmitted)
    assert [str(step).split(":")[0] for step in admission.steps if step.number == 2] == ["pass 2, RuntimeClass"]
    assert (admission.calls, len(hook.seen)) == (2, 2)


def test_b9_a_priority_class_alone_contradicts_the_number_of_pass_one():
    high = priority_class("high", 1000)
    admission = run_admission_chain(pod(), facts(high), NAMESPACE, with_spec(priority_class_name="high"))
    assert "the integer value of priority (0) must not be provided" in refusal(admission)


def test_b9_with_number_and_policy_removed_the_class_counts():
    high = priority_class("high", 1000)
    hook = with_spec(priority_class_name="high", priority=UNSET, preemption_policy=UNSET)
    admission = run_admission_chain(pod(), facts(high), NAMESPACE, hook, reinvocation=False)
    assert stored(admission).spec.priority == 1000


def test_b9_a_webhook_that_removes_the_number_in_its_second_call_too_loses_it():
    # Nobody fills it again: there is no third pass, and no validation that misses it.
    high = priority_class("high", 1000)
    hook = with_spec(priority_class_name="high", priority=UNSET, preemption_policy=UNSET)
    assert stored(run_admission_chain(pod(), facts(high), NAMESPACE, hook)).spec.priority is UNSET


def test_tolerations_replaced_get_the_two_defaults_again():
    hook = with_spec(tolerations=(toleration("a", operator="Exists"),))
    created_pod = stored(run_admission_chain(pod(), facts(), NAMESPACE, hook, reinvocation=False))
    assert [t.key.rpartition("/")[2] for t in created_pod.spec.tolerations] == ["a", "not-ready", "unreachable"]


# --- LimitRange, quota, requests ---


def test_e1_defaults_are_there_before_the_first_call():
    hook = Hook()
    run_admission_chain(pod(), facts(DEFAULTS), NAMESPACE, hook)
    assert hook.seen[0].spec.containers[0].resources == resources(
        {"cpu": "100m", "memory": "128Mi"}, {"cpu": "500m", "memory": "512Mi"}
    )
    assert limitranger.ANNOTATION in hook.seen[0].metadata.annotations


def test_limits_removed_come_back_without_reinvocation():
    admission = run_admission_chain(pod(), facts(DEFAULTS), NAMESPACE, no_limits("cpu", "memory"), reinvocation=False)
    assert limits(admission) == {"cpu": "500m", "memory": "512Mi"}


def test_limits_removed_twice_stay_away_and_the_annotation_stays():
    admission = run_admission_chain(pod(), facts(DEFAULTS), NAMESPACE, no_limits("cpu", "memory"))
    assert limits(admission) == {}
    assert "cpu, memory limit for container app" in stored(admission).metadata.annotations[limitranger.ANNOTATION]


def test_limits_removed_come_back_if_the_second_call_never_comes():
    admission = run_admission_chain(pod(), facts(DEFAULTS), NAMESPACE, no_limits("cpu"), second_call_comes=False)
    assert limits(admission) == {"cpu": "500m", "memory": "512Mi"}


def test_a_request_above_the_limit_that_comes_back_blocks_the_pod():
    big = with_resources(lambda r: resources({"cpu": "2", "memory": "1Gi"}))
    admission = run_admission_chain(pod(), facts(DEFAULTS), NAMESPACE, big, second_call_comes=False)
    assert refusal(admission).startswith("422 [spec.containers[0].resources.requests: Invalid value")
    assert "must be less than or equal to cpu limit of 500m" in refusal(admission)


def test_the_same_with_a_second_call_is_stored_without_limits():
    big = with_resources(lambda r: resources({"cpu": "2", "memory": "1Gi"}))
    assert limits(run_admission_chain(pod(), facts(DEFAULTS), NAMESPACE, big)) == {}


def test_e6_a_limit_above_the_maximum_is_refused_whatever_we_do():
    given_pod = pod(container(requests={"cpu": "1"}, limits={"cpu": "2500m"}))
    admission = run_admission_chain(given_pod, facts(limit_range(max={"cpu": "2"})), NAMESPACE, Hook())
    assert refusal(admission) == "403 maximum cpu usage per Container is 2, but limit is 2500m"


def test_limits_cannot_be_removed_under_a_maximum():
    admission = run_admission_chain(pod(), facts(limit_range(max={"cpu": "1"})), NAMESPACE, no_limits("cpu"))
    assert refusal(admission) == "403 maximum cpu usage per Container is 1.  No limit is specified"


def test_e13_removing_a_limit_that_a_quota_counts_is_refused():
    given_pod = pod(container("c", requests={"cpu": "1"}, limits={"cpu": "1"}))
    admission = run_admission_chain(given_pod, facts(quota({"limits.cpu": "4"})), NAMESPACE, no_limits("cpu"))
    assert refusal(admission) == "403 failed quota: q: must specify limits.cpu for: c"


def test_d6_a_limit_removed_after_defaulting_leaves_the_request_it_became():
    created_pod = stored(run_admission_chain(pod(container(limits={"cpu": "1"})), facts(), NAMESPACE, no_limits("cpu")))
    assert created_pod.spec.containers[0].resources == resources({"cpu": "1"})


def test_d7_a_request_removed_while_its_limit_stays_comes_back():
    hook = with_resources(lambda r: change(r, requests=UNSET))
    created_pod = stored(run_admission_chain(pod(container(limits={"cpu": "1"})), facts(), NAMESPACE, hook))
    assert requests_of(created_pod.spec.containers[0].resources) == {"cpu": "1"}


def test_d16_a_tiny_quantity_is_stored_as_a_thousandth():
    created_pod = stored(run_admission_chain(pod(container(requests={"cpu": "250u"})), facts(), NAMESPACE, Hook()))
    assert requests_of(created_pod.spec.containers[0].resources) == {"cpu": "1m"}


def test_e12_overhead_filled_by_the_class_does_not_break_the_pod_maximum():
    given_pod = pod(container(requests={"memory": "1Gi"}, limits={"memory": "1Gi"}), runtime_class_name="kata")
    assert stored(
        run_admission_chain(given_pod, facts(KATA, limit_range(kind="Pod", max={"memory": "1Gi"})), NAMESPACE, Hook())
    )


def test_what_a_limit_range_gives_containers_is_summed_for_the_pod_when_it_is_read_back():
    given_pod = pod(resources=resources(limits={"memory": "1Gi"}))
    hook = Hook()
    created_pod = stored(run_admission_chain(given_pod, facts(limit_range(min={"cpu": "10m"})), NAMESPACE, hook))
    assert requests_of(hook.seen[0].spec.resources) == {"memory": "1Gi"}
    assert requests_of(created_pod.spec.resources) == {"memory": "1Gi", "cpu": "10m"}


def test_validation_speaks_before_the_plugins():
    admission = run_admission_chain(
        pod(), facts(DEFAULTS), NAMESPACE, with_spec(node_selector={"a b": "c"}, overhead={"cpu": "1"})
    )
    assert refusal(admission).startswith("422")


def test_what_cannot_be_read_is_400_and_500_once_a_webhook_made_it():
    broken = pod(container(limits={"cpu": "abc"}))
    assert refusal(run_admission_chain(broken, facts(), NAMESPACE, Hook())).startswith("400")
    assert refusal(run_admission_chain(pod(), facts(), NAMESPACE, Hook(lambda _: broken))).startswith("500")


def test_every_step_that_changed_something_is_told():
    admission = run_admission_chain(pod(runtime_class_name="kata"), facts(KATA, DEFAULTS), NAMESPACE, Hook())
    assert isinstance(admission, PodAdmitted)
    names = ["defaulting", "LimitRanger", "Priority", "DefaultTolerationSeconds", "RuntimeClass"]
    assert [step.name for step in admission.steps] == names
    assert "spec.overhead.cpu: 250m" in admission.steps[-1].changed_fields


# --- laws ---


@settings(deadline=None)
@given(pods(), objects())
def test_a_webhook_that_changes_nothing_is_called_once(given_pod, world):
    hook = Hook()
    admission = run_admission_chain(given_pod, facts(*world), NAMESPACE, hook)
    assert len(hook.seen) == (admission.calls if isinstance(admission, PodAdmitted) else len(hook.seen))
    assert len(hook.seen) <= 1


@settings(deadline=None)
@given(pods(), objects())
def test_a_stored_pod_is_stored_unchanged(given_pod, world):
    around = facts(*world)
    admission = run_admission_chain(given_pod, around, NAMESPACE, Hook())
    if isinstance(admission, PodAdmitted):
        assert stored(run_admission_chain(admission.pod, around, NAMESPACE, Hook())) == admission.pod


@settings(deadline=None)
@given(pods(), objects())
def test_a_pod_is_stored_as_the_webhook_last_left_it_or_as_the_server_completed_that(given_pod, world):
    hook = no_limits("cpu", "memory")
    admission = run_admission_chain(given_pod, facts(*world), NAMESPACE, hook)
    if isinstance(admission, PodAdmitted) and admission.calls == 2:
        assert limits(admission) == {}
        assert serialization.is_semantically_equal(serialization.round_trip(admission.pod), admission.pod)
