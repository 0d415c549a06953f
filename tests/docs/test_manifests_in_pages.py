"""Every manifest that a page shows passes the check that is meant for it; so does what its commands write."""

import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.report_runs import run_verb
from trimtab.autoscaling.lint import check_snapshot
from trimtab.autoscaling.read_snapshot import read_lint_snapshot
from trimtab.autoscaling.rule import LintSeverity
from trimtab.autoscaling.rules import ALL_RULES
from trimtab.cli.lint.accepted_changes import count_rejections
from trimtab.cluster.pool_labels import POOL_LABEL
from trimtab.cluster.yaml_documents import Document
from trimtab.metricsapi.rules import RULES_KEY
from trimtab.policy.cluster_facts import ClusterFacts

PAGES = Path(__file__).parents[2] / "docs"
SHOWS_PROBLEMS = "how-to/check-autoscaling.md"
"""The page that shows what lint finds, so its manifests have problems."""
_HEREDOC = r"<<-?\s*['\"]?(?P<end>\w+)['\"]?[^\n]*\n(?P<heredoc>.*?)^\s*(?P=end)$"
_BLOCK = re.compile(
    r"^```(?:ya?ml|json)\n(?P<fenced>.*?)^```$"
    # An indented block that begins as a manifest.
    r"|^ {4}(?=apiVersion:)(?P<indented>.*?)(?=^ {0,3}\S|\Z)"
    rf"|{_HEREDOC}",
    re.MULTILINE | re.DOTALL,
)
_PATCH = re.compile(r"kubectl(?P<before>[^\n`|]*?) patch (?P<kind>\w+)?[^\n`]*?(?:-p|--patch)[ =]'(?P<patch>[^']*)'")
_MARK = re.compile(r"kubectl[^\n`]*? (?:annotate|label|taint) [^\n`]*?(?P<mark>[a-z.]*trimtab\.dev/[\w.-]*[\w])")


def pages() -> Iterator[tuple[str, str]]:
    """Each page with its text."""
    for page in sorted(PAGES.rglob("*.md")):
        yield str(page.relative_to(PAGES)), page.read_text()


def blocks() -> Iterator[Any]:
    """The values of each block, or text that a command reads, that has whole manifests, with page and line as its
    id."""
    for page, text in pages():
        for block in _BLOCK.finditer(text):
            content = next(one for one in (block["fenced"], block["indented"], block["heredoc"]) if one is not None)
            if block["heredoc"] is not None and "apiVersion" not in content:
                continue
            values = [value for value in yaml.safe_load_all(textwrap.dedent(content)) if isinstance(value, dict)]
            whole = [value for value in values if value.get("apiVersion") and value.get("kind")]
            if whole:
                yield pytest.param(whole, id=f"{page}:{line_of(text, block)}")


def line_of(text: str, place: re.Match[str]) -> int:
    return text.count("\n", 0, place.start()) + 1


def patches() -> Iterator[Any]:
    """The kind, if it is written, and the text of each patch of `kubectl patch`."""
    for page, text in pages():
        for patch in _PATCH.finditer(text):
            # Where names are piped into the command, the kind is in the command before the pipe.
            row = text[text.rfind("\n", 0, patch.start()) + 1 : patch.end()]
            kind = "podpolicy" if "podpolic" in row else patch["kind"]
            yield pytest.param(kind, patch["patch"], id=f"{page}:{line_of(text, patch)}")


def marks() -> Iterator[Any]:
    for page, text in pages():
        for mark in _MARK.finditer(text):
            yield pytest.param(mark["mark"], id=f"{page}:{line_of(text, mark)}:{mark['mark']}")


def check_of(value: dict[str, Any]) -> tuple[str, ...] | None:
    """The verb that checks a manifest of ours, or None."""
    if value["kind"] == "PodPolicy":
        return ("policies", "check")
    if value["kind"] == "ConfigMap" and POOL_LABEL in (value["metadata"].get("labels") or {}):
        return ("pools", "check")
    if value["kind"] == "ConfigMap" and RULES_KEY in (value.get("data") or {}):
        return ("metrics-api", "check")
    return None


@pytest.mark.parametrize("manifests", list(blocks()))
def test_the_manifests_of_a_block_pass_their_check(manifests: list[dict[str, Any]], tmp_path: Path) -> None:
    for number, value in enumerate(manifests):
        verb = check_of(value)
        if verb is not None:
            file = tmp_path / f"{number}.yaml"
            file.write_text(yaml.safe_dump(value))
            result = run_verb(*verb, file)
            assert result.exit_code == 0, result.output


@pytest.mark.parametrize("manifests", list(blocks()))
def test_the_pods_of_a_block_are_admitted_and_lint_finds_no_error(
    manifests: list[dict[str, Any]], request: pytest.FixtureRequest
) -> None:
    documents = [Document(file="block", index=number, value=value) for number, value in enumerate(manifests)]
    assert [document.entry_name for document in documents if count_rejections(document, ClusterFacts())] == []
    if SHOWS_PROBLEMS in request.node.name:
        return
    findings = check_snapshot(read_lint_snapshot(documents).snapshot, ALL_RULES).findings
    assert [finding.sentence for finding in findings if finding.severity is LintSeverity.ERROR] == []


POLICY = {
    "apiVersion": "trimtab.dev/v1alpha1",
    "kind": "PodPolicy",
    "metadata": {"name": "one"},
    "spec": {"mode": "apply", "actions": {"limits": {"cpu": "remove"}}},
}


@pytest.mark.parametrize(("kind", "patch"), list(patches()))
def test_a_patch_that_a_page_shows_leaves_a_policy_valid(kind: str, patch: str, tmp_path: Path) -> None:
    value = yaml.safe_load(patch)
    assert isinstance(value, dict)
    assert kind == "podpolicy", "write the check of this kind of object"
    file = tmp_path / "patched.yaml"
    file.write_text(yaml.safe_dump({**POLICY, "spec": {**POLICY["spec"], **value["spec"]}}))  # type: ignore[dict-item]
    result = run_verb("policies", "check", file)
    assert result.exit_code == 0, result.output


@pytest.mark.parametrize("mark", list(marks()))
def test_a_mark_that_a_command_sets_is_one_that_is_read(mark: str) -> None:
    assert f"`{mark}`" in (PAGES / "reference" / "marks.md").read_text()


def test_a_manifest_in_a_command_is_read() -> None:
    """No page has one now: the next one is checked as well."""
    text = "    kubectl apply -f - <<'END'\n    apiVersion: v1\n    kind: Pod\n    END\n"
    (block,) = _BLOCK.finditer(text)
    assert yaml.safe_load(block["heredoc"]) == {"apiVersion": "v1", "kind": "Pod"}
