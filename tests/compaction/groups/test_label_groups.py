"""Labels that a pool names: pods with an equal value of one of them live and die together."""

from dataclasses import replace

import pytest

from tests.cluster_of import ALL, NOW, Item, cluster, node, pod
from tests.compaction.plans import keeper, planned
from trimtab.cluster.pool import Pool
from trimtab.cluster.pool_values import GroupMode
from trimtab.compaction.candidates import PlanningContext
from trimtab.compaction.order.order_plan import plan_order
from trimtab.compaction.order.order_rules import OrderRules
from trimtab.compaction.plan import make_plan
from trimtab.scheduling.cluster_model import build_cluster_model

CELL, SHARD, KEY = "team/cell", "team/shard", "leaderworkerset.sigs.k8s.io/group-key"
NAMES = replace(ALL, group_labels=(CELL, SHARD))
MOVES = replace(NAMES, groups=GroupMode.MOVE)


def world(one: dict[str, str], other: dict[str, str], *more: Item, namespace: str = "default") -> list[Item]:
    """A pod on a, which may go, and another on b, which must stay; c has room and stays."""
    keepers = [keeper("kb", "b", "10m"), keeper("kc", "c", "10m")]
    pods = [pod("web-0", "a", "1", labels=one), pod("web-1", "b", "1", labels=other, namespace=namespace)]
    return [*(node(name) for name in "abc"), *keepers, *pods, *more]


def outcome(pool: Pool, items: list[Item]) -> tuple[list[str], list[str]]:
    """The pods that are evicted, and the codes of the reasons of `web-0`."""
    plan = planned(*items, pool=pool)
    evicted = [one.pod for step in plan.all_steps for one in (*step.moves, *step.companions)]
    return evicted, [reason.code.name for key, reason in plan.pods.items() if key == "default/web-0"]


ALONE = (["default/web-0"], [])
TOGETHER = (["default/web-0", "default/web-1"], [])
STAYS: tuple[list[str], list[str]] = ([], ["pod-group-spans-nodes"])


@pytest.mark.parametrize(
    ("pool", "one", "other", "expected"),
    [
        (ALL, {CELL: "x"}, {CELL: "x"}, ALONE),
        (NAMES, {CELL: "x"}, {CELL: "x"}, STAYS),
        (MOVES, {CELL: "x"}, {CELL: "x"}, TOGETHER),
        (MOVES, {CELL: "x"}, {CELL: "y"}, ALONE),
        (MOVES, {CELL: "x"}, {SHARD: "x"}, ALONE),
        (MOVES, {CELL: ""}, {CELL: ""}, ALONE),
        (MOVES, {CELL: "x", KEY: "g"}, {CELL: "x", KEY: "h"}, TOGETHER),
    ],
)
def test_an_equal_value_makes_a_group(
    pool: Pool, one: dict[str, str], other: dict[str, str], expected: tuple[list[str], list[str]]
) -> None:
    assert outcome(pool, world(one, other)) == expected


def test_pods_of_two_namespaces_are_no_group() -> None:
    assert outcome(MOVES, world({CELL: "x"}, {CELL: "x"}, namespace="other")) == ALONE


def test_two_labels_connect_pods_that_share_neither() -> None:
    middle = pod("web-2", "c", "1", labels={CELL: "x", SHARD: "y"})
    evicted, _ = outcome(MOVES, world({CELL: "x"}, {SHARD: "y"}, middle))
    assert sorted(evicted) == ["default/web-0", "default/web-1", "default/web-2"]


def test_a_pod_of_a_daemon_set_with_the_label_holds_nothing() -> None:
    daemons = [pod(f"d-{name}", name, "10m", labels={CELL: "x"}, owner="DaemonSet") for name in "abc"]
    assert outcome(NAMES, world({CELL: "x"}, {}, *daemons)) == ALONE


@pytest.mark.parametrize(
    ("naming", "code"), [("a", "pod-group-spans-nodes"), ("b", "pod-group-spans-nodes"), ("c", "")]
)
def test_the_label_counts_if_one_of_the_pods_runs_in_the_pool_that_names_it(naming: str, code: str) -> None:
    items = world({CELL: "x"}, {CELL: "x"})
    for item in items[:3]:
        item["metadata"]["labels"]["own"] = item["metadata"]["name"]
    pools = [
        replace(ALL, name=name, everything=False, labels={"own": name}, group_labels=(CELL,) if name == naming else ())
        for name in "abc"
    ]
    plan = make_plan(build_cluster_model(cluster(*items)), pools, PlanningContext(now=NOW))
    reason = plan.pods.get("default/web-0")
    assert (reason.code.name if reason is not None else "") == code


@pytest.mark.parametrize(("pools", "codes"), [((), []), ((NAMES,), ["order-group-protected"])])
def test_an_order_leaves_them_too(pools: tuple[Pool, ...], codes: list[str]) -> None:
    model = build_cluster_model(cluster(*world({CELL: "x"}, {CELL: "x"})))
    plan = plan_order(model, ["a"], OrderRules(), NOW, pools=pools)
    assert [one.reason.code.name for one in plan.unmovable] == codes
