"""What a node is follows from its signs: those of the table, and general ones that no table has."""

import pytest

from tests.cluster_of import Item, cluster, node
from trimtab.cluster.api.core import Node
from trimtab.cluster.node_nature import ORDINARY, SIGN_RULES, NodeKind, SignPlace, SignRule, nature_of_node
from trimtab.cluster.snapshot import build_snapshot
from trimtab.cluster.yaml_documents import Document

HUGE = {"capacity": {"cpu": "10k", "memory": "100Ti", "pods": "5000"}}


def kinds(item: Item) -> set[str]:
    [read_node] = cluster(item).nodes
    return {sign.kind.value for sign in read_node.nature.signs}


@pytest.mark.parametrize("rule", SIGN_RULES, ids=lambda rule: f"{rule.place} {rule.key}={','.join(rule.values)}")
def test_each_row_of_the_table_is_a_sign(rule: SignRule) -> None:
    value = rule.values[0] if rule.values else "anything"
    place = {
        SignPlace.LABEL: {"labels": {rule.key: value}},
        SignPlace.ANNOTATION: {"annotations": {rule.key: value}},
        SignPlace.TAINT: {"taints": [{"key": rule.key, "value": value, "effect": "NoSchedule"}]},
    }
    assert rule.kind.value in kinds(node("a", **place[rule.place]))


@pytest.mark.parametrize("rule", [rule for rule in SIGN_RULES if rule.values], ids=lambda rule: rule.key)
def test_another_value_is_no_sign(rule: SignRule) -> None:
    assert kinds(node("a", labels={rule.key: "ec2"}, annotations={rule.key: "ec2"})) == set()


def test_each_row_names_its_platform_and_source() -> None:
    assert all(rule.platform and rule.source for rule in SIGN_RULES)


@pytest.mark.parametrize(
    "more",
    [
        {"status": {"nodeInfo": {"kubeletVersion": "v1.31.1-vk-azure-aci-1.6.2"}}},
        {"taints": [{"key": "virtual-node.interlink/no-schedule", "value": "true", "effect": "NoSchedule"}]},
        {"labels": {"node-role.kubernetes.io/virtual-node": ""}},
        {"labels": {"node.example.com/type": "virtual-node"}},
        {"labels": {"kubernetes.io/role": "virtual-kubelet"}},
        {"status": HUGE},
        {"status": {"capacity": {"cpu": "2", "memory": "4Gi", "pods": "1"}}},
    ],
    ids=["kubelet version", "taint", "role", "type", "value of a role", "absurd capacity", "one pod"],
)
def test_a_platform_that_the_table_lacks_shows_itself(more: Item) -> None:
    assert kinds(node("a", **more)) == {"serverless"}


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"labels": {"type": "worker", "team": "virtual-reality", "nodepool": "virtual-node"}},
        {"labels": {"example.com/virtual-node": "false"}},
        {"status": {"capacity": {"cpu": "896", "memory": "32Ti", "pods": "250"}}},
        {"status": {"nodeInfo": {"kubeletVersion": "v1.36.2-eks-1234567"}}},
        {"labels": {"node-role.kubernetes.io/edge": ""}},
    ],
    ids=["no sign", "other words", "false", "the largest machines", "a vendor's version", "a node for ingress"],
)
def test_an_ordinary_machine_has_no_sign(more: Item) -> None:
    [read_node] = cluster(node("a", **more)).nodes
    assert read_node.nature is ORDINARY


def test_the_name_of_an_autopilot_node_counts_only_on_google_cloud() -> None:
    assert kinds(node("gk3-c-pool-1-abcd", provider="gce://p/z/gk3-c-pool-1-abcd")) == {"serverless"}
    assert kinds(node("gk3-c-pool-1-abcd")) == set()


def test_kubeedge_shows_itself_by_its_kubelet_or_by_two_roles() -> None:
    roles = {"node-role.kubernetes.io/edge": "", "node-role.kubernetes.io/agent": ""}
    assert kinds(node("a", labels=roles)) == {"edge"}
    assert kinds(node("a", status={"nodeInfo": {"kubeletVersion": "v1.22.6-kubeedge-v1.12.0"}})) == {"edge"}


def test_a_node_can_be_several_things() -> None:
    both = {"karpenter.sh/nodepool": "default", "node-role.kubernetes.io/control-plane": ""}
    assert kinds(node("a", labels=both)) == {"karpenter", "control-plane"}


def test_a_host_of_a_larger_slice_is_one_of_several() -> None:
    topology = {"cloud.google.com/gke-tpu-topology": "2x4"}
    assert kinds(node("a", labels=topology, extra={"google.com/tpu": "4"})) == {"slice-host"}
    assert kinds(node("a", labels=topology, extra={"google.com/tpu": "8"})) == set()


def test_a_node_object_has_the_same_nature_as_its_node_info() -> None:
    item = node("a", labels={"type": "virtual-kubelet"})
    snapshot = build_snapshot([Document(file="test", index=0, value=item)]).snapshot
    [shape] = snapshot.objects_of(Node)
    assert nature_of_node(shape) == cluster(item).nodes[0].nature
    assert not nature_of_node(shape).is_machine


def test_the_sign_says_what_was_seen() -> None:
    [read_node] = cluster(node("a", labels={"eks.amazonaws.com/compute-type": "fargate"})).nodes
    sign = read_node.nature.sign_of(NodeKind.SERVERLESS)
    assert sign is not None
    assert (sign.platform, sign.evidence) == ("AWS Fargate", "the label eks.amazonaws.com/compute-type=fargate")
