"""`trimtab lint` as users call it: files in, findings, patches and CI formats out."""

import json
from pathlib import Path
from xml.etree import ElementTree

import msgspec
import pytest
from click.testing import CliRunner, Result

from tests.autoscaling.rule_cases_of import FOLDER
from tests.reasons import has_facts
from trimtab.cli.main import cli
from trimtab.cluster.published_reservations import (
    RESERVATIONS_KEY,
    RESERVATIONS_LABEL,
    PublishedReservation,
    PublishedReservations,
)
from trimtab.inputs.lint_objects import add_type

BAD = str(FOLDER / "L07" / "bad.yaml")


def run_lint(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["lint", *arguments])


def test_an_error_exits_with_one_and_says_what_to_do() -> None:
    result = run_lint("-f", BAD, "--only", "L07")
    assert result.exit_code == 1
    assert "Remove spec.replicas" in result.stdout


def test_a_warning_exits_with_zero_unless_strict() -> None:
    file = str(FOLDER / "L29" / "bad.yaml")
    assert run_lint("-f", file, "--only", "L29").exit_code == 0
    assert run_lint("-f", file, "--only", "L29", "--strict").exit_code == 1


def test_what_was_not_checked_is_said() -> None:
    report = json.loads(run_lint("-f", BAD, "-o", "json").stdout)
    assert any("L12" in line and "usage" in line for line in report["notChecked"])


def test_the_fix_leaves_nothing_that_it_claims_and_keeps_the_rest(tmp_path: Path) -> None:
    file = tmp_path / "app.yaml"
    file.write_text("# ours\n" + Path(BAD).read_text() + "---\napiVersion: v1\nkind: Secret\nmetadata: {name: a}\n")
    result = run_lint("-f", str(file), "--fix", str(tmp_path / "fixed"))
    assert "The changes fix" in result.stderr
    fixed = (tmp_path / "fixed" / "app.yaml").read_text()
    assert fixed.startswith("# ours\n")
    assert fixed.endswith("---\napiVersion: v1\nkind: Secret\nmetadata: {name: a}\n")
    second_document = json.loads(run_lint("-f", str(tmp_path / "fixed"), "-o", "json").stdout)
    assert [finding for finding in second_document["findings"] if finding["fixable"]] == []


def test_a_fix_that_removes_a_count_says_how_to_keep_the_running_count(tmp_path: Path) -> None:
    # Without the handover, a server-side apply after a client-side one scaled 3 replicas to 1.
    lines = run_lint("-f", BAD, "--only", "L07", "--fix", str(tmp_path / "fixed")).stderr.splitlines()
    handover = next(number for number, line in enumerate(lines) if "--field-manager hpa-handover" in line)
    assert lines[handover].strip().startswith("kubectl get deployment ")
    assert has_facts(lines[handover - 1], "count to 1")
    assert "edit-last-applied" in lines[handover + 1]
    assert has_facts(lines[handover + 2], "kubectl apply --server-side")
    other = str(FOLDER / "L29" / "bad.yaml")
    assert "handover" not in run_lint("-f", other, "--only", "L29", "--fix", str(tmp_path / "other")).stderr


def test_sarif_names_files_as_the_repository_has_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my app.yaml").write_text(Path(BAD).read_text())
    for name in ("my app.yaml", str(tmp_path / "my app.yaml")):
        log = json.loads(run_lint("-f", name, "--only", "L07", "-o", "sarif").stdout)
        [result] = log["runs"][0]["results"]
        assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "my%20app.yaml"


def test_sarif_names_rule_line_and_a_fingerprint_without_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    log = json.loads(run_lint("-f", BAD, "--only", "L07", "-o", "sarif").stdout)
    [sarif_run] = log["runs"]
    [result] = sarif_run["results"]
    assert result["ruleId"] == "L07"
    assert result["level"] == "error"
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == Path(BAD).resolve().as_uri()
    assert result["locations"][0]["physicalLocation"]["region"]["startLine"] == 7
    assert result["partialFingerprints"] == {"trimtabObject/v1": "L07:shop/Deployment/web:spec.replicas"}
    assert {rule["id"] for rule in sarif_run["tool"]["driver"]["rules"]} >= {"L01", "L07"}


def test_junit_has_a_failure_for_each_finding_and_a_passed_case_for_none() -> None:
    failed = ElementTree.fromstring(run_lint("-f", BAD, "--only", "L07", "-o", "junit").stdout)
    assert failed.attrib["failures"] == "1"
    passed = ElementTree.fromstring(run_lint("-f", BAD, "--only", "L13", "-o", "junit").stdout)
    assert (passed.attrib["tests"], passed.attrib["failures"]) == ("1", "0")


def test_a_baseline_accepts_what_is_known_and_names_what_is_gone(tmp_path: Path) -> None:
    baseline = tmp_path / "baseline.json"
    assert run_lint("-f", BAD, "--write-baseline", str(baseline)).exit_code == 0
    assert run_lint("-f", BAD, "--baseline", str(baseline)).exit_code == 0
    good = run_lint("-f", str(FOLDER / "L07" / "good.yaml"), "--baseline", str(baseline), "-o", "json")
    assert json.loads(good.stdout)["gone"] == ["L07 Deployment shop/web spec.replicas"]


def test_an_annotation_ignores_a_rule_with_its_reason(tmp_path: Path) -> None:
    file = tmp_path / "app.yaml"
    text = (
        Path(BAD)
        .read_text()
        .replace(
            "  name: web\n  namespace: shop\nspec:\n  replicas",
            "  name: web\n  namespace: shop\n  annotations: {trimtab.dev/lint-ignore: 'L07 a demo; L29 alone'}\n"
            "spec:\n  replicas",
        )
    )
    file.write_text(text)
    result = run_lint("-f", str(file), "--only", "L07", "-o", "json")
    assert result.exit_code == 0
    assert json.loads(result.stdout)["ignored"] == [
        {"rule": "L07", "object": "Deployment shop/web", "reason": "a demo"}
    ]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("-f", BAD, "--only", "L99"), "--only"),
        (("-f", BAD, "--kubernetes", "new"), "--kubernetes"),
        ((), "--filename or --cluster"),
        (("-f", BAD, "--baseline", "/no/such/file"), "a baseline"),
        (("-f", BAD, "--baseline", BAD), "--write-baseline"),
    ],
)
def test_a_mistake_is_named_and_nothing_is_done(arguments: tuple[str, ...], expected: str) -> None:
    result = run_lint(*arguments)
    assert result.exit_code == 2
    assert expected in result.stderr


def test_a_captured_cluster_is_not_judged_by_rules_for_manifests(tmp_path: Path) -> None:
    result = run_lint("--cluster", BAD, "-o", "json")
    assert "L07" not in {finding["rule"] for finding in json.loads(result.stdout)["findings"]}


def test_a_cluster_is_measured_by_the_reservations_that_the_recommender_publishes(tmp_path: Path) -> None:
    """The nodes of a pool that are alike are one finding; the eviction threshold is no reservation."""
    nodes = [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": {"trimtab.dev/pool": "web"}},
            "status": {
                "capacity": {"cpu": "4", "memory": "16Gi"},
                "allocatable": {"cpu": "3920m", "memory": "15772Mi"},
                "nodeInfo": {"containerRuntimeVersion": runtime},
            },
        }
        for name, runtime in (("b", "containerd://2.1"), ("a", "containerd://2.1"), ("c", "cri-o://1.34"))
    ]
    published = PublishedReservations(
        pools=(PublishedReservation(pool="web", runtime="containerd", millicores=90, memory_bytes=1 << 30),)
    )
    config_map = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "trimtab-reservations", "labels": {RESERVATIONS_LABEL: "v1"}},
        "data": {RESERVATIONS_KEY: msgspec.json.encode(published).decode()},
    }
    file = tmp_path / "cluster.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [*nodes, config_map]}))
    report = json.loads(run_lint("--cluster", str(file), "--only", "N10", "-o", "json").stdout)
    [finding] = report["findings"]
    assert has_facts(finding["sentence"], "Node a", "1 more of web", "512Mi of memory", "system daemons", "1Gi")


def test_findings_in_a_row_that_share_their_outcome_say_it_once(tmp_path: Path) -> None:
    file = tmp_path / "app.yaml"
    text = (FOLDER / "L35" / "bad.yaml").read_text()
    file.write_text(f"{text}---\n{text.replace('name: web', 'name: api')}")
    out = run_lint("-f", str(file), "--only", "L35").stdout
    assert (out.count("has a cpu limit"), out.count("Remove the cpu limit"), "2 errors" in out) == (2, 1, True)


@pytest.mark.parametrize(
    ("version", "metric"),
    [
        ("v2beta1", '{"targetAverageUtilization": 60}'),
        ("v2beta2", '{"target": {"type": "Utilization", "averageUtilization": 60}}'),
    ],
)
def test_hpas_of_old_versions_are_judged_as_they_are_meant(tmp_path: Path, version: str, metric: str) -> None:
    """Without a change that their version does not have."""
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    hpa = {
        "apiVersion": f"autoscaling/{version}",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web"},
        "spec": {
            "scaleTargetRef": target,
            "maxReplicas": 9,
            "metrics": [{"type": "Resource", "resource": {"name": "memory", **json.loads(metric)}}],
        },
    }
    vpa = {
        "apiVersion": "autoscaling.k8s.io/v1",
        "kind": "VerticalPodAutoscaler",
        "metadata": {"name": "web"},
        "spec": {"targetRef": target},
    }
    file = tmp_path / "app.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [hpa, vpa]}))
    report = json.loads(run_lint("-f", str(file), "--only", "L01", "--only", "L05", "-o", "json").stdout)
    fixable_findings = {finding["rule"]: finding["fixable"] for finding in report["findings"]}
    assert fixable_findings == {"L01": False, "L05": version == "v2beta2"}


def test_an_item_of_a_list_has_its_type_as_a_patch_needs_it() -> None:
    item = msgspec.Raw(b' {"metadata": {"name": "web"}, "kind": "Deployment"}')
    typed = add_type(item, "apps/v1", "Deployment")
    assert json.loads(bytes(typed)) == {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}}


def test_findings_are_selected_by_the_labels_of_their_objects(tmp_path: Path) -> None:
    file = tmp_path / "app.yaml"
    file.write_text(Path(BAD).read_text())
    names = {one["name"] for one in json.loads(run_lint("-f", str(file), "-o", "json").stdout)["findings"]}
    assert names
    labelled = run_lint("-f", str(file), "-l", "no-such-label", "-o", "json")
    assert json.loads(labelled.stdout)["findings"] == []
    everything = run_lint("-f", str(file), "-l", "!no-such-label", "-o", "json")
    assert {one["name"] for one in json.loads(everything.stdout)["findings"]} == names
