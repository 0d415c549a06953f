import pytest

from tests.build import policy
from tests.reasons import has_facts
from trimtab.policy.load import load_policies

ONE = """\
apiVersion: trimtab.dev/v1alpha1
kind: PodPolicy
metadata: {name: one}
spec:
  priorty: 10
  mode: aply
  match: {namespaces: {includes: [a]}}
  actions:
    requests:
      cpu: {otherwise: 100mb}
"""
TWO = """\
apiVersion: trimtab.dev/v1alpha1
kind: PodPolicy
metadata: {name: two}
spec:
  rollout: 250%
  actions:
    limits: {cpu: drop}
    placement:
      require: [{label: pool, in: [a], exists: true}]
---
apiVersion: trimtab.dev/v1alpha1
kind: PodPolicie
metadata: {name: three}
spec: {actions: {limits: {cpu: remove}}}
"""
THREE = """\
apiVersion: trimtab.dev/v1alpha1
kind: PodPolicy
metadata: {name: two}
spec:
  actions:
    runtimeClass: {override: true}
"""


def told(*files: str) -> list[tuple[str, int | None, str]]:
    loaded = load_policies([(f"{number}.yaml", text.encode()) for number, text in enumerate(files, 1)])
    return [(m.file, m.line, m.field) for m in loaded.mistakes]


def test_ten_mistakes_in_three_files_are_all_told_with_line_and_field():
    assert told(ONE, TWO, THREE) == [
        ("1.yaml", 5, "spec.priorty"),
        ("1.yaml", 6, "spec.mode"),
        ("1.yaml", 7, "spec.match.namespaces.includes"),
        ("1.yaml", 10, "spec.actions.requests.cpu.otherwise"),
        ("2.yaml", 5, "spec.rollout"),
        ("2.yaml", 7, "spec.actions.limits.cpu"),
        ("2.yaml", 9, "spec.actions.placement.require[0]"),
        ("2.yaml", 12, "kind"),
        ("3.yaml", 3, "metadata.name"),
        ("3.yaml", 6, "spec.actions.runtimeClass.name"),
    ]


def only(text: str):
    (result,) = load_policies([("p.yaml", text.encode())]).mistakes
    return result


@pytest.mark.parametrize(
    ("wrong", "right"), [("priorty: 1", "priority"), ("rolout: 5", "rollout"), ("enabld: true", "enabled")]
)
def test_an_unknown_field_hears_the_nearest_name(wrong, right):
    key, value = wrong.split(": ")
    assert right in only(policy("{limits: {cpu: remove}}", **{key: value})).todo


def test_a_choice_hears_the_nearest_name():
    result = only(policy("{limits: {cpu: remove}}", mode="aply"))
    assert (result.expected.split(), result.got) == (["one", "of", "apply,", "warn,", "audit"], "'aply'")
    assert has_facts(result.todo, "apply")


def test_what_is_no_yaml_is_told_and_the_other_files_are_read():
    loaded = load_policies([("a.yaml", b"a: [1"), ("b.yaml", policy("{limits: {cpu: remove}}").encode())])
    assert ([m.file for m in loaded.mistakes], [p.name for p in loaded.policies.all]) == (["a.yaml"], ["p"])


def test_a_tab_is_told_as_a_tab():
    assert only("apiVersion: trimtab.dev/v1alpha1\nkind: PodPolicy\nmetadata:\n\tname: p\n").got == "a tab"


def test_a_bomb_is_refused():
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10)]
    assert has_facts(only("\n".join(lines)).expected, "aliases", "not multiply")


def test_two_policies_of_one_name_hear_of_each_other():
    document = policy("{limits: {cpu: remove}}")
    load_result = load_policies([("a.yaml", document.encode()), ("b.yaml", document.encode())])
    [mistake] = load_result.mistakes
    assert mistake.file == "b.yaml"
    assert has_facts(mistake.todo, "policy", "a.yaml:3", "name")


@pytest.mark.parametrize(
    "actions",
    [
        "{}",
        "{requests: {cpu: {otherwise: 100mb}}}",
        "{requests: {cpu: {otherwise: -1}}}",
        "{requests: {cpu: {min: 2, max: 1}}}",
        "{requests: {cpu: {from: policy}}}",
        "{requests: {cpu: {percent: 120%}}}",
        "{limits: {cpu: request x 0.5}}",
        "{limits: {cpu: ''}}",
        "{runtimeClass: {name: Not_A_Name}}",
        "{placement: {require: [{label: pool}]}}",
        "{placement: {require: [{label: 'a b', exists: true}]}}",
        "{placement: {prefer: [{label: pool, exists: true, weight: 101}]}}",
        "{placement: {tolerate: [{key: a, operator: Exists, value: b}]}}",
        "{placement: {tolerate: [{key: a, seconds: 5}]}}",
        "{topologySpread: {constraints: []}}",
        "{topologySpread: {constraints: [{topologyKey: zone}, {topologyKey: zone, maxSkew: 2}]}}",
        "{labels: {add: {a: 1}}}",
        "{labels: {add: {'a/b/c': x}}}",
        "{priorityClass: high}",
        "[]",
    ],
)
def test_what_cannot_be_meant_is_one_mistake(actions):
    assert only(policy(actions)).field.startswith("spec.actions")


@pytest.mark.parametrize("text", ["- 1\n", "just text\n", "kind: PodPolicy\n", "apiVersion: v1\nkind: Pod\n", "5\n"])
def test_what_is_no_policy_at_all_is_told(text):
    assert load_policies([("p.yaml", text.encode())]).mistakes != ()


@pytest.mark.parametrize("metadata", ["{}", "null", "[]", "{name: 5}", "{name: Big}", f"{{name: {'a' * 64}}}", "text"])
def test_a_policy_has_a_name(metadata):
    text = policy("{limits: {cpu: remove}}").replace("{name: p}", metadata)
    assert [m.field.split(".")[0] for m in load_policies([("p.yaml", text.encode())]).mistakes] == ["metadata"]


def test_policies_decide_by_priority_and_then_by_name():
    texts = [policy("{limits: {cpu: remove}}", name=n, priority=p) for n, p in (("b", 0), ("a", 0), ("z", 9))]
    loaded = load_policies([("p.yaml", "---\n".join(texts).encode())])
    assert [p.name for p in loaded.policies.all] == ["z", "a", "b"]


def test_what_the_api_server_adds_to_an_object_is_no_mistake():
    text = policy("{limits: {cpu: remove}}").replace("{name: p}", "{name: p, uid: x, labels: {a: b}}") + "status: {}\n"
    assert load_policies([("p.yaml", text.encode())]).mistakes == ()


def test_a_constraint_that_makes_no_sense_is_told():
    text = policy("{topologySpread: {constraints: [{topologyKey: zone, minDomains: 2}]}}")
    assert "spec.actions.topologySpread.constraints[0]" in [
        m.field for m in load_policies([("p", text.encode())]).mistakes
    ]


@pytest.mark.parametrize("word", ["y", "N"])
def test_a_bare_word_that_kubectl_takes_for_a_boolean_is_a_mistake(word):
    head = "apiVersion: trimtab.dev/v1alpha1\nkind: PodPolicy\nmetadata: {name: p}\nspec:\n"
    text = head + "  match: {podLabels: {batch: %s}}\n  actions: {labels: {add: {a: b}}}\n"
    [mistake] = load_policies([("p.yaml", (text % word).encode())]).mistakes
    assert (mistake.line, mistake.field, mistake.expected) == (5, "spec.match.podLabels.batch", "text in quotes")
    assert load_policies([("p.yaml", (text % f'"{word}"').encode())]).mistakes == ()
