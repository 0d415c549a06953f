"""`trimtab machines rank` for a pool that could move to another node group."""

import json
from pathlib import Path
from typing import Any

from tests.cli.snapshots import snapshot, trimtab
from tests.cluster_of import node, pod
from tests.reasons import has_facts

REGION = {"topology.kubernetes.io/region": "us-east-1"}


def labels(pool: str, kind: str) -> dict[str, str]:
    return {**REGION, "nodepool": pool, "node.kubernetes.io/instance-type": kind}


def fleet(folder: Path) -> Path:
    return snapshot(
        folder,
        node("o", "16", "64Gi", labels=labels("old", "m5.4xlarge")),
        node("n", "4", "16Gi", labels=labels("new", "m5.xlarge")),
        node("t", "2", "4Gi", labels=labels("tiny", "c5.large")),
        *(pod(f"web-{number}", on="o", cpu="3", memory="4Gi") for number in range(2)),
    )


def ranked(folder: Path, *options: str) -> Any:
    answer = trimtab("machines", "rank", "--cluster", fleet(folder), "--pool", "old", "--types", "m5.*", *options)
    assert answer.exit_code == 0, answer.output
    return answer.output


def test_the_node_groups_are_compared_as_a_plan_compares_new_nodes(tmp_path: Path) -> None:
    first, second = json.loads(ranked(tmp_path, "-o", "json"))["migrations"]
    assert (first["group"], first["nodes"], first["cost"], first["isPossible"]) == ("new", 2, 0.384, True)
    assert (second["group"], second["unplaced"]) == ("tiny", ["default/web-0", "default/web-1"])


def test_a_sentence_says_what_a_migration_costs(tmp_path: Path) -> None:
    assert has_facts(ranked(tmp_path), "node group new (m5.xlarge)", "2 new nodes", "$0.38", "$0.38 less")


def test_nothing_is_compared_without_packing(tmp_path: Path) -> None:
    assert json.loads(ranked(tmp_path, "--no-pack", "-o", "json"))["migrations"] == []
