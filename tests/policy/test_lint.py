"""A policy that is only formally valid gives a finding; one that does what it says gives none."""

import pytest

from tests.build import facts, namespace, node, policies, policy
from tests.reasons import assert_reason
from trimtab.policy.lint import lint


def found(*written, world=None):
    return [(one.policy, one.reason.code.name) for one in lint(policies(*written), world)]


def of_one(actions, match="{}", world=None):
    return [code for _, code in found(policy(actions, match=match), world=world)]


@pytest.mark.parametrize(
    "amount",
    [
        "memory: {otherwise: 128m}",  # an eighth of a byte
        "memory: {otherwise: 128}",
        "memory: {max: 100Ti}",
        "cpu: {otherwise: '500'}",
        "cpu: {from: usage, min: 1000}",
        "containers: [{names: [app], memory: {otherwise: 1k}}]",
    ],
)
def test_an_amount_without_its_unit(amount):
    assert of_one(f"{{requests: {{{amount}}}}}") == ["unusual-amount"]
    assert "Mi" in lint(policies(policy(f"{{requests: {{{amount}}}}}")))[0].reason.code.todo


@pytest.mark.parametrize(
    ("amount", "said"),
    [
        ("cpu: {otherwise: 300}", "requests.cpu.otherwise is 300, which is 300 cores: did you mean 300m?"),
        ("cpu: {from: usage, min: '250'}", "requests.cpu.min is 250, which is 250 cores: did you mean 250m?"),
        ("memory: {otherwise: 512}", "requests.memory.otherwise is 512, which is 512 bytes: did you mean 512Mi?"),
        (
            "memory: {otherwise: 300m}",
            "requests.memory.otherwise is 300m, which is less than 1 byte: did you mean 300Mi?",
        ),
        ("cpu: {otherwise: 300Mi}", "requests.cpu.otherwise is 300Mi, which is 314572800 cores"),
    ],
)
def test_the_amount_that_was_probably_meant_is_named(amount, said):
    [one] = lint(policies(policy(f"{{requests: {{{amount}}}}}")))
    assert one.reason.sentence == said


@pytest.mark.parametrize("amount", ["memory: {otherwise: 128Mi, max: 12Ti}", "cpu: {otherwise: 1, min: 1m, max: 400}"])
def test_amounts_that_somebody_may_mean(amount):
    assert of_one(f"{{requests: {{{amount}}}}}") == []


def test_an_otherwise_below_the_min():
    assert of_one("{requests: {cpu: {otherwise: 10m, min: 1}}}") == ["ineffective-bound"]


def test_a_fixed_number_that_replaces_no_request():
    [one] = lint(policies(policy("{requests: {cpu: {otherwise: 300m, when: always}}}")))
    assert_reason(one, "otherwise-replaces-nothing", field="requests.cpu", value="otherwise: 300m", cure="from: policy")
    special = "{requests: {containers: [{names: [app], memory: {otherwise: 64Mi, when: always}}]}}"
    assert of_one(special) == ["otherwise-replaces-nothing"]


@pytest.mark.parametrize(
    "rule",
    [
        "from: policy, otherwise: 300m, when: always",
        "otherwise: 300m",
        "when: always",
        "otherwise: 300m, when: always, min: 10m",
        "otherwise: 300m, when: always, rule: p95",
        "from: limit, otherwise: 300m, when: always",
    ],
)
def test_a_rule_that_means_the_usage_or_replaces_the_request(rule):
    assert of_one(f"{{requests: {{cpu: {{{rule}}}}}}}") == []


LABEL = "{labels: {add: {a: b}}}"


@pytest.mark.parametrize(
    ("match", "sentence"),
    [
        ("{namespaces: {include: [team_a]}}", "team_a cannot be the name of a namespace: did you mean team-a?"),
        ("{namespaces: {exclude: ['Team-*']}}", "Team-* cannot be the name of a namespace: did you mean team-*?"),
        ("{exclude: [{namespaces: {include: [a.b]}}]}", "a.b cannot be the name of a namespace"),
        ("{namespaces: {include: [team-]}}", "team- cannot be the name of a namespace"),
        (f"{{namespaces: {{include: [{'a' * 64}]}}}}", f"{'a' * 64} cannot be the name of a namespace"),
    ],
)
def test_a_name_that_no_namespace_can_have(match, sentence):
    [one] = lint(policies(policy(LABEL, match=match)))
    assert (one.reason.code.name, one.reason.sentence) == ("not-a-namespace-name", sentence)


@pytest.mark.parametrize("name", ["team-a", "*", "team-*", "*-staging", "team-[a-c]", "team-[!a]?", "a" * 63 + "*"])
def test_a_name_that_a_namespace_can_have(name):
    assert of_one(LABEL, match=f"{{namespaces: {{include: ['{name}']}}}}") == []


@pytest.mark.parametrize(
    ("owner", "meant"),
    [
        ("deployment", "Deployment"),
        ("Deployments", "Deployment"),
        ("statefulset/db-*", "StatefulSet"),
        ("JOB", "Job"),
        ("depolyment", "Deployment"),
        ("pods", "Pod"),
    ],
)
def test_a_kind_that_no_pod_is_owned_by(owner, meant):
    [one] = lint(policies(policy(LABEL, match=f"{{owners: ['{owner}']}}")))
    assert (one.reason.code.name, f"did you mean {meant}?" in one.reason.sentence) == ("never-matches", True)


@pytest.mark.parametrize("owner", ["Deployment", "Rollout/web", "RayCluster", "*", "Stateful*", "*/web", "Pod"])
def test_kinds_that_may_be(owner):
    assert of_one(LABEL, f"{{owners: ['{owner}']}}") == []


@pytest.mark.parametrize(
    "match",
    [
        "{namespaces: {include: [team-a], exclude: ['team-*']}}",
        "{namespaces: {include: [kube-system]}}",
        "{podLabels: {a: b}, exclude: [{podLabels: {a: b}}]}",
        "{exclude: [{owners: [daemonset]}]}",
    ],
)
def test_a_match_that_no_pod_meets(match):
    assert of_one(LABEL, match) == ["never-matches"]


@pytest.mark.parametrize(
    "match",
    ["{namespaces: {include: ['team-*'], exclude: [team-a]}}", "{podLabels: {a: b}, exclude: [{podLabels: {a: c}}]}"],
)
def test_a_match_that_leaves_some(match):
    assert of_one(LABEL, match) == []


@pytest.mark.parametrize(
    "placement",
    [
        "{require: [{label: pool, in: [a]}, {label: pool, in: [b]}]}",
        "{require: [{label: pool, in: [a]}], nodeSelector: {pool: b}}",
        "{require: [{label: pool, exists: true}, {label: pool, absent: true}]}",
    ],
)
def test_requirements_that_no_node_meets(placement):
    assert of_one(f"{{placement: {placement}}}") == ["no-node-can-match"]


def test_a_weight_that_nobody_reads():
    assert of_one("{placement: {require: [{label: pool, in: [a], weight: 9}]}}") == ["weight-without-effect"]
    assert of_one("{placement: {prefer: [{label: pool, in: [a], weight: 9}]}}") == []


# Two policies -------------------------------------------------------------------------------------------------------

HUNDRED = "{requests: {cpu: {from: policy, otherwise: 100m}}}"
TWO_HUNDRED = "{requests: {cpu: {from: policy, otherwise: 200m}}}"


def two(first, second, *, a="{}", b="{}", priorities=(0, 0), **spec):
    one = policy(first, name="a", match=a, priority=priorities[0])
    return found(one, policy(second, name="b", match=b, priority=priorities[1], **spec))


def test_two_of_equal_priority_that_disagree():
    assert two(HUNDRED, TWO_HUNDRED) == [("b", "policies-conflict")]
    assert two("{labels: {add: {a: one}}}", "{labels: {add: {a: two, b: z}}}") == [("b", "policies-conflict")]
    require = "{placement: {require: [{label: pool, in: [%s]}]}}"
    assert two(require % "a", require % "b") == [("b", "policies-conflict")]


def test_two_that_agree_or_of_another_priority_or_that_only_watch():
    assert two(HUNDRED, HUNDRED) == []
    assert two(HUNDRED, TWO_HUNDRED, a="{podLabels: {tier: a}}", priorities=(1, 0)) == []
    assert two(HUNDRED, TWO_HUNDRED, mode="audit") == []
    taint = "{placement: {tolerate: [{key: pool, value: %s, effect: NoSchedule}]}}"
    assert two(taint % "a", taint % "b") == []


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("{namespaces: {include: [team-a]}}", "{namespaces: {include: [team-b]}}"),
        ("{namespaces: {include: ['team-*']}}", "{namespaces: {include: [shop]}}"),
        ("{namespaces: {include: [shop]}}", "{namespaces: {exclude: [shop]}}"),
        ("{podLabels: {tier: a}}", "{podLabels: {tier: b}}"),
        ("{owners: [Job]}", "{owners: [Deployment/web]}"),
        ("{vpa: managed}", "{vpa: unmanaged}"),
        ("{priorityClasses: [none]}", "{priorityClasses: [batch]}"),
        ("{podLabels: {tier: a}}", "{exclude: [{podLabels: {tier: a}}]}"),
        ("{namespaces: {selector: {matchLabels: {t: a}}}}", "{namespaces: {selector: {matchLabels: {t: b}}}}"),
    ],
)
def test_two_that_never_meet(a, b):
    assert two(HUNDRED, TWO_HUNDRED, a=a, b=b) == two(HUNDRED, TWO_HUNDRED, a=b, b=a) == []


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("{namespaces: {include: ['team-*']}}", "{namespaces: {include: [team-b]}}"),
        ("{podLabels: {tier: a}}", "{podLabels: {team: b}}"),
        ("{owners: [Job]}", "{owners: ['*']}"),
        ("{vpa: managed}", "{}"),
    ],
)
def test_two_that_may_meet(a, b):
    assert two(HUNDRED, TWO_HUNDRED, a=a, b=b) == two(HUNDRED, TWO_HUNDRED, a=b, b=a) == [("b", "policies-conflict")]


REMOVE, KEEP = "{limits: {cpu: remove}}", "{limits: {cpu: keep}}"


def test_a_policy_that_never_decides():
    team = "{namespaces: {include: [team-a]}}"
    assert two(KEEP, REMOVE, priorities=(1, 0)) == [("b", "always-overruled")]
    assert two(KEEP, REMOVE, a=team, b=team, priorities=(1, 0)) == [("b", "always-overruled")]
    assert two(KEEP, REMOVE, a=team, priorities=(1, 0)) == []
    assert two(KEEP, REMOVE, b=team, priorities=(1, 0)) == [("b", "always-overruled")]
    label = "{labels: {add: {a: %s}, override: %s}}"
    assert two(label % ("one", "false"), label % ("two", "false"), priorities=(1, 0)) == [("b", "always-overruled")]
    assert two(label % ("one", "true"), label % ("two", "false"), priorities=(1, 0)) == [("b", "always-overruled")]
    assert two(label % ("one", "false"), label % ("two", "true"), priorities=(1, 0)) == []
    assert two(HUNDRED, TWO_HUNDRED, priorities=(1, 0)) == [("b", "always-overruled")]
    assert two(HUNDRED.replace("100m", "100m, when: always"), TWO_HUNDRED, priorities=(1, 0)) == [
        ("b", "always-overruled")
    ]
    assert two(HUNDRED, TWO_HUNDRED.replace("200m", "200m, when: always"), priorities=(1, 0)) == []
    assert two("{requests: {cpu: {}}}", TWO_HUNDRED, priorities=(1, 0)) == []
    # A pod may opt out of the first, and a Guaranteed one is left alone by it.
    assert two(KEEP, REMOVE, priorities=(1, 0), optOut="nobody") == []
    assert two(KEEP, REMOVE, priorities=(1, 0), guaranteed="change") == []


# A cluster ----------------------------------------------------------------------------------------------------------


def test_what_the_cluster_does_not_have():
    world = facts(namespace("team-a"), node(cpu="4", memory="8Gi", labels={"pool": "web"}))
    require = "{placement: {require: [{label: pool, in: [%s]}]}}"
    team = "{namespaces: {include: ['%s']}}"
    assert of_one(require % "web", team % "team-*", world) == []
    assert of_one(require % "wbe", team % "team-a", world) == ["not-in-the-cluster"]
    assert of_one(require % "web", team % "taem-*", world) == ["not-in-the-cluster"]
    assert of_one(require % "wbe", team % "taem-*") == []
