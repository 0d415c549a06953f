"""`trimtab admit` as its users call it."""

import gzip
import json
import os
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from tests.cli.worlds import DEPLOYMENT, LIMIT_RANGE, POLICY, write
from tests.reasons import has_facts
from trimtab.cli.main import cli
from trimtab.policy.reasons import ALREADY_SET

SHARED = Path(os.environ.get("TRIMTAB_SHARED", "../shared"))


def trimtab(*arguments: str | Path, given: str | None = None) -> Result:
    return CliRunner().invoke(cli, [str(argument) for argument in arguments], input=given)


def admitted(*arguments: str | Path) -> dict:  # type: ignore[type-arg]
    result = trimtab("admit", *arguments, "-o", "json")
    assert result.exit_code == 0, result.output
    document: dict = json.loads(result.stdout)  # type: ignore[type-arg]
    return document


def test_what_a_policy_would_do_that_only_watches_is_told_once(tmp_path: Path) -> None:
    watching = POLICY.replace("spec:", "spec:\n  mode: warn", 1)
    output = trimtab("admit", "-f", write(tmp_path, DEPLOYMENT), "--policies", write(tmp_path, watching)).stdout
    assert output.count("limits.cpu") == output.count("not get this change") == 1


def test_a_report_has_all_warnings_of_a_pod(tmp_path: Path) -> None:
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "web"},
        "spec": {
            "containers": [
                {"name": f"c{number}", "image": "web:1", "resources": {"requests": {"cpu": 1}, "limits": {"cpu": 1}}}
                for number in range(7)
            ]
        },
    }
    watching = POLICY.replace("spec:", "spec:\n  mode: warn", 1)
    files = "-f", write(tmp_path, json.dumps(pod)), "--policies", write(tmp_path, watching)
    (report,) = admitted(*files)["pods"]
    assert len([warning for warning in report["warnings"] if "limits.cpu" in warning]) == 7
    assert "more warning" not in trimtab("admit", *files).stdout


QUOTA = """\
apiVersion: v1
kind: ResourceQuota
metadata: {name: small, namespace: shop}
spec: {hard: {pods: "3"}}
status: {hard: {pods: "3"}, used: {pods: "1"}}
"""


def _quota_notes(tmp_path: Path, manifest: str, *more: str | Path) -> list[str]:
    policies = "--policies", write(tmp_path, POLICY)
    report = admitted("-f", write(tmp_path, manifest), "-f", write(tmp_path, QUOTA), *policies, *more)
    return [note for note in report["notes"] if "ResourceQuota shop/small" in note]


def test_a_quota_that_admits_one_pod_and_not_all_is_noted(tmp_path: Path) -> None:
    (note,) = _quota_notes(tmp_path, DEPLOYMENT)
    assert has_facts(note, "refuses some", "pods 3", "1 of 3")


def test_a_quota_has_no_note_if_all_pods_fit(tmp_path: Path) -> None:
    assert not _quota_notes(tmp_path, DEPLOYMENT.replace("replicas: 3", "replicas: 2"))


@pytest.mark.parametrize("exists", ["in the file", "in the cluster"])
def test_the_pods_of_an_object_that_exists_are_already_counted_by_a_quota(tmp_path: Path, exists: str) -> None:
    if exists == "in the file":
        assert not _quota_notes(tmp_path, DEPLOYMENT.replace("  name: web\n", "  name: web\n  uid: a\n", 1))
    else:
        assert not _quota_notes(tmp_path, DEPLOYMENT, "--cluster", write(tmp_path, DEPLOYMENT))


def test_a_deployment_stands_for_the_pods_it_would_make(tmp_path: Path) -> None:
    report = admitted("-f", write(tmp_path, DEPLOYMENT), "--policies", write(tmp_path, POLICY))
    assert [(p["kind"], p["name"], p["replicas"], p["outcome"]) for p in report["pods"]] == [
        ("Deployment", "web", 3, "changed")
    ]


def test_where_pods_run_is_told_once(tmp_path: Path) -> None:
    placing = """\
apiVersion: trimtab.dev/v1alpha1
kind: PodPolicy
metadata: {name: places}
spec:
  actions:
    placement:
      require: [{label: tier, in: [web]}]
      requireAny: [[{label: pool, in: [red]}], [{label: pool, in: [blue]}]]
      prefer: [{label: gpu, exists: true}]
"""
    output = trimtab("admit", "-f", write(tmp_path, DEPLOYMENT), "--policies", write(tmp_path, placing)).stdout
    assert has_facts(output, "tier In web", "pool In red", "pool In blue", "gpu Exists")


SIZES = """\
apiVersion: trimtab.dev/v1alpha1
kind: PodPolicy
metadata: {name: sizes}
spec:
  actions:
    requests: {cpu: {from: policy, otherwise: 300m}, memory: {from: policy, otherwise: 64Mi}}
"""


def test_a_field_that_its_author_set_is_named_without_explain(tmp_path: Path) -> None:
    manifest, policy = write(tmp_path, DEPLOYMENT), write(tmp_path, SIZES)
    lines = trimtab("admit", "-f", manifest, "--policies", policy).stdout
    text = " ".join(lines.split())
    assert has_facts(text, "sizes", "requests.cpu, requests.memory", "Deployment shop/web", "requests 1", "already-set")
    assert ALREADY_SET.todo in text
    assert lines.count("already-set") == 1


def test_every_change_carries_its_policy_and_reason(tmp_path: Path) -> None:
    (pod,) = admitted("-f", write(tmp_path, DEPLOYMENT), "--policies", write(tmp_path, POLICY))["pods"]
    actual = {change["field"]: (change["policy"], change["reason"]["code"]) for change in pod["changes"]}
    assert actual["containers[app].limits.cpu"] == ("no-cpu-limit", "limit-removed")


def test_a_limit_range_among_the_files_stands_in_the_cluster(tmp_path: Path) -> None:
    (pod,) = admitted(
        "-f", write(tmp_path, DEPLOYMENT), "-f", write(tmp_path, LIMIT_RANGE), "--policies", write(tmp_path, POLICY)
    )["pods"]
    assert [item["reason"]["code"] for item in pod["left"]] == ["limitrange-keeps-limit"]


def test_the_pod_is_shown_as_it_would_be_stored(tmp_path: Path) -> None:
    (pod,) = admitted("-f", write(tmp_path, DEPLOYMENT), "--policies", write(tmp_path, POLICY))["pods"]
    assert pod["stored"]["spec"]["containers"][0]["resources"] == {"requests": {"cpu": "1", "memory": "1Gi"}}


def test_yaml_output_keeps_comments_and_order(tmp_path: Path) -> None:
    result = trimtab("admit", "-f", write(tmp_path, DEPLOYMENT), "--policies", write(tmp_path, POLICY), "-o", "yaml")
    assert "the shop's front door" in result.stdout
    assert "limits" not in result.stdout


@pytest.mark.parametrize("name", ["online-boutique.yaml", "kube-prometheus.yaml"])
def test_real_manifests_admitted_again_change_nothing(tmp_path: Path, name: str) -> None:
    manifests = SHARED / "data" / "manifests" / name
    if not manifests.exists():
        pytest.skip(f"{manifests} is not here; set TRIMTAB_SHARED")
    once = tmp_path / "once.yaml"
    once.write_text(trimtab("admit", "-f", manifests, "-o", "yaml").stdout)
    second_result = admitted("-f", once)
    assert [pod["changes"] for pod in second_result["pods"]] == [[]] * len(second_result["pods"])
    assert list(yaml.safe_load_all(trimtab("admit", "-f", once, "-o", "yaml").stdout)) == list(
        yaml.safe_load_all(once.read_text())
    )


def beat(**container: str) -> str:
    """Returns a Beat, whose operator completes the template of its pods."""
    template = {"spec": {"containers": [{"name": "filebeat", "resources": {"limits": {"cpu": "1"}}, **container}]}}
    head = {"apiVersion": "beat.k8s.elastic.co/v1beta1", "kind": "Beat", "metadata": {"name": "logs"}}
    return json.dumps({**head, "spec": {"daemonSet": {"podTemplate": template}}})


def test_an_object_that_changes_has_no_note_that_it_stays(tmp_path: Path) -> None:
    files = "-f", write(tmp_path, beat(image="filebeat:8")), "--policies", write(tmp_path, POLICY)
    report = admitted(*files)
    assert [pod["outcome"] for pod in report["pods"]] == ["changed"]
    assert [("stays unchanged" in note) for note in report["notes"] if "Beat logs" in note] == [False]


def test_a_template_that_its_operator_completes_has_one_reason(tmp_path: Path) -> None:
    alone = trimtab("admit", "-f", write(tmp_path, beat())).stderr
    beside = admitted("-f", write(tmp_path, beat()), "-f", write(tmp_path, DEPLOYMENT))["notes"]
    assert has_facts(alone, "containers[0].image", "completes the template")
    assert "more pods" not in alone
    assert [("completes the template" in note) for note in beside if "Beat" in note] == [True]


def test_standard_input_is_a_file_called_dash(tmp_path: Path) -> None:
    result = trimtab("admit", "-f", "-", "--policies", write(tmp_path, POLICY), "-o", "json", given=DEPLOYMENT)
    assert json.loads(result.stdout)["pods"][0]["file"] == "-"


def test_all_mistakes_are_named_together_and_nothing_is_done(tmp_path: Path) -> None:
    cut = write(tmp_path, DEPLOYMENT[:180] + " [")
    bad = write(tmp_path, POLICY.replace("remove", "drop"))
    result = trimtab("admit", "-f", cut, "--policies", bad)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert "expected YAML" in result.stderr
    assert "expected remove, keep, request" in result.stderr


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("kind: Service\nmetadata: {name: x}\n", "expected a Pod, or an object with a pod template, got none"),
        (
            "apiVersion: platform.example.com/v1\nkind: Kafka\nmetadata: {name: x}\n",
            "none; Kafka (platform.example.com) has no pod template, and Trimtab does not know whether such an "
            "object creates pods",
        ),
        ("just text\n", "expected an API object with a kind"),
        (DEPLOYMENT.replace("cpu: 1", "cpu: [1]"), "resources.requests"),
        ("", "expected a Pod, or an object with a pod template, got none"),
    ],
)
def test_what_holds_no_pods_is_asked_wrongly(tmp_path: Path, content: str, says: str) -> None:
    result = trimtab("admit", "-f", write(tmp_path, content), "--policies", write(tmp_path, POLICY))
    assert result.exit_code == 2
    assert says in result.stderr


def test_a_nonsense_quantity_is_refused_as_the_server_refuses_it(tmp_path: Path) -> None:
    (pod,) = admitted(
        "-f", write(tmp_path, DEPLOYMENT.replace("cpu: 1", "cpu: lots")), "--policies", write(tmp_path, POLICY)
    )["pods"]
    assert pod["refused"]["code"] == 400


@pytest.mark.parametrize("metadata", ["", "metadata: null\n", "metadata: {}\n"])
def test_a_pod_without_a_name_is_refused_as_the_server_refuses_it(tmp_path: Path, metadata: str) -> None:
    pod = f"apiVersion: v1\nkind: Pod\n{metadata}spec: {{containers: [{{name: a, image: x}}]}}\n"
    (created_pod,) = admitted("-f", write(tmp_path, pod), "--policies", write(tmp_path, POLICY))["pods"]
    assert (created_pod["namespace"], created_pod["refused"]["code"]) == ("default", 422)
    assert has_facts(created_pod["refusedWithoutUs"]["message"], "name", "generateName", "required")


def test_a_file_that_is_not_there_is_asked_wrongly(tmp_path: Path) -> None:
    result = trimtab("admit", "-f", tmp_path / "nothing.yaml")
    assert result.exit_code == 2
    assert has_facts(result.stderr, "a file or folder", "read")


def test_strict_tells_scripts_about_warnings(tmp_path: Path) -> None:
    files = ("-f", write(tmp_path, DEPLOYMENT), "-f", write(tmp_path, LIMIT_RANGE))
    assert trimtab("admit", *files, "--policies", write(tmp_path, POLICY)).exit_code == 0
    assert trimtab("admit", *files, "--policies", write(tmp_path, POLICY), "--strict").exit_code == 1


_SHARED = """\
apiVersion: v1
kind: Pod
metadata: {name: one, namespace: shop}
spec:
  containers:
    - {name: a, image: x, resources: &small {limits: &most {cpu: 1, memory: 1Gi}}}  # the small one
    - {name: b, image: x, resources: *small}
    - name: c
      image: x
      resources: {requests: {cpu: 500m}, limits: {<<: *most, memory: 2Gi}}
---
apiVersion: v1
kind: List
items:
  - &two
    {apiVersion: v1, kind: Pod, metadata: {name: two},
     spec: {containers: [{name: a, image: x, resources: {limits: {cpu: 1}}}]}}
  - {<<: *two, metadata: {name: three, namespace: kube-system}}
"""


def test_what_manifests_share_by_aliases_is_changed_where_it_was_decided_only(tmp_path: Path) -> None:
    result = trimtab("admit", "-f", write(tmp_path, _SHARED), "--policies", write(tmp_path, POLICY), "-o", "yaml")
    assert result.exit_code == 0, result.output
    assert "# the small one" in result.stdout
    pod, pods = yaml.safe_load_all(result.stdout)
    limits = [container["resources"].get("limits") for container in pod["spec"]["containers"]]
    assert limits == [{"memory": "1Gi"}, {"memory": "1Gi"}, {"memory": "2Gi"}]
    assert [item["spec"]["containers"][0]["resources"].get("limits") for item in pods["items"]] == [None, {"cpu": 1}]


def test_manifests_under_gzip_are_written_back_as_text(tmp_path: Path) -> None:
    packed = tmp_path / "web.yaml.gz"
    packed.write_bytes(gzip.compress(DEPLOYMENT.encode()))
    result = trimtab("admit", "-f", packed, "--policies", write(tmp_path, POLICY), "-o", "yaml")
    assert result.stdout.startswith("# the shop's front door")


_PLAIN = """\
apiVersion: v1
kind: Pod
metadata: {name: x, namespace: shop, annotations: {on: "1"}}
spec:
  containers:
    - name: a
      image: x
      tty: yes
      env: [{name: Y, value: 'no'}]
      args: [1:30, 010, 2024-01-01]
      resources: {requests: {cpu: 1}, limits: {cpu: 2}}
"""


def test_yaml_output_leaves_plain_words_as_they_were_written(tmp_path: Path) -> None:
    result = trimtab("admit", "-f", write(tmp_path, _PLAIN), "--policies", write(tmp_path, POLICY), "-o", "yaml")
    assert result.stdout == _PLAIN.replace(", limits: {cpu: 2}", "")


def test_yaml_output_quotes_text_of_ours_that_would_be_a_boolean(tmp_path: Path) -> None:
    policy = POLICY.replace("limits: {cpu: remove}", 'annotations: {add: {a: "yes", b: "010", c: plain}}')
    result = trimtab("admit", "-f", write(tmp_path, _PLAIN), "--policies", write(tmp_path, policy), "-o", "yaml")
    assert 'a: "yes", b: "010", c: plain' in result.stdout.replace("'010'", '"010"')


@pytest.mark.parametrize("form", ["table", "json", "yaml"])
def test_a_file_that_cannot_be_written_is_asked_wrongly(tmp_path: Path, form: str) -> None:
    nowhere = tmp_path / "no" / "such" / "folder" / "report"
    result = trimtab("admit", "-f", write(tmp_path, DEPLOYMENT), "-o", form, "--output-file", nowhere)
    assert (result.exit_code, result.stdout) == (2, "")
    assert has_facts(result.stderr, "a file", "written", "no such file")


def test_a_terminal_gets_its_width_and_boxes_and_a_pipe_neither(tmp_path: Path) -> None:
    files = ["admit", "-f", str(write(tmp_path, DEPLOYMENT)), "--policies", str(write(tmp_path, POLICY))]
    terminal = {"COLUMNS": "80", "FORCE_COLOR": "1", "TERM": "dumb"}
    drawn, piped = (CliRunner(env=env).invoke(cli, files).stdout for env in (terminal, {}))
    assert max(map(len, drawn.splitlines())) == 80
    assert "│" in drawn
    assert not set("│┃─━╭") & set(piped)


def test_pods_with_the_same_changes_share_one_panel(tmp_path: Path) -> None:
    policies = write(tmp_path, POLICY)
    few, many = (
        write(tmp_path, "\n---\n".join(DEPLOYMENT.replace("web", f"web-{number}") for number in range(count)))
        for count in (4, 12)
    )
    assert trimtab("admit", "-f", few, "--policies", policies).stdout.count("and 3 more") == 1
    pods = admitted("-f", many, "--policies", policies)["pods"]
    assert len(pods) == 12
    text = trimtab("admit", "-f", many, "--policies", policies).stdout
    assert " ".join(text.split()).count("(12 pods)") == len(pods[0]["changes"])
