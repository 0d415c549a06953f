"""`trimtab machines priorities` as its users call it."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.snapshots import config_map, snapshot, trimtab
from tests.cluster_of import Item, node, pod
from tests.reasons import has_facts

REGION = {"topology.kubernetes.io/region": "us-east-1"}
STATUS = """autoscalerStatus: Running
clusterWide:
  health: {status: Healthy}
nodeGroups:
- name: new.z1
  health: {status: Healthy, cloudProviderTarget: 1, minSize: 0, maxSize: 9}
  scaleUp: {status: %s}
- name: old.z1
  health: {status: Healthy, cloudProviderTarget: 1, minSize: 0, maxSize: 9}
  scaleUp: {status: NoActivity}
- name: empty
  health: {status: Healthy, cloudProviderTarget: 0, minSize: 0, maxSize: 9}
  scaleUp: {status: NoActivity}
"""


def fleet(folder: Path, new: str = "NoActivity", **labels: str) -> Path:
    def of(name: str, group: str, kind: str) -> Item:
        own = {**REGION, "nodepool": group, "node.kubernetes.io/instance-type": kind, **labels}
        return node(name, "8", "32Gi", labels=own)

    status = config_map("cluster-autoscaler-status", {"status": STATUS % new}, namespace="kube-system")
    return snapshot(
        folder,
        of("a", "new.z1", "m7i.2xlarge"),
        of("b", "old.z1", "m5.2xlarge"),
        status,
        *(pod(f"web-{number}", on="ab"[number % 2], cpu="2", memory="8Gi") for number in range(4)),
    )


def printed(*arguments: str | Path) -> dict[str, Any]:
    answer = trimtab("machines", "priorities", *arguments)
    assert answer.exit_code == 0, answer.output
    return yaml.safe_load(answer.stdout)  # type: ignore[no-any-return]


def test_the_map_names_groups_exactly_with_a_catch_all(tmp_path: Path) -> None:
    document = printed("--cluster", fleet(tmp_path), "--group", "empty=c7i.2xlarge", "--performance", "off")
    assert (document["kind"], document["metadata"]["namespace"]) == ("ConfigMap", "kube-system")
    assert yaml.safe_load(document["data"]["priorities"]) == {
        100: ["^old\\.z1$"],
        90: ["^new\\.z1$"],
        80: ["^empty$"],
        0: [".*"],
    }


def test_a_group_of_spot_machines_comes_first(tmp_path: Path) -> None:
    status = config_map("cluster-autoscaler-status", {"status": STATUS % "NoActivity"}, namespace="kube-system")
    labels = {**REGION, "node.kubernetes.io/instance-type": "m7i.2xlarge"}
    spot = {"eks.amazonaws.com/capacityType": "SPOT", "nodepool": "new.z1"}
    nodes = [
        node("a", "8", "32Gi", labels={**labels, **spot}),
        node("b", "8", "32Gi", labels={**labels, "nodepool": "old.z1"}),
    ]
    pods = [pod(f"web-{number}", on="ab"[number % 2], cpu="2", memory="8Gi") for number in range(4)]
    document = printed("--cluster", snapshot(tmp_path, *nodes, *pods, status))
    assert yaml.safe_load(document["data"]["priorities"]) == {100: ["^new\\.z1$"], 90: ["^old\\.z1$"], 0: [".*"]}


def test_legacy_and_out_of_stock_groups_come_last(tmp_path: Path) -> None:
    document = printed("--cluster", fleet(tmp_path, new="Backoff"), "--legacy", "old.z1")
    assert yaml.safe_load(document["data"]["priorities"]) == {2: ["^new\\.z1$"], 1: ["^old\\.z1$"], 0: [".*"]}


def test_other_forms_are_output_only(tmp_path: Path) -> None:
    cluster = fleet(tmp_path)
    overlay = trimtab(
        "machines", "priorities", "--cluster", cluster, "--types", "m[57]i?.2xlarge", "--as", "nodeoverlay"
    )
    assert {one["kind"] for one in yaml.safe_load_all(overlay.stdout)} == {"NodeOverlay"}
    compute = printed("--cluster", cluster, "--types", "m[57]i?.2xlarge", "--as", "computeclass")
    assert len(compute["spec"]["priorities"]) == 2


def test_workers_that_no_node_group_belongs_to_are_an_error_that_names_both(tmp_path: Path) -> None:
    cluster = fleet(tmp_path, **{"worker.gardener.cloud/pool": "p"})
    answer = trimtab("machines", "priorities", "--cluster", cluster, "--as", "gardener")
    assert (answer.exit_code, answer.stdout) == (2, "")
    assert has_facts(answer.stderr, "node groups", "empty, new.z1, old.z1", "pools")


def test_on_gardener_apply_is_refused(tmp_path: Path) -> None:
    cluster = fleet(tmp_path, **{"worker.gardener.cloud/pool": "p"})
    answer = trimtab("machines", "priorities", "--cluster", cluster, "--apply")
    assert answer.exit_code == 2
    assert "Gardener" in answer.output


@pytest.mark.parametrize(
    ("options", "mistake"),
    [
        (("--legacy", "nobody"), "a node group of"),
        (("--group", "empty"), "GROUP=TYPE"),
        (("--apply",), "--cluster live"),
        (("--undo",), "--cluster live"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, options: tuple[str, ...], mistake: str) -> None:
    answer = trimtab("machines", "priorities", "--cluster", fleet(tmp_path), *options)
    assert answer.exit_code == 2
    assert mistake in answer.output


def test_on_gardener_a_worker_has_the_highest_priority_of_its_machine_deployments(tmp_path: Path) -> None:
    groups = ("shoot--dev--c-web-z1", "shoot--dev--c-web-z10", "shoot--dev--c-a-z1", "shoot--dev--c-empty-z1")
    text = STATUS.partition("- name")[0] + "".join(
        f"- name: {name}\n  health: {{status: Healthy, cloudProviderTarget: 1, minSize: 0, maxSize: 9}}\n"
        for name in groups
    )

    def of(name: str, group: str, pool: str, kind: str) -> Item:
        machine = {"worker.gardener.cloud/pool": pool, "node.gardener.cloud/machine-name": f"{group}-5f7d8-x2x9q"}
        return node(name, "8", "32Gi", labels={**REGION, "node.kubernetes.io/instance-type": kind, **machine})

    cluster = snapshot(
        tmp_path,
        of("n1", groups[0], "web", "m7i.2xlarge"),
        of("n2", groups[1], "web", "m5.2xlarge"),
        of("n3", groups[2], "a", "m4.2xlarge"),
        config_map("cluster-autoscaler-status", {"status": text}, namespace="kube-system"),
        *(pod(f"web-{number}", on="n1", cpu="2", memory="8Gi") for number in range(4)),
    )
    workers = printed("--cluster", cluster, "--performance", "off")["spec"]["provider"]["workers"]
    assert workers == [{"name": "a", "priority": 90}, {"name": "web", "priority": 100}]
