"""`trimtab policies` as its users call it."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from click.testing import CliRunner, Result

from tests.cli.worlds import POLICY, write
from tests.reasons import has_facts
from trimtab.cli.main import cli
from trimtab.policy.load import load_policies
from trimtab.policy.schema import build_crd, json_schema


def trimtab(*arguments: str | Path) -> Result:
    return CliRunner().invoke(cli, ["policies", *map(str, arguments)])


def test_sound_policies_are_said_to_be_sound(tmp_path: Path) -> None:
    result = trimtab("check", write(tmp_path, POLICY))
    assert (result.exit_code, result.stdout) == (0, "1 policy is valid.\n")


@pytest.mark.parametrize("verb", ["check", "list"])
def test_files_without_a_policy_are_not_said_to_be_sound(tmp_path: Path, verb: str) -> None:
    result = trimtab(verb, write(tmp_path, "# nothing yet\n---\n"))
    assert (result.exit_code, result.stdout) == (2, "")
    assert has_facts(result.stderr, "at least one PodPolicy")


def test_ten_mistakes_in_three_files_are_all_named(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(
        "apiVersion: trimtab.dev/v1alpha1\nkind: PodPolicy\nmetadata: {name: a}\nspec:\n  mode: aply\n"
        "  priority: high\n  rollout: 120%\n  actions:\n    limits: {cpu: drop, disk: remove}\n"
    )
    (tmp_path / "b.yaml").write_text(
        "apiVersion: trimtab.dev/v1\nkind: PodPolicy\nmetadata: {name: b}\n---\n"
        "apiVersion: trimtab.dev/v1alpha1\nkind: PodPolicy\nmetadata: {name: B}\nspec:\n  actions:\n"
        "    requests:\n      cpu: {from: usage, otherwise: 100mb, min: -1}\n"
    )
    (tmp_path / "c.yaml").write_text("spec:\n\tactions: {}\n")
    result = trimtab("check", tmp_path)
    places = [line.split(": expected")[0].replace(str(tmp_path) + "/", "") for line in result.stderr.splitlines()[:-1]]
    assert result.exit_code == 2
    assert places == [
        "a.yaml:5:3: PodPolicy a spec.mode",
        "a.yaml:6:3: PodPolicy a spec.priority",
        "a.yaml:7:3: PodPolicy a spec.rollout",
        "a.yaml:9:14: PodPolicy a spec.actions.limits.cpu",
        "a.yaml:9:25: PodPolicy a spec.actions.limits.disk",
        "b.yaml:1:1: PodPolicy b apiVersion",
        "b.yaml:7:12: PodPolicy B metadata.name",
        "b.yaml:11:26: PodPolicy B spec.actions.requests.cpu.otherwise",
        "b.yaml:11:44: PodPolicy B spec.actions.requests.cpu.min",
        "c.yaml:2:1",
    ]


def test_a_class_that_the_cluster_lacks_is_a_finding(tmp_path: Path) -> None:
    policy = POLICY.replace("limits: {cpu: remove}", "runtimeClass: {name: gvisor}")
    cluster = write(tmp_path, "kind: Namespace\nmetadata: {name: a}\n")
    result = trimtab("check", write(tmp_path, policy), "--cluster", cluster, "-o", "json")
    assert result.exit_code == 1
    assert [f["code"] for f in json.loads(result.stdout)["findings"]] == ["runtimeclass-not-found"]


def test_explain_says_what_a_policy_does_in_words(tmp_path: Path) -> None:
    result = trimtab("explain", "--policies", write(tmp_path, POLICY))
    assert "cpu limit: remove" in result.stdout


def test_explain_says_how_to_name_a_file(tmp_path: Path) -> None:
    path = write(tmp_path, POLICY)
    result = trimtab("explain", str(path))
    assert result.exit_code == 2
    assert f"use --policies {path}" in " ".join(result.stderr.split())


@pytest.mark.parametrize(
    ("rule", "sentence"),
    [
        (
            "otherwise: 300m, when: always",
            "from the usage of the container, 300m until usage is known if the container has no request, "
            "replaces the container's own request once usage is known",
        ),
        (
            "otherwise: 300m",
            "from the usage of the container, 300m until usage is known, only if the container has no request",
        ),
        ("from: policy, otherwise: 300m, when: always", "300m, replaces the container's own request"),
    ],
)
def test_explain_says_when_a_request_is_replaced(tmp_path: Path, rule: str, sentence: str) -> None:
    policy = write(tmp_path, POLICY.replace("limits: {cpu: remove}", f"requests: {{cpu: {{{rule}}}}}"))
    result = trimtab("explain", "--policies", policy, "-o", "json")
    assert f'sets the cpu request: {sentence}"' in result.stdout


@pytest.mark.parametrize(
    "condition",
    [
        "namespaces: {include: [a]}",
        "namespaces: {selector: {matchLabels: {a: b}}}",
        "podLabels: {a: b}",
        "podSelector: {matchLabels: {a: b}}",
        "owners: [Job]",
        "containers: {names: [a]}",
        "containers: {roles: [init]}",
        "containers: {images: [a]}",
        "containers: {notImages: [a]}",
        "runtimeClasses: [a]",
        "priorityClasses: [a]",
        "vpa: managed",
        "hpa: utilization",
        "hpa: unaffected",
    ],
)
def test_explain_has_words_for_every_condition(tmp_path: Path, condition: str) -> None:
    policy = write(tmp_path, POLICY + f"  match:\n    {condition}\n    exclude: [{{{condition}}}]\n")
    (actual_policy,) = json.loads(trimtab("explain", "--policies", policy, "-o", "json").stdout)["policies"]
    means, but = actual_policy["whom"]
    assert means
    assert not means.startswith("every pod")
    assert but == f"except: {means}"


def test_an_unknown_name_gets_the_nearest_one(tmp_path: Path) -> None:
    result = trimtab("explain", "no-cpu-limits", "--policies", write(tmp_path, POLICY))
    assert result.exit_code == 2
    assert "did you mean 'no-cpu-limit'?" in result.stderr


def test_the_schema_takes_what_the_loader_takes() -> None:
    schema = json.loads(trimtab("schema").stdout)
    assert schema == json.loads(json.dumps(json_schema()))
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(yaml.safe_load(POLICY), schema)


@pytest.mark.parametrize("wrong", ["limits: {cpu: drop}", "limit: {cpu: remove}", "requests: {cpu: {from: guess}}"])
def test_the_schema_refuses_what_the_loader_refuses(wrong: str) -> None:
    document = yaml.safe_load(POLICY.replace("limits: {cpu: remove}", wrong))
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document, json_schema())


def filled(value: Any, schema: Any) -> Any:
    """The value with the schema's defaults, as an API server stores it."""
    if isinstance(value, list) and "items" in schema:
        return [filled(item, schema["items"]) for item in value]
    if not isinstance(value, dict):
        return value
    properties = schema.get("properties", {})
    absent = {key: part["default"] for key, part in properties.items() if "default" in part and key not in value}
    return {key: filled(item, properties.get(key, {})) for key, item in {**value, **absent}.items()}


SHIPPED = sorted((Path(__file__).parents[2] / "policies").glob("*/*.yaml"))


@pytest.mark.parametrize(
    "text", [POLICY, *(path.read_text() for path in SHIPPED)], ids=["own", *(p.stem for p in SHIPPED)]
)
def test_a_policy_that_the_api_server_filled_in_is_the_same_policy(text: str) -> None:
    """A default that the loader refuses rejects every policy that leaves the field out."""
    version = build_crd()["spec"]["versions"][0]
    stored = filled(yaml.safe_load(text), version["schema"]["openAPIV3Schema"])
    written, read = (load_policies([("policy", value.encode())]) for value in (text, json.dumps(stored)))
    assert (read.mistakes, [p.spec for p in read.policies.all]) == ((), [p.spec for p in written.policies.all])


def test_the_crd_is_a_custom_resource_definition() -> None:
    documents = yaml.safe_load_all(trimtab("schema", "--crd").stdout)
    assert [(one["kind"], one["metadata"]["name"]) for one in documents] == [
        ("CustomResourceDefinition", "podpolicies.trimtab.dev"),
        ("CustomResourceDefinition", "poolstatuses.trimtab.dev"),
        ("CustomResourceDefinition", "drainorders.trimtab.dev"),
    ]


def test_mistakes_in_json_have_lines_too(tmp_path: Path) -> None:
    document = {**yaml.safe_load(POLICY), "metadata": {"name": "a", "annotations": {"smile": "\U0001f600"}}, "wat": 1}
    for indent in (2, "\t"):
        (tmp_path / "a.json").write_text(json.dumps([document], indent=indent, ensure_ascii=False))
        assert f"{tmp_path}/a.json:18:" in trimtab("check", tmp_path).stderr


def test_a_key_given_twice_in_json_is_a_mistake_as_in_yaml(tmp_path: Path) -> None:
    policy = json.dumps(yaml.safe_load(POLICY))
    (tmp_path / "a.json").write_text(f'{{"kind": "List", "items": [], "items": [{policy}]}}')
    assert has_facts(trimtab("check", tmp_path).stderr, "'items' once")


def test_a_label_that_no_pod_of_the_snapshot_has_is_a_finding(tmp_path: Path) -> None:
    policy = POLICY.replace("spec:", "spec:\n  match: {podLabels: {app: bach}}")
    pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: a, namespace: b, labels: {app: batch}}\nspec: {containers: []}\n"
    result = trimtab("check", write(tmp_path, policy), "--cluster", write(tmp_path, pod))
    assert result.exit_code == 1
    assert has_facts(" ".join(result.stdout.split()), "no pod", "app=bach", "batch", "not-in-the-cluster")
