"""`trimtab lint` as users call it: files in, findings, patches and CI formats out."""

import json
from pathlib import Path
from xml.etree import ElementTree

import msgspec
import pytest
from click.testing import CliRunner, Result

from tests.autoscaling.rule_cases_of import FOLDER
from trimtab.cli.lint.read_objects import add_type
from trimtab.cli.main import cli

BAD = str(FOLDER / "L07" / "bad.yaml")


def run_lint(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["lint", *arguments])


def test_an_error_exits_with_one_and_says_what_to_do() -> None:
    result = run_lint("-f", BAD, "--rule", "L07")
    assert result.exit_code == 1
    assert "Remove spec.replicas" in result.stdout


def test_a_warning_exits_with_zero_unless_strict() -> None:
    file = str(FOLDER / "L29" / "bad.yaml")
    assert run_lint("-f", file, "--rule", "L29").exit_code == 0
    assert run_lint("-f", file, "--rule", "L29", "--strict").exit_code == 1


def test_what_was_not_checked_is_said() -> None:
    report = json.loads(run_lint("-f", BAD, "-o", "json").stdout)
    assert any("L12" in line and "usage" in line for line in report["notChecked"])


def test_the_fix_leaves_nothing_that_it_claims_and_keeps_the_rest(tmp_path: Path) -> None:
    file = tmp_path / "app.yaml"
    file.write_text("# ours\n" + Path(BAD).read_text() + "---\napiVersion: v1\nkind: Secret\nmetadata: {name: a}\n")
    result = run_lint("-f", str(file), "--fix", str(tmp_path / "fixed"))
    assert "findings fixed" in result.stderr
    fixed = (tmp_path / "fixed" / "app.yaml").read_text()
    assert fixed.startswith("# ours\n")
    assert fixed.endswith("---\napiVersion: v1\nkind: Secret\nmetadata: {name: a}\n")
    again = json.loads(run_lint("-f", str(tmp_path / "fixed"), "-o", "json").stdout)
    assert [finding for finding in again["findings"] if finding["fixable"]] == []


def test_sarif_names_rule_line_and_a_fingerprint_without_lines() -> None:
    log = json.loads(run_lint("-f", BAD, "--rule", "L07", "-o", "sarif").stdout)
    [sarif_run] = log["runs"]
    [found] = sarif_run["results"]
    assert found["ruleId"] == "L07"
    assert found["level"] == "error"
    assert found["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == BAD
    assert found["locations"][0]["physicalLocation"]["region"]["startLine"] == 7
    assert found["partialFingerprints"] == {"trimtabObject/v1": "L07:shop/Deployment/web:spec.replicas"}
    assert {rule["id"] for rule in sarif_run["tool"]["driver"]["rules"]} >= {"L01", "L07"}


def test_junit_has_a_failure_for_each_finding_and_a_passed_case_for_none() -> None:
    failed = ElementTree.fromstring(run_lint("-f", BAD, "--rule", "L07", "-o", "junit").stdout)
    assert failed.attrib["failures"] == "1"
    passed = ElementTree.fromstring(run_lint("-f", BAD, "--rule", "L13", "-o", "junit").stdout)
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
    result = run_lint("-f", str(file), "--rule", "L07", "-o", "json")
    assert result.exit_code == 0
    assert json.loads(result.stdout)["ignored"] == [
        {"rule": "L07", "object": "Deployment shop/web", "reason": "a demo"}
    ]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("-f", BAD, "--rule", "L99"), "--rule"),
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


def test_an_item_of_a_list_has_its_type_as_a_patch_needs_it() -> None:
    item = msgspec.Raw(b' {"metadata": {"name": "web"}, "kind": "Deployment"}')
    typed = add_type(item, "apps/v1", "Deployment")
    assert json.loads(bytes(typed)) == {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}}
