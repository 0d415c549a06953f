"""No false error on manifests that work: two published sets, what Trimtab installs, and its examples."""

import os
from pathlib import Path

import pytest

from trimtab.autoscaling.lint import check_snapshot
from trimtab.autoscaling.read_snapshot import read_lint_snapshot
from trimtab.autoscaling.rule import LintSeverity
from trimtab.autoscaling.rules import ALL_RULES
from trimtab.cluster.yaml_documents import read_documents

ROOT = Path(__file__).parents[2]
SHARED = Path(os.environ.get("TRIMTAB_SHARED", ROOT.parent / "shared")) / "data" / "manifests"
OURS = (
    ROOT / "deploy" / "install.yaml", *sorted((ROOT / "policies").rglob("*.yaml")),
    *sorted((ROOT / "docs" / "tutorial").glob("*.yaml")), *sorted((ROOT / "deploy" / "kustomize").rglob("*.yaml")),
)  # fmt: skip


def errors_of(*files: Path) -> list[str]:
    documents = []
    for file in files:
        reading = read_documents(str(file), file.read_bytes(), takes_repeated_keys=True)
        documents += reading.documents
    snapshot = read_lint_snapshot(documents).snapshot
    findings = check_snapshot(snapshot, ALL_RULES).findings
    return [finding.sentence for finding in findings if finding.severity is LintSeverity.ERROR]


@pytest.mark.parametrize("name", ["kube-prometheus.yaml", "online-boutique.yaml"])
def test_a_published_set_has_no_error(name: str) -> None:
    if not (SHARED / name).exists():
        pytest.skip(f"{SHARED / name} is not here")
    assert errors_of(SHARED / name) == []


@pytest.mark.parametrize("file", OURS, ids=lambda file: str(file.relative_to(ROOT)))
def test_what_is_shipped_has_no_error(file: Path) -> None:
    assert errors_of(file) == []


def test_all_that_is_shipped_together_has_no_error() -> None:
    assert errors_of(*OURS) == []
