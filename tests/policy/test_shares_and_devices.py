"""Shares of the author's requests, local storage, devices, and values that a pod chooses from a list."""

import msgspec
import pytest

from tests.build import (
    changed,
    codes,
    container,
    decided,
    facts,
    limit_range,
    namespace,
    node,
    pod,
    policies,
    policy,
    runtime_class,
    usage,
)
from trimtab.cluster.api.meta import value_or
from trimtab.cluster.api.pod import Pod
from trimtab.cluster.resources import limits_of, requests_of
from trimtab.policy.lint import lint
from trimtab.policy.load import load_policies
from trimtab.policy.validating_policy import compile_validating_policy
from trimtab.policy.write_resources import ANNOTATION


def cpu_of(pod_: Pod) -> object:
    return requests_of(pod_.spec.containers[0].resources)["cpu"]


HALF = policies(policy("{requests: {cpu: {from: request, percent: 50%, min: 100m}}}"))


@pytest.mark.parametrize(("written", "half"), [("2", "1"), ("1001m", "501m"), ("150m", "100m"), ("0.1", "0.1")])
def test_a_share_of_what_is_written_is_taken_once(written: str, half: str):
    result = decided(pod(container(requests={"cpu": written})), HALF).pod
    assert cpu_of(result) == half
    without_marker = msgspec.structs.replace(result.metadata, annotations=_but_the_marker(result))
    second = msgspec.structs.replace(result, metadata=without_marker)
    assert decided(second, HALF).pod.spec == result.spec


def _but_the_marker(pod: Pod) -> dict[str, str]:
    return {key: text for key, text in value_or(pod.metadata.annotations, {}).items() if key != "trimtab.dev/changed"}


def test_another_share_is_one_of_what_was_written():
    once = decided(pod(container(requests={"cpu": "2"})), HALF).pod
    other = policies(policy("{requests: {cpu: {from: request, percent: 75%}}}"))
    assert (
        cpu_of(
            decided(
                msgspec.structs.replace(
                    once, metadata=msgspec.structs.replace(once.metadata, annotations=_but_the_marker(once))
                ),
                other,
            ).pod
        )
        == "1500m"
    )


@pytest.mark.parametrize(
    "told",
    [
        "{",
        "[]",
        '{"containers[app].requests.cpu": {"written": "x", "given": "2"}}',
        '{"containers[app].requests.cpu": {"written": "9", "given": "3"}}',
    ],
)
def test_what_no_share_was_made_of_counts_for_nothing(told: str):
    new_pod = pod(container(requests={"cpu": "2"}), annotations={ANNOTATION: told})
    assert cpu_of(decided(new_pod, HALF).pod) == "1"


def test_no_share_is_taken_of_what_a_policy_gives_that_brings_the_shares_own_policy_in():
    gives = "{labels: {add: {tier: untrusted}}, requests: {cpu: {from: usage, otherwise: '1.5', when: missing}}}"
    halves = "{requests: {cpu: {from: request, percent: 50%, when: always}}}"
    both = policies(
        policy(gives, name="gives", priority=1),
        policy(halves, name="halves", match="{podLabels: {tier: untrusted}}", priority=2),
    )
    once = decided(pod(container()), both).pod
    assert cpu_of(once) == "1500m"
    as_committed = msgspec.structs.replace(
        once, metadata=msgspec.structs.replace(once.metadata, annotations=_but_the_marker(once))
    )
    assert cpu_of(decided(as_committed, both).pod) == "1500m"


@pytest.mark.parametrize("when", ["missing", "always"])
def test_no_share_is_taken_of_what_a_policy_of_lower_priority_gives(when: str):
    """What was committed was halved at the next admission."""
    halves = "{requests: {cpu: {from: request, percent: 50%, when: always}}}"
    gives = f"{{requests: {{cpu: {{from: policy, otherwise: '2', when: {when}}}}}}}"
    both = policies(policy(halves, name="halves", priority=2), policy(gives, name="gives", priority=1))
    once = decided(pod(container()), both).pod
    as_committed = msgspec.structs.replace(
        once, metadata=msgspec.structs.replace(once.metadata, annotations=_but_the_marker(once))
    )
    assert (cpu_of(once), decided(as_committed, both).changes) == ("2", ())
    assert cpu_of(decided(pod(container(requests={"cpu": "4"})), both).pod) == "2"


@pytest.mark.parametrize(
    ("rule", "gives"),
    [
        ("from: usage, rule: p95, when: always, maxPercent: 50%", "200m"),
        ("from: request, percent: 50%, otherwise: 400m", "400m"),
        ("from: request, percent: 50%, otherwise: 400m, min: 450m", "450m"),
        ("from: request, percent: 50%, otherwise: 400m, when: missing", "400m"),
    ],
)
def test_no_share_is_taken_of_what_the_policy_gives_where_nothing_is_written(rule: str, gives: str):
    # The pod is no longer BestEffort afterwards, so the policies are evaluated once more.
    by, world = policies(policy("{requests: {cpu: {" + rule + "}}}")), facts(usage(cpu=("10m", "200m")))
    once = decided(pod(container(), owner="Deployment/web"), by, world).pod
    second = msgspec.structs.replace(
        once, metadata=msgspec.structs.replace(once.metadata, annotations=_but_the_marker(once))
    )
    assert (cpu_of(once), cpu_of(decided(second, by, world).pod)) == (gives, gives)


def test_a_share_of_nothing_is_nothing():
    assert decided(pod(container()), HALF).changes == ()


def usage_rule(words: str) -> object:
    return policies(policy("{requests: {cpu: {from: usage, rule: p95, when: always, " + words + "}}}"))


@pytest.mark.parametrize(
    ("words", "used", "gets"),
    [
        ("minPercent: 50%", "100m", "500m"),
        ("maxPercent: 100%", "3", "1"),
        ("maxPercent: 150%", "3", "1500m"),
        ("minPercent: 50%", "700m", "700m"),
        ("minPercent: 50%, min: 600m", "100m", "600m"),
    ],
)
def test_usage_stays_within_shares_of_what_is_written(words: str, used: str, gets: str):
    world = facts(usage(cpu=("10m", used)))
    result = decided(pod(container(requests={"cpu": "1"}), owner="Deployment/web"), usage_rule(words), world).pod
    second = msgspec.structs.replace(
        result, metadata=msgspec.structs.replace(result.metadata, annotations=_but_the_marker(result))
    )
    assert (cpu_of(result), cpu_of(decided(second, usage_rule(words), world).pod)) == (gets, gets)


DISK = "{requests: {ephemeral-storage: {otherwise: 1Gi}}, limits: {ephemeral-storage: request x 2}}"


def test_local_storage_has_a_request_and_a_limit():
    assert changed(decided(pod(), policies(policy(DISK)))) == {
        "containers[app].requests.ephemeral-storage": "1Gi",
        "containers[app].limits.ephemeral-storage": "2Gi",
    }


def test_local_storage_makes_no_class_of_service_and_so_a_guaranteed_pod_gets_it():
    same = {"cpu": "1", "memory": "1Gi"}
    assert len(decided(pod(container(requests=same, limits=same)), policies(policy(DISK))).changes) == 2


def test_local_storage_stays_within_a_limit_range():
    world = facts(limit_range(max={"ephemeral-storage": "512Mi"}))
    result = decided(pod(), policies(policy(DISK)), world).pod.spec.containers[0].resources
    assert (requests_of(result), limits_of(result)) == ({"ephemeral-storage": "512Mi"}, {"ephemeral-storage": "512Mi"})


def test_an_authors_own_limit_of_local_storage_is_never_lowered():
    own = pod(container(requests={"ephemeral-storage": "1Gi"}, limits={"ephemeral-storage": "100Gi"}))
    decision = decided(own, policies(policy(DISK)))
    assert (decision.changes, codes(decision)) == ((), {"already-set", "limit-not-lowered"})


LICENSE = """{requests: {containers: [{names: [app], extended: {example.com/license: 2}}]}}"""


def test_a_device_is_request_and_limit_of_the_containers_that_are_meant():
    decision = decided(pod(container("app"), container("proxy")), policies(policy(LICENSE)))
    assert changed(decision) == {
        "containers[app].requests.example.com/license": "2",
        "containers[app].limits.example.com/license": "2",
    }
    assert decided(decision.pod, policies(policy(LICENSE))).pod == decision.pod


def test_a_container_that_asks_for_a_device_itself_keeps_it():
    one = {"example.com/license": "1"}
    decision = decided(pod(container("app", requests=one, limits=one)), policies(policy(LICENSE)))
    assert (decision.changes, codes(decision)) == ((), {"already-set"})


CHOSEN = """{placement: {require: [{label: size, inPodLabel: node-size, among: [small, large]}],
 tolerate: [{key: size, valueFromPod: node-size, among: [small, large], effect: NoSchedule}]},
 labels: {fromPod: {billed-as: {label: node-size, among: [large]}}}}"""
TEAM = "{namespaces: {include: [team-*]}}"


def test_a_pod_chooses_among_the_values_that_are_listed():
    decision = decided(pod(labels={"node-size": "large"}), policies(policy(CHOSEN, match=TEAM)))
    assert [change.after for change in decision.changes] == ["In large", "Equal large", "large"]


@pytest.mark.parametrize(
    ("value", "code", "is_loud"), [("gpu", "pod-label-not-listed", True), (None, "pod-label-missing", False)]
)
def test_what_is_not_listed_places_nothing(value: str | None, code: str, is_loud: bool):
    decision = decided(pod(labels={} if value is None else {"node-size": value}), policies(policy(CHOSEN, match=TEAM)))
    assert (decision.changes, codes(decision), bool(codes(decision, loud=True))) == ((), {code}, is_loud)


@pytest.mark.parametrize("match", ["{}", "{namespaces: {exclude: [a]}}", "{namespaces: {include: ['*']}}"])
def test_no_place_is_chosen_by_a_pods_label_alone(match: str):
    [mistake] = load_policies([("p", policy(CHOSEN, match=match).encode())]).mistakes
    assert "namespaces" in mistake.expected


@pytest.mark.parametrize(
    "wrong",
    [
        "requests: {cpu: {from: request, percent: 0%}}",
        "requests: {cpu: {from: request, percent: 100%}}",
        "requests: {cpu: {minPercent: 50%}}",
        "requests: {cpu: {when: always, minPercent: 90%, maxPercent: 50%}}",
        "requests: {ephemeral-storage: {from: usage}}",
        "requests: {ephemeral-storage: {}}",
        "requests: {extended: {cpu: 1}}",
        "requests: {extended: {example.com/a: 0}}",
        "requests: {extended: {node.kubernetes.io/a: 1}}",
        "labels: {add: {a: b}, fromPod: {a: {label: c, among: [d]}}}",
        "labels: {fromPod: {a: {label: c, among: []}}}",
        "placement: {require: [{label: a, inPodLabel: b}]}",
        "placement: {require: [{label: a, in: [c], among: [b]}]}",
        "placement: {tolerate: [{key: a, value: b, valueFromPod: c, among: [d]}]}",
    ],
)
def test_nonsense_is_a_mistake(wrong: str):
    assert load_policies([("p", policy("{" + wrong + "}", match=TEAM).encode())]).mistakes


@pytest.mark.parametrize(
    ("actions", "code"),
    [
        ("requests: {ephemeral-storage: {otherwise: 10}}", "unusual-amount"),
        ("emptyDirs: {sizeLimit: 5}", "unusual-amount"),
        ("terminationGracePeriod: {maxSeconds: 86400000}", "unusual-amount"),
        ("requests: {cpu: {otherwise: 1, percent: 50}}", "field-without-effect"),
        ("requests: {extended: {example.com/a: 1}}", "resource-for-every-container"),
        (
            "placement: {requireAny: [[{label: a, in: [b]}, {label: a, in: [c]}], [{label: d, exists: true}]]}",
            "no-node-can-match",
        ),
        ("placement: {requireAny: [[{label: a, in: [b], weight: 4}]]}", "weight-without-effect"),
    ],
)
def test_what_is_sound_in_form_only_is_found(actions: str, code: str):
    assert [one.reason.code.name for one in lint(policies(policy("{" + actions + "}")))] == [code]


AMOUNTS = (
    "{requests: {memory: {atLeast: 8}}}",
    "{containers: {requests: {memory: {below: 500m}}}}",
    "{exclude: [{requests: {cpu: {atLeast: 4000}}}]}",
)


@pytest.mark.parametrize("match", AMOUNTS)
def test_an_amount_to_match_by_has_its_unit(match: str):
    findings = lint(policies(policy("{labels: {add: {a: b}}}", match=match)))
    assert [one.reason.code.name for one in findings] == ["unusual-amount"]


def test_values_that_the_cluster_has_no_node_or_namespace_for_are_found():
    world = facts(node(labels={"size": "small"}), namespace())
    words = """{placement: {require: [{label: size, inPodLabel: s, among: [small, huge]},
     {label: size, inNamespaceLabel: team}], requireAny: [[{label: size, in: [small]}], [{label: zone, in: [x]}]]}}"""
    messages = [one.reason.sentence for one in lint(policies(policy(words, match=TEAM)), world)]
    assert ["huge" in messages[0], "team" in messages[-1], "zone" in messages[1], len(messages)] == [
        True,
        True,
        True,
        3,
    ]


@pytest.mark.parametrize(
    "actions",
    [
        "placement: {require: [{label: a, inPodLabel: b, among: [c]}], required: true}",
        "labels: {fromPod: {a: {label: b, among: [c]}}, required: true}",
    ],
)
def test_what_cel_cannot_say_is_refused_by_name(actions: str):
    assert "Pod" in compile_validating_policy(policies(policy("{" + actions + "}", match=TEAM)).all[0]).problem


@pytest.mark.parametrize(
    ("actions", "allowed"),
    [
        ("requests: {containers: [{names: [app], extended: {example.com/license: 2}}], required: true}", True),
        ("requests: {cpu: {from: request, percent: 50%}, required: true}", True),
        ("labels: {fromPod: {a: {label: b, among: [c]}}, required: true}", False),
        ("placement: {require: [{label: a, inPodLabel: b, among: [c]}], required: true}", False),
    ],
)
def test_a_required_action_denies_who_does_not_get_it(actions: str, allowed: bool):
    decision = decided(pod(container(requests={"cpu": "2"})), policies(policy("{" + actions + "}", match=TEAM)))
    assert (decision.denied is None) is allowed


def test_a_class_whose_nodes_are_not_there_is_found():
    world = facts(runtime_class("kata", node_selector={"sandbox": "kata"}), node(labels={"zone": "a"}))
    [one] = lint(policies(policy("{runtimeClass: {name: kata}}")), world)
    assert (one.reason.code.name, "sandbox=kata" in one.reason.sentence) == ("not-in-the-cluster", True)


@pytest.mark.parametrize(
    ("selector", "told"),
    [
        ("{matchLabels: {tier: gone}}", ["not-in-the-cluster"]),
        ("{matchLabels: {tier: prod}}", []),
        ("{matchLabels: {kubernetes.io/metadata.name: team-a}}", []),
    ],
)
def test_a_selector_that_no_namespace_meets_is_found(selector: str, told: list[str]):
    rule = policy("{labels: {add: {a: b}}}", match=f"{{namespaces: {{selector: {selector}}}}}")
    assert [one.reason.code.name for one in lint(policies(rule), facts(namespace(tier="prod")))] == told
