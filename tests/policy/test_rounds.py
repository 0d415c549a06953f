"""What one policy changes may be what another one asks for."""

from tests.build import (
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
from trimtab.cluster.api.meta import change
from trimtab.cluster.api.rules import ScopedRequirement, ScopeSelector
from trimtab.policy import marker

LABEL = policy("{labels: {add: {tier: batch}}}", name="label")
PLACE = policy("{placement: {nodeSelector: {pool: batch}}}", name="place", match="{podLabels: {tier: batch}}")


def test_a_label_that_one_policy_adds_is_there_for_the_next():
    found = decided(pod(), policies(LABEL, PLACE))
    assert changed(found) == {"labels[tier]": "batch", "nodeSelector[pool]": "batch"}


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
    found = decided(change(first, spec=change(first.spec, containers=more)), by).pod
    assert marker.read(found, "team-a") == marker.Marker({"label": {"labels[tier]": "batch"}})


def test_a_marker_nested_without_end_is_no_marker():
    deep = '{"pod":"0","by":{},"more":' + "[" * 100_000
    assert marker.read(pod(annotations={marker.ANNOTATION: deep}), "team-a") is None


NOT_BEST_EFFORT = quota({"limits.cpu": "10", "requests.cpu": "10"}, scopes=("NotBestEffort",))


def test_a_request_does_not_bring_a_pod_under_a_quota_that_refuses_it():
    rule = policies(policy("{requests: {cpu: {from: policy, otherwise: 100m}}}"))
    found = decided(pod(), rule, facts(NOT_BEST_EFFORT))
    assert (changed(found), codes(found, loud=True)) == ({}, {"quota-counts-qos"})
    assert stored(pod(), rule, facts(NOT_BEST_EFFORT)).pod is not None


def test_a_priority_class_does_not_bring_a_pod_under_a_quota_that_refuses_it():
    requirement = ScopedRequirement(scope_name="PriorityClass", operator="In", values=("high",))
    counted = quota({"limits.cpu": "10"}, scope_selector=ScopeSelector(match_expressions=(requirement,)))
    rule = policies(policy("{priorityClass: {name: high}}"))
    found = decided(pod(), rule, facts(counted, priority_class("high", 10)))
    assert (changed(found), codes(found, loud=True)) == ({}, {"quota-counts-limit"})


def test_a_quota_that_refuses_the_pod_as_it_came_forbids_nothing():
    rule = policies(policy("{requests: {cpu: {from: policy, otherwise: 100m}}}"))
    found = decided(pod(), rule, facts(quota({"limits.cpu": "10"})))
    assert changed(found) == {"containers[app].requests.cpu": "100m"}


def test_one_who_recommends_later_finds_the_first_request_unchanged():
    rule = policies(policy("{requests: {cpu: {from: usage}}}"))
    first = decided(pod(owner="Deployment/web"), rule, facts(usage(cpu=("10m", "90m")), vpa())).pod
    assert decided(first, rule, facts(usage(cpu=("20m", "90m")), vpa())).pod is first


def test_a_limit_does_not_follow_a_request_that_follows_it():
    rule = policies(
        policy("{requests: {memory: {from: limit, percent: 80, when: always}}, limits: {memory: request x 2}}")
    )
    found = decided(pod(container(limits={"memory": "100Mi"})), rule)
    assert (changed(found), codes(found, loud=True)) == ({"containers[app].requests.memory": "80Mi"}, {"circular"})


def test_a_limit_does_not_follow_a_request_that_would_then_follow_it():
    rule = policies(policy("{requests: {memory: {from: limit, when: always}}, limits: {memory: request x 2}}"))
    found = decided(pod(container(requests={"memory": "100Mi"})), rule)
    assert (changed(found), codes(found)) == ({}, {"circular"})


def test_a_limit_does_not_follow_a_request_that_would_be_a_bounded_share_of_it():
    rule = policies(policy("{requests: {cpu: {from: limit, max: 10m, when: always}}, limits: {cpu: request}}"))
    found = decided(pod(container(requests={"cpu": "50m"})), rule)
    assert (changed(found), codes(found)) == ({}, {"circular"})


def test_a_limit_does_not_fall_below_a_request_that_somebody_raised_after_us():
    rule = policies(
        policy("{requests: {memory: {from: policy, otherwise: 100Mi, when: always}}, limits: {memory: request}}")
    )
    first = decided(pod(), rule).pod
    raised = change(first, spec=change(first.spec, containers=(container(requests={"memory": "1Gi"}),)))
    found = decided(raised, rule)
    assert (found.pod, codes(found, loud=True)) == (raised, {"changed-after-us"})


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


def test_overhead_that_the_server_will_fill_in_is_not_missed_between_two_rounds():
    by = policies(
        policy("{runtimeClass: {name: kata}}", name="sets"),
        policy('{annotations: {add: {seen: "yes"}}}', name="asks", match="{runtimeClasses: [kata]}"),
    )
    found = decided(pod(), by, facts(runtime_class(overhead={"cpu": "50m"})))
    assert [change.policy for change in found.changes] == ["sets", "asks"]
    assert not codes(found, loud=True)
