"""Laws of `trimtab lint --fix`: the API server takes what it writes, lint finds no new error in it, and a second run
writes nothing."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from tests.autoscaling.shipped_manifests import PUBLISHED, ROOT, SHIPPED
from tests.cli.drawn_manifests import namespaces
from tests.cli.report_runs import run_verb
from tests.cluster_of import Item
from trimtab.cluster import quantity

RULES = (*(("--only", code) for code in ("L14", "L16", "L17", "L18", "L33", "L36", "L47")), ())
OWNERS = re.compile(r"^kind: (Deployment|StatefulSet|DaemonSet|Job|CronJob)$", re.MULTILINE)
WORKLOADS = [
    file
    for file in (*SHIPPED, *PUBLISHED)
    if file.exists() and OWNERS.search(text := file.read_text()) and "containers:" in text
]


def fix(source: Path, target: Path, *options: str) -> str:
    """What the run says; files that it leaves alone are copied, so that `target` is complete."""
    result = run_verb("lint", "-f", source, *options, "--fix", target)
    assert result.exit_code in (0, 1), result.output
    target.mkdir(exist_ok=True)
    for file in [source] if source.is_file() else source.iterdir():
        if not (target / file.name).exists():
            (target / file.name).write_text(file.read_text())
    return result.stderr


def objects_in(folder: Path) -> list[Item]:
    objects = [one for file in sorted(folder.glob("*.yaml")) for one in yaml.safe_load_all(file.read_text()) if one]
    return [item for one in objects for item in (one["items"] if one.get("kind") == "List" else [one])]


def rejected_pods(folder: Path) -> set[str]:
    """The objects whose pods the API server rejects, without Trimtab."""
    pods = json.loads(run_verb("admit", "-f", folder, "-o", "json").stdout)["pods"]
    return {f"{pod['kind']} {pod['name']}" for pod in pods if pod["refusedWithoutUs"]}


def errors_of(folder: Path) -> set[tuple[str, str]]:
    """The rule and the object of each finding that is an error."""
    report: dict[str, Any] = json.loads(run_verb("lint", "-f", folder, "-o", "json").stdout)
    return {(one["rule"], f"{one['kind']} {one['name']}") for one in report["findings"] if one["severity"] == "error"}


def mistakes_in(item: Item) -> list[str]:
    """What validation of the API server, or the VPA's webhook, says against an autoscaler, budget or rollout
    (pkg/apis/autoscaling/validation, pkg/apis/policy/validation, pkg/apis/apps/validation; vpa handler.go)."""
    spec, mistakes = item.get("spec") or {}, []
    match item["kind"]:
        case "HorizontalPodAutoscaler":
            if not 1 <= spec.get("minReplicas", 1) <= spec["maxReplicas"]:
                mistakes.append("minReplicas")
        case "PodDisruptionBudget":
            if {"minAvailable", "maxUnavailable"} <= spec.keys():
                mistakes.append("two limits")
        case "VerticalPodAutoscaler":
            policies = (spec.get("resourcePolicy") or {}).get("containerPolicies", [])
            names = [policy.get("containerName") for policy in policies]
            mistakes += ["a container twice"] if len(names) != len(set(names)) else []
            for policy in policies:
                least, most = policy.get("minAllowed") or {}, policy.get("maxAllowed") or {}
                mistakes += [
                    resource
                    for resource in least.keys() & most.keys()
                    if quantity.compare_quantities(str(least[resource]), str(most[resource])) > 0
                ]
        case "Deployment":
            update = (spec.get("strategy") or {}).get("rollingUpdate") or {}
            zeros = [str(update.get(name, "25%")).rstrip("%") == "0" for name in ("maxSurge", "maxUnavailable")]
            mistakes += ["no pod may be replaced"] if all(zeros) else []
    return mistakes


def check_laws(source: Path, folder: Path, *options: str) -> None:
    before = rejected_pods(source), errors_of(source)
    fix(source, folder / "fixed", *options)
    assert rejected_pods(folder / "fixed") <= before[0]
    assert [mistake for item in objects_in(folder / "fixed") for mistake in mistakes_in(item)] == []
    assert errors_of(folder / "fixed") <= before[1]
    assert "Wrote 0 files" in fix(folder / "fixed", folder / "again", *options)


@given(namespaces(), st.sampled_from(RULES))
def test_the_laws_hold_for_drawn_manifests(
    tmp_path_factory: pytest.TempPathFactory, items: list[Item], options: tuple[str, ...]
) -> None:
    folder = tmp_path_factory.mktemp("laws")
    (folder / "source").mkdir()
    (folder / "source" / "all.yaml").write_text(yaml.safe_dump_all(items))
    check_laws(folder / "source", folder, *options)


@pytest.mark.parametrize("file", WORKLOADS, ids=lambda file: file.name)
def test_the_laws_hold_for_manifests_that_people_run(file: Path, tmp_path: Path) -> None:
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / file.name).write_text(file.read_text())
    check_laws(tmp_path / "source", tmp_path)


def test_there_are_manifests_that_people_run() -> None:
    assert WORKLOADS, ROOT
