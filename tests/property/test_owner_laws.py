"""Laws of identity, over clusters with strange owners: an object is known by its group, kind, namespace and name."""

from typing import Any

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.cluster_of import ALL, NOW, SAFE, Item, cluster, node
from tests.property.drawn_owners import SAME_GROUP, counted, foreign_copy, strange_workloads
from trimtab.cluster.snapshot import build_snapshot
from trimtab.cluster.yaml_documents import Document
from trimtab.compaction.candidates import PlanningContext
from trimtab.compaction.plan import make_plan
from trimtab.compaction.plan_types import Plan
from trimtab.policy.cluster_facts import from_snapshot
from trimtab.scheduling.cluster_model import build_cluster_model

EASY = settings(max_examples=3 * settings().max_examples, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@st.composite
def worlds(draw: st.DrawFn) -> list[Item]:
    names = [f"n{n}" for n in range(draw(st.integers(2, 6)))]
    items = [node(name) for name in names]
    for number in range(draw(st.integers(1, 5))):
        items += draw(strange_workloads(f"w{number}", names))
    return items


def planned(items: list[Item]) -> Plan:
    return make_plan(build_cluster_model(cluster(*items)), [ALL], PlanningContext(now=NOW))


def is_pod(item: Item) -> bool:
    """Returns whether the item is a pod of Kubernetes: another group may have a kind of this name."""
    return (item["apiVersion"], item["kind"]) == ("v1", "Pod")


def answers(plan: Plan) -> tuple[Any, ...]:
    """Everything that the plan says of nodes and pods."""
    moves = [(move.pod, move.source, move.target) for move in plan.all_moves]
    return moves, [step.node for step in plan.all_steps], plan.pods, plan.refusals


@EASY
@given(worlds())
def test_objects_of_other_groups_change_nothing(items: list[Item]) -> None:
    foreign = [foreign_copy(item) for item in items if not item["apiVersion"].startswith("example.dev")]
    assert answers(planned([*items, *foreign])) == answers(planned(items))


@EASY
@given(worlds())
def test_objects_of_other_groups_change_no_fact_of_admission(items: list[Item]) -> None:
    foreign = [foreign_copy(item) for item in items if not item["apiVersion"].startswith("example.dev")]
    assert facts_of([*items, *foreign]) == facts_of(items)


def facts_of(items: list[Item]) -> Any:
    documents = [Document(file="test", index=number, value=item) for number, item in enumerate(items)]
    return from_snapshot(build_snapshot(documents).snapshot)


@st.composite
def worlds_in_two_versions(draw: st.DrawFn) -> tuple[list[Item], list[Item]]:
    """A world, and the same one in which references name other versions of the same groups, or none."""
    items = draw(worlds())
    return items, [draw(other_versions(item)) for item in items]


@st.composite
def other_versions(draw: st.DrawFn, item: Item) -> Item:
    references = []
    for reference in item["metadata"].get("ownerReferences", []):
        versions = SAME_GROUP.get(reference["kind"], ())
        if reference.get("apiVersion", "") in versions:
            version = draw(st.sampled_from(versions))
            bare = {key: value for key, value in reference.items() if key != "apiVersion"}
            reference = {"apiVersion": version, **bare} if version else bare
        references.append(reference)
    return {**item, "metadata": {**item["metadata"], "ownerReferences": references}} if references else item


@EASY
@given(worlds_in_two_versions())
def test_the_versions_of_a_group_are_one_kind(both: tuple[list[Item], list[Item]]) -> None:
    one, other = both
    assert answers(planned(one)) == answers(planned(other))


def owner_of(item: Item) -> Item:
    references: list[Item] = item["metadata"].get("ownerReferences", [])
    return references[0] if references else {}


@EASY
@given(worlds())
def test_a_pod_of_an_owner_of_another_group_moves_only_if_it_is_safe_to_evict(items: list[Item]) -> None:
    moved = {move.pod for move in planned(items).all_moves}
    for item in items:
        version = owner_of(item).get("apiVersion", "")
        if is_pod(item) and "." in version and f"default/{item['metadata']['name']}" in moved:
            assert item["metadata"]["annotations"].get(SAFE) == "true"


@EASY
@given(worlds())
@example([node("n0"), counted("Pod", "example.dev/v1", "w0", 1, 1)])
def test_the_pods_of_a_leader_move_only_from_one_node_and_all_together(items: list[Item]) -> None:
    """An independent reading: a pod `W-0-N` ends with the pod `W-0`."""
    moved = {move.pod for move in planned(items).all_moves}
    places = {item["metadata"]["name"]: item["spec"]["nodeName"] for item in items if is_pod(item)}
    led = {tuple(name.split("-")[:2]) for name in places if name.count("-") == 2}
    for app, number in led:
        group = [name for name in places if name == f"{app}-{number}" or name.startswith(f"{app}-{number}-")]
        if len({places[name] for name in group}) > 1:
            assert moved.isdisjoint(f"default/{name}" for name in group)


@EASY
@given(worlds())
def test_no_reason_says_that_an_owner_of_another_group_is_missing_or_not_whole(items: list[Item]) -> None:
    reasons = planned(items).pods
    foreign = {f"default/{i['metadata']['name']}" for i in items if "." in owner_of(i).get("apiVersion", "")}
    codes = {reasons[name].code.name for name in foreign & reasons.keys()}
    assert codes.isdisjoint({"owner-missing", "owner-not-whole", "single-replica", "job-running"})
