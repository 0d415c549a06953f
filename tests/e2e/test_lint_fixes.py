"""What `trimtab lint --fix` writes, applied by a real server-side apply: no finding that it claims to fix is left."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.autoscaling.capture_objects import CRD, buffer_definition
from tests.autoscaling.rule_cases_of import FOLDER
from tests.cli.report_runs import run_verb
from tests.controlplane.binaries import Binaries
from tests.controlplane.binaries import kubectl as kubectl_binary
from tests.controlplane.cluster import Cluster
from tests.controlplane.control_plane import ControlPlane
from tests.e2e import vpa

pytestmark = pytest.mark.slow

CODES = (
    "L01",
    "L05",
    "L06",
    "L10",
    "L14",
    "L15",
    "L18",
    "L19",
    "L20",
    "L25",
    "L26",
    "L28",
    "L29",
    "L30",
    "L31",
    "L35",
    "L43",
    "N06",
    "N07",
    "L45",
)
"""Rules with a fix whose bad manifests this API server takes; L45's webhook, which nobody serves, comes last."""

Finding = tuple[str, str, str, str, str]


@pytest.fixture(scope="module")
def cluster(built: Binaries) -> Iterator[Cluster]:
    with ControlPlane.start(built) as plane:
        cluster = Cluster(plane.kubeconfig, plane=plane)
        for definition in (vpa.definition(), buffer_definition(), *yaml.safe_load_all(CRD.read_text())):
            cluster.apply(definition)
        for kind in ("VerticalPodAutoscaler", "CapacityBuffer", "PodPolicy"):
            cluster.eventually(partial(is_served, cluster, kind), what=kind)
        yield cluster


def is_served(cluster: Cluster, kind: str) -> bool:
    return cluster.list(kind, everywhere=True) is not None


def bad_manifests(code: str, namespace: str) -> list[dict[str, Any]]:
    """The rule's bad manifests, in a namespace of their own."""
    documents = list(yaml.safe_load_all((FOLDER / code / "bad.yaml").read_text().replace("shop", namespace)))
    for document in documents:
        document["metadata"].pop("creationTimestamp", None)
        if "ownerReferences" in document["metadata"]:  # else its owner does not take it for its own
            document["metadata"]["labels"] = document["spec"]["template"]["metadata"]["labels"]
    return documents


def create_all(cluster: Cluster, documents: list[dict[str, Any]]) -> None:
    for document in documents:
        for owner in document["metadata"].get("ownerReferences", ()):
            owner["uid"] = cluster.get(owner["kind"], owner["name"])["metadata"]["uid"]
        cluster.create(document)


def apply_files(cluster: Cluster, path: Path, *options: str) -> None:
    """`kubectl apply --server-side`, as the last line of `--fix` says; objects name their own namespaces."""
    kubectl = ["kubectl", "--kubeconfig", str(cluster.kubeconfig), "apply", "--server-side", *options, "-f", str(path)]
    done = subprocess.run(kubectl, executable=kubectl_binary(), capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


def lint_live(cluster: Cluster, *arguments: str) -> set[Finding]:
    """The findings of a run on the whole cluster that claim a fix."""
    return {finding for finding, claims_fix in lint_all(cluster, *arguments).items() if claims_fix}


def lint_all(cluster: Cluster, *arguments: str) -> dict[Finding, bool]:
    """Every finding of a run on the whole cluster → whether it claims a fix."""
    result = run_verb("lint", "--cluster", "live", "--kubeconfig", cluster.kubeconfig, "-o", "json", *arguments)
    assert result.exit_code in (0, 1), result.output
    report = json.loads(result.stdout)
    names = ("rule", "kind", "namespace", "name", "field")
    return {tuple(row[name] for name in names): row["fixable"] for row in report["findings"]}


def test_fixes_of_a_live_cluster_leave_no_finding_that_they_claim(cluster: Cluster, tmp_path: Path) -> None:
    for code in CODES:
        namespace = f"live-{code.lower()}"
        create_all(cluster.in_namespace(namespace), bad_manifests(code, namespace))
    before = lint_live(cluster, "--fix", str(tmp_path / "fixes"))
    assert {finding[0] for finding in before} >= set(CODES) - {"L35"}
    apply_files(cluster, tmp_path / "fixes", "--field-manager", "trimtab-lint", "--force-conflicts")
    assert lint_live(cluster) & before == set()


def rules_in(cluster: Cluster, namespace: str) -> set[str]:
    """The rules that find something in the namespace, with a fix or without: of a live object no field is removed."""
    return {finding[0] for finding in lint_all(cluster) if finding[2] == namespace}


@pytest.mark.parametrize("code", ["L05", "L14", "L30", "L31", "L35", "L43", "N06"])
def test_changed_manifests_leave_no_finding_that_they_claim(cluster: Cluster, tmp_path: Path, code: str) -> None:
    """Applied by the same manager as before, so that a removed field goes: L35's limit."""
    namespace = f"files-{code.lower()}"
    cluster.in_namespace(namespace)
    file = tmp_path / "app.yaml"
    file.write_text(yaml.safe_dump_all(bad_manifests(code, namespace)))
    apply_files(cluster, file)
    assert code in rules_in(cluster, namespace)
    result = run_verb("lint", "-f", file, "--fix", tmp_path / "fixed")
    assert result.exit_code in (0, 1), result.output
    apply_files(cluster, tmp_path / "fixed")
    assert code not in rules_in(cluster, namespace)


def replicas_after_the_fix(cluster: Cluster, folder: Path, *, hand_over: bool) -> int:
    """The replicas of a Deployment that runs five, after L07's fix: a manifest without the count."""
    namespace = f"count-{'kept' if hand_over else 'lost'}"
    inside = cluster.in_namespace(namespace)
    file = folder / "app.yaml"
    documents = bad_manifests("L07", namespace)
    documents[0]["spec"]["replicas"] = 5
    file.write_text(yaml.safe_dump_all(documents[:1]))
    apply_files(inside, file)
    file.write_text(yaml.safe_dump_all(documents))
    run_verb("lint", "-f", file, "--only", "L07", "--fix", folder / "fixed")
    if hand_over:
        count = {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "spec": {"replicas": 5},
            "metadata": {"name": "web", "namespace": namespace},
        }
        (folder / "count.yaml").write_text(yaml.safe_dump(count))
        apply_files(inside, folder / "count.yaml", "--field-manager=hpa-handover", "--validate=false")
    apply_files(inside, folder / "fixed")
    return int(inside.get("Deployment", "web")["spec"]["replicas"])


def test_a_count_that_nobody_else_owns_falls_to_one_unless_it_is_handed_over(cluster: Cluster, tmp_path: Path) -> None:
    """Why L07 says to hand the count over first."""
    for name in ("lost", "kept"):
        (tmp_path / name).mkdir()
    assert replicas_after_the_fix(cluster, tmp_path / "lost", hand_over=False) < 5
    assert replicas_after_the_fix(cluster, tmp_path / "kept", hand_over=True) == 5


def test_the_printed_commands_keep_the_running_count(cluster: Cluster, tmp_path: Path) -> None:
    """After a client-side apply, too: the apply of the fixed file alone would set the count to 1."""
    inside = cluster.in_namespace("count-printed")
    file = tmp_path / "app.yaml"
    file.write_text(yaml.safe_dump_all(bad_manifests("L07", "count-printed")))
    (tmp_path / "kubectl").symlink_to(kubectl_binary())
    path = f"{tmp_path}:{os.environ['PATH']}"
    environment = {"PATH": path, "HOME": str(tmp_path), "KUBECONFIG": str(cluster.kubeconfig)}
    shell = partial(subprocess.run, shell=True, check=True, env=environment, timeout=60)
    shell(f"kubectl apply -f {file}")
    fix = run_verb("lint", "-f", file, "--only", "L07", "--fix", tmp_path / "fixed")
    commands = [line[line.index("kubectl ") :] for line in fix.stderr.splitlines() if "kubectl apply --server" in line]
    assert len(commands) == 2
    for command in commands:
        shell(command)
    assert inside.get("Deployment", "web")["spec"]["replicas"] == 2
