"""Conditions and settings that teams need: match by amounts, annotations and accounts; bounds; values of the namespace;
groups."""

from dataclasses import replace

import msgspec
import pytest

from tests.build import changed, codes, container, decided, facts, namespace, pod, policies, policy
from trimtab.cluster.api.meta import value_or
from trimtab.cluster.api.pod import Pod
from trimtab.cluster.resources import requests_of
from trimtab.policy.load import load_policies
from trimtab.policy.validating_policy import compile_validating_policy

MARK = '{labels: {add: {meant: "yes"}}}'


def means(match: str, pod_: Pod) -> bool:
    return bool(decided(pod_, policies(policy(MARK, match=match))).changes)


def asking(**requests: str) -> Pod:
    return pod(container("app", requests=requests))


@pytest.mark.parametrize(
    ("amount", "meant"),
    [
        ("{atLeast: 8}", ["8", "9000m"]),
        ("{below: 8}", ["7999m", ""]),
        ("{exists: true}", ["7999m", "8", "9000m"]),
        ("{absent: true}", [""]),
        ("{atLeast: 8, below: 9}", ["8"]),
    ],
)
def test_pods_are_meant_by_what_they_ask_for(amount: str, meant: list[str]):
    written_pod = ["", "7999m", "8", "9000m"]
    result = [
        cpu for cpu in written_pod if means(f"{{requests: {{cpu: {amount}}}}}", asking(**({"cpu": cpu} if cpu else {})))
    ]
    assert result == sorted(meant, key=written_pod.index)


def test_the_containers_of_a_pod_are_counted_together_and_each_alone():
    two = pod(*(container(name, requests={"cpu": "5"}) for name in "ab"))
    assert means("{requests: {cpu: {atLeast: 8}}}", two)
    assert not means("{containers: {requests: {cpu: {atLeast: 8}}}}", two)


def test_an_amount_that_cannot_be_read_is_never_meant():
    assert not means("{requests: {cpu: {below: 8}}}", asking(cpu="lots"))


def test_image_and_request_together_mean_one_container():
    rule = "{requests: {memory: {from: policy, otherwise: 64Mi}}}"
    match = '{containers: {images: ["mesh*"], requests: {memory: {absent: true}}}}'
    new_pod = pod(
        container("app"),
        container("proxy", image="mesh:1"),
        container("other", image="mesh:2", requests={"memory": "1Gi"}),
    )
    assert set(changed(decided(new_pod, policies(policy(rule, match=match))))) == {"containers[proxy].requests.memory"}


def test_pods_are_meant_by_annotation_and_by_service_account():
    assert means('{annotations: {note: "y*"}}', pod(annotations={"note": "yes"}))
    assert not means('{annotations: {note: "*"}}', pod())
    assert means("{serviceAccounts: [default]}", pod())
    assert means('{serviceAccounts: ["ci-*"]}', pod(service_account_name="ci-tests"))


def test_what_one_policy_makes_a_pod_ask_for_another_may_match():
    small = policy("{requests: {cpu: {from: policy, otherwise: 2, when: always}}}", name="a")
    large = policy(MARK, name="b", match="{requests: {cpu: {atLeast: 2}}}")
    decision = decided(asking(cpu="1"), policies(small, large))
    assert set(changed(decision)) == {"containers[app].requests.cpu", "labels[meant]"}


@pytest.mark.parametrize(("written", "stays"), [("4", "500m"), ("500m", "500m"), ("0.25", "0.25"), ("1m", "10m")])
def test_what_is_written_is_kept_between_bounds(written: str, stays: str):
    rule = "{requests: {cpu: {from: request, min: 10m, max: 500m}}}"
    result = decided(asking(cpu=written), policies(policy(rule))).pod
    assert requests_of(result.spec.containers[0].resources)["cpu"] == stays
    assert decided(result, policies(policy(rule))).pod == result


def test_bounds_alone_give_no_request():
    rule = "{requests: {cpu: {from: request, max: 500m}}}"
    assert decided(pod(container("app")), policies(policy(rule))).changes == ()


POOL = """{placement: {require: [{label: pool, inNamespaceLabel: team}],
 tolerate: [{key: pool, valueFromNamespace: team, effect: NoSchedule}]}}"""


def test_the_namespace_names_the_pool():
    decision = decided(pod(), policies(policy(POOL)), facts(namespace(team="blue")))
    assert [change.after for change in decision.changes] == ["In blue", "Equal blue"]


@pytest.mark.parametrize("world", [facts(), facts(namespace())])
def test_a_namespace_that_names_none_gives_nothing_and_a_pods_label_does_not_either(world):
    decision = decided(pod(labels={"team": "blue"}), policies(policy(POOL)), world)
    assert (decision.changes, codes(decision, loud=True)) == ((), {"namespace-label-missing"})


def test_labels_come_from_the_namespace():
    rule = policies(policy("{labels: {fromNamespace: {cost: billing}}}"))
    assert changed(decided(pod(), rule, facts(namespace(billing="4711"))))["labels[cost]"] == "4711"
    assert codes(decided(pod(), rule, facts(namespace()))) == {"namespace-label-missing"}


ANY = """{placement: {requireAny: [[{label: arch, in: [arm]}],
 [{label: arch, in: [amd]}, {label: generation, above: 7}]]}}"""


def test_each_of_a_pods_terms_gets_each_group():
    result = decided(pod(), policies(policy(ANY))).pod
    terms = value_or(
        value_or(value_or(result.spec.affinity, None).node_affinity, None).required, None
    ).node_selector_terms
    assert [[r.key for r in value_or(term.match_expressions, ())] for term in terms] == [
        ["arch"],
        ["arch", "generation"],
    ]
    assert decided(result, policies(policy(ANY))).pod == result


def test_groups_that_all_contradict_the_pod_change_nothing():
    assert codes(decided(pod(node_selector={"arch": "s390"}), policies(policy(ANY)))) == {"contradiction"}


def test_the_scheduler_is_named_where_the_pod_names_none():
    rule = policies(policy("{schedulerName: {name: packs}}"))
    assert changed(decided(pod(scheduler_name="default-scheduler"), rule)) == {"schedulerName": "packs"}
    assert codes(decided(pod(scheduler_name="other"), rule)) == {"already-set"}
    override = policies(policy("{schedulerName: {name: packs, override: true}}"))
    assert changed(decided(pod(scheduler_name="other"), override)) == {"schedulerName": "packs"}


def test_a_pod_is_left_alone_while_the_scheduler_holds_no_fresh_lease():
    rule = policies(policy("{schedulerName: {name: packs}}"))
    left_alone = decided(pod(), rule, replace(facts(), fresh_leases=frozenset({"kube-system/other"})))
    assert (changed(left_alone), codes(left_alone)) == ({}, {"scheduler-not-running"})
    holding = replace(facts(), fresh_leases=frozenset({"kube-system/packs"}))
    assert changed(decided(pod(), rule, holding)) == {"schedulerName": "packs"}


def test_the_lease_of_a_scheduler_can_be_named_or_be_none():
    nothing_held = replace(facts(), fresh_leases=frozenset())
    holding = replace(facts(), fresh_leases=frozenset({"batch/leader"}))
    elsewhere = policies(policy("{schedulerName: {name: packs, lease: batch/leader}}"))
    assert changed(decided(pod(), elsewhere, holding)) == {"schedulerName": "packs"}
    assert changed(decided(pod(), elsewhere, nothing_held)) == {}
    assumed = policies(policy("{schedulerName: {name: gke.io-packs, lease: none}}"))
    assert changed(decided(pod(), assumed, nothing_held)) == {"schedulerName": "gke.io-packs"}


def test_the_time_to_end_is_kept_between_bounds():
    rule = policies(policy("{terminationGracePeriod: {minSeconds: 10, maxSeconds: 600}}"))
    assert [
        decided(pod(termination_grace_period_seconds=s), rule).pod.spec.termination_grace_period_seconds
        for s in (0, 30, 9000)
    ] == [10, 30, 600]


MATCHES = (
    "{annotations: {a: b}}",
    "{requests: {cpu: {exists: true}}}",
    "{containers: {requests: {cpu: {exists: true}}}}",
)


@pytest.mark.parametrize("match", [*MATCHES, "{serviceAccounts: [x]}"])
def test_what_cel_cannot_say_of_a_match_is_refused_by_name(match: str):
    result = policies(policy(MARK, match=match)).all[0]
    assert "spec.match" in compile_validating_policy(result).problem


@pytest.mark.parametrize(
    "wrong",
    [
        "requests: {cpu: {from: request}}",
        "placement: {require: [{label: a, inNamespaceLabel: b, in: [c]}]}",
        "placement: {tolerate: [{key: a, value: b, valueFromNamespace: c}]}",
        "labels: {override: true}",
        "schedulerName: {name: packs, lease: packs}",
        "terminationGracePeriod: {}",
        "terminationGracePeriod: {minSeconds: 9, maxSeconds: 1}",
        "emptyDirs: {sizeLimit: 0}",
    ],
)
def test_nonsense_is_a_mistake(wrong: str):
    assert load_policies([("p", policy("{" + wrong + "}").encode())]).mistakes


@pytest.mark.parametrize("wrong", ["{cpu: {}}", "{cpu: {absent: true, below: 1}}", "{cpu: {atLeast: 2, below: 1}}"])
def test_amounts_that_mean_nothing_are_a_mistake(wrong: str):
    assert load_policies([("p", policy(MARK, match=f"{{requests: {wrong}}}").encode())]).mistakes


@pytest.mark.parametrize(
    ("first", "second", "found"),
    [
        ("{terminationGracePeriod: {maxSeconds: 20}}", "{terminationGracePeriod: {minSeconds: 60}}", pod()),
        ("{placement: {require: [{label: a, in: [b]}]}}", "{placement: {require: [{label: a, notIn: [c]}]}}", pod()),
        (
            "{requests: {cpu: {from: request, max: 500m}}}",
            "{requests: {cpu: {from: policy, otherwise: 2, when: always}}}",
            asking(cpu="1"),
        ),
    ],
)
def test_what_a_bound_gave_is_no_other_policys_the_next_time(first: str, second: str, found: Pod):
    both = policies(policy(first, name="a", priority=1), policy(second, name="b"))
    once = decided(found, both).pod
    amount = msgspec.structs.replace(once, metadata=found.metadata)
    assert decided(amount, both).pod.spec == once.spec
