"""Requests of whole pods by a policy: what they replace, and beside what they are refused."""

from dataclasses import replace
from typing import Any

import pytest

from tests.build import (
    NAMESPACE,
    SIGNING,
    admission_context,
    before_and_after,
    changed,
    codes,
    container,
    container_usage,
    facts,
    limit_range,
    node,
    owner_key,
    pod,
    policies,
    policy,
    quota,
    shard_of_usage,
    vpa,
    workload,
)
from trimtab.admission.pod_decision import decide_pod
from trimtab.admission.readmission import admit_next_pod
from trimtab.admission.whole_pod import explain_pod_level
from trimtab.cluster.api.autoscaling import (
    HorizontalPodAutoscaler,
    HPASpec,
    MetricSpec,
    MetricTarget,
    ResourceMetric,
    TargetRef,
)
from trimtab.cluster.api.core import Node, NodeSystemInfo, Taint
from trimtab.cluster.api.meta import Metadata, change
from trimtab.cluster.api.pod import Pod, Resources
from trimtab.cluster.api.workload import PodTemplateSpec
from trimtab.cluster.reason import Unreadable
from trimtab.cluster.resources import QoS, pod_requests, qos_class, requests_of
from trimtab.cluster.whole_pods import name_whole_pod
from trimtab.policy.pod_context import PodContext

WEB = (workload("ReplicaSet/web-1", owner="Deployment/web"), workload("Deployment/web", replicas=5))
WHOLE = policy("{podLevelRequests: {cpu: {}}}", name="whole")
SIZED = policy("{requests: {cpu: {from: usage, when: always}}}", name="sizes", priority=10)


def usage(name: str = name_whole_pod(["app", "proxy"]), p95: str = "200m", **options: Any):
    """Each container alone needs 300m at its P95, the average of both 200m."""
    own = container_usage({"cpu": ("50m", "300m")})
    return shard_of_usage({"app": own, "proxy": own, name: container_usage({"cpu": ("40m", p95)}, **options)})


def kubelet(version: str, name: str = "n1", labels: Any = None) -> Node:
    made = node(name, labels={"kubernetes.io/hostname": name, **(labels or {})}, cpu="8", memory="16Gi", pods="110")
    return change(made, status=change(made.status, node_info=NodeSystemInfo(kubelet_version=version)))


NEW = kubelet("v1.36.2")


def both(*requests: Any, owner: str = "ReplicaSet/web-1", **fields: Any) -> Pod:
    app, proxy = requests or ({"cpu": "500m"}, {"cpu": "400m"})
    return pod(container("app", requests=app), container("proxy", requests=proxy), owner=owner, **fields)


def hpa(metric: str, container_name: str = "") -> HorizontalPodAutoscaler:
    source = ResourceMetric(name="cpu", container=container_name, target=MetricTarget(average_utilization=80))
    field = {"Resource": "resource", "ContainerResource": "container_resource"}[metric]
    return HorizontalPodAutoscaler(
        metadata=Metadata(name="web", namespace=NAMESPACE),
        spec=HPASpec(
            scale_target_ref=TargetRef(kind_name="Deployment", name="web"),
            metrics=(MetricSpec(type=metric, **{field: source}),),
            max_replicas=9,
        ),
    )


def outcome(came: Pod, *world: Any, rules: tuple[str, ...] = (SIZED, WHOLE)):
    context = PodContext(pod=came, namespace=NAMESPACE, facts=facts(*WEB, *world), settings=SIGNING)
    decision = decide_pod(context, policies(*rules))
    return decision.apply_to(came), decision.decision


def requests(after: Pod) -> tuple[Any, ...]:
    """cpu of the pod as a whole, and of each container."""
    own = after.spec.resources.requests.get("cpu") if after.spec.resources else None
    return own, *(requests_of(c.resources).get("cpu") for c in after.spec.containers)


def test_the_sum_is_requested_once_and_the_containers_request_nothing() -> None:
    after, decision = outcome(both(), usage(), NEW)
    assert requests(after) == ("400m", None, None)
    assert pod_requests(after.spec)["cpu"] == 400
    assert qos_class(after.spec) is QoS.BURSTABLE
    of_cpu = {field: value for field, value in changed(decision).items() if "requests" in field}
    assert of_cpu == {
        "resources.requests.cpu": "400m",
        "containers[app].requests.cpu": None,
        "containers[proxy].requests.cpu": None,
    }


def test_the_second_call_changes_nothing_and_says_nothing() -> None:
    after, _ = outcome(both(), usage(), NEW)
    again, decision = outcome(after, usage(), NEW)
    assert again == after
    assert not [left for left in decision.fields_kept if "resources" in left.field]


def test_a_container_that_another_webhook_adds_later_raises_the_request_if_it_must() -> None:
    first, _ = outcome(both(), usage(), NEW)
    small, large = (container("late", requests={"cpu": amount}) for amount in ("100m", "1"))
    for late, expected in ((small, "400m"), (large, "1400m")):
        second = change(first, spec=change(first.spec, containers=(*first.spec.containers, late)))
        after, _ = outcome(second, usage(), NEW)
        assert requests(after)[0] == expected
        assert outcome(after, usage(), NEW)[0] == after


def test_a_pod_without_any_request_gets_one_for_all_containers() -> None:
    after, _ = outcome(both({}, {}), usage(), NEW, rules=(WHOLE,))
    assert requests(after) == ("400m", None, None)


def test_a_container_with_a_limit_keeps_its_request() -> None:
    limited = pod(
        container("app", requests={"cpu": "100m"}, limits={"cpu": "1"}),
        container("proxy", requests={"cpu": "800m"}),
        owner="ReplicaSet/web-1",
    )
    assert requests(outcome(limited, usage(), NEW, rules=(WHOLE,))[0]) == ("400m", "100m", None)


def test_a_resource_that_limits_hold_does_not_keep_the_other_from_the_pod() -> None:
    memory = {"requests": {"cpu": "500m", "memory": "1Gi"}, "limits": {"memory": "1Gi"}}
    came = pod(container("app", **memory), container("proxy", **memory), owner="ReplicaSet/web-1")
    name = name_whole_pod(["app", "proxy"])
    world = shard_of_usage({name: container_usage({"cpu": ("40m", "200m"), "memory": ("40Mi", "200Mi")})})
    rules = policy("{podLevelRequests: {cpu: {}, memory: {}}}", name="whole")
    after, decision = outcome(came, world, NEW, rules=(rules,))
    assert requests(after) == ("400m", None, None)
    assert [requests_of(one.resources)["memory"] for one in after.spec.containers] == ["1Gi", "1Gi"]
    assert ("resources.requests.memory", "pod-level-refused") in [
        (left.field, left.reason.code.name) for left in decision.fields_kept
    ]


def test_bounds_are_those_of_the_pod() -> None:
    rules = policy("{podLevelRequests: {cpu: {min: 550m}}}", name="whole")
    assert requests(outcome(both(), usage(), NEW, rules=(rules,))[0])[0] == "550m"
    rules = policy("{podLevelRequests: {cpu: {max: 250m, rule: max}}}", name="whole")
    assert requests(outcome(both(), usage(), NEW, rules=(rules,))[0])[0] == "250m"


REFUSALS: list[tuple[str, Pod, tuple[Any, ...]]] = [
    ("pod-level-needs-kubelet", both(), (usage(), kubelet("v1.33.4"))),
    ("pod-level-needs-kubelet", both(), (usage(), NEW, kubelet("v1.33.4", "n2"))),
    ("pod-level-needs-kubelet", both(), (usage(), NEW, kubelet("", "n2"))),
    ("pod-level-needs-kubelet", both(), (usage(),)),
    ("pod-level-next-to-hpa", both(), (usage(), NEW, hpa("Resource"))),
    ("pod-level-next-to-container-hpa", both(), (usage(), NEW, hpa("ContainerResource", "proxy"))),
    ("pod-level-next-to-vpa", both(), (usage(), NEW, vpa())),
    ("pod-level-below-default", both(), (usage(), NEW, limit_range(default_request={"cpu": "300m"}))),
    ("pod-level-refused", both(), (usage(), NEW, limit_range(kind="Pod", min={"cpu": "500m"}))),
    ("pod-level-no-usage", both(), (usage("app+other"), NEW)),
    ("pod-level-saves-nothing", both(), (usage(p95="450m"), NEW)),
    (
        "pod-level-huge-pages",
        both({"cpu": "1", "hugepages-2Mi": "4Mi"}, {"cpu": "1"}),
        (usage(), NEW),
    ),
    (
        "pod-level-huge-pages",
        both(resources=Resources(requests={"hugepages-2Mi": "4Mi"}, limits={"hugepages-2Mi": "4Mi"})),
        (usage(), NEW),
    ),
    ("pod-level-other-scheduler", both(scheduler_name="volcano"), (usage(), NEW)),
    ("low-confidence", both(), (usage(confidence=0.2), NEW)),
    ("pod-level-one-container", pod(container("app", requests={"cpu": "1"}), owner="ReplicaSet/web-1"), (usage(), NEW)),
    (
        "pod-level-guaranteed",
        pod(
            *(container(n, requests=a, limits=a) for n in ("app", "proxy") for a in [{"cpu": "1", "memory": "1Gi"}]),
            owner="ReplicaSet/web-1",
        ),
        (usage(), NEW),
    ),
    ("pod-level-already-set", both(resources=Resources(requests={"cpu": "2"})), (usage(), NEW)),
]


@pytest.mark.parametrize(("code", "came", "world"), REFUSALS, ids=[f"{n}-{row[0]}" for n, row in enumerate(REFUSALS)])
def test_a_pod_that_must_not_request_as_a_whole_keeps_its_own_with_the_reason(
    code: str, came: Pod, world: tuple[Any, ...]
) -> None:
    after, decision = outcome(came, *world, rules=(WHOLE,))
    assert after.spec == came.spec
    assert code in codes(decision)


def test_the_containers_are_sized_all_the_same_where_the_whole_pod_is_not() -> None:
    after, _ = outcome(both(), usage(), kubelet("v1.33.4"))
    assert requests(after) == (None, "300m", "300m")


def test_only_nodes_that_may_take_the_pod_count() -> None:
    old = kubelet("v1.33.4", "n2", {"pool": "old"})
    chosen = both(node_selector={"pool": "new"})
    world = (usage(), kubelet("v1.36.2", "n1", {"pool": "new"}), old)
    assert requests(outcome(chosen, *world)[0])[0] == "400m"


def test_a_node_that_a_person_made_and_cordoned_counts_too() -> None:
    old = kubelet("v1.33.4", "n2")
    cordoned = change(old, spec=change(old.spec, unschedulable=True))
    after, decision = outcome(both(), usage(), NEW, cordoned, rules=(WHOLE,))
    assert after == both()
    assert "pod-level-needs-kubelet" in codes(decision)


def test_a_pod_that_names_its_node_runs_there_whatever_the_taints_are() -> None:
    old = kubelet("v1.33.4", "n2")
    tainted = change(old, spec=change(old.spec, taints=(Taint(key="gpu", effect="NoSchedule"),)))
    assert requests(outcome(both(), usage(), NEW, tainted)[0])[0] == "400m"
    assert requests(outcome(both(node_name="n2"), usage(), NEW, tainted)[0])[0] is None


def test_a_kube_scheduler_under_another_name_counts_requests_of_whole_pods() -> None:
    gke = both(scheduler_name="gke.io/optimize-utilization-scheduler")
    assert requests(outcome(gke, usage(), NEW)[0])[0] == "400m"
    packing = policy("{schedulerName: {name: packing, lease: none}}", name="packing")
    after, _ = outcome(both(), usage(), NEW, rules=(SIZED, WHOLE, packing))
    assert (requests(after)[0], after.spec.scheduler_name) == ("400m", "packing")
    assert outcome(after, usage(), NEW, rules=(SIZED, WHOLE, packing))[0] == after


def test_an_empty_node_group_is_unknown() -> None:
    after = change(both(), spec=change(both().spec, resources=Resources(requests={"cpu": "400m"})))
    cluster = facts(NEW)
    assert explain_pod_level(before_and_after(both({}, {}), after, cluster)) is not None
    after = change(after, spec=change(after.spec, containers=both({}, {}).spec.containers))
    assert explain_pod_level(before_and_after(both({}, {}), after, cluster)) is None
    growing = replace(cluster, nodes=replace(cluster.nodes, growing=("spot",)))
    reason = explain_pod_level(before_and_after(both({}, {}), after, growing))
    assert reason is not None
    assert "spot" in reason.sentence


def test_a_policy_for_some_containers_does_not_decide_about_the_pod() -> None:
    rules = policy("{podLevelRequests: {cpu: {}}}", name="whole", match="{containers: {names: [app]}}")
    after, decision = outcome(both(), usage(), NEW, rules=(rules,))
    assert after == both()
    assert "pod-level-other-containers" in codes(decision)


def test_a_larger_init_container_refuses_the_request() -> None:
    came = both(init=(container("setup", requests={"cpu": "2"}),))
    after, decision = outcome(came, usage(), NEW, rules=(WHOLE,))
    assert after.spec == came.spec
    assert "pod-level-refused" in codes(decision)


def test_a_request_that_the_policy_requires_is_met_by_that_of_the_pod() -> None:
    required = policy(
        "{requests: {cpu: {from: usage, when: always}, required: true}}",
        name="sizes",
        priority=10,
        match=f"{{namespaces: {{include: [{NAMESPACE}]}}}}",
    )
    after, decision = outcome(both(), usage(), NEW, rules=(required, WHOLE))
    assert decision.denied is None
    assert requests(after)[0] == "400m"


def test_a_required_request_of_the_pod_is_met_by_that_of_a_single_container() -> None:
    scope = f"{{namespaces: {{include: [{NAMESPACE}]}}}}"
    required = policy("{podLevelRequests: {cpu: {}, required: true}}", name="whole", match=scope)
    for own, is_denied in (({"cpu": "1"}, False), ({}, True)):
        single = pod(container("app", requests=own), owner="ReplicaSet/web-1")
        _, decision = outcome(single, usage(), NEW, rules=(required,))
        assert (decision.denied is not None) is is_denied


def test_a_full_quota_is_no_reason_to_keep_larger_requests() -> None:
    after, _ = outcome(
        both(), usage(), NEW, quota({"requests.cpu": "1"}, used={"requests.cpu": "900m"}), rules=(WHOLE,)
    )
    assert requests(after)[0] == "400m"


def test_a_pod_that_is_applied_itself_keeps_its_own_requests() -> None:
    applied = {"kubectl.kubernetes.io/last-applied-configuration": '{"spec": {}}'}
    came = pod(*both().spec.containers, annotations=applied, name="web-0")
    own = shard_of_usage({name_whole_pod(["app", "proxy"]): container_usage({"cpu": ("40m", "200m")})}, "Pod/web-0")
    assert outcome(came, own, NEW, rules=(WHOLE,))[0].spec == came.spec


def test_the_plan_reserves_for_the_next_pod_what_it_will_request_as_a_whole() -> None:
    template = PodTemplateSpec(spec=both().spec)
    context = admission_context(policies(SIZED, WHOLE), facts(*WEB, usage(), NEW), settings=SIGNING)
    next_pod = admit_next_pod(template, owner_key("ReplicaSet/web-1"), context)
    assert not isinstance(next_pod, Unreadable)
    assert next_pod.requests["cpu"] == 400
