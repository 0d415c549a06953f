"""A pod that would run without a required action is denied with the reason; no other pod is denied because of it."""

from dataclasses import replace

import pytest

from tests.build import SIGNING, container, decided, facts, namespace, pod, policies, policy, runtime_class, toleration
from tests.reasons import has_facts
from trimtab.cli.policies.describe import describe_actions
from trimtab.cluster.api.meta import change
from trimtab.cluster.api.pod import PodOS
from trimtab.policy.actions import runtime_class as runtime_class_action
from trimtab.policy.cluster_facts import NO_FACTS
from trimtab.policy.lint import AUTHOR_CHOOSES, lint
from trimtab.policy.load import load_policies
from trimtab.policy.pod_context import DEFAULT_SETTINGS, AdmissionSettings
from trimtab.policy.required_actions import required_policies_for

TEAM = "{namespaces: {include: ['team-*']}}"
SANDBOX = "{runtimeClass: {name: kata, required: true}}"
WORLD = facts(namespace(), runtime_class("kata"))
OPT_OUT = "trimtab.dev/opt-out"


def sandbox(actions=SANDBOX, *, match=TEAM, **spec):
    return policies(policy(actions, name="sandbox", match=match, **spec))


def why(pod_, by=None, world=WORLD, terms=SIGNING):
    """Returns why the pod is denied; empty where it is not."""
    return str(decided(pod_, by or sandbox(), world, terms).denied or "")


def test_a_pod_that_gets_its_class_is_let_in():
    decision = decided(pod(), sandbox(), WORLD)
    assert (decision.denied, decision.pod.spec.runtime_class_name) == (None, "kata")


def test_a_missing_class_denies():
    assert has_facts(
        why(pod(), world=facts(namespace())),
        "sandbox requires runtimeClassName",
        "RuntimeClass kata",
        "runtimeclass-not-found",
    )


def test_classes_that_are_not_listed_yet_deny():
    assert "facts-missing" in why(pod(), world=replace(NO_FACTS, namespaces={"team-a": {}}))


def test_a_contradiction_denies():
    world = facts(namespace(), runtime_class("kata", node_selector={"pool": "sandbox"}))
    assert "runtimeclass-conflict" in why(pod(node_selector={"pool": "other"}), world=world)


def test_another_class_that_the_pod_names_itself_denies():
    assert "already-set" in why(pod(runtime_class_name="plain"))


def test_a_policy_that_decided_first_denies():
    by = policies(
        policy("{runtimeClass: {name: plain}}", name="first", priority=9),
        policy("{runtimeClass: {name: kata, required: true, override: true}}", name="sandbox", match=TEAM),
    )
    result = why(pod(), by, facts(namespace(), runtime_class("kata"), runtime_class("plain")))
    assert has_facts(result, "first", "runtimeClassName: plain", "kata", "overruled")
    assert has_facts(result, "trimtab explain overruled")


def test_an_error_of_ours_denies(monkeypatch):
    monkeypatch.setattr(runtime_class_action, "_find_obstacle", lambda *_: 1 / 0)
    assert "failed with ZeroDivisionError [action-failed]" in why(pod())


@pytest.mark.parametrize("where", ["labels", "annotations"])
def test_an_author_who_opts_out_is_denied_and_told(where):
    result = why(pod(**{where: {OPT_OUT: "true"}}))
    assert has_facts(result, "sandbox", "runtimeClass", "opt itself out", "explain required")


def test_who_may_opt_out_is_a_setting_of_the_policy():
    opted, by_namespace = pod(annotations={OPT_OUT: "true"}), facts(namespace(**{OPT_OUT: "true"}), runtime_class())
    plain = "{runtimeClass: {name: kata}}"
    result = {
        allowed: [
            decided(pod_, sandbox(plain, optOut=allowed), world).pod.spec.runtime_class_name == "kata"
            for pod_, world in ((opted, WORLD), (pod(), by_namespace))
        ]
        for allowed in ("pod", "namespace", "nobody")
    }
    assert result == {"pod": [False, False], "namespace": [True, False], "nobody": [True, True]}


def test_a_namespace_that_opts_out_is_heeded_where_it_may():
    world = facts(namespace(**{OPT_OUT: "true"}))
    assert [why(pod(), sandbox(optOut=allowed), world) != "" for allowed in ("pod", "namespace", "nobody")] == [
        False,
        False,
        True,
    ]


@pytest.mark.parametrize(
    "chosen",
    [
        {"owner": "DaemonSet/logs"},
        {"node_name": "n1"},
        {"os": PodOS(name="windows")},
        {"priority_class_name": "system-node-critical"},
        {"node_selector": {"kubernetes.io/os": "windows"}},
    ],
)
def test_what_the_author_chooses_exempts_no_pod(chosen):
    everything = (
        "{runtimeClass: {name: kata, required: true}, placement: {require: [{label: pool, in: [sandbox]}],"
        " required: true}, topologySpread: {constraints: [{topologyKey: zone}], required: true}}"
    )
    decision = decided(pod(labels={"app": "web"}, **chosen), sandbox(everything), WORLD)
    spec = decision.pod.spec
    assert decision.denied is None
    assert (spec.runtime_class_name, len(spec.topology_spread_constraints)) == ("kata", 1)
    assert len(spec.affinity.node_affinity.required.node_selector_terms) == 1


@pytest.mark.parametrize("spec", [{"mode": "warn"}, {"mode": "audit"}, {"rollout": "0%"}, {"enabled": "false"}])
def test_what_only_watches_denies_nothing(spec):
    assert why(pod(), sandbox(**spec), facts(namespace())) == ""


def test_owners_outside_the_rollout_are_not_denied():
    result = [
        why(pod(owner=f"ReplicaSet/web-{n}"), sandbox(rollout="50%"), facts(namespace())) != "" for n in range(40)
    ]
    assert 5 < sum(result) < 35


def test_the_switch_denies_nothing():
    assert why(pod(), world=facts(namespace()), terms=AdmissionSettings(paused=True)) == ""


def test_a_mode_of_another_action_does_not_matter():
    assert why(pod(), sandbox("{runtimeClass: {name: kata}, labels: {add: {a: b}, required: true}}"), facts()) == ""


def test_a_namespace_not_known_yet_counts_as_selected():
    selected = "{namespaces: {selector: {matchLabels: {tier: untrusted}}}}"
    decision = decided(pod(), sandbox(match=selected), facts(runtime_class("kata")))
    assert decision.pod.spec.runtime_class_name == "kata"


LACKING = [
    ("{priorityClass: {name: high, required: true}}", pod(), "priorityClassName"),
    ("{labels: {add: {cost: low}, required: true}}", pod(labels={"cost": "high"}), "labels[cost]"),
    ("{annotations: {add: {cost: low}, required: true}}", pod(annotations={"cost": "high"}), "annotations[cost]"),
    ("{overhead: {stray: keep, required: true}}", pod(overhead={"cpu": "1"}), "overhead"),
    ("{requests: {cpu: {from: usage}, required: true}}", pod(), "containers[app].requests.cpu"),
    (
        "{limits: {cpu: remove, required: true}}",
        pod(container(requests={"cpu": "1", "memory": "1Gi"}, limits={"cpu": "1", "memory": "1Gi"})),
        "containers[app].limits.cpu",
    ),
    (
        "{placement: {require: [{label: pool, in: [a]}], required: true}}",
        pod(node_selector={"pool": "b"}),
        "nodeAffinity.required[pool]",
    ),
    (
        "{topologySpread: {constraints: [{topologyKey: zone}], required: true}}",
        pod(),
        "topologySpreadConstraints[zone]",
    ),
    (
        "{safeToEvictVolumes: {required: true}}",
        pod(annotations={"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}),
        "annotations[cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes]",
    ),
]


@pytest.mark.parametrize(("actions", "came", "field"), LACKING)
def test_every_action_may_be_required(actions, came, field):
    assert has_facts(why(came, sandbox(actions)), f"sandbox requires {field}", "run without it")


@pytest.mark.parametrize(("actions", "came", "field"), LACKING)
def test_what_is_not_required_denies_nothing(actions, came, field):
    assert why(came, sandbox(actions.replace(", required: true", "").replace("required: true", ""))) == ""


GRANTED = [
    ("{labels: {add: {cost: low}, required: true}}", pod()),
    ("{overhead: {stray: strip, required: true}}", pod(overhead={"cpu": "1"})),
    ("{requests: {cpu: {otherwise: 10m}, memory: {otherwise: 1Mi}, required: true}}", pod()),
    ("{limits: {cpu: remove, memory: keep, required: true}}", pod(container(limits={"cpu": "1", "memory": "1Gi"}))),
    (
        "{placement: {require: [{label: pool, in: [a]}], nodeSelector: {zone: x},"
        " prefer: [{label: spot, exists: true}], tolerate: [{key: pool, value: a}], required: true}}",
        pod(tolerations=(toleration("other"),)),
    ),
    ("{topologySpread: {constraints: [{topologyKey: zone}], required: true}}", pod(labels={"app": "web"})),
    ("{safeToEvictVolumes: {required: true}}", pod()),
]


@pytest.mark.parametrize(("actions", "came"), GRANTED)
def test_a_pod_that_gets_what_is_required_is_let_in_both_times(actions, came):
    by, world = sandbox(actions), facts(namespace())
    first = decided(came, by, world)
    decision = decided(first.pod, by, world)
    assert (first.denied, decision.denied, decision.pod) == (None, None, first.pod)


def mistakes(actions=SANDBOX, *, match=TEAM):
    loaded = load_policies([("p.yaml", policy(actions, match=match).encode())])
    return [(result.field, result.got) for result in loaded.mistakes]


@pytest.mark.parametrize(
    ("match", "field"),
    [
        ("{}", "spec.match"),
        ("{podLabels: {tier: untrusted}}", "spec.match"),
        ("{namespaces: {exclude: [a]}}", "spec.match.namespaces"),
        ("{namespaces: {include: ['*']}}", "spec.match.namespaces.include"),
        ("{namespaces: {include: [team-a, kube-system]}}", "spec.match.namespaces.include"),
        ("{namespaces: {include: [trimtab-system]}}", "spec.match.namespaces.include"),
        ("{namespaces: {include: [a]}, owners: [Deployment]}", "spec.match.owners"),
        ("{namespaces: {include: [a]}, exclude: [{owners: [DaemonSet]}]}", "spec.match.exclude[0].owners"),
        ("{namespaces: {include: [a]}, exclude: [{priorityClasses: [high]}]}", "spec.match.exclude[0].priorityClasses"),
    ],
)
def test_a_required_action_names_its_namespaces_and_heeds_no_fact_of_the_authors(match, field):
    assert [where for where, _ in mistakes(match=match)] == [field]
    assert mistakes("{runtimeClass: {name: kata}}", match=match) == []


@pytest.mark.parametrize(
    "match",
    [
        TEAM,
        "{namespaces: {selector: {matchLabels: {a: b}}}}",
        "{namespaces: {include: ['*'], exclude: ['kube-*', trimtab-system]}}",
    ],
)
def test_named_namespaces_are_sound(match):
    assert mistakes(match=match) == []


def test_the_mistake_names_the_namespaces_that_must_be_spared():
    assert mistakes(match="{namespaces: {include: ['*']}}") == [
        ("spec.match.namespaces.include", "kube-node-lease, kube-public, kube-system, trimtab-system")
    ]


@pytest.mark.parametrize(
    ("by", "namespace_", "terms", "found"),
    [
        (sandbox(), "team-a", DEFAULT_SETTINGS, ("sandbox",)),
        (sandbox(), "other", DEFAULT_SETTINGS, ()),
        (sandbox("{runtimeClass: {name: kata}}"), "team-a", DEFAULT_SETTINGS, ()),
        (sandbox(mode="warn"), "team-a", DEFAULT_SETTINGS, ()),
        (sandbox(rollout="0%"), "team-a", DEFAULT_SETTINGS, ()),
        (sandbox(), "team-a", AdmissionSettings(paused=True), ()),
        (sandbox(match="{namespaces: {selector: {matchLabels: {a: b}}}}"), "kube-system", DEFAULT_SETTINGS, ()),
        (sandbox(match="{namespaces: {selector: {matchLabels: {a: b}}}}"), "team-a", DEFAULT_SETTINGS, ()),
        (sandbox(match="{namespaces: {selector: {matchLabels: {a: b}}}}"), "new", DEFAULT_SETTINGS, ("sandbox",)),
        (
            sandbox(match="{namespaces: {include: ['team-*']}, podLabels: {a: b}}"),
            "team-a",
            DEFAULT_SETTINGS,
            ("sandbox",),
        ),
    ],
)
def test_which_policies_may_require_something_in_a_namespace(by, namespace_, terms, found):
    assert required_policies_for(by, WORLD, namespace_, terms) == found


def test_a_policy_outside_whose_rollout_the_pod_is_requires_nothing_of_it():
    drawn = [
        required_policies_for(sandbox(rollout="50%"), WORLD, "team-a", DEFAULT_SETTINGS, pod(owner=f"Job/{n}")) != ()
        for n in range(40)
    ]
    assert 5 < sum(drawn) < 35


def test_a_namespace_that_opted_out_requires_nothing():
    world = facts(namespace(**{OPT_OUT: "true"}))
    result = [
        required_policies_for(sandbox(optOut=o), world, "team-a", DEFAULT_SETTINGS) for o in ("namespace", "nobody")
    ]
    assert result == [(), ("sandbox",)]


def test_a_class_that_somebody_changed_after_us_denies():
    by = sandbox("{runtimeClass: {name: kata, override: true, required: true}}")
    first = decided(pod(), by, WORLD).pod
    theirs = change(first, spec=change(first.spec, runtime_class_name="plain"))
    assert "sandbox requires runtimeClassName" in why(theirs, by)


def findings(by, world=None):
    return [(result.policy, result.reason.code.name) for result in lint(by, world)]


def test_a_missing_class_of_a_required_action_is_told_first():
    by = policies(
        policy("{limits: {cpu: remove}}", name="idle", priority=9, enabled="false"),
        policy("{runtimeClass: {name: plain}}", name="wish", match="{podLabels: {a: b}}"),
        policy(SANDBOX, name="sandbox", match=TEAM),
    )
    assert findings(by, facts()) == [
        ("sandbox", "runtimeclass-not-found"),
        ("idle", "switched-off"),
        ("wish", "runtimeclass-not-found"),
        ("wish", "policies-conflict"),
    ]


def test_a_match_by_what_the_author_chooses_is_a_finding():
    by = sandbox(match="{namespaces: {include: [a]}, podLabels: {tier: untrusted}, exclude: [{hpa: utilization}]}")
    assert findings(by) == [("sandbox", "match-chosen-by-author"), ("sandbox", "exclude-chosen-by-author")]


@pytest.mark.parametrize("containers", ['{notImages: ["registry.example.com/*"]}', "{images: [a]}", "{names: [a]}"])
def test_so_is_a_match_by_containers_whose_image_can_be_changed_once_the_pod_runs(containers):
    by = sandbox(match=f"{{namespaces: {{include: [a]}}, containers: {containers}}}")
    [result] = [each_result for each_result in lint(by) if each_result.reason.code is AUTHOR_CHOOSES]
    assert has_facts(result.reason.sentence, "image", "running container")


def test_the_words_of_a_policy_say_what_it_denies():
    assert has_facts(describe_actions(sandbox().all[0])[-1], "denies", "without runtimeClass")
