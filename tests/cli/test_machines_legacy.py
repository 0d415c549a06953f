"""`trimtab machines legacy` as its users call it, without a cluster."""

from pathlib import Path

import pytest

from tests.cli.snapshots import snapshot, trimtab
from tests.cluster_of import node, pod
from tests.reasons import has_facts

REGION = {"topology.kubernetes.io/region": "us-east-1"}
CRON = {
    "apiVersion": "batch/v1",
    "kind": "CronJob",
    "metadata": {"name": "nightly", "namespace": "default"},
    "spec": {"jobTemplate": {"spec": {"template": {"spec": {"containers": [], "nodeSelector": {"nodepool": "old"}}}}}},
}


def fleet(folder: Path, *more: dict[str, object], **kinds: str) -> Path:
    def labels(pool: str) -> dict[str, str]:
        default = {"old": "m5.4xlarge", "new": "m7i.2xlarge"} | kinds
        return {**REGION, "nodepool": pool, "node.kubernetes.io/instance-type": default[pool]}

    return snapshot(
        folder,
        node("o", "16", "64Gi", labels=labels("old")),
        node("n", "8", "32Gi", labels=labels("new")),
        pod("web-0", on="o", cpu="1", memory="4Gi"),
        pod("web-1", on="o", cpu="1", memory="4Gi"),
        *more,
    )


def told(cluster: Path, *options: str) -> str:
    answer = trimtab("machines", "legacy", "--cluster", cluster, "--pool", "old", "--to-pool", "new", *options)
    assert answer.exit_code == 0, answer.output
    return answer.output


def test_without_apply_it_says_what_it_would_do(tmp_path: Path) -> None:
    output = told(fleet(tmp_path))
    assert has_facts(output, "1 node", "pool old", "get the taint trimtab.dev/legacy:NoSchedule")
    assert has_facts(output, "pool new has room", "pods of o", "may drain these nodes")


def test_a_cronjob_that_can_only_run_there_weakens_the_taint(tmp_path: Path) -> None:
    output = told(fleet(tmp_path, CRON))
    assert "trimtab.dev/legacy:PreferNoSchedule" in output
    assert "CronJob default/nightly" in output


def test_missing_room_is_told(tmp_path: Path) -> None:
    output = told(fleet(tmp_path, pod("large-0", on="n", cpu="7", memory="1Gi")))
    assert has_facts(output, "pool new has no room", "1 of 2 pods", "nodes o")


def test_a_pool_that_is_not_cheaper_is_refused(tmp_path: Path) -> None:
    answer = trimtab(
        "machines", "legacy", "--cluster", fleet(tmp_path, new="x1e.32xlarge"), "--pool", "old", "--to-pool", "new"
    )
    assert answer.exit_code == 3
    assert has_facts(answer.output, "1 new node", "node group new", "$26.69", "$0.77")


def test_pools_without_known_types_are_not_compared(tmp_path: Path) -> None:
    answer = trimtab("machines", "legacy", "--cluster", fleet(tmp_path, new=""), "--pool", "old", "--to-pool", "new")
    assert answer.exit_code == 3
    assert has_facts(answer.output, "price", "node group new", "not known")


@pytest.mark.parametrize(
    ("options", "mistake"),
    [
        (("--to-pool", "new"), "--pool"),
        (("--pool", "gone", "--to-pool", "new"), "a pool of"),
        (("--pool", "old"), "--to-pool"),
        (("--pool", "old", "--to-pool", "old"), "a pool other than"),
        (("--pool", "old", "--to-pool", "new", "--follow", "1"), "--apply"),
        (("--pool", "old", "--undo"), "--cluster live"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, options: tuple[str, ...], mistake: str) -> None:
    answer = trimtab("machines", "legacy", "--cluster", fleet(tmp_path), *options)
    assert answer.exit_code == 2
    assert mistake in answer.output
