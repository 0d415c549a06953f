"""Whatever tenants write: a higher cost moves no node forward, and windows and numbers keep none beyond the ceiling."""

import random
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cluster_of import ALL, NOW, ZONE, Item, apart, budget, cluster, node, pod, spread
from trimtab.cluster.disruption_terms import COST_ANNOTATION, PER_DAY_ANNOTATION, WINDOWS_ANNOTATION
from trimtab.compaction.candidates import PlanningContext
from trimtab.compaction.plan import make_plan
from trimtab.compaction.plan_types import Observations
from trimtab.compaction.search.drain_order import arrange_waves, by_evictions, choose_first_node, defer_dear_nodes
from trimtab.compaction.terms.term_ledger import TermLedger, update_delays
from trimtab.scheduling.cluster_model import build_cluster_model

NODES = tuple(range(7))
NUMBERS = st.integers(0, 3)


@st.composite
def drawn_orders(draw: st.DrawFn) -> dict[str, Any]:
    """Nodes with pods, savings, budgets and costs."""
    return {
        "loads": [[0] * draw(st.integers(0, 5)) for _ in NODES],
        "saves": {node: draw(st.integers(1, 4)) for node in NODES},
        "needs": {node: draw(st.dictionaries(st.integers(0, 2), st.integers(1, 3))) for node in NODES},
        "allowed": [draw(st.integers(1, 3)) for _ in range(3)],
        "costs": {node: draw(st.integers(0, 6)) for node in NODES},
    }


def places(orders: Mapping[str, Any], costs: Mapping[int, int]) -> dict[int, tuple[int, int]]:
    """Node → (its wave, its place in the order)."""
    loads, saves, needs, allowed = (orders[key] for key in ("loads", "saves", "needs", "allowed"))
    dear = {node: cost for node, cost in costs.items() if cost}
    plain = by_evictions(NODES, loads, saves)
    value = {node: (len(loads[node]), saves[node]) for node in NODES}
    chosen = choose_first_node(plain, needs, allowed, value)
    order = defer_dear_nodes(plain, chosen, dear, by_evictions(NODES, loads, saves, dear)) if dear else chosen
    waves = arrange_waves(order, needs, allowed)
    return {node: (number, order.index(node)) for number, wave in enumerate(waves) for node in wave}


@settings(max_examples=400)
@given(drawn_orders(), st.sampled_from(NODES), st.integers(1, 30))
def test_a_higher_cost_never_moves_a_node_forward(orders: dict[str, Any], node: int, more: int) -> None:
    before, costs = places(orders, orders["costs"]), {**orders["costs"], node: orders["costs"][node] + more}
    after = places(orders, costs)
    assert after[node][0] >= before[node][0]
    assert after[node][1] >= before[node][1]


def packed_items(draw: random.Random) -> list[Item]:
    """Up to ten nodes, so full that not all of them can be drained, and pods of which some state a cost."""
    names = [f"n{number}" for number in range(draw.randint(4, 10))]
    items = [node(name, draw.choice(["2", "4", "4", "8"]), labels={ZONE: f"z{n % 2}"}) for n, name in enumerate(names)]
    for number in range(draw.randint(3, 9)):
        app, kind = f"w{number}", draw.choice(["", "", "", "apart", "spread"])
        spec = apart(app) if kind == "apart" else spread(app) if kind == "spread" else {}
        for replica in range(draw.randint(1, 4)):
            stated = {COST_ANNOTATION: str(draw.randint(0, 5))} if draw.random() < 0.3 else {}
            cpu = draw.choice(["100m", "500m", "1", "1500m"])
            items.append(pod(f"{app}-{replica}", draw.choice(names), cpu, spec=spec, annotations=stated))
        if draw.random() < 0.6:
            items.append(budget(app, draw.randint(1, 2)))
    return items


def wave_numbers(items: list[Item]) -> dict[str, int]:
    pool = replace(ALL, max_term_cost=1000)
    plan = make_plan(build_cluster_model(cluster(*items)), [pool], PlanningContext(now=NOW))
    return {step.node: number for number, wave in enumerate(plan.waves) for step in wave.steps}


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 20))
def test_a_higher_cost_never_puts_the_node_of_its_pod_into_an_earlier_wave(seed: int, more: int) -> None:
    draw = random.Random(seed)
    items = packed_items(draw)
    dearer = draw.choice([item for item in items if item["kind"] == "Pod"])
    before, name = wave_numbers(items), dearer["spec"]["nodeName"]
    cost = int(dearer["metadata"]["annotations"].get(COST_ANNOTATION, 0))
    dearer["metadata"]["annotations"] = {COST_ANNOTATION: str(cost + more)}
    after = wave_numbers(items)
    assert name not in after or (name in before and after[name] >= before[name])


# ── how long windows and numbers keep a node ─────────────────────────────
ROUND, CEILING = 60, 3 * 3600


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.integers(1, 90)), min_size=1, max_size=60))
def test_whatever_is_written_terms_keep_a_node_no_longer_than_the_ceiling_without_an_hour_of_chances(
    writes: list[tuple[bool, int]],
) -> None:
    """(whether the terms of the pods forbid the drain, for so many rounds), one after the other."""
    now, kept_since, chances = NOW, None, 0
    ledger = TermLedger()
    for forbids, rounds in writes:
        for _ in range(rounds):
            is_kept = forbids and ledger.are_terms_in_force("a", now, CEILING)
            if not is_kept:
                chances += ROUND
            if is_kept and (kept_since is None or chances >= 3600):
                kept_since, chances = now, 0
            assert not is_kept or kept_since is None or now - kept_since <= CEILING + ROUND
            ledger = TermLedger(delays=update_delays(ledger.delays, {"a": is_kept}, now, CEILING))
            now += ROUND


TEXTS = st.one_of(st.text(max_size=20), st.sampled_from(["mon 12:00-13:00", "00:00-24:00", "0", "1", "99999"]))


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.dictionaries(st.sampled_from([COST_ANNOTATION, PER_DAY_ANNOTATION, WINDOWS_ANNOTATION]), TEXTS), max_size=4
    )
)
def test_what_a_tenant_writes_keeps_no_node_without_pods_of_its_own(texts: list[dict[str, str]]) -> None:
    """Nodes a and b belong to others; every pod of the tenant is on c. The moves of the others stay as they are."""
    others = [node(name, "4") for name in "abcd"]
    others += [
        pod("one-1", "a"),
        pod("two-1", "b"),
        pod("stay-1", "d", annotations={"trimtab.dev/do-not-disrupt": "true"}),
    ]
    mine = [pod(f"mine-{number}", "c", "100m", namespace="tenant", annotations=one) for number, one in enumerate(texts)]
    bare = [pod(f"mine-{number}", "c", "100m", namespace="tenant") for number in range(len(texts))]
    context = PlanningContext(now=NOW, observations=Observations(under_since=dict.fromkeys("abcd", 0)))
    plans = [make_plan(build_cluster_model(cluster(*others, *pods)), [ALL], context) for pods in (mine, bare)]
    stated, unstated = ({step.node for step in plan.all_steps} for plan in plans)
    assert stated - {"c"} == unstated - {"c"} == {"a", "b"}
