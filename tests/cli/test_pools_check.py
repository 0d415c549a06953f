"""`trimtab pools check`: every mistake with its place, and pools that do nothing in this cluster."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import Result

from tests.cli.snapshots import trimtab
from tests.cluster_of import node
from tests.reasons import has_facts
from trimtab.cluster.pool_labels import POOL_LABEL

KEY = "pool.yaml"


def pool(name: str, settings: str = "mode: act", namespace: str = "trimtab-system", label: str | None = None) -> Any:
    labels = {POOL_LABEL: label or name}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": f"pool-{name}", "namespace": namespace, "labels": labels},
        "data": {KEY: settings},
    }


def member(name: str, pool_name: str) -> Any:
    return node(name, labels={"cloud.google.com/gke-nodepool": pool_name})


def written(folder: Path, name: str, *items: Any) -> str:
    (folder / name).write_text(yaml.safe_dump_all(items, sort_keys=False))
    return str(folder / name)


def check(*arguments: str) -> Result:
    return trimtab("pools", "check", *arguments)


def test_valid_pools_are_counted_and_the_command_exits_with_0(tmp_path: Path) -> None:
    result = check(written(tmp_path, "pools.yaml", pool("web"), pool("batch", "mode: rehearse")))
    assert result.exit_code == 0, result.output
    assert "2 pools are valid." in result.stdout


def test_every_mistake_of_every_pool_is_named_with_file_entry_field_and_advice(tmp_path: Path) -> None:
    result = check(
        written(tmp_path, "pools.yaml", pool("web", "mode: now\nquite: 10m"), pool("b", "pace: {drains: 0}"))
    )
    assert result.exit_code == 2
    lines = result.stderr.splitlines()
    assert len(lines) == 4
    assert "pools.yaml ConfigMap pool-web pool.yaml:2:1: " in lines[0]
    assert "quite" in lines[0] + lines[1]
    assert "did you mean 'quiet'?" in result.stderr
    assert "pace.drains" in result.stderr
    assert has_facts(lines[-1], "3 mistakes", "nothing was done")


def test_settings_in_a_config_map_without_the_label_are_a_mistake(tmp_path: Path) -> None:
    unlabelled = pool("web")
    unlabelled["metadata"]["labels"] = {}
    result = check(written(tmp_path, "pools.yaml", unlabelled))
    assert result.exit_code == 2
    assert f"the label {POOL_LABEL}" in result.stderr


def test_a_file_without_a_pool_and_a_command_without_a_file_are_mistakes(tmp_path: Path) -> None:
    assert has_facts(check(written(tmp_path, "a.yaml", {"kind": "Service"})).stderr, "a pool", "ConfigMap labelled")
    result = check()
    assert (result.exit_code, "--cluster live" in result.stderr) == (2, True)


def test_a_pool_in_a_namespace_that_the_compactor_does_not_read_is_a_finding(tmp_path: Path) -> None:
    path = written(tmp_path, "pools.yaml", pool("web", namespace="default"))
    result = check(path)
    assert result.exit_code == 1
    assert "pool-in-other-namespace" in result.stdout
    assert check(path, "--system-namespace", "default").exit_code == 0


@pytest.fixture
def cluster(tmp_path: Path) -> str:
    return written(tmp_path, "cluster.yaml", member("n1", "web"), member("n2", "web"), pool("web"), pool("wbe"))


def test_the_pools_of_a_cluster_are_checked_without_a_file(cluster: str) -> None:
    result = check("--cluster", cluster, "-o", "json")
    report = json.loads(result.stdout)
    assert result.exit_code == 1
    assert [(one["name"], one["nodes"]) for one in report["pools"]] == [("wbe", 0), ("web", 2)]
    assert [(one["pool"], one["code"]) for one in report["findings"]] == [("wbe", "pool-matches-nothing")]
    assert has_facts(report["findings"][0]["text"], "labels name web")


def test_pools_of_other_namespaces_are_none_of_the_compactors(tmp_path: Path) -> None:
    path = written(tmp_path, "c.yaml", member("n1", "web"), pool("web"), pool("web", "mode: 1", namespace="shop"))
    report = json.loads(check("--cluster", path, "-o", "json").stdout)
    assert [one["name"] for one in report["pools"]] == ["web"]
    assert [one["code"] for one in report["findings"]] == ["pool-in-other-namespace"]


def test_files_are_compared_with_the_nodes_of_the_cluster(tmp_path: Path, cluster: str) -> None:
    all_nodes = pool("every", "nodes: all")
    result = check(written(tmp_path, "mine.yaml", pool("web"), all_nodes), "--cluster", cluster)
    assert result.exit_code == 1
    assert has_facts(result.stdout, "2 nodes", "web: n1, n2", "node-in-two-pools")
