"""Which resizes empty which node?"""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.bench import verify
from tests.cluster_of import ALL, NOW, cluster, node, pod
from tests.compaction.plans import keeper
from tests.compaction.resize.running import shrinks
from trimtab.compaction.candidates import PlanningContext
from trimtab.compaction.plan import make_plan
from trimtab.compaction.resize.plan_resizes import ResizePlan, plan_with_resizes, with_resized_requests
from trimtab.compaction.resize.types import ResizeProposal
from trimtab.scheduling.cluster_model import build_cluster_model

AT = PlanningContext(now=NOW)


def planned(items: list[dict[str, Any]], *proposals: ResizeProposal) -> ResizePlan:
    return plan_with_resizes(cluster(*items), [ALL], proposals, AT)


def test_a_resize_that_frees_a_node_is_planned_before_its_moves():
    items = [node("a", cpu="1"), node("b", cpu="1"), pod("x-1", "a", "600m"), keeper("k-1", "b", "500m")]
    resize_plan = planned(items, shrinks("k-1", "500m", "300m", node="b"))
    assert not resize_plan.without.all_steps
    assert [step.node for step in resize_plan.plan.all_steps] == ["a"]
    assert [proposal.pod for proposal in resize_plan.resizes_by_node["a"]] == ["default/k-1"]


def test_a_resize_that_makes_no_difference_is_not_planned():
    items = [
        node("a", cpu="1"),
        node("b", cpu="1"),
        node("c", cpu="1"),
        pod("x-1", "a", "600m"),
        keeper("k-1", "b", "500m"),
        keeper("m-1", "b", "50m"),
        keeper("n-1", "c", "900m"),
    ]
    resize_plan = planned(
        items,
        shrinks("k-1", "500m", "300m", node="b"),
        shrinks("m-1", "50m", "40m", node="b"),
        shrinks("n-1", "900m", "800m", node="c"),
    )
    assert [proposal.pod for proposal in resize_plan.resizes] == ["default/k-1"]


def test_a_pod_that_moves_may_shrink_first():
    items = [node("a", cpu="1"), node("b", cpu="1"), pod("x-1", "a", "600m"), keeper("k-1", "b", "500m")]
    resize_plan = planned(items, shrinks("x-1", "600m", "400m"))
    assert [proposal.pod for proposal in resize_plan.resizes_by_node["a"]] == ["default/x-1"]


def test_without_a_gain_nothing_is_resized():
    items = [node("a", cpu="1"), node("b", cpu="1"), pod("x-1", "a", "600m"), keeper("k-1", "b", "500m")]
    resize_plan = planned(items, shrinks("k-1", "500m", "450m", node="b"))
    assert resize_plan.plan is resize_plan.without
    assert not resize_plan.resizes


def test_pods_that_grow_take_no_part():
    items = [node("a", cpu="1"), node("b", cpu="1"), pod("x-1", "a", "600m"), keeper("k-1", "b", "500m")]
    assert not planned(items, shrinks("k-1", "500m", "700m", node="b")).resizes


sizes = st.integers(min_value=50, max_value=700)


@given(st.lists(st.tuples(st.integers(0, 4), sizes, sizes, st.booleans()), min_size=1, max_size=14))
def test_the_named_resizes_and_moves_empty_every_promised_node(drawn: list[tuple[int, int, int, bool]]) -> None:
    """Checked by a walk through all states that shares no code with the planner."""
    items, used, proposals = [node(f"n{number}", cpu="1") for number in range(5)], [0] * 5, list[ResizeProposal]()
    for number, (on, before, after, stays) in enumerate(drawn):
        if used[on] + before > 1000:
            continue
        used[on] += before
        name = f"p{number}-1"
        items.append((keeper if stays else pod)(name, f"n{on}", f"{before}m"))
        if after < before:
            proposals.append(shrinks(name, f"{before}m", f"{after}m", node=f"n{on}"))
    resize_plan = plan_with_resizes(cluster(*items), [ALL], proposals, AT)
    after_of = {proposal.pod: proposal.changes[0].after for proposal in resize_plan.resizes}
    resized = [_with_cpu(item, after_of.get(f"default/{item['metadata']['name']}")) for item in items]
    waves = [
        [(step.node, [(m.pod, m.source, m.target, m.turn) for m in step.moves]) for step in wave.steps]
        for wave in resize_plan.plan.waves
    ]
    verify.verify(resized, waves)
    assert resize_plan.plan.total_savings >= resize_plan.without.total_savings


def _with_cpu(item: dict[str, Any], cpu: str | None) -> dict[str, Any]:
    if item["kind"] != "Pod" or cpu is None:
        return item
    container = {**item["spec"]["containers"][0], "resources": {"requests": {"cpu": cpu}}}
    return {**item, "spec": {**item["spec"], "containers": [container]}}


def test_pods_that_shrink_alike_stay_alike():
    items = [node("a"), pod("x-1", "a", "600m", app="x"), pod("x-2", "a", "600m", app="x")]
    proposals = [shrinks(f"x-{number}", "600m", "400m") for number in (1, 2)]
    one, other = with_resized_requests(cluster(*items), proposals).pods
    assert one.requirements is other.requirements
    assert one.likeness == other.likeness >= 0
    assert one.requirements.requests == {"cpu": 400}
    assert not make_plan(build_cluster_model(cluster(*items)), [ALL], AT).all_steps
