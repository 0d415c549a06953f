"""The terms of pods in a plan: windows, daily numbers, costs, and the ceilings of the pool."""

from dataclasses import replace

import pytest

from tests.cluster_of import ALL, NOW, Item, cluster, node, pod
from tests.compaction.plans import keeper, planned
from trimtab.cluster.disruption_terms import COST_ANNOTATION, PER_DAY_ANNOTATION, WINDOWS_ANNOTATION
from trimtab.cluster.pool import Pool
from trimtab.compaction.blockers import Blocked
from trimtab.compaction.candidates import PlanningContext
from trimtab.compaction.order.order_rules import OrderRules
from trimtab.compaction.order.ordered_evictions import OrderedEvictionChecker
from trimtab.compaction.plan_types import Observations, Plan
from trimtab.compaction.terms.term_ledger import EMPTY_LEDGER, NodeDelay, TermLedger

OPEN, CLOSED = "00:00-24:00", "mon 12:00-13:00"
"""Windows at `NOW`, a Saturday at midnight."""
HOUR = 3600


def windows(text: str) -> Item:
    return {WINDOWS_ANNOTATION: text}


def world(**annotations: str) -> list[Item]:
    """Node a with one pod that has these annotations, and b, which stays and has room."""
    return [node("a"), node("b"), keeper("k", "b", "10m"), pod("web-1", "a", annotations=annotations)]


def plan_with(items: list[Item], ledger: TermLedger = EMPTY_LEDGER, pool: Pool = ALL, **draining: str) -> Plan:
    observations = Observations(under_since=dict.fromkeys("abc", 0), terms=ledger, draining=draining)
    return planned(*items, pool=pool, now=PlanningContext(now=NOW, observations=observations))


def fate(items: list[Item], ledger: TermLedger = EMPTY_LEDGER, pool: Pool = ALL) -> str:
    plan = plan_with(items, ledger, pool)
    reason = plan.pods.get("default/web-1")
    return reason.code.name if reason is not None else "goes" if plan.all_steps else "stays"


@pytest.mark.parametrize(
    ("annotations", "code"),
    [
        (windows(OPEN), "goes"),
        (windows(CLOSED), "pod-outside-own-windows"),
        (windows("never"), "pod-terms-unreadable"),
        ({PER_DAY_ANNOTATION: "1"}, "goes"),
        ({PER_DAY_ANNOTATION: "0"}, "pod-terms-unreadable"),
        ({COST_ANNOTATION: "dear"}, "goes"),
    ],
)
def test_terms_keep_the_node_of_their_pod(annotations: Item, code: str) -> None:
    assert fate(world(**annotations)) == code


@pytest.mark.parametrize("annotations", [windows(CLOSED), windows("never"), {PER_DAY_ANNOTATION: "0"}])
def test_a_pool_with_a_ceiling_of_zero_ignores_them(annotations: Item) -> None:
    assert fate(world(**annotations), pool=replace(ALL, max_term_delay=0)) == "goes"


@pytest.mark.parametrize(
    ("since", "code"), [(23, "pod-outside-own-windows"), (25, "goes"), (49, "pod-outside-own-windows")]
)
def test_after_the_longest_delay_terms_do_not_count_for_as_long(since: int, code: str) -> None:
    ledger = TermLedger(delays={"a": NodeDelay(since=NOW - since * HOUR, seen=NOW)})
    assert fate(world(**windows(CLOSED)), ledger, replace(ALL, max_term_delay=24 * HOUR)) == code


def test_without_a_time_no_window_is_checked() -> None:
    plan = planned(*world(**windows(CLOSED)), now=PlanningContext())
    assert [step.node for step in plan.all_steps] == ["a"]


# ── daily numbers ────────────────────────────────────────────────────────
ONE_A_DAY = {PER_DAY_ANNOTATION: "1"}


@pytest.mark.parametrize(("age", "code"), [(23, "pod-disruptions-spent"), (25, "goes")])
def test_evictions_count_for_24_hours(age: int, code: str) -> None:
    ledger = TermLedger(disruptions={"ReplicaSet/default/web": (NOW - age * HOUR,)})
    assert fate(world(**ONE_A_DAY), ledger) == code


def test_a_rollout_begins_no_new_count() -> None:
    labels = {"pod-template-hash": "v2"}
    items = [node("a"), node("b"), keeper("k", "b", "10m")]
    items.append(pod("web-1", "a", app="web-v2", labels=labels, annotations=ONE_A_DAY))
    assert fate(items, TermLedger(disruptions={"Deployment/default/web": (NOW - HOUR,)})) == "pod-disruptions-spent"


def spread_out(per_day: str) -> list[Item]:
    """One pod of a workload on each of a and b; c has room for both."""
    annotations = {PER_DAY_ANNOTATION: per_day}
    return [
        *(node(name) for name in "abc"),
        keeper("k", "c", "10m"),
        pod("web-1", "a", "1", annotations=annotations),
        pod("web-2", "b", "1", annotations=annotations),
    ]


@pytest.mark.parametrize(("per_day", "count"), [("1", 1), ("2", 2)])
def test_one_plan_takes_no_more_than_the_day_has(per_day: str, count: int) -> None:
    assert len(plan_with(spread_out(per_day)).all_steps) == count


def test_what_a_drain_under_way_will_evict_counts() -> None:
    assert not plan_with(spread_out("1"), a="all").all_steps


# ── costs ────────────────────────────────────────────────────────────────
def twins(**costs: str) -> list[Item]:
    """Nodes a and b with one pod each, of which only the first one's terms differ; c has room for one of them."""
    return [
        *(node(name) for name in "ab"),
        node("c", "1100m"),
        keeper("k", "c", "10m"),
        *(
            pod(f"{name}pp-1", name, "1", annotations={COST_ANNOTATION: costs[name]} if name in costs else {})
            for name in "ab"
        ),
    ]


@pytest.mark.parametrize(("costs", "drained"), [({}, "a"), ({"a": "1"}, "b"), ({"b": "1"}, "a")])
def test_of_two_nodes_the_cheaper_one_is_drained(costs: dict[str, str], drained: str) -> None:
    assert [step.node for step in plan_with(twins(**costs)).all_steps] == [drained]


def test_a_pool_may_count_no_costs() -> None:
    plan = plan_with(twins(a="9"), pool=replace(ALL, max_term_cost=0))
    assert [step.node for step in plan.all_steps] == ["a"]


def test_a_cost_alone_keeps_no_node() -> None:
    plan = plan_with(world(**{COST_ANNOTATION: "1000"}), pool=replace(ALL, least_gain=1000))
    assert [step.node for step in plan.all_steps] == ["a"]


# ── orders ───────────────────────────────────────────────────────────────
@pytest.mark.parametrize(("overrides", "code"), [(False, "order-pod-protected"), (True, "order-against-own-terms")])
def test_an_order_may_override_them_and_says_so(overrides: bool, code: str) -> None:
    inventory = cluster(*world(**windows(CLOSED)))
    checker = OrderedEvictionChecker.for_order(inventory, NOW, OrderRules(overrides_protection=overrides))
    [mine] = [one for one in inventory.pods if one.name == "web-1"]
    verdict = checker.judge_ordered(mine)
    said = [verdict.reason] if isinstance(verdict, Blocked) else checker.list_warnings(mine)
    assert code in [reason.code.name for reason in said]
