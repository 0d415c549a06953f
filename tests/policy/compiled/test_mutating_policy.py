"""The manifests of policies that the API server evaluates itself, and what cannot be carried."""

import re
from pathlib import Path

import pytest

from tests.build import policies, policy
from tests.reasons import has_facts
from trimtab.policy.compiled.differences import DIFFERENCES
from trimtab.policy.compiled.mutating_policy import compile_mutating_policy, find_conflicts
from trimtab.policy.load import load_policies

SHIPPED = Path(__file__).parents[3] / "policies"


def compiled(actions="{labels: {add: {team: a}}}", *, match="{}", with_parameters=False, **spec):
    one = policies(policy(actions, name="web", match=match, **spec)).all[0]
    return compile_mutating_policy(one, (one,), with_parameters=with_parameters)


def shipped():
    files = [path for folder in ("recommended", "library") for path in sorted((SHIPPED / folder).glob("*.yaml"))]
    return load_policies([(str(path), path.read_bytes()) for path in files]).policies.all


def test_a_policy_and_its_binding_that_never_fail_a_pod():
    built, binding = compiled().manifests
    assert (built["kind"], built["spec"]["failurePolicy"]) == ("MutatingAdmissionPolicy", "Ignore")
    assert built["spec"]["matchConstraints"]["resourceRules"][0]["operations"] == ["CREATE"]
    assert binding["spec"] == {"policyName": "trimtab-web"}


def test_nothing_is_patched_where_nothing_changes():
    [condition] = [c for c in compiled().manifests[0]["spec"]["matchConditions"] if "team" in c["expression"]]
    assert '"team" in object.metadata.labels' in condition["expression"]


@pytest.mark.parametrize(
    ("more", "asks"),
    [("", True), (", emptyDirs: {sizeLimit: 1Gi, medium: [disk]}", True), (", emptyDirs: {sizeLimit: 1Gi}", False)],
)
def test_a_memory_limit_that_sizes_a_volume_stays_unless_the_policy_gives_the_volume_a_size(more, asks):
    built = compiled(f"{{limits: {{memory: remove}}{more}}}", with_parameters=True).manifests[0]
    [amount] = [one["expression"] for one in built["spec"]["variables"] if one["name"] == "amount0containers"]
    assert ("v.emptyDir.medium == 'Memory'" in amount) is asks


def test_what_it_changed_is_on_the_pod():
    [mutation] = compiled().manifests[0]["spec"]["mutations"]
    assert "/metadata/annotations/compiled.trimtab.dev~1web" in mutation["jsonPatch"]["expression"]


def test_no_list_of_objects_is_written():
    """It would end the request with a panic (kube-apiserver 1.36.3)."""
    every = shipped()
    for one in every:
        for built in compile_mutating_policy(one, every, with_parameters=True).manifests[:1]:
            assert not re.search(r"\bObject[.{]", built["spec"]["mutations"][0]["jsonPatch"]["expression"])


@pytest.mark.parametrize(
    ("actions", "spec", "where"),
    [
        ("{labels: {add: {a: b}}}", {"rollout": "50%"}, "spec.rollout"),
        ("{labels: {add: {a: b}}}", {"mode": "warn"}, "spec.mode"),
        ("{priorityClass: {name: low}}", {}, "spec.actions.priorityClass"),
        ("{limits: {cpu: remove}}", {}, "spec.actions.limits"),
        ("{requests: {cpu: {from: usage}}}", {}, "spec.actions.requests"),
        ("{overhead: {stray: deny}}", {}, "spec.actions.overhead.stray"),
        ("{labels: {add: {a: b}}}", {"match": "{hpa: utilization}"}, "spec.match.hpa"),
        ("{labels: {add: {a: b}}}", {"match": "{owners: [CronJob]}"}, "spec.match.owners"),
        ("{labels: {add: {a: b}}}", {"match": "{containers: {roles: [init]}}"}, "spec.match.containers.roles"),
    ],
)
def test_what_cannot_be_carried_is_named(actions, spec, where):
    assert compiled(actions, **spec).problem.startswith(where)


@pytest.mark.parametrize(
    ("rule", "where"),
    [
        ("{from: usage, when: always}", "when"),
        ("{from: request, percent: 50%}", "percent"),
        ("{from: usage, minConfidence: 0.5}", "minConfidence"),
        ("{from: usage, pods: largest}", "pods"),
        ("{otherwise: 10m, round: 5m}", "round"),
    ],
)
def test_what_parameters_do_not_carry_is_named(rule, where):
    problem = compiled(f"{{requests: {{cpu: {rule}}}}}", with_parameters=True).problem
    assert problem.startswith(f"spec.actions.requests.cpu.{where}")


def test_usage_is_read_from_the_pods_own_namespace():
    built, binding = compiled("{requests: {cpu: {from: usage, otherwise: 50m}}}", with_parameters=True).manifests
    assert built["spec"]["paramKind"] == {"apiVersion": "v1", "kind": "ConfigMap"}
    assert binding["spec"]["paramRef"] == {"name": "trimtab-requests", "parameterNotFoundAction": "Allow"}


def test_a_class_that_does_not_exist_is_not_given():
    built, binding = compiled("{runtimeClass: {name: kata}}").manifests
    assert built["spec"]["paramKind"]["kind"] == "RuntimeClass"
    assert binding["spec"]["paramRef"] == {"name": "kata", "parameterNotFoundAction": "Allow"}


def test_a_limit_that_an_earlier_policy_keeps_stays():
    keep = policy("{limits: {cpu: keep}}", name="keep", priority=9, match="{podLabels: {keep: '*'}}")
    remove = policy("{limits: {cpu: remove}}", name="remove")
    every = policies(keep, remove).all
    built = compile_mutating_policy(every[1], every, with_parameters=True).manifests[0]
    texts = [item["expression"] for item in built["spec"]["variables"] if item["name"] == "selected"]
    assert '"keep" in object.metadata.labels' in texts[0]
    assert not compile_mutating_policy(every[0], every).problem


def test_two_thirds_of_the_shipped_policies_are_carried():
    every = shipped()
    carried = [one for one in every if not compile_mutating_policy(one, every, with_parameters=True).problem]
    assert 3 * len(carried) >= 2 * len(every)


def test_a_scheduler_is_named_only_where_its_lease_need_not_be_read():
    assert "is current" in compiled("{schedulerName: {name: packs}}").problem
    assert not compiled("{schedulerName: {name: packs, lease: none}}").problem


def test_policies_that_decide_one_field_are_named():
    first = policy("{schedulerName: {name: a}}", name="first")
    second = policy("{schedulerName: {name: b}}", name="second")
    [sentence] = find_conflicts(policies(first, second).all)
    assert has_facts(sentence, "first", "second", "schedulerName", "no fixed order")


def test_the_docs_list_every_difference():
    page = (SHIPPED.parent / "docs" / "explanation" / "without-a-webhook.md").read_text(encoding="utf-8")
    assert [d.code for d in DIFFERENCES if f"| `{d.code}` | {d.sentence} |" not in page] == []


def test_the_docs_count_the_carried_policies_as_the_compiler_does():
    every = shipped()
    alone = [compile_mutating_policy(one, every) for one in every]
    usage = [compile_mutating_policy(one, every, with_parameters=True) for one in every]
    without, carried, written = (
        sum(not one.problem for one in alone),
        sum(not one.problem for one in usage),
        sum(bool(one.manifests) for one in usage),
    )
    page = (SHIPPED.parent / "docs" / "explanation" / "without-a-webhook.md").read_text(encoding="utf-8")
    words = " ".join(page.split())
    assert f"Of the {len(every)} policies" in words
    own = [compile_mutating_policy(one, every, with_parameters=True, parameters_namespace="trimtab") for one in every]
    assert has_facts(words, without, "without parameters", carried, "--params usage")
    assert has_facts(words, sum(not one.problem for one in own), "--params-namespace")
    assert f"| all {len(every)} | {without}, with parameters {carried} | all {len(every)} |" in words
    assert f"all {written} compiled policies" in words
    assert f"under each of {written} compiled policies" in words


def test_a_limit_that_a_runtime_reads_stays():
    built = compiled("{limits: {memory: remove}}", with_parameters=True).manifests[0]
    texts = [item["expression"] for item in built["spec"]["variables"] if "limits" in item["expression"]]
    assert all("RAMPercentage" in text and "temurin" in text for text in texts if "containers.map" in text)


def test_the_limits_of_a_pod_on_windows_stay():
    variables = compiled("{limits: {memory: remove}}", with_parameters=True).manifests[0]["spec"]["variables"]
    texts = {item["name"]: item["expression"] for item in variables}
    assert all(word in texts["windows"] for word in ("beta.kubernetes.io/os", "hostProcess", "NotIn", "spec.os"))
    assert any("!variables.windows" in text for text in texts.values())


def test_what_shows_no_runtime_cannot_be_told_from_what_reads_no_limit():
    problem = compiled("{limits: {cpu: remove, unknownRuntime: keep}}", with_parameters=True).problem
    assert problem.startswith("spec.actions.limits.unknownRuntime")
