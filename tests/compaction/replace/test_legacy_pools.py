"""May a pool be emptied, and where would its pods go?"""

import pytest

from tests.cluster_of import Item, cluster, node, pod
from trimtab.cluster.cluster_autoscaler import Autoscaler, NodeGroupStatus
from trimtab.cluster.cluster_state import Inventory
from trimtab.cluster.node import LEGACY_TAINT_KEY
from trimtab.compaction.replace.legacy_pools import (
    PLACEHOLDER_LABEL,
    MissingRoom,
    PlaceholderChange,
    PlaceholderScope,
    choose_taint,
    find_missing_room,
    find_refusals,
    placeholder_name,
    plan_placeholders,
    render_placeholders,
)
from trimtab.compaction.replace.node_templates import find_templates

OLD, NEW = {"nodepool": "old"}, {"nodepool": "new"}
SCOPE = PlaceholderScope("old", "default")
TOLERATES = {"tolerations": [{"key": LEGACY_TAINT_KEY, "operator": "Exists"}]}


def both(*pods: Item) -> Inventory:
    return cluster(
        node("old-1", "4", labels=OLD), node("old-2", "4", labels=OLD), node("new-1", "4", labels=NEW), *pods
    )


def split(inventory: Inventory):  # type: ignore[no-untyped-def]
    old = [one for one in inventory.nodes if one.labels["nodepool"] == "old"]
    return old, [one for one in inventory.nodes if one not in old]


def codes(inventory: Inventory, **templates: Item) -> tuple[str, set[str]]:
    old, _ = split(inventory)
    requirements = {name: cluster(pod("x", spec=spec)).pods[0].requirements for name, spec in templates.items()}
    chosen = choose_taint(inventory, old, requirements)
    return chosen.taint.effect, {reason.code.name for reason in chosen.reasons}


def test_free_pods_and_tolerant_daemons_allow_the_strong_taint() -> None:
    inventory = both(pod("w-1", "old-1"), pod("agent-1", "old-1", owner="DaemonSet", spec=TOLERATES))
    assert codes(inventory, web={}) == ("NoSchedule", set())


@pytest.mark.parametrize(
    ("pods", "templates", "code"),
    [
        ([pod("agent-1", "old-1", owner="DaemonSet")], {}, "daemon-does-not-tolerate-legacy"),
        ([pod("w-1", "old-1", spec={"nodeSelector": OLD})], {}, "runs-only-on-legacy"),
        ([], {"nightly": {"nodeSelector": OLD}}, "runs-only-on-legacy"),
    ],
)
def test_what_the_strong_taint_would_harm_makes_it_weak(
    pods: list[Item], templates: dict[str, Item], code: str
) -> None:
    assert codes(both(*pods), **templates) == ("PreferNoSchedule", {code})


def test_a_template_that_fits_on_no_node_at_all_is_not_the_legacy_pools_matter() -> None:
    assert codes(both(), web={"nodeSelector": {"gpu": "yes"}}) == ("NoSchedule", set())


def test_room_is_missing_until_the_new_pool_holds_the_pods_of_the_next_nodes() -> None:
    inventory = both(*(pod(f"w-{n}", f"old-{n % 2 + 1}", "2") for n in range(4)))
    old, new = split(inventory)
    missing = find_missing_room(inventory, SCOPE, old, new, {"old-2": 9}, batch=2)
    assert missing.nodes == ("old-2", "old-1")
    assert len(missing.pods) == 2
    assert find_missing_room(inventory, SCOPE, old, new, {"old-2": 9}, batch=1).pods == ()


def test_placeholders_do_not_take_the_room_that_they_hold() -> None:
    created_pod = pod("hold-1", "new-1", "4", labels={PLACEHOLDER_LABEL: "old"})
    inventory = both(pod("w-1", "old-1", "4"), created_pod)
    old, new = split(inventory)
    assert find_missing_room(inventory, SCOPE, old, new, {}, batch=1).pods == ()


def room_of(inventory: Inventory, batch: int = 9) -> MissingRoom:
    old, new = split(inventory)
    return find_missing_room(inventory, SCOPE, old, new, {}, batch)


def test_every_pod_of_the_next_nodes_gets_a_placeholder_even_those_that_fit() -> None:
    # With placeholders for the two others alone, these would take the room of the first two, and no node would come.
    inventory = both(*(pod(f"w-{n}", f"old-{n % 2 + 1}", "2") for n in range(4)))
    assert len(room_of(inventory).pods) == 2
    change = plan_placeholders(room_of(inventory), SCOPE, inventory.pods, is_draining=False)
    assert {one.name for one in change.create} == {"w-0", "w-1", "w-2", "w-3"}


def test_no_placeholder_is_created_while_a_legacy_node_is_drained() -> None:
    inventory = both(*(pod(f"w-{n}", f"old-{n % 2 + 1}", "2") for n in range(4)))
    assert plan_placeholders(room_of(inventory), SCOPE, inventory.pods, is_draining=True) == PlaceholderChange((), ())


def test_placeholders_go_once_all_pods_fit_without_them() -> None:
    waiting = pod("w-1", "old-1", "4")
    created_pod = pod("hold-1", "new-1", "4", labels={PLACEHOLDER_LABEL: "old"})
    inventory = both(waiting, created_pod)
    change = plan_placeholders(room_of(inventory), SCOPE, inventory.pods, is_draining=False)
    assert [one.name for one in change.delete] == ["hold-1"]
    assert change.create == ()


def test_placeholders_of_pods_that_are_gone_are_deleted_and_others_stay() -> None:
    large = pod("w-1", "old-1", "3"), pod("w-2", "old-2", "3")
    name = placeholder_name(both(*large).pods[0])
    pods = [pod(one, "new-1", "3", labels={PLACEHOLDER_LABEL: "old"}) for one in (name, "of-a-pod-before")]
    inventory = both(*large, *pods)
    change = plan_placeholders(room_of(inventory), SCOPE, inventory.pods, is_draining=False)
    assert [one.name for one in change.create] == ["w-2"]
    assert [one.name for one in change.delete] == ["of-a-pod-before"]


def test_placeholders_of_another_pool_hold_room_like_any_pod_and_stay() -> None:
    others = pod("hold-1", "new-1", "4", labels={PLACEHOLDER_LABEL: "elsewhere"})
    inventory = both(pod("w-1", "old-1", "4"), others)
    assert len(room_of(inventory).pods) == 1
    assert plan_placeholders(room_of(inventory), SCOPE, inventory.pods, is_draining=False).delete == ()


def test_a_pod_of_another_namespace_is_no_placeholder_whatever_its_label_says() -> None:
    spec = {"labels": {PLACEHOLDER_LABEL: "old"}}
    inventory = both(pod("w-1", "old-1", "2"), pod("mine-1", "new-1", "3", namespace="team-a", **spec))
    room = room_of(inventory, 1)
    assert [one.key for one in room.pods] == ["default/w-1"]
    assert plan_placeholders(room, SCOPE, inventory.pods, is_draining=False).delete == ()


def test_names_of_placeholders_differ_where_long_names_of_pods_differ_at_their_end() -> None:
    first, second = cluster(*(pod("a" * 70 + end) for end in ("-1", "-2"))).pods
    assert placeholder_name(first) != placeholder_name(second)


def test_a_pod_that_waits_for_a_node_takes_the_room_first() -> None:
    inventory = both(pod("w-1", "old-1", "3"), pod("waits", "", "3"))
    assert [one.name for one in room_of(inventory).pods] == ["w-1"]


def test_a_placeholder_asks_for_what_its_pod_asks_on_the_new_pool_only() -> None:
    inventory = both(pod("w-1", "old-1", "3", "2Gi"))
    [placeholder] = render_placeholders(inventory.pods, SCOPE, NEW, "low", ())
    spec = placeholder["spec"]
    assert isinstance(spec, dict)
    assert spec["nodeSelector"] == NEW
    assert spec["containers"][0]["resources"]["requests"] == {"cpu": "3000m", "memory": str(2 << 30)}


def refusals_of(*items: Item, lacks_room: bool = True, group: NodeGroupStatus | None = None) -> list[str]:
    inventory = cluster(*items)
    old, new = split(inventory)
    autoscaler = None if group is None else Autoscaler(groups=(group,))
    known = find_templates(inventory, autoscaler, ())
    refusals = find_refusals(inventory, old, new, known, lacks_room=lacks_room, compares=True)
    return [reason.code.name for reason in refusals]


def priced(name: str, labels: dict[str, str], price: int, cpu: str = "4") -> Item:
    return node(name, cpu, labels={**labels, "trimtab.dev/price": str(price)} if price else labels)


@pytest.mark.parametrize(
    ("state", "target", "lacks_room", "code"),
    [
        ("Backoff", 3, True, "replace-group-in-back-off"),
        ("NoActivity", 9, True, "replace-group-at-maximum"),
        ("NoActivity", 9, False, None),
        ("NoActivity", 3, True, None),
    ],
)
def test_a_group_that_gets_no_nodes_refuses_while_room_is_missing(
    state: str, target: int, lacks_room: bool, code: str | None
) -> None:
    group = NodeGroupStatus(name="new", healthy=True, scale_up=state, target=target, max_size=9)
    items = (priced("old-1", OLD, 9), priced("new-1", NEW, 5), pod("w-1", "old-1", "1"))
    assert refusals_of(*items, lacks_room=lacks_room, group=group) == ([code] if code else [])


def test_a_pool_without_nodes_refuses() -> None:
    assert refusals_of(node("old-1", "4", labels=OLD)) == ["target-without-nodes"]


@pytest.mark.parametrize(("price", "code"), [(4, None), (5, "target-not-cheaper"), (0, "replace-price-unknown")])
def test_new_nodes_that_cost_as_much_as_the_old_ones_refuse(price: int, code: str | None) -> None:
    # The pods of one old node need two new ones, also if the present new node has room for one of them.
    pods = pod("w-1", "old-1", "3"), pod("w-2", "old-1", "3")
    items = (priced("old-1", OLD, 9, "8"), priced("new-1", NEW, price), *pods)
    assert refusals_of(*items) == ([code] if code else [])


def test_a_pod_that_does_not_run_on_the_other_nodes_makes_the_taint_weak() -> None:
    arm, amd = ({"labels": {"kubernetes.io/arch": arch}} for arch in ("arm64", "amd64"))
    inventory = cluster(node("old-1", **amd), node("new-1", **arm), pod("w-1", "old-1"))
    legacy = [node for node in inventory.nodes if node.name == "old-1"]
    assert choose_taint(inventory, legacy, {}).taint.effect == "PreferNoSchedule"
