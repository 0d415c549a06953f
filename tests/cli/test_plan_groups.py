"""`trimtab plan --group`: replacements by a node group that has no node yet."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.snapshots import config_map, snapshot, trimtab
from tests.cluster_of import ZONE, Item, node, pod

LABELS = {
    "nodepool": "big",
    ZONE: "z1",
    "node.kubernetes.io/instance-type": "m5.4xlarge",
    "kubernetes.io/arch": "amd64",
    "kubernetes.io/os": "linux",
}
STATUS = """autoscalerStatus: Running
clusterWide:
  health: {status: Healthy}
nodeGroups:
- name: small
  health: {status: Healthy, cloudProviderTarget: 0, minSize: 0, maxSize: %d}
  scaleUp: {status: NoActivity}
"""


def planned(folder: Path, group: str, *more: Item) -> Any:
    cluster = snapshot(
        folder,
        node("a", "16", "64Gi", labels=LABELS),
        pod("web-0", on="a", cpu="800m", memory="2Gi"),
        pod("web-1", on="a", cpu="800m", memory="2Gi"),
        node("b", "16", "64Gi", labels=LABELS),
        pod("full-0", on="b", cpu="15500m", annotations={"trimtab.dev/do-not-disrupt": "true"}),
        *more,
    )
    groups = ("--group", group) if group else ()
    answer = trimtab("plan", "--cluster", cluster, "--preset", "all=keen", "--no-compare", *groups, "-o", "json")
    assert answer.exit_code == 0, answer.output
    return json.loads(answer.output)["replace"]


def test_a_described_group_gives_a_node_of_its_type(tmp_path: Path) -> None:
    report = planned(tmp_path, "small=m5.large,zone=z1,nodepool=small")
    [one] = report["replacements"]
    assert (one["nodes"], one["group"], one["instanceType"], one["label"]) == (
        ["a"],
        "small",
        "m5.large",
        "nodepool=small",
    )


@pytest.mark.parametrize(
    ("group", "code"),
    [
        ("small=m5.large,zone=z1", "replace-group-without-label"),
        ("small=m5.large,zone=z1,nodepool=big", "replace-group-without-label"),
    ],
)
def test_a_description_without_a_label_of_its_own_is_not_advised(tmp_path: Path, group: str, code: str) -> None:
    report = planned(tmp_path, group)
    assert report["replacements"] == []
    assert {refusal["group"]: refusal["reason"]["code"] for refusal in report["refusals"]}["small"] == code


@pytest.mark.parametrize(("cores", "count"), [("400m", 0), ("100m", 1)])
def test_every_daemon_set_takes_its_part_of_the_described_node(tmp_path: Path, cores: str, count: int) -> None:
    daemon = pod("agent-1", on="a", cpu=cores, memory="64Mi", owner="DaemonSet")
    report = planned(tmp_path, "small=m5.large,zone=z1,nodepool=small", daemon)
    assert len(report["replacements"] if report else []) == count


@pytest.mark.parametrize(("most", "code"), [(0, "replace-group-at-maximum"), (3, "")])
def test_the_status_of_the_autoscaler_still_counts(tmp_path: Path, most: int, code: str) -> None:
    status = config_map("cluster-autoscaler-status", {"status": STATUS % most}, namespace="kube-system")
    report = planned(tmp_path, "small=m5.large,zone=z1,nodepool=small", status)
    codes = [refusal["reason"]["code"] for refusal in report["refusals"] if refusal["group"] == "small"]
    assert (codes, len(report["replacements"])) == ([code] if code else [], 0 if code else 1)


@pytest.mark.parametrize("group", ["small", "=m5.large", "small=", "small=m5.huge", "small=m5.large,zone"])
def test_another_description_is_a_mistake(tmp_path: Path, group: str) -> None:
    cluster = snapshot(tmp_path, node("a", "16", "64Gi", labels=LABELS), pod("web-0", on="a"))
    answer = trimtab("plan", "--cluster", cluster, "--group", group)
    assert answer.exit_code == 2
    assert "--group" in answer.output


def test_the_page_has_a_table_of_replacements(tmp_path: Path) -> None:
    cluster = snapshot(
        tmp_path,
        node("a", "16", "64Gi", labels=LABELS),
        pod("web-0", on="a", cpu="800m", memory="2Gi"),
        node("b", "16", "64Gi", labels=LABELS),
        pod("full-0", on="b", cpu="15500m", annotations={"trimtab.dev/do-not-disrupt": "true"}),
    )
    group = ("--group", "small=m5.large,zone=z1,nodepool=small")
    page = trimtab("plan", "--cluster", cluster, "--preset", "all=keen", *group, "-o", "html").output
    assert 'id="replacements"' in page
    assert "default/web-0" in page
