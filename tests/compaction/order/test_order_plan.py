"""What an order would do, and what keeps it from beginning."""

from typing import Any

import pytest

from tests.cluster_of import HOST, NOW, SAFE, ZONE, Item, budget, cluster, node, pod
from tests.reasons import assert_reason
from trimtab.compaction.candidates import CORDONED_BY_US
from trimtab.compaction.order.order_plan import OrderPlan, plan_order, wrong_target_reason
from trimtab.compaction.order.order_rules import OrderRules
from trimtab.compaction.order.record import ORDER_ANNOTATION, OrderRecord, encode_record
from trimtab.scheduling.cluster_model import build_cluster_model

KEEP = {"trimtab.dev/do-not-disrupt": "true"}
EMPTY_DIR = {"volumes": [{"name": "scratch", "emptyDir": {}}]}
IN_MEMORY = {"volumes": [{"name": "scratch", "emptyDir": {"medium": "Memory"}}]}
HOST_PATH = {"volumes": [{"name": "logs", "hostPath": {"path": "/var/log"}}]}
TOLERATES = {"tolerations": [{"operator": "Exists"}]}


def plan(*items: Item, nodes: tuple[str, ...] = ("a",), rest: bool = True, **rules: Any) -> OrderPlan:
    """The plan of the order of `nodes`; beside them is the node z, with room."""
    more = [node("z", "16")] if rest else []
    return plan_order(build_cluster_model(cluster(*items, *more)), nodes, OrderRules(**rules), NOW)


def codes(planned: OrderPlan) -> list[str]:
    return [each.reason.code.name for each in planned.unmovable]


def warnings(planned: OrderPlan) -> set[str]:
    return {reason.code.name for reasons in planned.warnings.values() for reason in reasons}


@pytest.mark.parametrize(
    ("blocked", "code", "permission"),
    [
        (pod("web-0", "a", owner=""), "order-pod-without-owner", "evicts_bare_pods"),
        (pod("web-0", "a", spec=EMPTY_DIR), "order-local-data", "deletes_local_data"),
        (pod("web-0", "a", annotations={SAFE: "false"}), "order-pod-protected", "overrides_protection"),
        (pod("web-0", "a", annotations=KEEP), "order-pod-protected", "overrides_protection"),
    ],
)
def test_a_pod_that_the_user_can_permit_is_named_with_the_option(blocked: Item, code: str, permission: str) -> None:
    refused = plan(node("a"), blocked)
    assert codes(refused) == [code]
    assert not refused.may_begin(OrderRules())
    assert plan(node("a"), blocked, **{permission: True}).may_begin(OrderRules())


@pytest.mark.parametrize("spec", [IN_MEMORY, HOST_PATH])
def test_volumes_that_kubectl_drain_lets_go_do_not_block(spec: Item) -> None:
    assert plan(node("a"), pod("web-0", "a", spec=spec)).may_begin(OrderRules())


def test_pods_of_daemons_static_pods_and_finished_ones_stay() -> None:
    static = pod("kube-proxy-a", "a", owner="", annotations={"kubernetes.io/config.mirror": "x"})
    items = [pod("log-0", "a", owner="DaemonSet"), static, pod("done-0", "a", phase="Succeeded")]
    planned = plan(node("a"), *items)
    assert [step.moves for step in planned.steps] == [()]


def test_a_budget_that_allows_none_now_is_waited_for_and_one_that_never_does_blocks() -> None:
    waits = plan(node("a"), pod("web-0", "a"), budget("web", 0, most=1))
    assert waits.may_begin(OrderRules())
    assert "order-budget-waits" in warnings(waits)
    assert codes(plan(node("a"), pod("web-0", "a"), budget("web", 0))) == ["budget-never-allows"]


def test_two_budgets_for_one_pod_block() -> None:
    twice = [budget("web", 1), budget("web", 1, name="other")]
    assert codes(plan(node("a"), pod("web-0", "a"), *twice)) == ["two-budgets"]


@pytest.mark.parametrize(
    ("more", "way_out"),
    [([budget("web", 0, most=0)], "maxUnavailable"), ([budget("web", 1), budget("web", 1, name="other")], "delete")],
)
def test_a_budget_that_blocks_is_named_with_the_way_out(more: list[Item], way_out: str) -> None:
    [blocked] = plan(node("a"), pod("web-0", "a"), pod("web-1", "z"), *more).unmovable
    assert way_out in blocked.reason.sentence


def test_a_pod_that_stays_unready_under_a_spent_budget_is_named_with_the_way_out() -> None:
    items = [pod("web-0", "a", ready=False), budget("web", 0, most=1)]
    items[1]["status"]["currentHealthy"] = 1
    planned = plan(node("a"), *items)
    assert codes(planned) == ["order-unhealthy-pod"]
    assert_reason(planned.unmovable[0].reason, "order-unhealthy-pod", pod="default/web-0", budget="default/web")
    items[1]["spec"]["unhealthyPodEvictionPolicy"] = "AlwaysAllow"
    assert plan(node("a"), *items).may_begin(OrderRules())


def test_an_unready_pod_that_is_young_is_waited_for() -> None:
    items = [pod("web-0", "a", ready=False, created="2026-01-02T23:59:00Z"), budget("web", 0, most=1)]
    items[1]["status"]["currentHealthy"] = 1
    assert plan(node("a"), *items).may_begin(OrderRules())


def test_a_pod_that_may_come_back_to_its_node_blocks() -> None:
    assert codes(plan(node("a"), pod("web-0", "a", spec=TOLERATES))) == ["pod-tolerates-cordon"]


@pytest.mark.parametrize(
    ("item", "code"),
    [
        (pod("job-0", "a", owner="Job"), "order-job-restarts"),
        (pod("web-0", "a"), "order-only-replica"),
        (pod("web-0", "a", spec={"terminationGracePeriodSeconds": 7200}), "order-long-grace"),
        (pod("game-0", "a", owner="GameServerSet"), "order-owner-unknown"),
    ],
)
def test_what_the_owner_should_know_is_said(item: Item, code: str) -> None:
    planned = plan(node("a"), item)
    assert planned.may_begin(OrderRules())
    assert code in warnings(planned)


def test_a_full_cluster_says_how_much_is_missing() -> None:
    items = [node("a"), node("b", "1"), pod("web-0", "a", "900m"), pod("web-1", "a", "2"), pod("web-2", "a", "1500m")]
    planned = plan(*items, rest=False)
    assert planned.refusals["a"].code.name == "order-no-room"
    assert planned.homeless == ("default/web-1", "default/web-2")
    assert (planned.missing["cpu"], planned.missing["pods"]) == (3500, 2)


def test_no_pod_goes_to_a_node_of_the_order() -> None:
    items = [node("a"), node("b"), pod("web-0", "a"), pod("web-1", "b")]
    planned = plan(*items, nodes=("a", "b"))
    assert {move.target for step in planned.steps for move in step.moves} == {"z"}
    assert plan(*items, nodes=("a", "b"), rest=False).refusals.keys() == {"a", "b"}


def test_waves_are_of_one_zone_and_of_at_most_so_many_nodes() -> None:
    names = ("a", "b", "c", "d")
    items = [node(name, labels={ZONE: f"z{number % 2}"}) for number, name in enumerate(names)]
    waves = plan(*items, nodes=names, at_once=2).waves
    assert [[step.node for step in wave.steps] for wave in waves] == [["a", "c"], ["b", "d"]]
    assert len(plan(*items, nodes=names).waves) == 4


def test_a_node_that_others_hold_is_refused() -> None:
    record = OrderRecord(order="other", since=NOW - 60, by="eve")
    ordered = node("a", cordoned=True, annotations={ORDER_ANNOTATION: encode_record(record)})
    compacted = node("a", cordoned=True, annotations={CORDONED_BY_US: "{}"})
    going = node("a", taints=[{"key": "ToBeDeletedByClusterAutoscaler", "effect": "NoSchedule"}])
    results = [plan(one).refusals["a"].code.name for one in (ordered, compacted, going, node("a", annotations=KEEP))]
    assert results == ["order-of-another", "order-compactor-drains", "node-being-deleted", "order-node-protected"]
    model = build_cluster_model(cluster(ordered, node("z", "16")))
    assert not plan_order(model, ["a"], OrderRules(), NOW, order="other").refusals


def test_a_node_that_another_person_cordoned_may_be_drained() -> None:
    assert plan(node("a", cordoned=True), pod("web-0", "a")).may_begin(OrderRules())


def test_a_node_that_is_not_ready_may_be_drained() -> None:
    assert plan(node("a", ready=False), pod("web-0", "a")).may_begin(OrderRules())


def test_the_others_go_on_if_the_user_says_so() -> None:
    items = [node("a"), node("b"), pod("bare-0", "a", owner=""), pod("web-0", "b")]
    planned = plan(*items, nodes=("a", "b"), keeps_going=True)
    assert [step.node for step in planned.steps] == ["b"]
    assert planned.may_begin(OrderRules(keeps_going=True))
    assert not planned.may_begin(OrderRules())


def test_room_for_pods_that_wait_is_not_given_away() -> None:
    pending = pod("next-0", "", "15500m", created="2026-01-02T23:59:00Z")
    assert plan(node("a"), pod("web-0", "a", "1"), pending).refusals["a"].code.name == "order-no-room"


def test_nodes_of_the_control_plane_and_of_karpenter_are_no_targets() -> None:
    labels = [{"node-role.kubernetes.io/control-plane": ""}, {"karpenter.sh/nodepool": "default"}, {HOST: "a"}]
    nodes = [cluster(node("a", labels=each)).nodes[0] for each in labels]
    assert [bool(wrong_target_reason(one)) for one in nodes] == [True, True, False]


@pytest.mark.parametrize("budgets", [[budget("web", 0)], [budget("web", 1), budget("web", 1, name="other")]])
def test_a_pod_that_has_not_started_needs_no_budget(budgets: list[Item]) -> None:
    planned = plan(node("a"), pod("web-0", "a", phase="Pending", ready=False), *budgets)
    assert planned.may_begin(OrderRules())
    assert "order-budget-waits" not in warnings(planned)
