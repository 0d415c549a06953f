"""Manifests that work, and the errors that lint finds in them: two published sets, and everything that is shipped."""

import os
from collections.abc import Iterator
from pathlib import Path

import yaml

from trimtab.autoscaling.lint import check_snapshot
from trimtab.autoscaling.read_snapshot import read_lint_snapshot
from trimtab.autoscaling.rule import LintSeverity, RuleFinding
from trimtab.autoscaling.rules import ALL_RULES
from trimtab.cluster.yaml_documents import Document, read_documents
from trimtab.installation.manifests import render_manifests
from trimtab.installation.names import InstallValues

ROOT = Path(__file__).parents[2]
_SETS = Path(os.environ.get("TRIMTAB_SHARED", ROOT.parent / "shared")) / "data" / "manifests"
PUBLISHED = (_SETS / "kube-prometheus.yaml", _SETS / "online-boutique.yaml")
SHIPPED = (
    ROOT / "deploy" / "install.yaml",
    *sorted((ROOT / "policies").rglob("*.yaml")),
    *sorted((ROOT / "docs" / "tutorial").glob("*.yaml")),
    *sorted((ROOT / "deploy" / "kustomize").rglob("*.yaml")),
)
INSTALLATIONS = {
    "install with everything": InstallValues(
        metrics_api=True, replicas=3, scale_namespaces=("shop",), parameter_namespaces=("shop",)
    ),
    "install with cert-manager": InstallValues(metrics_api=True, cert_manager=True),
    "install without a webhook": InstallValues(mode="policies", namespace="elsewhere"),
}


def render_shipped() -> Iterator[tuple[str, bytes]]:
    """Yields (name, manifests) of what `trimtab install` prints, which is also what the chart renders."""
    for name in INSTALLATIONS:
        yield name, render_installation(name)


def render_installation(name: str) -> bytes:
    """Returns the manifests of one of `INSTALLATIONS`."""
    return yaml.safe_dump_all(render_manifests(INSTALLATIONS[name])).encode()


def find_problems(*contents: tuple[str, bytes]) -> list[RuleFinding]:
    """Returns all findings in the manifests, read together."""
    documents: list[Document] = []
    for name, content in contents:
        documents += read_documents(name, content, takes_repeated_keys=True).documents
    return list(check_snapshot(read_lint_snapshot(documents).snapshot, ALL_RULES).findings)


def find_errors(*contents: tuple[str, bytes]) -> list[str]:
    """Returns the sentences of the findings that are errors."""
    return [finding.sentence for finding in find_problems(*contents) if finding.severity is LintSeverity.ERROR]
