"""When does one new node take the place of others, and when not? Node a is large and dear, the group `small` gives
nodes of a quarter of its size, of which one is there and full."""

from dataclasses import replace
from typing import Any

import pytest

from tests.cluster_of import HOST, ZONE, Item, apart, budget, cluster, pod, spread
from tests.compaction.replace.dear_nodes import BIG, KEPT, LABEL, SMALL, big, machine, small
from trimtab.cluster.cluster_autoscaler import Autoscaler, NodeGroupStatus
from trimtab.cluster.pool import Headroom, Pool
from trimtab.cluster.pool_values import GroupMode, ReplaceAcross, ReplaceMode
from trimtab.compaction.candidates import PlanningContext
from trimtab.compaction.replace.plan_replacements import ReplacementPlan, plan_replacements


def advised(*items: Item, pool: Pool = BIG, groups: tuple[NodeGroupStatus, ...] = ()) -> ReplacementPlan:
    context = PlanningContext(autoscaler=Autoscaler(groups=groups) if groups else None)
    return plan_replacements(cluster(*items), [pool, SMALL], context)


def sets(plan: ReplacementPlan) -> list[tuple[str, ...]]:
    return [one.nodes for one in plan.replacements]


PODS = (pod("web-0", "a", "1", "2Gi"), pod("web-1", "a", "2", "2Gi"))


def test_a_large_node_is_replaced_by_a_small_one() -> None:
    [one] = advised(big(), *small(), *PODS).replacements
    assert (one.nodes, one.group, one.zone, one.label) == (("a",), "small", "z1", (LABEL, "small"))
    assert (one.saves, one.price) == (600_000, 200_000)
    assert {move.pod: move.target for move in one.moves} == dict.fromkeys(
        ("default/web-0", "default/web-1"), one.new_node
    )


def test_two_nodes_are_replaced_by_one() -> None:
    plan = advised(big(), big("b"), *small(), pod("web-0", "a", "2"), pod("api-0", "b", "1500m"))
    assert sets(plan) == [("a", "b")]
    assert plan.total_savings == 1_400_000


def test_a_new_node_replaces_at_most_four() -> None:
    names = "abcdef"
    plan = advised(*(big(name) for name in names), *small(), *(pod(f"{name}x-0", name, "500m") for name in names))
    assert sorted(map(len, sets(plan))) == [2, 4]


def test_no_node_is_replaced_by_one_of_its_own_group() -> None:
    assert sets(advised(big(), big("b"), pod("web-0", "a", "3"), pod("api-0", "b", "3"))) == []


def test_each_replacement_has_a_node_of_its_own() -> None:
    plan = advised(big(), big("b"), *small(), pod("web-0", "a", "3"), pod("api-0", "b", "3"))
    assert sorted(sets(plan)) == [("a",), ("b",)]
    assert len({one.new_node for one in plan.replacements}) == 2


DAEMON = pod("agent-s", "s", "500m", owner="DaemonSet", app="agent", ports=[{"hostPort": 80}])


@pytest.mark.parametrize(
    "items",
    [
        pytest.param([big(), *small(), pod("web-0", "a", "3600m"), DAEMON], id="a daemon takes the room"),
        pytest.param([big(), *small(), pod("web-0", "a", "5")], id="too large"),
        pytest.param([big(labels={ZONE: "z2"}), *small(), *PODS], id="another zone"),
        pytest.param([big(labels={"karpenter.sh/capacity-type": "spot"}), *small(), *PODS], id="spot"),
        pytest.param([big(labels={"kubernetes.io/arch": "arm64"}), *small(), *PODS], id="another architecture"),
        pytest.param([big(), *small(800_000), *PODS], id="not cheaper"),
        pytest.param([big(), *small(taints=[{"key": "x", "effect": "NoSchedule"}]), *PODS], id="a taint"),
        pytest.param(
            [big(), *small(), pod("web-0", "a", spec={"nodeSelector": {LABEL: "big"}})], id="only on its own group"
        ),
        pytest.param([big(), *small(), pod("web-0", "a", spec={"nodeSelector": {HOST: "s"}})], id="only on one node"),
        pytest.param([big(), *small(), *PODS, budget("web", 0)], id="a budget allows none"),
        pytest.param([big(), *small(), *PODS, pod("db-0", "a", annotations=KEPT)], id="a pod must stay"),
        pytest.param([big(annotations=KEPT), *small(), *PODS], id="the node is kept"),
        pytest.param(
            [big(), *small(), pod("web-0", "a", ports=[{"hostPort": 80}]), DAEMON], id="a daemon has the port"
        ),
        pytest.param(
            [big(), *small(), *(pod(f"web-{n}", "a", spec=apart("web")) for n in (0, 1))], id="pods keep apart"
        ),
        pytest.param(
            [big(), *small(), *(pod(f"web-{n}", "a", spec=spread("web")) for n in (0, 1))], id="pods are spread"
        ),
        pytest.param(
            [big(), *small(), pod("web-0", "a", extra={"nvidia.com/gpu": "1"})], id="a device that the new node lacks"
        ),
    ],
)
def test_what_forbids_a_replacement(items: list[Item]) -> None:
    assert sets(advised(*items)) == []


@pytest.mark.parametrize(
    "pool",
    [
        replace(BIG, replace=ReplaceMode.OFF),
        replace(BIG, enabled=False),
        replace(BIG, under={"cpu": 10}),
        replace(BIG, min_nodes=1),
        replace(BIG, least_gain=1_000),
    ],
)
def test_the_pools_settings_are_obeyed(pool: Pool) -> None:
    assert sets(advised(big(), *small(), *PODS, pool=pool)) == []


ARCH = "kubernetes.io/arch"
ELSEWHERE: dict[ReplaceAcross, dict[str, str]] = {
    ReplaceAcross.ZONES: {ZONE: "z2"},
    ReplaceAcross.CAPACITY_TYPES: {"karpenter.sh/capacity-type": "spot"},
    ReplaceAcross.ARCHITECTURES: {ARCH: "arm64"},
}


BOTH = {"key": ARCH, "operator": "In", "values": ["amd64", "arm64"]}
ANY_ARCH = {
    "affinity": {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": [BOTH]}]}
        }
    }
}


@pytest.mark.parametrize("across", ReplaceAcross)
def test_what_the_pool_lets_change_may_change_and_is_named(across: ReplaceAcross) -> None:
    def changes_with(*allowed: ReplaceAcross) -> list[tuple[ReplaceAcross, ...]]:
        pool = replace(BIG, replace_across=frozenset(allowed))
        return [one.changes for one in advised(*items, pod("web-0", "a", "1", spec=ANY_ARCH), pool=pool).replacements]

    items = (big(labels={ARCH: "amd64"}), *small(labels={ARCH: "amd64"} | ELSEWHERE[across]))
    assert changes_with() == []
    assert changes_with(*(set(ReplaceAcross) - {across})) == []
    assert changes_with(across) == [(across,)]


def test_a_pod_that_does_not_show_that_it_runs_on_both_architectures_stays() -> None:
    items = (big(labels={ARCH: "amd64"}), *small(labels={ARCH: "arm64"}), *PODS)
    assert sets(advised(*items, pool=replace(BIG, replace_across=frozenset({ReplaceAcross.ARCHITECTURES})))) == []


def test_nodes_of_several_zones_are_replaced_together_if_the_zone_may_change() -> None:
    items = (big(), big("b", labels={ZONE: "z2"}), *small(), pod("web-0", "a"), pod("web-1", "b"))
    plan = advised(*items, pool=replace(BIG, replace_across=frozenset({ReplaceAcross.ZONES})))
    assert sets(plan) == [("a", "b")]


FULL = replace(BIG, under={"cpu": 10}, under_count=2)
"""By its threshold, node a is full, and only one node."""


@pytest.mark.parametrize(("labels", "expected"), [({"karpenter.sh/capacity-type": "spot"}, [("a",)]), ({}, [])])
def test_a_full_node_is_replaced_only_by_one_that_differs_in_what_may_change(
    labels: dict[str, str], expected: list[tuple[str, ...]]
) -> None:
    items = (big(), *small(labels=labels), *PODS)
    assert sets(advised(*items, pool=FULL)) == []
    assert (
        sets(advised(*items, pool=replace(FULL, replace_across=frozenset({ReplaceAcross.CAPACITY_TYPES})))) == expected
    )


@pytest.mark.parametrize(("memory", "expected"), [(5, [("a",)]), (4, [])])
def test_a_node_that_is_full_in_one_resource_alone_is_replaced(memory: int, expected: list[tuple[str, ...]]) -> None:
    """It requests 19 % of its cpu, and 6 % of its memory."""
    items = (big(), *small(), *PODS)
    assert sets(advised(*items, pool=replace(FULL, under={"cpu": 10, "memory": memory + 2}))) == expected


def test_a_full_node_is_kept_by_what_else_keeps_it() -> None:
    pool = replace(FULL, replace_across=frozenset({ReplaceAcross.CAPACITY_TYPES}))
    spot = small(labels={"karpenter.sh/capacity-type": "spot"})
    assert sets(advised(big(annotations=KEPT), *spot, *PODS, pool=pool)) == []
    assert sets(advised(big(), *spot, *PODS, pool=replace(pool, least_gain=1_000))) == []


def test_a_selector_of_the_zone_still_holds() -> None:
    items = (big(labels={ZONE: "z2"}), *small(), pod("web-0", "a", spec={"nodeSelector": {ZONE: "z2"}}))
    assert sets(advised(*items, pool=replace(BIG, replace_across=frozenset({ReplaceAcross.ZONES})))) == []


@pytest.mark.parametrize(("percent", "expected"), [(20, [("a",)]), (30, [])])
def test_headroom_is_kept_on_what_is_there_afterwards(percent: int, expected: list[tuple[str, ...]]) -> None:
    everything = replace(BIG, name="all", everything=True, headroom=Headroom(percent=percent))
    items = cluster(big(), *small(), pod("web-0", "a", "2500m", "2Gi"))
    plan = plan_replacements(items, [everything])
    assert sets(plan) == expected


def group(name: str, **status: Any) -> NodeGroupStatus:
    return NodeGroupStatus(**{"name": name, "healthy": True, "scale_up": "NoActivity", **status})


OTHER = group("big")


@pytest.mark.parametrize(
    ("status", "items", "code"),
    [
        (group("small", max_size=5), small(), None),
        (group("small", max_size=1), small(), "replace-group-at-maximum"),
        (group("small", target=4, max_size=4), small(), "replace-group-at-maximum"),
        (group("small", scale_up="Backoff"), small(), "replace-group-in-back-off"),
        (group("small", healthy=False), small(), "replace-group-in-back-off"),
        (group("small"), small(ready=False), "replace-group-without-node"),
        (group("small"), (), "replace-group-without-node"),
        (group("small"), small(None), "replace-price-unknown"),
        (group("small"), small(taints=[{"key": "trimtab.dev/legacy", "effect": "NoSchedule"}]), "replace-legacy-group"),
        (group("small"), small(labels={LABEL: "", "x": "small"}), None),
        (
            group("small"),
            small(labels={LABEL: "", "x": "other"}, provider="aws:///z1/small"),
            "replace-group-without-label",
        ),
    ],
)
def test_why_a_group_gives_no_node(status: NodeGroupStatus, items: tuple[Item, ...], code: str | None) -> None:
    plan = advised(big(), *items, *PODS, groups=(OTHER, status))
    refusal = plan.group_refusals.get("small")
    assert (refusal.code.name if refusal else None, sets(plan)) == (code, [("a",)] if code is None else [])


@pytest.mark.parametrize("other", [{"karpenter.sh/capacity-type": "spot"}, {ARCH: "arm64"}])
def test_a_group_of_several_kinds_is_not_compared(other: dict[str, str]) -> None:
    """Of which kind its next node is, nothing shows."""
    second = machine("t", "small", "4", "16Gi", 200_000, labels=other), pod("full-1", "t", "3500m", annotations=KEPT)
    plan = advised(big(), *small(), *second, *PODS)
    assert (sets(plan), plan.group_refusals["small"].code.name) == ([], "replace-group-of-several-kinds")


@pytest.mark.parametrize(("most", "expected"), [("2", []), ("3", [("a",)]), ("0", [("a",)])])
def test_a_cluster_gets_no_more_nodes_than_its_autoscaler_allows(most: str, expected: list[tuple[str, ...]]) -> None:
    groups = (OTHER, group("small", max_size=5))
    autoscaler = Autoscaler(groups=groups, flags={"max-nodes-total": most})
    plan = plan_replacements(cluster(big(), *small(), *PODS), [BIG, SMALL], PlanningContext(autoscaler=autoscaler))
    assert sets(plan) == expected


@pytest.mark.parametrize(("cpu", "expected"), [("1500m", []), ("100m", [("a",)])])
def test_the_largest_pod_of_a_daemon_set_takes_its_room(cpu: str, expected: list[tuple[str, ...]]) -> None:
    """As during a rollout of the DaemonSet."""
    second = machine("t", "small", "4", "16Gi", 200_000), pod("full-1", "t", "1", annotations=KEPT)
    daemons = [pod("d-0", "s", "100m", owner="DaemonSet"), pod("d-1", "t", cpu, owner="DaemonSet")]
    assert sets(advised(big(), *small(), *second, *daemons, pod("web-0", "a", "3500m"))) == expected


@pytest.mark.parametrize(("rack", "expected"), [("r1", [("a",)]), ("r2", [])])
def test_a_label_that_differs_between_nodes_of_one_group_is_not_known_of_a_new_node(
    rack: str, expected: list[tuple[str, ...]]
) -> None:
    """Nodes a and c are of one group. If both are in rack r1, so is the new node, like node s."""
    nodes = [big(labels={"rack": "r1"}), big("c", labels={"rack": rack}, annotations=KEPT)]
    pinned = pod("web-0", "a", "1", spec={"nodeSelector": {"rack": "r1"}})
    assert sets(advised(*nodes, *small(labels={"rack": "r1"}), pod("full-1", "c", "15", annotations=KEPT), pinned)) == (
        expected
    )


PREFERRED = {"podAffinityTerm": {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": HOST}, "weight": 1}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, [("a", "b")]),
        (spread("web", ZONE, whenUnsatisfiable="ScheduleAnyway"), [("a", "b")]),
        (spread("web", whenUnsatisfiable="ScheduleAnyway"), [("a",), ("b",)]),
        (
            {"affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [PREFERRED]}}},
            [("a",), ("b",)],
        ),
    ],
)
def test_replicas_that_would_rather_be_apart_are_not_brought_together(
    spec: Item, expected: list[tuple[str, ...]]
) -> None:
    pods = [pod(f"web-{on}", on, "1", spec=spec) for on in "ab"]
    assert sorted(sets(advised(big(), big("b"), *small(), *pods))) == expected


def test_a_group_gets_no_more_nodes_than_its_maximum_allows() -> None:
    pods = [pod(f"{name}x-0", name, "3") for name in "abc"]
    plan = advised(*map(big, "abc"), *small(), *pods, groups=(OTHER, group("small", target=1, max_size=3)))
    assert len(plan.replacements) == 2


def test_more_new_nodes_are_needed_than_one_model_has() -> None:
    names = [f"n{number:02}" for number in range(20)]
    plan = advised(*map(big, names), *small(), *(pod(f"{name}x-0", name, "3") for name in names))
    assert len(plan.replacements) == 20
    assert len({one.new_node for one in plan.replacements}) == 20
    assert [node.name for node in plan.after.nodes if node.name in names] == []


def test_pods_of_a_group_on_other_nodes_are_evicted_and_count() -> None:
    """Node b stays, and its pod of the group is evicted with that of node a."""
    gang = {"scheduling.x-k8s.io/pod-group": "gang"}
    items = [big(), big("b"), *small(), pod("keep-0", "b", "10", annotations=KEPT)]
    items += [pod("gang-0", "a", "1"), pod("gang-1", "b", "1")]
    for item in items[-2:]:
        item["metadata"]["labels"] |= gang
    moving = replace(BIG, groups=GroupMode.MOVE)
    [one] = advised(*items, pool=moving).replacements
    assert [each.pod for each in (*one.moves, *one.companions)] == ["default/gang-0", "default/gang-1"]
    # The replacement saves three quarters of a node with two evictions, not with one.
    assert len(advised(*items, pool=replace(moving, least_gain=375)).replacements) == 1
    assert not advised(*items, pool=replace(moving, least_gain=400)).replacements
