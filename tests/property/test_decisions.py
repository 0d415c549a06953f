"""Laws of a decision, over generated pods, policies and clusters."""

import msgspec
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.build import NAMESPACE, before_and_after, changed, decided
from tests.property import strategies as some
from trimtab.admission.apiserver import admission_chain, limitranger
from trimtab.admission.apiserver.outcome import PodAdmitted, PodRejected
from trimtab.admission.json_patch import apply_patch, check_patch, diff_pods, to_plain_json
from trimtab.cluster import quantity
from trimtab.cluster.api.meta import change
from trimtab.cluster.api.pod import Pod
from trimtab.cluster.resources import QoS, all_containers, limits_of, qos_class, requests_of
from trimtab.policy.podpolicy import Policies


def unchanged(pod: Pod) -> Pod:
    return pod


def arrived(pod: Pod, world) -> Pod | None:
    """As it is when we are called first; None where the server refuses it before."""
    pods: list[Pod] = []

    def look(pod: Pod) -> Pod:
        pods.append(pod)
        return pod

    admission_chain.run_admission_chain(pod, world, NAMESPACE, look)
    return pods[0] if pods else None


@given(some.pods(), some.policies(), some.worlds())
def test_the_patch_applied_gives_the_decided_pod(pod, by, world):
    after = decided(pod, by, world).pod
    assert msgspec.convert(apply_patch(to_plain_json(pod), diff_pods(pod, after)), Pod) == after


@given(some.pods(), some.policies(), some.worlds())
def test_deciding_twice_changes_nothing(pod, by, world):
    came = arrived(pod, world)
    assume(came is not None)
    after = decided(came, by, world).pod
    assert decided(after, by, world).pod == after


@given(some.pods(), some.policies(), some.worlds())
def test_deciding_twice_changes_nothing_on_a_pod_that_no_server_has_seen(pod, by, world):
    after = decided(pod, by, world).pod
    assert decided(after, by, world).pod == after


@given(some.pods(), some.policies(), some.worlds(), st.booleans(), st.booleans())
def test_a_valid_pod_stays_valid_with_and_without_our_second_call(pod, by, world, reinvocation, second):
    without = admission_chain.run_admission_chain(pod, world, NAMESPACE, unchanged)
    assume(isinstance(without, PodAdmitted))
    admission = admission_chain.run_admission_chain(
        pod, world, NAMESPACE, lambda p: decided(p, by, world).pod, reinvocation=reinvocation, second_call_comes=second
    )
    assert isinstance(admission, PodAdmitted), str(admission)


@given(some.pods(), some.policies(), some.worlds())
def test_a_patch_of_a_valid_pod_is_never_found_unsafe(pod, by, world):
    came = arrived(pod, world)
    assume(
        came is not None
        and isinstance(admission_chain.run_admission_chain(pod, world, NAMESPACE, unchanged), PodAdmitted)
    )
    after = decided(came, by, world).pod
    pods = before_and_after(came, after, world, NAMESPACE)
    second_patch = check_patch(pods, diff_pods(came, after), lambda p: decided(p, by, world).pod)
    assert second_patch is None


@given(some.pods(), some.policies(), some.worlds())
def test_the_second_call_finds_nothing_to_do(pod, by, world):
    admission = admission_chain.run_admission_chain(pod, world, NAMESPACE, lambda p: decided(p, by, world).pod)
    assume(isinstance(admission, PodAdmitted))
    assert [step for step in admission.steps if step.name == "webhook" and step.number == 2] == []


def above_limit(pod: Pod) -> set[str]:
    """Container and resource of every request above its limit."""
    return {
        f"{container.name}.{name}"
        for container in all_containers(pod.spec)
        for name, limit in limits_of(container.resources).items()
        if quantity.parse(requests_of(container.resources).get(name, 0)) > quantity.parse(limit)
    }


@given(some.pods(), some.policies(), some.worlds())
def test_no_request_is_ever_above_its_limit_also_when_the_defaults_come_back(pod, by, world):
    came = arrived(pod, world)
    assume(came is not None)
    after = decided(came, by, world).pod
    assert above_limit(after) <= above_limit(came)
    assert above_limit(limitranger.apply_limit_ranges(after, world, NAMESPACE)) <= above_limit(came)


def allows(by: Policies, what) -> bool:
    return any(what(policy.spec) for policy in by.all if policy.spec.mode == "apply")


@given(some.pods(), some.policies(), some.worlds())
def test_the_class_of_service_changes_only_where_a_policy_says_so(pod, by, world):
    came = arrived(pod, world)
    assume(came is not None)
    before, after = qos_class(came.spec), qos_class(decided(came, by, world).pod.spec)
    if before is QoS.GUARANTEED and after is not before:
        assert allows(by, lambda spec: spec.guaranteed == "change")
    if after is QoS.GUARANTEED and after is not before:
        assert allows(by, lambda spec: spec.actions.limits is not None and "request" in str(spec.actions.limits))
    if before is QoS.BEST_EFFORT and after is not before:
        assert allows(by, lambda spec: spec.actions.requests is not None)
    assert not (after is QoS.BEST_EFFORT and before is not after)


@given(some.opted_out(), some.policies(), some.worlds())
def test_a_pod_that_opted_out_is_untouched(pod, by, world):
    assert decided(pod, by, world).pod is pod


@given(some.pods(), some.policies(modes=("warn", "audit")), some.worlds())
def test_policies_that_only_watch_change_nothing(pod, by, world):
    decision = decided(pod, by, world)
    assert decision.changes == ()
    assert [
        o for o in diff_pods(pod, decision.pod) if "trimtab.dev~1changed" not in o["path"] and o["op"] != "remove"
    ] == []


@given(some.pods(), some.documents(), some.worlds(), st.randoms(use_true_random=False))
def test_the_order_in_which_policies_are_given_does_not_matter(pod, documents, world, random):
    shuffled = random.sample(documents, len(documents))
    assert decided(pod, some.load(documents), world) == decided(pod, some.load(shuffled), world)


def reversed_keys(value):
    """The same JSON value, every mapping the other way round."""
    if isinstance(value, dict):
        return {key: reversed_keys(value[key]) for key in reversed(value)}
    return [reversed_keys(item) for item in value] if isinstance(value, list) else value


@given(some.manifests(), some.documents(), some.worlds())
def test_the_order_of_keys_does_not_matter(manifest, documents, world):
    one = decided(some.read(manifest), some.load(documents), world)
    other = decided(some.read(reversed_keys(manifest)), some.load([reversed_keys(d) for d in documents]), world)
    assert (one.pod, changed(one)) == (other.pod, changed(other))


@given(some.pods(), some.policies(), some.worlds())
def test_a_change_told_is_a_change_made(pod, by, world):
    decision = decided(pod, by, world)
    assert not (decision.changes and decision.pod is pod)
    assert all(each.before != each.after for each in decision.changes)


@given(some.pods(), some.policies(), some.worlds())
def test_no_action_ever_fails(pod, by, world):
    assert decided(pod, by, world).failures == ()


@given(some.pods(), some.policies(), some.worlds())
def test_refusing_is_the_only_way_not_to_answer_with_a_pod(pod, by, world):
    decision = decided(pod, by, world)
    assert decision.denied is None or decision.pod is pod
    assert not isinstance(decision.pod, PodRejected)


def sized(pod: Pod) -> dict:
    return {c.name: (requests_of(c.resources), limits_of(c.resources)) for c in all_containers(pod.spec)}


@given(some.pods(), some.pods(), some.policies(), some.worlds())
def test_what_another_webhook_sizes_after_us_stays_valid(pod, other, by, world):
    came = arrived(pod, world)
    assume(came is not None)
    theirs = {container.name: container.resources for container in other.spec.containers}
    after = decided(came, by, world).pod
    containers = tuple(change(c, resources=theirs.get(c.name, c.resources)) for c in after.spec.containers)
    foreign = arrived(change(after, spec=change(after.spec, containers=containers)), world)
    assume(foreign is not None)
    created_pod = decided(foreign, by, world).pod
    assert above_limit(created_pod) <= above_limit(foreign)
    assert sized(decided(created_pod, by, world).pod) == sized(created_pod)


@given(some.pods(), some.policies(), some.worlds())
def test_what_runs_in_a_pod_and_as_whom_is_no_policys_to_change(pod, by, world):
    """Whoever writes policies changes what a pod asks for and where it runs; of volumes a bound of an emptyDir."""
    before, after = to_plain_json(pod)["spec"], to_plain_json(decided(pod, by, world).pod)["spec"]
    for spec in (before, after):
        for volume in spec.get("volumes") or ():
            (volume.get("emptyDir") or {}).pop("sizeLimit", None)
    for kind in ("containers", "initContainers"):
        assert len(before.get(kind, [])) == len(after.get(kind, []))
        for one, other in zip(before.get(kind, []), after.get(kind, []), strict=True):
            for field in ("name", "image", "command", "args", "env", "envFrom", "volumeMounts", "securityContext"):
                assert one.get(field) == other.get(field)
    for field in ("volumes", "serviceAccountName", "securityContext", "hostNetwork", "hostPID", "imagePullSecrets"):
        assert before.get(field) == after.get(field)
