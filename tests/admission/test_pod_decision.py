"""Pods that come out can run: a node could hold them, the quota all their siblings, and no limit of ours kills."""

import pytest

from tests.build import (
    NAMESPACE,
    codes,
    container,
    facts,
    node,
    pod,
    policies,
    policy,
    priority_class,
    quota,
    runtime_class,
    toleration,
    usage,
    vpa,
    workload,
)
from tests.reasons import has_facts
from trimtab.admission.admission_result import AdmissionOutcome
from trimtab.admission.pod_decision import decide_pod
from trimtab.cluster.api.autoscaling import HorizontalPodAutoscaler, HPASpec, TargetRef
from trimtab.cluster.api.core import Taint
from trimtab.cluster.api.meta import UNSET, Metadata, Revised, SelectorRequirement, change
from trimtab.cluster.api.pod import Affinity, NodeAffinity, NodeSelector, NodeSelectorTerm, PodSpec
from trimtab.cluster.api.workload import DaemonSet, DaemonSetSpec, PodTemplateSpec, WorkloadStatus
from trimtab.cluster.snapshot import ConfigMap
from trimtab.policy.pod_context import PodContext

ALWAYS = policy("{requests: {cpu: {from: usage, when: always}}}", name="sizes")
WEB = (workload("ReplicaSet/web-1", owner="Deployment/web"), workload("Deployment/web", replicas=5))
RESERVED = Taint(key="big", value="yes", effect="NoSchedule")


def asks(cpu, *more, **spec):
    return pod(container(requests={"cpu": cpu}), *more, owner="ReplicaSet/web-1", **spec)


def outcome(came, rules, *world):
    decision = decide_pod(PodContext(pod=came, namespace=NAMESPACE, facts=facts(*WEB, *world)), policies(*rules))
    return decision.apply_to(came), codes(decision.decision, loud=True), decision


def cpu_of(result):
    return [c.resources.requests.get("cpu") for c in result.spec.containers]


# A node ------------------------------------------------------------------------------------------------------------


def test_containers_are_summed():
    ten = policy("{requests: {cpu: {from: policy, otherwise: '10', when: always}}}")
    both = asks("100m", container("proxy", requests={"cpu": "100m"}))
    after, why, _ = outcome(both, [ten], node(cpu="16", memory="64Gi"))
    assert (cpu_of(after), why) == (["100m", "100m"], {"no-node-could-run-it"})


def test_a_node_whose_taint_the_pod_does_not_tolerate_is_none():
    nodes = [node("a", cpu="8", memory="32Gi"), node("b", taints=(RESERVED,), cpu="16", memory="32Gi")]
    after, why, _ = outcome(asks("100m"), [ALWAYS], usage(cpu=("1", "12")), *nodes)
    assert (cpu_of(after), why) == (["100m"], {"no-node-could-run-it"})
    after, why, _ = outcome(
        asks("100m", tolerations=(toleration("big", "yes", "NoSchedule"),)), [ALWAYS], usage(cpu=("1", "12")), *nodes
    )
    assert (cpu_of(after), why) == (["12"], set())


def test_all_resources_are_of_one_node():
    rule = policy("{requests: {cpu: {from: usage, when: always}, memory: {from: usage, when: always}}}")
    nodes = [node("a", cpu="16", memory="4Gi"), node("b", cpu="2", memory="64Gi")]
    container_usage = usage(cpu=("1", "8"), memory=("1Gi", "32Gi"))
    came = pod(container(requests={"cpu": "100m", "memory": "100Mi"}), owner="ReplicaSet/web-1")
    after, why, _ = outcome(came, [rule], container_usage, *nodes)
    assert (after, why) == (came, {"no-node-could-run-it"})


def daemon_set(cpu):
    spec = PodSpec(containers=(container("agent", requests={"cpu": cpu}),))
    return DaemonSet(
        kind="DaemonSet",
        metadata=Revised(name="agent", namespace="kube-system"),
        spec=DaemonSetSpec(template=PodTemplateSpec(spec=spec)),
        status=WorkloadStatus(observed_generation=1),
    )


def test_daemons_and_the_overhead_of_the_class_take_their_part():
    eight = node(cpu="8", memory="32Gi")
    assert cpu_of(outcome(asks("1"), [ALWAYS], usage(cpu=("1", "8")), eight)[0]) == ["8"]
    assert cpu_of(outcome(asks("1"), [ALWAYS], usage(cpu=("1", "8")), eight, daemon_set("100m"))[0]) == ["1"]
    kata = runtime_class("kata", overhead={"cpu": "250m"})
    sandbox = policy("{runtimeClass: {name: kata}}", name="sandbox", priority=500)
    after, why, _ = outcome(asks("1"), [sandbox, ALWAYS], usage(cpu=("1", "8")), eight, kata)
    assert (cpu_of(after), after.spec.runtime_class_name, why) == (["1"], "kata", {"no-node-could-run-it"})


def test_a_pod_that_had_no_node_before_is_none_of_our_business():
    after, why, _ = outcome(
        asks("20"), [policy("{labels: {add: {a: b}}}"), ALWAYS], usage(cpu=("1", "4")), node(cpu="2", memory="4Gi")
    )
    assert (cpu_of(after), why) == (["2"], set())


POOL = policy("{placement: {require: [{label: pool, in: [batch]}]}, labels: {add: {a: b}}}", name="pool")


def test_placement_without_any_node_is_taken_back_and_the_rest_of_the_policy_stays():
    after, why, _ = outcome(asks("1"), [POOL], node(cpu="8", memory="32Gi"))
    assert (after.spec.affinity, after.metadata.labels["a"], why) == (UNSET, "b", {"no-node-could-run-it"})


def test_where_an_autoscaler_may_bring_other_nodes_the_placement_stays_with_a_warning():
    after, why, _ = outcome(asks("1"), [POOL], node(cpu="8", memory="32Gi", provider="gce://x/y/z"))
    assert (after.spec.affinity is not UNSET, why) == (True, {"no-known-node-matches"})


def autoscaler(*groups, namespace="kube-system"):
    """Its status; (name, nodes that are there, most nodes, state)."""
    text = "".join(
        f"- name: {name}\n  health: {{nodeCounts: {{registered: {{total: {there}}}}}, maxSize: {most}}}\n"
        f"  scaleUp: {{status: {state}}}\n"
        for name, there, most, state in groups
    )
    metadata = Metadata(name="cluster-autoscaler-status", namespace=namespace)
    return ConfigMap(metadata=metadata, data={"status": f"clusterWide: {{}}\nnodeGroups:\n{text}"})


MADE = node(cpu="4", memory="8Gi", provider="gce://project/zone/n1")
BATCH = policy("{placement: {require: [{label: pool, in: [batch]}]}, labels: {add: {cost: low}}}", name="pool")


@pytest.mark.parametrize(
    ("groups", "code"),
    [
        ([("web", 3, 9, "NoActivity"), ("batch", 0, 9, "NoActivity")], "no-known-node-matches"),
        ([("web", 3, 9, "NoActivity"), ("batch", 0, 0, "NoActivity")], "no-node-could-run-it"),
        ([("web", 3, 9, "NoActivity"), ("batch", 0, 9, "Backoff")], "no-node-could-run-it"),
        ([("web", 3, 9, "NoActivity")], "no-node-could-run-it"),
        ([], "no-node-could-run-it"),
    ],
)
def test_a_group_that_may_get_its_first_node_counts_as_one_of_any_kind(groups, code):
    result, message, _ = outcome(asks("1"), [BATCH], MADE, autoscaler(*groups))
    assert (result.spec.affinity is not UNSET, message) == (code == "no-known-node-matches", {code})
    assert result.metadata.labels["cost"] == "low"


@pytest.mark.parametrize("status", [autoscaler(namespace="team-a"), ConfigMap(metadata=Metadata(name="x"))])
def test_only_the_autoscaler_itself_is_believed_about_its_groups(status):
    assert outcome(asks("1"), [BATCH], MADE, status)[1] == {"no-known-node-matches"}


def test_a_group_that_may_get_a_node_is_named():
    status = autoscaler(*[(f"batch-{n}", 0, 9, "NoActivity") for n in range(5)])
    _, _, verdict = outcome(asks("1"), [BATCH], MADE, status)
    [warning] = [left.reason for left in verdict.decision.fields_kept if left.loud]
    assert has_facts(str(warning), "batch-0", "batch-1", "batch-2", 2)


@pytest.mark.parametrize(
    ("provider", "code"), [("gce://p/z/n2", "no-known-node-matches"), ("", "no-node-could-run-it")]
)
def test_a_cordoned_node_of_a_cloud_shows_what_its_group_may_bring(provider, code):
    cordoned = node("n2", labels={"pool": "batch"}, cpu="4", memory="8Gi", provider=provider)
    cordoned = change(cordoned, spec=change(cordoned.spec, unschedulable=True))
    assert outcome(asks("1"), [BATCH], MADE, cordoned, autoscaler(("all", 2, 9, "NoActivity")))[1] == {code}


@pytest.mark.parametrize(
    ("required", "stays"),
    [
        ("{label: kubernetes.io/hostname, in: [n1, gone]}", True),
        ("{label: kubernetes.io/hostname, in: [gone]}", False),
        ("{label: kubernetes.io/hostname, notIn: [gone]}", True),
        ("{label: kubernetes.io/hostname, exists: true}", True),
        ("{label: kubernetes.io/hostname, absent: true}", False),
    ],
)
def test_a_machine_that_a_policy_names_is_there(required, stays):
    """It was taken to be there, whatever its name."""
    there = [node(name, labels={"kubernetes.io/hostname": name}, cpu="4", memory="8Gi") for name in ("n1", "n2")]
    result, message, _ = outcome(asks("1"), [policy(f"{{placement: {{require: [{required}]}}}}")], *there)
    assert (result.spec.affinity is not UNSET, message) == (stays, set() if stays else {"no-node-could-run-it"})


@pytest.mark.parametrize(("named", "stays"), [("n2", True), ("gone", False)])
def test_a_node_that_the_pod_names_by_its_field_is_there(named, stays):
    """Every node was taken to be the one named, so one that held the request was found."""
    name = NodeSelectorTerm(match_fields=(SelectorRequirement(key="metadata.name", operator="In", values=(named,)),))
    small = NodeSelectorTerm(match_expressions=(SelectorRequirement(key="small", operator="Exists"),))
    required = NodeAffinity(required=NodeSelector(node_selector_terms=(small, name)))
    hosts = [{"kubernetes.io/hostname": "n1", "small": ""}, {"kubernetes.io/hostname": "n2"}]
    nodes = [node(f"n{i + 1}", labels=labels, cpu=f"{1 + 3 * i}", memory="8Gi") for i, labels in enumerate(hosts)]
    came = asks("100m", affinity=Affinity(node_affinity=required))
    result, message, _ = outcome(came, [ALWAYS], usage(cpu=("1", "2")), *nodes)
    assert (cpu_of(result), message) == ((["2"], set()) if stays else (["100m"], {"no-node-could-run-it"}))


def test_only_the_policy_that_caused_it_is_taken_back():
    """Of two that fail only together the one that is asked last goes."""
    world = (
        usage(cpu=("1", "6")),
        node("b", labels={"pool": "batch"}, cpu="4", memory="32Gi"),
        node("a", cpu="8", memory="32Gi"),
    )
    sizes = policy("{requests: {cpu: {from: usage, when: always}}}", name="sizes", priority=500)
    after, _, result = outcome(asks("1"), [POOL, sizes], *world)
    assert (cpu_of(after), after.metadata.labels["a"]) == (["6"], "b")
    assert [left.field for left in result.decision.fields_kept if left.loud] == ["placement"]
    after, _, result = outcome(asks("1"), [POOL, ALWAYS], *world)
    assert (cpu_of(after), [left.field for left in result.decision.fields_kept if left.loud]) == (["1"], ["requests"])


def test_of_many_actions_only_those_that_are_the_cause_together_are_taken_back():
    """Each of two leaves the pod without a node; all actions of both policies were taken back, and some came back when
    the pod was decided again."""
    place = "placement: {require: [{label: pool, in: [batch]}]}"
    both = policy(f"{{{place}, {SPREAD.format(ZONE)[1:-1]}, requests: {{memory: {{otherwise: 1Gi}}}}}}", priority=9)
    sizes = policy("{requests: {ephemeral-storage: {otherwise: 1Gi}}}", name="sizes")
    came = change(asks("1"), metadata=change(asks("1").metadata, labels={"app": "web"}))
    world = [node(cpu="4", memory="8Gi", **{"ephemeral-storage": "9Gi"})]
    after, _, verdict = outcome(came, [both, sizes], *world)
    assert {left.field for left in verdict.decision.fields_kept if left.loud} == {"placement", "topology_spread"}
    assert set(after.spec.containers[0].resources.requests) == {"cpu", "memory", "ephemeral-storage"}
    assert outcome(after, [both, sizes], *world)[0] is after


def test_the_policy_that_caused_it_is_found_where_it_matches_no_more():
    """It matches pods without a priority and gives them one; its class, which the quota has no room for, stayed."""
    rule = policy(
        "{runtimeClass: {name: kata}, priorityClass: {name: low}}", match="{priorityClasses: [none]}", name="a"
    )
    other = policy("{labels: {add: {a: b}}}", match="{priorityClasses: [low]}", name="b")
    low = priority_class("low", 1)
    world = (
        quota({"requests.cpu": "1"}),
        runtime_class("kata", overhead={"cpu": "250m"}),
        low,
        node(cpu="8", memory="9Gi"),
    )
    after, why, _ = outcome(asks("120m"), [rule, other], *world)
    assert (after.spec.runtime_class_name, after.spec.priority_class_name) == (UNSET, "low")
    assert why == {"quota-would-refuse"}


def test_deciding_again_changes_nothing_and_takes_back_the_same():
    world = (usage(cpu=("1", "12")), node(cpu="8", memory="32Gi"), daemon_set("1"))
    rule = policy("{requests: {cpu: {from: usage, when: always}}, labels: {add: {a: b}}}")
    once, why, _ = outcome(asks("100m"), [rule], *world)
    assert why == {"no-node-could-run-it"}
    second_result, why, result = outcome(once, [rule], *world)
    assert (second_result, why, result.outcome) == (once, {"no-node-could-run-it"}, AdmissionOutcome.UNCHANGED)


SPREAD = "{{topologySpread: {{constraints: [{{topologyKey: {}, whenUnsatisfiable: DoNotSchedule}}]}}}}"
ZONE = "topology.kubernetes.io/zone"


def in_zones(*zones, **more):
    return [
        node(f"n{i}", labels={ZONE: zone} if zone else UNSET, cpu="4", memory="8Gi", **more)
        for i, zone in enumerate(zones)
    ]


def spreads(rule, *world):
    came = change(asks("1"), metadata=change(asks("1").metadata, labels={"app": "web"}))
    after, why, verdict = outcome(came, [policy(rule)], *world)
    reason = "".join(str(left.reason) for left in verdict.decision.fields_kept if left.loud)
    return after.spec.topology_spread_constraints is not UNSET, why, reason


def test_a_strict_spread_over_a_label_that_no_node_has_is_taken_back():
    strict = SPREAD.format(ZONE)
    is_spread, why, reason = spreads(strict, *in_zones(""))
    assert (is_spread, why) == (False, {"no-node-could-run-it"})
    assert has_facts(reason, "no node", "required labels", "spread constraints", ZONE)
    assert spreads(strict, *in_zones("", provider="gce://p/z/n"))[:2] == (True, {"no-known-node-matches"})
    assert spreads(strict, *in_zones("a", ""))[:2] == (True, set())
    assert spreads(strict.replace("DoNotSchedule", "ScheduleAnyway"), *in_zones(""))[:2] == (True, set())
    assert spreads(SPREAD.format("kubernetes.io/hostname"), *in_zones("a"))[:2] == (False, {"no-node-could-run-it"})


def test_a_strict_spread_over_a_domain_that_the_pod_cannot_reach_is_taken_back():
    """It stays empty, so that each other domain takes one pod of the five and no more."""
    reserved = node("r", labels={ZONE: "c"}, taints=(RESERVED,), cpu="4", memory="8Gi")
    small = node("s", labels={ZONE: "d"}, cpu="500m", memory="8Gi")
    strict, open_zones = SPREAD.format(ZONE), in_zones("a", "b")
    assert spreads(strict, *open_zones)[:2] == (True, set())
    is_spread, why, reason = spreads(strict, *open_zones, reserved)
    assert (is_spread, why) == (False, {"no-node-could-run-it"})
    assert has_facts(reason, "no node", f"{ZONE} c", "spread constraint", ZONE, "at most 2 pods")
    assert spreads(strict, *open_zones, small)[:2] == (False, {"no-node-could-run-it"})
    assert spreads(strict.replace("topologyKey", "maxSkew: 3, topologyKey"), *open_zones, reserved)[:2] == (True, set())
    tolerant = f"{strict[:-1]}, placement: {{tolerate: [{{key: big, value: 'yes', effect: NoSchedule}}]}}}}"
    assert spreads(tolerant, *open_zones, reserved)[:2] == (True, set())


def test_more_domains_than_there_are_leave_pods_without_a_node():
    strict = SPREAD.format(ZONE).replace("topologyKey", "minDomains: 3, topologyKey")
    assert spreads(strict, *in_zones("a", "b"))[:2] == (False, {"no-node-could-run-it"})
    assert spreads(strict, *in_zones("a", "b", "c"))[:2] == (True, set())


# The quota ---------------------------------------------------------------------------------------------------------


def counted(hard, used="0", name="requests.cpu"):
    return quota({name: hard}, used={name: used})


@pytest.mark.parametrize("used", ["0", "50m", "250m"])
def test_nothing_is_raised_that_would_leave_replicas_without_room(used):
    """Five pods of 50m ran in a quota of 500m; raised to 200m each, two did and three were refused for ever."""
    after, why, result = outcome(asks("50m"), [ALWAYS], usage(cpu=("10m", "200m")), counted("500m", used))
    assert (cpu_of(after), why, result.outcome) == (["50m"], {"quota-would-refuse"}, AdmissionOutcome.UNCHANGED)


def test_the_surge_of_a_rollout_counts_and_a_tenth_stays_free():
    container_usage = usage(cpu=("10m", "200m"))  # 5 replicas and 2 more while they are rolled out
    assert cpu_of(outcome(asks("50m"), [ALWAYS], container_usage, counted("1400m"))[0]) == ["50m"]
    assert cpu_of(outcome(asks("50m"), [ALWAYS], container_usage, counted("1600m"))[0]) == ["200m"]


@pytest.mark.parametrize(
    ("hard", "codes_of_kept"), [("1400m", {"quota-too-close"}), ("1399m", {"quota-would-refuse"}), ("1600m", set())]
)
def test_a_quota_that_has_room_but_little_is_not_said_to_refuse(hard, codes_of_kept):
    """Seven pods of 200m, two of them during a rollout, are 1400m."""
    _, why, _ = outcome(asks("50m"), [ALWAYS], usage(cpu=("10m", "200m")), counted(hard))
    assert why == codes_of_kept


def test_an_hpa_may_make_more():
    hpa = HorizontalPodAutoscaler(
        metadata=Revised(name="web", namespace=NAMESPACE),
        spec=HPASpec(scale_target_ref=TargetRef(kind_name="Deployment", name="web"), max_replicas=20),
    )
    container_usage = usage(cpu=("10m", "200m"))
    assert cpu_of(outcome(asks("50m"), [ALWAYS], container_usage, counted("2"), hpa)[0]) == ["50m"]
    assert cpu_of(outcome(asks("50m"), [ALWAYS], container_usage, counted("2"))[0]) == ["200m"]


def test_siblings_get_one_answer_while_they_come():
    container_usage, values = usage(cpu=("10m", "200m")), []
    for there in range(7):
        web = workload("Deployment/web", replicas=5, updated_replicas=there)
        world = facts(WEB[0], web, container_usage, counted("1600m", f"{200 * there}m"))
        values.append(
            cpu_of(
                decide_pod(PodContext(pod=asks("50m"), namespace=NAMESPACE, facts=world), policies(ALWAYS)).decision.pod
            )
        )
    assert values == [["200m"]] * 7


def test_what_a_deployment_says_of_its_pods_counts_only_for_replica_sets_that_are_known():
    """The first pods of a new template come before the watch tells of it: what is there is of the one before."""
    web = workload("Deployment/web", replicas=5, updated_replicas=5)
    new = pod(container(requests={"cpu": "50m"}), owner="ReplicaSet/web-2", labels={"pod-template-hash": "2"})
    world = facts(WEB[0], web, usage(cpu=("10m", "200m")), counted("1600m", "1000m"))
    assert cpu_of(decide_pod(PodContext(pod=new, namespace=NAMESPACE, facts=world), policies(ALWAYS)).decision.pod) == [
        "50m"
    ]


def test_where_nobody_knows_how_many_pods_there_will_be_nothing_is_raised():
    came = pod(container(requests={"cpu": "50m"}), owner="Rollout/web")
    world = facts(usage("Rollout/web", cpu=("10m", "200m")), counted("100"))
    decision = decide_pod(PodContext(pod=came, namespace=NAMESPACE, facts=world), policies(ALWAYS)).decision
    assert (cpu_of(decision.pod), codes(decision, loud=True)) == (["50m"], {"quota-room-unknown"})


def test_what_is_lowered_needs_no_room():
    after, why, _ = outcome(asks("400m"), [ALWAYS], usage(cpu=("10m", "200m")), counted("500m", "500m"))
    assert (cpu_of(after), why) == (["200m"], set())


def test_limits_are_counted_as_requests_are():
    rule = policy("{limits: {cpu: request x 4}}")
    came = pod(container(requests={"cpu": "100m"}, limits={"cpu": "100m"}), container("b"), owner="ReplicaSet/web-1")
    after, why, _ = outcome(came, [rule], counted("1", name="limits.cpu"))
    assert (after.spec.containers[0].resources.limits["cpu"], "quota-would-refuse" in why) == ("100m", True)


@pytest.mark.parametrize(("hard", "given"), [("1", "100m"), ("10", "271m")])
def test_a_vpas_target_is_given_where_the_quota_has_room_for_all_replicas(hard, given):
    from_range = {"kubernetes.io/limit-ranger": "LimitRanger plugin set: cpu request for container app"}
    came = asks("100m", annotations=from_range)
    target = vpa(recommends={"app": {"cpu": "271m"}})
    missing = policy("{requests: {cpu: {from: usage}}}")
    after, why, _ = outcome(came, [missing], usage(cpu=("10m", "300m")), target, counted(hard))
    assert (cpu_of(after), "quota-would-refuse" in why) == ([given], given == "100m")


def test_only_the_class_is_left_whose_overhead_the_quota_has_no_room_for():
    kata = runtime_class("kata-fc", overhead={"cpu": "250m"})
    rules = [policy("{runtimeClass: {name: kata-fc}, labels: {add: {a: b}}}")]
    after, why, result = outcome(pod(container(requests={"cpu": "120m"})), rules, kata, counted("1", "800m"))
    assert (after.spec.runtime_class_name, after.metadata.labels["a"]) == (UNSET, "b")
    assert (why, result.outcome) == ({"quota-would-refuse"}, AdmissionOutcome.CHANGED)


def test_what_is_required_is_not_taken_back():
    kata = runtime_class("kata-fc", overhead={"cpu": "250m"})
    team = f"{{namespaces: {{include: [{NAMESPACE}]}}}}"
    rule = policy("{runtimeClass: {name: kata-fc, required: true}}", match=team)
    after, why, result = outcome(pod(container(requests={"cpu": "120m"})), [rule], kata, counted("1", "800m"))
    assert (after.spec.runtime_class_name, why) == ("kata-fc", {"quota-may-refuse"})
    assert result.outcome is AdmissionOutcome.CHANGED


# Devices and local storage ------------------------------------------------------------------------------------------

DEVICE = policy("{requests: {extended: {example.com/license: 1}}}", name="device", match="{containers: {names: [app]}}")
DISK = policy("{requests: {ephemeral-storage: {otherwise: 20Gi}}}", name="disk")


@pytest.mark.parametrize(("rule", "resource"), [(DEVICE, "example.com/license"), (DISK, "ephemeral-storage")])
def test_what_no_node_holds_is_not_asked_for(rule: str, resource: str):
    after, why, _ = outcome(asks("1"), [rule], node(cpu="8", memory="32Gi"))
    assert (resource in after.spec.containers[0].resources.requests, why) == (False, {"no-node-could-run-it"})
    holds = node(cpu="8", memory="32Gi", **{resource: "50Gi"})
    assert resource in outcome(asks("1"), [rule], holds)[0].spec.containers[0].resources.requests


@pytest.mark.parametrize(("rule", "resource"), [(DEVICE, "example.com/license"), (DISK, "ephemeral-storage")])
def test_what_the_quota_has_not_for_all_replicas_is_not_asked_for(rule: str, resource: str):
    after, why, _ = outcome(asks("1"), [rule], counted("40Gi" if rule is DISK else "4", name=f"requests.{resource}"))
    assert (resource in after.spec.containers[0].resources.requests, why) == (False, {"quota-would-refuse"})
    room = counted("400Gi" if rule is DISK else "40", name=f"requests.{resource}")
    assert resource in outcome(asks("1"), [rule], room)[0].spec.containers[0].resources.requests
