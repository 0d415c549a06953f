"""A group of pods that live and die together is never split: in no plan, by no refusal, and by no death."""

from dataclasses import replace

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.cluster_of import ALL, NOW, Item, budget, cluster, node, pod
from tests.compactor.played import ACT, Played, run
from tests.compactor.test_group_leaders import led, moved
from trimtab.cluster.pool_values import GroupMode
from trimtab.compaction.candidates import PlanningContext
from trimtab.compaction.plan import make_plan
from trimtab.scheduling.cluster_model import build_cluster_model

LABEL = "leaderworkerset.sigs.k8s.io/group-key"
NAMED = ("team/cell", "team/shard")
"""Labels that the pool names. A pod may have both, and a mark, so that groups overlap."""
NODES = ("a", "b", "c", "d", "e")


@st.composite
def drawn_items(draw: st.DrawFn) -> list[Item]:
    """Five nodes; pods of which some are of a group, some are under a budget, some must stay, and some do not run."""
    items: list[Item] = [node(name, draw(st.sampled_from(("4", "8")))) for name in NODES]
    for number in range(draw(st.integers(1, 5))):
        app = f"app{number}"
        places = draw(st.lists(st.sampled_from(NODES), min_size=1, max_size=4))
        group = draw(st.sampled_from(("", "one", "two", app)))
        named = {key: draw(st.sampled_from(("x", "y"))) for key in NAMED if draw(st.integers(0, 3)) == 0}
        kept = {"trimtab.dev/do-not-disrupt": "true"} if draw(st.integers(0, 7)) == 0 else {}
        items += [
            pod(f"{app}-{n}", place, "500m", labels=named | ({LABEL: group} if group else {}), annotations=kept)
            for n, place in enumerate(places)
        ]
        if draw(st.booleans()):
            items.append(budget(app, draw(st.integers(0, 4))))
    return items


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(drawn_items())
def test_no_plan_splits_a_group_or_moves_one_twice(items: list[Item]) -> None:
    pool = replace(ALL, groups=GroupMode.MOVE, group_labels=NAMED)
    inventory = cluster(*items)
    plan = make_plan(build_cluster_model(inventory), [pool], PlanningContext(now=NOW))
    members: dict[str, set[str]] = {}
    for one in inventory.pods:
        for key in (LABEL, *NAMED):
            if value := one.requirements.labels.get(key):
                members.setdefault(f"{key}={value}", set()).add(one.key)
    for step in plan.all_steps:
        evicted = [*(move.pod for move in step.moves), *(one.pod for one in step.companions)]
        assert len(evicted) == len(set(evicted))
        for group in members.values():
            assert not group & set(evicted) or group <= set(evicted)
    every = [one for step in plan.all_steps for one in [*step.moves, *step.companions]]
    assert len(every) == len({one.uid for one in every})


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(st.integers(0, 25), st.sampled_from(("killed", "lost", "failed", "changed")), max_size=4))
def test_whatever_happens_to_the_process_all_of_a_group_follow_or_none(faults: dict[int, str]) -> None:
    played = Played().with_nodes("n1", "n2", "n3")
    played.with_app("web", "n1", "n2", "n2", cpu="500m", labels={LABEL: "train"})
    played.with_app("big", "n2", "n3", cpu="1", annotations={"trimtab.dev/do-not-disrupt": "true"})
    played.pools, played.faults = (replace(ACT, groups=GroupMode.MOVE),), faults
    run(played, 150)
    first = {item["metadata"]["name"] for item in played.pods.values()} & {"web-0", "web-1", "web-2"}
    assert len(first) in (0, 3)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(st.integers(0, 25), st.sampled_from(("killed", "lost", "failed", "changed")), max_size=4))
def test_the_same_holds_where_the_others_end_with_their_leader(faults: dict[int, str]) -> None:
    played = led()
    played.faults = faults
    run(played, 150)
    assert len(moved(played)) in (0, 3)
