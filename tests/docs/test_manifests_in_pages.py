"""Every manifest that a page shows passes the check that is meant for it."""

import re
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
_BLOCK = re.compile(r"^```ya?ml\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks() -> Iterator[Any]:
    """The values of each block of YAML that has whole manifests, with the page and line as its id."""
    for page in sorted(PAGES.rglob("*.md")):
        text = page.read_text()
        for block in _BLOCK.finditer(text):
            values = [value for value in yaml.safe_load_all(block[1]) if isinstance(value, dict)]
            whole = [value for value in values if value.get("apiVersion") and value.get("kind")]
            if whole:
                line = text.count("\n", 0, block.start()) + 1
                yield pytest.param(whole, id=f"{page.relative_to(PAGES)}:{line}")


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
