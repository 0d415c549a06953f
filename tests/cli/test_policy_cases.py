"""`trimtab policies test`: before and after, as the shipped policies have it."""

from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from tests.reasons import has_facts
from trimtab.cli.main import cli

ROOT = Path(__file__).parents[2]
POLICY = """
apiVersion: trimtab.dev/v1alpha1
kind: PodPolicy
metadata: {name: small}
spec: {actions: {requests: {cpu: {from: policy, otherwise: 50m}}}}
"""
BEFORE = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec: {replicas: 2, template: {spec: {containers: [{name: app, image: "app:1"}]}}}
"""
WHY = "says: A sentence.\nacts: true\nbecause: [set-by-policy]\n"


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(cli, ["policies", "test", *map(str, arguments)])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A policy and one case that holds."""
    (tmp_path / "policy.yaml").write_text(POLICY)
    (tmp_path / "small").mkdir()
    (tmp_path / "small" / "web.before.yaml").write_text(BEFORE)
    (tmp_path / "small" / "web.why.yaml").write_text(WHY)
    result = mine(tmp_path, "--accept")
    assert result.exit_code == 0
    assert has_facts(result.stdout, "1 of 1 case")
    return tmp_path


def mine(folder: Path, *more: str) -> Result:
    return run(folder, "--policies", folder / "policy.yaml", *more)


def test_what_was_accepted_holds(folder: Path) -> None:
    assert mine(folder).exit_code == 0
    assert has_facts(mine(folder).stdout, "1 of 1 case")


def test_another_policy_is_told_by_the_fields_that_differ(folder: Path) -> None:
    (folder / "policy.yaml").write_text(POLICY.replace("50m", "70m"))
    result = mine(folder)
    assert result.exit_code == 1
    field = "spec.containers[0].resources.requests.cpu"
    assert has_facts(result.stdout, "small/web", field, "50m", "70m", "0 of 1 case")


@pytest.mark.parametrize(
    ("claims", "said"),
    [
        (WHY.replace("true", "false"), "the case says `acts: false`, but the policy makes a difference"),
        (WHY.replace("set-by-policy", "no-policy"), "because: no-policy is expected, but missing"),
        (WHY + "beside: [other]\n", "the case names the policy other, which does not exist"),
        (WHY + "becuase: []\n", "unknown field"),
    ],
)
def test_claims_that_do_not_hold(folder: Path, claims: str, said: str) -> None:
    (folder / "small" / "web.why.yaml").write_text(claims)
    result = mine(folder)
    assert result.exit_code == 1
    assert said in result.stdout


@pytest.mark.parametrize("text", ["kind: [", "kind: Service\n", BEFORE + "---" + BEFORE])
def test_a_manifest_that_makes_no_pod_or_several_is_told(folder: Path, text: str) -> None:
    (folder / "small" / "web.before.yaml").write_text(text)
    assert (mine(folder).exit_code, "web.before.yaml" in mine(folder).stdout) == (1, True)


def test_a_case_without_its_after_and_a_folder_without_cases(folder: Path) -> None:
    (folder / "small" / "web.after.yaml").unlink()
    assert "`--accept` writes it" in mine(folder).stdout
    (folder / "none").mkdir()
    assert run(folder / "none").exit_code == 2


def test_a_case_needs_only_its_before(folder: Path) -> None:
    """Who writes a first case does not know yet what its other files look like."""
    why = folder / "small" / "web.why.yaml"
    for path in (why, folder / "small" / "web.after.yaml"):
        path.unlink()
    result = mine(folder)
    assert has_facts(result.stdout, "small/web", "web.why.yaml", "not exist", "--accept", "0 of 1 case")
    assert mine(folder, "--accept").exit_code == 0
    assert yaml.safe_load(why.read_text()) == {
        "apiVersion": "examples.trimtab.dev/v1",
        "kind": "Expectation",
        "says": "Write here what this case shows.",
        "acts": True,
        "because": ["set-by-policy"],
    }
    assert mine(folder).exit_code == 0


def test_the_shipped_cases_hold() -> None:
    result = run(ROOT / "policies" / "examples")
    assert (result.exit_code, result.stdout.splitlines()[:-1]) == (0, [])


def test_every_shipped_example_passes_by_the_verb_itself() -> None:
    result = run(Path(__file__).resolve().parents[2] / "policies" / "examples")
    assert result.exit_code == 0, result.output
    passed, _, total, *_ = result.stdout.split()
    assert int(passed) == int(total) > 90
