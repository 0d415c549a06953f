"""A change of one policy may be what another policy matches by."""

from tests.build import (
    SIGNER,
    changed,
    codes,
    container,
    decided,
    facts,
    pod,
    policies,
    policy,
    priority_class,
    quota,
    runtime_class,
    stored,
    usage,
    vpa,
)
from trimtab.cluster.api.core import ScopedRequirement, ScopeSelector
from trimtab.cluster.api.meta import UNSET, change
from trimtab.cluster.api.pod import EmptyDir, Volume
from trimtab.policy import changed_annotation

LABEL = policy("{labels: {add: {tier: batch}}}", name="label")
PLACE = policy("{placement: {nodeSelector: {pool: batch}}}", name="place", match="{podLabels: {tier: batch}}")


def test_a_label_that_one_policy_adds_is_there_for_the_next():
    decision = decided(pod(), policies(LABEL, PLACE))
    assert changed(decision) == {"labels[tier]": "batch", "nodeSelector[pool]": "batch"}


def test_both_policies_are_told_as_matched():
    assert [m.policy for m in decided(pod(), policies(LABEL, PLACE)).matched] == ["label", "place"]


def test_two_policies_that_undo_each_other_do_it_once():
    one = policy("{labels: {add: {x: b}, override: true}}", name="a", match="{podLabels: {x: a}}")
    two = policy("{labels: {add: {x: a}, override: true}}", name="b", match="{podLabels: {x: b}}")
    by = policies(one, two)
    first = decided(pod(labels={"x": "a"}), by)
    assert (changed(first), decided(first.pod, by).pod) == ({"labels[x]": "b"}, first.pod)


def test_a_label_that_a_policy_adds_can_tell_the_replicas_to_spread():
    by = policies(policy("{labels: {add: {app: web}}, topologySpread: {constraints: [{topologyKey: zone}]}}"))
    assert "topologySpreadConstraints[zone]" in changed(decided(pod(), by))


def test_the_marker_stays_ours_when_another_webhook_adds_a_sidecar_and_rewrites_images():
    by = policies(LABEL)
    first = decided(pod(), by).pod
    more = (container("app", image="mirror.example/app:1"), container("proxy"))
    result = decided(change(first, spec=change(first.spec, containers=more)), by).pod
    assert changed_annotation.read_trusted_annotation(result, "team-a", SIGNER) == changed_annotation.ChangedAnnotation(
        {"label": {"labels[tier]": "batch"}}
    )


def test_a_marker_nested_without_end_is_no_marker():
    deep = '{"pod":"0","by":{},"more":' + "[" * 100_000
    assert (
        changed_annotation.read_trusted_annotation(
            pod(annotations={changed_annotation.ANNOTATION: deep}), "team-a", SIGNER
        )
        is None
    )


NOT_BEST_EFFORT = quota({"limits.cpu": "10", "requests.cpu": "10"}, scopes=("NotBestEffort",))


def test_a_request_does_not_bring_a_pod_under_a_quota_that_refuses_it():
    rule = policies(policy("{requests: {cpu: {from: policy, otherwise: 100m}}}"))
    decision = decided(pod(), rule, facts(NOT_BEST_EFFORT))
    assert (changed(decision), codes(decision, loud=True)) == ({}, {"quota-counts-qos"})
    assert stored(pod(), rule, facts(NOT_BEST_EFFORT)).pod is not None


def test_a_priority_class_does_not_bring_a_pod_under_a_quota_that_refuses_it():
    requirement = ScopedRequirement(scope_name="PriorityClass", operator="In", values=("high",))
    counted = quota({"limits.cpu": "10"}, scope_selector=ScopeSelector(match_expressions=(requirement,)))
    rule = policies(policy("{priorityClass: {name: high}}"))
    decision = decided(pod(), rule, facts(counted, priority_class("high", 10)))
    assert (changed(decision), codes(decision, loud=True)) == ({}, {"quota-counts-limit"})


def test_a_quota_that_refuses_the_pod_as_it_came_forbids_nothing():
    rule = policies(policy("{requests: {cpu: {from: policy, otherwise: 100m}}}"))
    decision = decided(pod(), rule, facts(quota({"limits.cpu": "10"})))
    assert changed(decision) == {"containers[app].requests.cpu": "100m"}


def test_one_who_recommends_later_finds_the_first_request_unchanged():
    rule = policies(policy("{requests: {cpu: {from: usage}}}"))
    first = decided(pod(owner="Deployment/web"), rule, facts(usage(cpu=("10m", "90m")), vpa())).pod
    assert decided(first, rule, facts(usage(cpu=("20m", "90m")), vpa())).pod is first


def test_a_limit_does_not_follow_a_request_that_follows_it():
    rule = policies(
        policy("{requests: {memory: {from: limit, percent: 80, when: always}}, limits: {memory: request x 2}}")
    )
    decision = decided(pod(container(limits={"memory": "100Mi"})), rule)
    assert (changed(decision), codes(decision, loud=True)) == (
        {"containers[app].requests.memory": "80Mi"},
        {"circular-request-and-limit"},
    )


def test_a_limit_does_not_follow_a_request_that_would_then_follow_it():
    rule = policies(policy("{requests: {memory: {from: limit, when: always}}, limits: {memory: request x 2}}"))
    decision = decided(pod(container(requests={"memory": "100Mi"})), rule)
    assert (changed(decision), codes(decision)) == ({}, {"circular-request-and-limit"})


def test_a_limit_does_not_follow_a_request_that_would_be_a_bounded_share_of_it():
    rule = policies(policy("{requests: {cpu: {from: limit, max: 10m, when: always}}, limits: {cpu: request}}"))
    decision = decided(pod(container(requests={"cpu": "50m"})), rule)
    assert (changed(decision), codes(decision)) == ({}, {"circular-request-and-limit"})


def test_a_limit_does_not_fall_below_a_request_that_somebody_raised_after_us():
    rule = policies(
        policy("{requests: {memory: {from: policy, otherwise: 100Mi, when: always}}, limits: {memory: request}}")
    )
    first = decided(pod(), rule).pod
    raised = change(first, spec=change(first.spec, containers=(container(requests={"memory": "1Gi"}),)))
    decision = decided(raised, rule)
    assert (decision.pod, codes(decision, loud=True)) == (raised, {"changed-by-another"})


def test_a_share_of_the_limit_is_taken_once_however_often_we_are_asked():
    rule = policies(
        policy(
            "{requests: {cpu: {from: limit, percent: 80, when: always}}, limits: {cpu: request}}", guaranteed="change"
        )
    )
    first = decided(pod(container(requests={"cpu": "1"}, limits={"cpu": "1"})), rule).pod
    assert decided(first, rule).pod is first


def test_a_share_that_filled_what_was_missing_is_not_followed_by_the_limit_later():
    rule = policies(policy("{requests: {cpu: {from: limit, percent: 80}}, limits: {cpu: request}}"))
    first = decided(pod(container(limits={"cpu": "1"})), rule).pod
    assert decided(first, rule).pod is first


def test_a_share_of_no_limit_stays_one_when_another_policy_fills_the_request():
    share = policy("{requests: {cpu: {from: limit}}, limits: {cpu: request x 2}}", name="share", priority=2)
    fill = policy("{requests: {cpu: {from: policy, otherwise: 50m}}}", name="fill")
    first = decided(pod(), policies(share, fill)).pod
    assert decided(first, policies(share, fill)).pod is first


def test_a_limit_of_one_policys_request_is_not_anothers_share_the_next_time():
    """64Mi and 96Mi became 24Mi, a quarter of that limit, when the printed manifest was admitted again."""
    limit = policy(
        "{requests: {memory: {from: policy, otherwise: 64Mi}}, limits: {memory: request x 1.5}}",
        name="limit",
        priority=2,
    )
    share = policy("{requests: {memory: {from: limit, percent: 25, when: always}}}", name="share")
    for both in (policies(limit, share), policies(share, limit)):
        first = decided(pod(), both).pod
        amount = change(first, metadata=pod().metadata)
        assert decided(amount, both).pod.spec == first.spec


def test_overhead_that_the_server_will_fill_in_is_not_missed_between_two_rounds():
    by = policies(
        policy("{runtimeClass: {name: kata}}", name="sets"),
        policy('{annotations: {add: {seen: "yes"}}}', name="asks", match="{runtimeClasses: [kata]}"),
    )
    decision = decided(pod(), by, facts(runtime_class(overhead={"cpu": "50m"})))
    assert [change.policy for change in decision.changes] == ["sets", "asks"]
    assert not codes(decision, loud=True)


def test_a_limit_that_we_removed_and_somebody_put_back_is_theirs():
    """A later webhook sets the limit again each time it is called, and Trimtab would remove it for ever."""
    rule = policies(policy("{limits: {cpu: remove}}"))
    once = decided(pod(container(requests={"cpu": "1"}, limits={"cpu": "2"})), rule).pod
    assert once.spec.containers[0].resources.limits is UNSET
    theirs = container(requests={"cpu": "1"}, limits={"cpu": "3"})
    back = change(once, spec=change(once.spec, containers=(theirs,)))
    decision = decided(back, rule)
    assert (decision.pod, codes(decision, loud=True)) == (back, {"changed-by-another"})


DEFAULT = policy("{requests: {cpu: {from: policy, otherwise: 10m}}}", name="a")
ALWAYS = policy("{requests: {cpu: {from: policy, otherwise: 50m, when: always}}}", name="b")


def test_a_request_that_an_earlier_policy_gives_where_none_is_written_stays_when_it_is_written():
    """The manifest of an admitted pod is admitted again, without an annotation that a replica signed."""
    by = policies(DEFAULT, ALWAYS)
    once = decided(pod(container("app")), by)
    assert changed(once) == {"containers[app].requests.cpu": "10m"}
    decision = decided(pod(container("app", requests={"cpu": "10m"})), by)
    assert not changed(decision)
    assert "already-set" in codes(decision)


def test_any_other_request_is_still_replaced():
    decision = decided(pod(container("app", requests={"cpu": "11m"})), policies(DEFAULT, ALWAYS))
    assert changed(decision) == {"containers[app].requests.cpu": "50m"}


def test_bounds_of_an_earlier_policy_hold_for_what_a_later_one_gives():
    """In the manifest the value would be bounded at the next admission, so it is bounded at once."""
    bounds = policy("{requests: {cpu: {from: request, min: 50m}}}", name="bounds", priority=1)
    assert changed(decided(pod(container("app")), policies(bounds, DEFAULT))) == {"containers[app].requests.cpu": "50m"}


def test_volumes_that_a_policy_named_are_no_other_ones_the_next_time():
    scratch = policy("{safeToEvictVolumes: {}}", name="a")
    both = policies(scratch, policy("{safeToEvictVolumes: {hostPaths: true}}", name="b"))
    volumes = (Volume(name="tmp", empty_dir=EmptyDir()), Volume(name="host", host_path={}))
    once = decided(pod(volumes=volumes), both).pod
    assert decided(changed_annotation.remove_annotation(once), both).changes == ()
