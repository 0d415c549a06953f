"""The next step of a drain, by what is seen in the cluster and nothing else."""

from dataclasses import replace
from typing import Any

import pytest

from tests.build import owner_key
from tests.cluster_of import ALL, HOST, NOW, Item, budget, cluster, node, pod
from tests.reasons import assert_reason, has_facts
from trimtab.cluster.cluster_autoscaler import Autoscaler, NodeGroupStatus, autoscaler_from_flags
from trimtab.cluster.timestamps import format_timestamp
from trimtab.compaction.drain.actions import (
    Abandon,
    Action,
    Evict,
    FailureCause,
    MarkEmptied,
    Release,
    SetReplicas,
    Wait,
)
from trimtab.compaction.drain.annotation import DrainAnnotation, DrainAnnotations, PodToEvict
from trimtab.compaction.drain.cluster_view import ClusterView
from trimtab.compaction.drain.state_machine import DrainPlanner, mark_emptied
from trimtab.compaction.drain.timeouts import DrainTimeouts, removal_timeout

ACT = replace(ALL, dry_run=False)


def owner(app: str, wanted: int, kind: str = "ReplicaSet", **status: Any) -> Item:
    meta = {"name": app, "namespace": "default"}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": meta, "spec": {"replicas": wanted}, "status": status}


def leaving(name: str, **more: Any) -> PodToEvict:
    app = name.partition("-")[0]
    return PodToEvict(pod=f"default/{name}", uid=f"uid-{name}", kind="ReplicaSet", owner=app, **more)


def note(*moves: PodToEvict, **more: Any) -> DrainAnnotation:
    return DrainAnnotation(drain="d1", pool="all", since=NOW - 60, moves=moves, **more)


def step(
    annotation: DrainAnnotation,
    *items: Item,
    terms: DrainTimeouts = DrainTimeouts(),  # noqa: B008  a frozen value
    on: Item | None = None,
    **view: Any,
) -> tuple[Action, ...]:
    """What comes next for n1, cordoned with this note."""
    here = on or node("n1", cordoned=True)
    inventory = cluster(here, node("n2", "8"), *items)
    cluster_view = ClusterView(
        **{
            "now": NOW,
            "inventory": inventory,
            "pools": (ACT,),
            "annotations": DrainAnnotations({"n1": annotation}),
            **view,
        }
    )
    mine = next(n for n in inventory.nodes if n.name == "n1")
    return DrainPlanner(cluster_view, terms).next_actions(mine, annotation)


def ended(actions: tuple[Action, ...]) -> tuple[str, FailureCause]:
    [only] = actions
    assert isinstance(only, Release)
    return only.reason.code.name, only.blame


def waits(actions: tuple[Action, ...]) -> str:
    [only] = actions
    assert isinstance(only, Wait)
    return only.reason.code.name


def evicted(actions: tuple[Action, ...]) -> list[str]:
    return [act.move.pod.removeprefix("default/") for act in actions if isinstance(act, Evict)]


WEB = (pod("web-1", "n1"), pod("web-2", "n2"), owner("web", 2))


# ── emptying ─────────────────────────────────────────────────────────────────────────────────────────


def test_pods_of_a_turn_leave_in_the_order_of_the_plan_and_low_priorities_first() -> None:
    moves = (leaving("zoo-1", wanted=1), leaving("api-1", wanted=1), leaving("low-1", wanted=1, priority=-1))
    pods = [pod("zoo-1", "n1", "2"), pod("api-1", "n1", "1"), pod("low-1", "n1", "100m", priority=-1)]
    owners = [owner(app, 1) for app in ("zoo", "api", "low")]
    assert evicted(step(note(*moves), *pods, *owners)) == ["low-1", "zoo-1", "api-1"]


def test_a_pod_is_evicted() -> None:
    assert evicted(step(note(leaving("web-1")), *WEB)) == ["web-1"]


def test_lower_priority_goes_first_and_a_pod_that_waits_holds_up_those_above_it() -> None:
    pods = [pod(f"{app}-1", "n1") for app in ("low", "mid", "top")]
    rest = [pod("low-2", "n2"), pod("top-2", "n2"), owner("low", 2), owner("mid", 2), owner("top", 2)]
    moves = [leaving("top-1", priority=9), leaving("mid-1", priority=5), leaving("low-1", priority=1)]
    assert evicted(step(note(*moves), *pods, *rest)) == ["low-1"]
    assert evicted(step(note(*moves), *pods, *rest, pod("mid-2", "n2"))) == ["low-1", "mid-1", "top-1"]


def test_without_a_budget_a_quarter_may_be_missing_but_one_in_any_case() -> None:
    pods = [*(pod(f"web-{n}", "n1") for n in range(4)), *(pod(f"web-{n}", "n2") for n in range(4, 8))]
    moves = [leaving(f"web-{n}") for n in range(4)]
    assert len(evicted(step(note(*moves), *pods, owner("web", 8)))) == 2
    assert len(evicted(step(note(*moves), *pods, owner("web", 7)))) == 1


def test_in_a_rollout_the_pods_of_both_owners_are_one_workload() -> None:
    """Four are wanted, three of the old and one of the new, which is not ready: one is missing, and no other goes."""
    pods = [pod("web-1", "n1"), pod("web-2", "n2"), pod("web-3", "n2"), owner("web", 3), owner("new", 1)]
    whole = owner("site", 4, "Deployment")
    tops = {
        ("default", "ReplicaSet", name): owner_key("Deployment/site", namespace="default") for name in ("web", "new")
    }
    actions = step(note(leaving("web-1")), *pods, pod("new-1", "n2", ready=False), whole, top_owners=tops)
    assert waits(actions) == "drain-waits-for-workload"
    assert evicted(step(note(leaving("web-1")), *pods, pod("new-1", "n2"), whole, top_owners=tops)) == ["web-1"]


def test_a_budget_is_spent_once_by_all_drains_of_a_moment() -> None:
    pods = [pod("web-1", "n1"), pod("web-2", "n1"), pod("web-3", "n2"), budget("web", 1), owner("web", 3)]
    assert evicted(step(note(leaving("web-1"), leaving("web-2")), *pods)) == ["web-1"]
    spent, stale = budget("web", 0), budget("web", 1, observed=1)
    assert waits(step(note(leaving("web-1")), pods[0], *pods[2:3], spent)) == "drain-budget-spent"
    assert waits(step(note(leaving("web-1")), pods[0], *pods[2:3], stale)) == "drain-budget-spent"


def test_an_eviction_that_is_not_seen_yet_counts_against_the_budget() -> None:
    pods = [pod("web-1", "n1"), pod("web-2", "n1"), pod("web-3", "n2"), budget("web", 1), owner("web", 3)]
    actions = step(note(leaving("web-1"), leaving("web-2")), *pods, evicted_uids=frozenset({"uid-web-1"}))
    assert waits(actions) == "drain-budget-spent"


def test_a_turn_begins_when_the_successors_of_the_one_before_are_ready() -> None:
    moves = (leaving("web-1"), leaving("web-2", turn=1))
    pods = [pod("web-2", "n1"), pod("web-3", "n2"), owner("web", 3)]
    assert waits(step(note(*moves), *pods)) == "drain-waits-for-successors"
    assert evicted(step(note(*moves), *pods, pod("web-4", "n2"))) == ["web-2"]


def test_the_end_is_reached_when_all_successors_are_ready() -> None:
    ending = pod("web-1", "n1", deleted=format_timestamp(NOW + 20))
    assert waits(step(note(leaving("web-1")), ending, *WEB[1:])) == "drain-pod-terminating"
    assert waits(step(note(leaving("web-1")), *WEB[1:])) == "drain-waits-for-successors"
    assert step(note(leaving("web-1")), *WEB[1:], pod("web-3", "n2")) == (MarkEmptied(),)


# ── ends ─────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("on", "code", "blame"),
    [
        (node("n1"), "drain-uncordoned", FailureCause.NODE),
        (node("n1", cordoned=True, ready=False), "drain-node-not-ready", FailureCause.NODE),
    ],
)
def test_a_node_that_changed_ends_its_drain(on: Item, code: str, blame: FailureCause) -> None:
    assert ended(step(note(leaving("web-1")), *WEB, on=on)) == (code, blame)


@pytest.mark.parametrize("key", ["ToBeDeletedByClusterAutoscaler", "karpenter.sh/disrupted"])
def test_a_node_somebody_deletes_is_left_alone(key: str) -> None:
    described_node = node("n1", cordoned=True, taints=[{"key": key, "effect": "NoSchedule"}])
    [action] = step(note(leaving("web-1")), *WEB, on=described_node)
    assert isinstance(action, Abandon)


@pytest.mark.parametrize(
    "view",
    [
        {"paused": "said so"},
        {"pools": ()},
        {"pools": (replace(ACT, enabled=False),)},
        {"pools": (replace(ACT, dry_run=True),)},
    ],
)
def test_what_may_no_longer_be_done_is_taken_back_but_an_empty_node_waits(view: Any) -> None:
    assert ended(step(note(leaving("web-1")), *WEB, **view)) == ("drain-stopped", FailureCause.NOBODY)
    assert waits(step(mark_emptied(note(leaving("web-1")), NOW), *WEB[1:], **view)) == "drain-waits-for-autoscaler"


@pytest.mark.parametrize(
    "scaler",
    [
        Autoscaler(healthy=False, updated=NOW),
        Autoscaler(updated=NOW - 600),
        Autoscaler(updated=NOW, groups=(NodeGroupStatus(name="pool-all", healthy=True, scale_up="InProgress"),)),
    ],
)
def test_a_changed_autoscaler_ends_a_drain(scaler: Autoscaler) -> None:
    actions = step(note(leaving("web-1")), *WEB, autoscaler=scaler)
    assert ended(actions) == ("drain-autoscaler-changed", FailureCause.NOBODY)


def test_a_drain_may_take_its_time_and_the_grace_of_its_pods() -> None:
    terms = DrainTimeouts(drain=50)
    assert evicted(step(note(leaving("web-1", grace=30)), *WEB, terms=terms)) == ["web-1"]
    assert ended(step(note(leaving("web-1", grace=5)), *WEB, terms=terms)) == ("drain-too-long", FailureCause.POOL)
    stuck = step(note(leaving("web-1", grace=5)), *WEB, budget("web", 0), terms=terms)
    assert has_facts(repr(stuck), "55 s", "budget default/web", "0 disruptions")


def test_a_pod_past_its_grace_and_a_while_is_stuck() -> None:
    stuck = pod("web-1", "n1", deleted=format_timestamp(NOW - 130))
    assert ended(step(note(leaving("web-1")), stuck, *WEB[1:])) == ("drain-pod-stuck", FailureCause.POOL)


def test_a_pod_nobody_planned_for_ends_a_drain_but_not_a_daemon() -> None:
    stranger, daemon = pod("new-1", "n1"), pod("d-1", "n1", owner="DaemonSet")
    assert ended(step(note(leaving("web-1")), *WEB, stranger)) == ("drain-pods-added", FailureCause.NODE)
    assert evicted(step(note(leaving("web-1")), *WEB, daemon)) == ["web-1"]


def test_a_pod_that_says_no_at_the_last_moment_stays() -> None:
    no = pod("web-1", "n1", annotations={"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"})
    assert ended(step(note(leaving("web-1")), no, *WEB[1:])) == ("drain-pod-not-evictable", FailureCause.NODE)
    two = (budget("web", 1), budget("web", 1, name="second"))
    assert ended(step(note(leaving("web-1")), *WEB, *two)) == ("drain-pod-not-evictable", FailureCause.NODE)


def test_a_successor_past_its_time_ends_a_drain() -> None:
    nowhere = pod("web-3", ready=False, created=format_timestamp(NOW - 40), cpu="100")
    slow = pod("web-3", "n2", ready=False, created=format_timestamp(NOW - 40))
    assert ended(step(note(leaving("web-1")), *WEB[1:], nowhere)) == ("drain-successor-not-placed", FailureCause.POOL)
    assert waits(step(note(leaving("web-1")), *WEB[1:], slow)) == "drain-waits-for-successors"
    actions = step(note(leaving("web-1")), *WEB[1:], slow, terms=DrainTimeouts(ready=30))
    assert ended(actions) == ("drain-successor-not-ready", FailureCause.POOL)


def failing(status: str = "True") -> Item:
    text = {"type": "ReplicaFailure", "status": status, "reason": "FailedCreate", "message": "exceeded quota: small"}
    return owner("web", 2, conditions=[text])


def test_a_successor_that_nobody_can_create_ends_a_drain_at_once_and_says_why() -> None:
    actions = step(note(leaving("web-1")), pod("web-2", "n2"), failing())
    assert ended(actions) == ("drain-successor-not-created", FailureCause.NODE)
    assert isinstance(actions[0], Release)
    assert_reason(
        actions[0].reason, "drain-successor-not-created", owner="ReplicaSet default/web", refusal="quota: small"
    )


def test_a_failure_that_is_over_or_lacks_no_pod_ends_nothing() -> None:
    assert waits(step(note(leaving("web-1")), pod("web-2", "n2"), failing("False"))) == "drain-waits-for-successors"
    assert evicted(step(note(leaving("web-1")), *WEB[:2], failing())) == ["web-1"]


def test_a_pod_that_waits_and_would_fit_opens_the_node() -> None:
    fits = pod("other-1", ready=False, created=format_timestamp(NOW - 40), spec={"nodeSelector": {HOST: "n1"}})
    anywhere = pod("other-1", ready=False, created=format_timestamp(NOW - 40))
    too_large = pod("other-1", ready=False, created=format_timestamp(NOW - 40), cpu="100")
    young = pod("other-1", ready=False, created=format_timestamp(NOW - 10))
    assert ended(step(note(leaving("web-1")), *WEB, fits)) == ("drain-pods-pending", FailureCause.NOBODY)
    assert evicted(step(note(leaving("web-1")), *WEB, too_large)) == ["web-1"]
    assert evicted(step(note(leaving("web-1")), *WEB, anywhere)) == ["web-1"], "it is not this node that it lacks"
    assert evicted(step(note(leaving("web-1")), *WEB, young)) == ["web-1"]
    for holding in ({"schedulingGates": [{"name": "queue"}]}, {"priority": -11}):
        none = pod(
            "other-1", ready=False, created=format_timestamp(NOW - 40), spec={"nodeSelector": {HOST: "n1"}, **holding}
        )
        assert evicted(step(note(leaving("web-1")), *WEB, none)) == ["web-1"], "it waits for no node"


# ── emptied ──────────────────────────────────────────────────────────────────────────────────────────


def test_an_empty_node_is_given_back_to_a_pod_that_waits_and_would_fit_on_it_alone() -> None:
    fits = pod("other-1", ready=False, created=format_timestamp(NOW - 40), spec={"nodeSelector": {HOST: "n1"}})
    anywhere = pod("other-1", ready=False, created=format_timestamp(NOW - 40))
    assert ended(step(note(emptied=NOW - 100), fits)) == ("drain-node-uncordoned-for-pods", FailureCause.NOBODY)
    assert waits(step(note(emptied=NOW - 100), anywhere)) == "drain-waits-for-autoscaler"


def test_an_empty_node_is_given_back_with_what_probably_keeps_it() -> None:
    group = NodeGroupStatus(name="pool-all", healthy=True, scale_up="", target=2, min_size=2)
    scaler = Autoscaler(updated=NOW, groups=(group,))
    [action] = step(note(emptied=NOW - 1501), autoscaler=scaler)
    assert isinstance(action, Release)
    assert has_facts(str(action.reason), "minimum of 2")
    assert action.blame is FailureCause.POOL, "the next node of the group would be emptied for nothing, too"
    assert waits(step(note(emptied=NOW - 1499), autoscaler=scaler)) == "drain-waits-for-autoscaler"


@pytest.mark.parametrize(
    ("said", "why", "blame"),
    [
        (
            {"annotations": {"cluster-autoscaler.kubernetes.io/scale-down-disabled": "true"}},
            "scale-down",
            FailureCause.NODE,
        ),
        (
            {"annotations": {"delay-deletion.cluster-autoscaler.kubernetes.io/x": "1"}},
            "delay-deletion",
            FailureCause.NODE,
        ),
        (
            {
                "taints": [
                    {
                        "key": "DeletionCandidateOfClusterAutoscaler",
                        "value": str(NOW - 60),
                        "effect": "PreferNoSchedule",
                    }
                ]
            },
            "unneeded for only 60 s, and removes it after 600 s",
            FailureCause.NODE,
        ),
        ({}, "1 in group pool-all", FailureCause.POOL),
    ],
)
def test_an_empty_node_is_given_back_in_the_autoscalers_own_words(
    said: dict[str, Any], why: str, blame: FailureCause
) -> None:
    group = NodeGroupStatus(name="pool-all", healthy=True, scale_up="", target=3, min_size=2, candidates=1)
    scaler = Autoscaler(updated=NOW, groups=(group,))
    [action] = step(note(emptied=NOW - 1501), autoscaler=scaler, on=node("n1", cordoned=True, **said))
    assert isinstance(action, Release)
    assert why in str(action.reason)
    assert action.blame is blame


def test_an_emptied_node_that_is_not_ready_any_more_is_still_the_autoscalers() -> None:
    """So a machine looks that is taken away."""
    ill = node("n1", cordoned=True, ready=False)
    assert waits(step(note(emptied=NOW - 100), on=ill)) == "drain-waits-for-autoscaler"
    assert waits(step(note(emptied=NOW - 1501), on=ill)) == "drain-waits-for-autoscaler", "unready ones have 20 minutes"
    gone = step(note(leaving("web-0")), *WEB[1:], on=ill)
    assert not [act for act in gone if isinstance(act, Release)]
    assert ended(step(note(leaving("web-1")), *WEB, on=ill)) == ("drain-node-not-ready", FailureCause.NODE)


def test_patience_follows_the_autoscalers_own_timers() -> None:
    autoscaler = Autoscaler(flags={"scale-down-unneeded-time": "2m", "scale-down-delay-after-add": "1m"})
    assert removal_timeout(DrainTimeouts(), autoscaler) == 120 + 60 + 300
    assert removal_timeout(DrainTimeouts(), None) == 1500
    assert (
        removal_timeout(DrainTimeouts(), autoscaler_from_flags(["--scale-down-delay-after-add=0s"], None))
        == 600 + 0 + 300
    )
    assert removal_timeout(DrainTimeouts(taken=7), autoscaler) == 7


# ── one replica more, and back ───────────────────────────────────────────────────────────────────────

ONE = note(leaving("one-1"), surges={"default/one": 1}, surged={"default/one": NOW - 5})
TOPS = {("default", "ReplicaSet", "one"): owner_key("Deployment/one", namespace="default")}


def surge(
    wanted: int, *pods: Item, annotation: DrainAnnotation = ONE, status: Item | None = None, **view: Any
) -> tuple[Action, ...]:
    """`status`: what the objects say that differs from what the pods show."""
    ready = sum(item["status"]["conditions"][0]["status"] == "True" for item in pods)
    shown = {"replicas": wanted, "updatedReplicas": wanted, "readyReplicas": ready, "availableReplicas": ready}
    owners = (owner("one", wanted, kind, **(shown | (status or {}))) for kind in ("ReplicaSet", "Deployment"))
    return step(annotation, *pods, *owners, top_owners=TOPS, **view)


def test_the_only_replica_is_moved_when_a_second_one_is_ready() -> None:
    old, new = pod("one-1", "n1"), pod("one-2", "n2")
    assert surge(1, old) == (SetReplicas("default/one", 1, 2),)
    assert waits(surge(2, old, pod("one-2", "n2", ready=False))) == "drain-surging"
    assert evicted(surge(2, old, new)) == ["one-1"]
    assert surge(2, new) == (SetReplicas("default/one", 2, 1),)
    assert surge(1, new) == (MarkEmptied(),)


TWO = (pod("one-1", "n1"), pod("one-2", "n2"))


def test_no_eviction_before_min_ready_seconds_are_over_or_in_a_rollout() -> None:
    assert waits(surge(2, *TWO, status={"availableReplicas": 1})) == "drain-surging"
    assert waits(surge(2, *TWO, status={"updatedReplicas": 1})) == "drain-surging"


def test_a_count_is_not_set_back_before_its_controller_has_noticed_the_eviction() -> None:
    """It would remove the pod that is left, and the evicted one ends as well."""
    assert waits(surge(2, TWO[1], status={"readyReplicas": 2})) == "drain-waits-for-successors"
    assert waits(surge(2, pod("one-2", "n2", ready=False))) == "drain-waits-for-successors"


def test_a_surge_is_undone_where_the_drain_ends_early_and_only_where_the_number_is_ours() -> None:
    back, end = surge(2, pod("one-1", "n1"), paused="said so")
    assert back == SetReplicas("default/one", 2, 1)
    assert isinstance(end, Release)
    assert len(surge(5, pod("one-1", "n1"), paused="said so")) == 1
