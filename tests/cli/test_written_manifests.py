"""What Trimtab writes passes Trimtab's own checks, and writing it twice changes nothing."""

import ast
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.report_runs import run_verb
from tests.cli.written_manifests import ALL_WRITERS, NO_MANIFESTS, ROOT, WRITERS, Writer
from trimtab.autoscaling.lint import check_snapshot
from trimtab.autoscaling.read_snapshot import read_lint_snapshot
from trimtab.autoscaling.rule import LintSeverity
from trimtab.autoscaling.rules import ALL_RULES
from trimtab.cli.lint.accepted_changes import count_rejections
from trimtab.cluster.pool_labels import POOL_LABEL
from trimtab.cluster.snapshot import build_snapshot
from trimtab.cluster.yaml_documents import Document, read_documents
from trimtab.policy.cluster_facts import from_snapshot

FOLDERS = (ROOT / "trimtab" / "cli", ROOT / "trimtab" / "inputs")
TO_YAML = {"format_manifests", "format_yaml", "rewrite_manifests", "edit_yaml", "edit_text", "write_manifests"}
"""Functions of Trimtab that turn values into YAML."""
SCRAPS = ("reserved measure", "scheduler config", "admit", "policies test")
"""Verbs that write a part of another file, or one pod: they have no name of their own in a cluster."""
_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")

by_writer = pytest.mark.parametrize("writer", ALL_WRITERS, ids=str)


def calls_pyyaml(file: Path) -> bool:
    """Whether a module turns values into YAML by functions of PyYAML."""
    calls = (node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Call))
    return any(re.fullmatch(r"yaml\.(safe_)?dump(_all)?", ast.unparse(call.func)) for call in calls)


def writes_yaml(file: Path) -> bool:
    """Whether a module calls a function that turns values into YAML."""
    if calls_pyyaml(file):
        return True
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func).rpartition(".")[2]
            if name in TO_YAML:
                return True
    return False


def documents_of(text: str) -> tuple[Document, ...]:
    reading = read_documents("written.yaml", text.encode())
    assert reading.mistakes == ()
    return reading.documents


def test_every_module_that_writes_yaml_has_a_run_here() -> None:
    """A new verb that writes manifests is held to the laws below, or says why it writes none."""
    modules = {
        str(file.relative_to(folder)) for folder in FOLDERS for file in folder.rglob("*.py") if writes_yaml(file)
    }
    assert modules == {*WRITERS, *NO_MANIFESTS}


def test_commands_write_yaml_without_anchors_and_with_escapes() -> None:
    """PyYAML's own functions do neither: the commands have one module that calls them."""
    files = [file for folder in FOLDERS for file in folder.rglob("*.py") if calls_pyyaml(file)]
    assert [file.name for file in files] == ["output.py"]


@by_writer
def test_every_document_is_one_that_the_api_server_can_store(writer: Writer, tmp_path: Path) -> None:
    documents = documents_of(writer.write(tmp_path))
    assert documents
    for document in () if writer.verb.startswith(SCRAPS) else documents:
        value: Any = document.value
        is_kustomization = value.get("kind") == "Component"
        assert value["apiVersion"], document.entry_name
        assert value["kind"], document.entry_name
        assert is_kustomization or _NAME.fullmatch(value["metadata"]["name"]), document.entry_name


@by_writer
def test_the_api_server_admits_all_pods(writer: Writer, tmp_path: Path) -> None:
    documents = [
        document
        for document in documents_of(writer.write(tmp_path))
        # A patch is no whole object: it has no image.
        if document.kind is not None and not writer.verb.startswith("recommend --patch")
    ]
    facts = from_snapshot(build_snapshot(documents).snapshot)
    assert {document.entry_name: count_rejections(document, facts) for document in documents} == {
        document.entry_name: 0 for document in documents
    }


@by_writer
def test_lint_finds_no_error(writer: Writer, tmp_path: Path) -> None:
    snapshot = read_lint_snapshot(documents_of(writer.write(tmp_path))).snapshot
    findings = check_snapshot(snapshot, ALL_RULES).findings
    # The author's own choice of a cpu limit stays in what admit and a fix for other objects write.
    assert [finding.sentence for finding in findings if finding.severity is LintSeverity.ERROR] == []


@by_writer
def test_the_check_of_their_kind_finds_no_mistake(writer: Writer, tmp_path: Path) -> None:
    """`policies check` for policies, `pools check` for pools."""
    by_check: dict[tuple[str, str], list[Any]] = {}
    for document in documents_of(writer.write(tmp_path)):
        value: Any = document.value
        labels = value.get("metadata", {}).get("labels") or {}
        if value.get("kind") == "PodPolicy":
            by_check.setdefault(("policies", "check"), []).append(value)
        if POOL_LABEL in labels and value.get("kind") == "ConfigMap":
            by_check.setdefault(("pools", "check"), []).append(value)
    for verb, manifests in by_check.items():
        (tmp_path / "checked.yaml").write_text(yaml.safe_dump_all(manifests))
        result = run_verb(*verb, tmp_path / "checked.yaml")
        assert result.exit_code == 0, result.output


@by_writer
def test_writing_it_twice_writes_the_same(writer: Writer, tmp_path: Path) -> None:
    texts = []
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        texts.append(writer.write(tmp_path / name))
    assert texts[0] == texts[1]
