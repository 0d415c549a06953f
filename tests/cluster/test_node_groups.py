"""Which node belongs to which node group, and how many nodes of unknown groups must remain."""

import pytest

from tests.cluster_of import Item, cluster, node
from trimtab.cluster.cluster_autoscaler import NodeGroupStatus
from trimtab.cluster.node_groups import NodeGroups, assign_node_groups


def group(name: str, registered: int | None, min_size: int = 0) -> NodeGroupStatus:
    return NodeGroupStatus(name=name, healthy=True, scale_up="", min_size=min_size, registered=registered)


def assigned(*groups: NodeGroupStatus, items: tuple[Item, ...] = ()) -> NodeGroups:
    nodes = items or tuple(node(f"n{number}") for number in range(3))
    return assign_node_groups(cluster(*nodes).nodes, groups)


def test_the_only_group_that_can_have_the_nodes_has_them() -> None:
    groups = assigned(group("workers-asg", 3, 3), group("other-asg", 0, 1))
    assert ({each.name for each in groups.by_node.values()}, groups.counted_nodes) == (
        {"workers-asg"},
        ("n0", "n1", "n2"),
    )


def test_a_group_that_matches_by_name_leaves_the_rest_to_the_other() -> None:
    labelled = [node(f"m{number}", labels={"asg": "matched"}) for number in range(2)]
    groups = assigned(group("matched", 2, 2), group("workers", 1, 1), items=(*labelled, node("n0")))
    assert {name: each.name for name, each in groups.by_node.items()} == {
        "m0": "matched",
        "m1": "matched",
        "n0": "workers",
    }


@pytest.mark.parametrize(
    ("groups", "minimum"),
    [
        ((group("a", 2, 1), group("b", 1)), 2),
        ((group("a", 2, 1), group("b", 1, 1)), 3),
        ((group("a", 5, 1),), 0),
        ((group("a", 2, 2),), 3),
        ((group("a", None, 1), group("b", None, 1)), 3),
        ((group("a", 2), group("b", 1)), 0),
    ],
)
def test_of_nodes_of_unknown_groups_as_many_remain_as_the_tightest_group_requires(
    groups: tuple[NodeGroupStatus, ...], minimum: int
) -> None:
    assert assigned(*groups).unmatched_minimum == minimum


@pytest.mark.parametrize(
    ("registered", "min_size", "minimum"),
    [
        (3, 2, 1),  # one node matches, so two more may belong to it, of which one may go
        (3, 3, 2),
        (3, 1, 0),  # the node that matches is its minimum
        (1, 1, 0),  # all of its nodes match
        (None, 2, 0),
    ],
)
def test_a_group_of_which_some_nodes_match_may_have_the_others(
    registered: int | None, min_size: int, minimum: int
) -> None:
    labelled = node("m", labels={"asg": "asg-x"})
    items = (labelled, node("n0"), node("n1"))
    assert assigned(group("asg-x", registered, min_size), group("other", 5), items=items).unmatched_minimum == minimum


def test_the_only_group_that_can_have_the_nodes_that_do_not_match_has_them() -> None:
    labelled = node("m", labels={"asg": "asg-x"})
    groups = assigned(group("asg-x", 3, 2), items=(labelled, node("n0"), node("n1")))
    assert (groups.counted_nodes, len(groups.by_node)) == (("n0", "n1"), 3)


def test_the_control_plane_and_nodes_of_karpenter_are_in_no_group() -> None:
    others = [
        node("c", labels={"node-role.kubernetes.io/control-plane": ""}),
        node("k", labels={"karpenter.sh/nodepool": "p"}),
    ]
    assert assigned(group("a", 1, 1), items=(node("n0"), *others)).counted_nodes == ("n0",)


def test_a_note_names_the_nodes_and_the_groups_only_where_something_is_not_known() -> None:
    (note,) = assigned(group("a-asg", 2, 1), group("b-asg", 1, 1)).notes
    assert all(word in note for word in ("n0, n1, n2", "a-asg", "b-asg"))
    assert assigned(group("a", 3)).notes == ()


@pytest.mark.parametrize(
    ("item", "name"),
    [
        (node("n", labels={"alpha.eksctl.io/nodegroup-name": "a"}), "eksctl-prod-nodegroup-a-NodeGroup-1X2Y3Z"),
        (node("n", annotations={"cluster.x-k8s.io/machine": "md-a-6c5d7-x2x4z"}), "MachineDeployment/default/md-a"),
    ],
)
def test_names_that_a_platform_makes_of_the_groups_name_match(item: Item, name: str) -> None:
    groups = assigned(group(name, 1, 1), group("eksctl-prod-nodegroup-b-NodeGroup-1X2Y3Z", 1, 1), items=(item,))
    assert groups.by_node["n"].name == name
