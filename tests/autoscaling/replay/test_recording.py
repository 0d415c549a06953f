"""What a series of captures shows, round by round."""

from typing import Any

import msgspec
import pytest

from tests.autoscaling.replay.simulated_captures import owner_reference
from trimtab.autoscaling.churn.churn_script import ChurnKind
from trimtab.autoscaling.replay.daily_outcome import DailyOutcome, add_history, recorded_history
from trimtab.autoscaling.replay.demand import count_replaced, list_events
from trimtab.autoscaling.replay.recording import SeriesRecorder, Stretch
from trimtab.cluster.capture_series import ClusterChange, ObjectKey
from trimtab.cluster.timestamps import format_timestamp

MONDAY = 1_772_409_600
ROUND = 300
Object = dict[str, Any]


def node(
    name: str, *, group: str = "web", cordoned: bool = False, taint: str = "", uid: str = "", created: int | None = None
) -> Object:
    amounts = {"cpu": "4", "memory": "16Gi", "pods": "110"}
    return {
        "kind": "Node",
        "metadata": {
            "name": name,
            "uid": uid or name,
            "labels": {"cloud.google.com/gke-nodepool": group},
            **({"creationTimestamp": format_timestamp(MONDAY + created)} if created is not None else {}),
        },
        "spec": {"unschedulable": cordoned, "taints": [{"key": taint, "effect": "NoSchedule"}] if taint else []},
        "status": {
            "allocatable": amounts,
            "capacity": amounts,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def budget(name: str) -> Object:
    return {
        "kind": "PodDisruptionBudget",
        "metadata": {"namespace": "shop", "name": name},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}},
    }


def pod(
    name: str,
    on: str = "",
    *,
    created: int = 0,
    owner: tuple[str, str] = ("ReplicaSet", "web-1"),
    phase: str = "Running",
    cpu: str = "1",
) -> Object:
    version = "batch/v1" if owner[0] == "Job" else "apps/v1"
    return {
        "kind": "Pod",
        "metadata": {
            "namespace": "shop",
            "name": name,
            "uid": name,
            "creationTimestamp": format_timestamp(MONDAY + created),
            "ownerReferences": [owner_reference(version, *owner)],
        },
        "spec": {
            **({"nodeName": on} if on else {}),
            "containers": [{"name": "app", "resources": {"requests": {"cpu": cpu}}}],
        },
        "status": {"phase": phase},
    }


def record(*rounds: list[Object], recorder: SeriesRecorder | None = None, begin: int = 0) -> SeriesRecorder:
    """Returns a recorder that has read one capture after the other, each with all objects."""
    recorder, before = recorder or SeriesRecorder(), dict[ObjectKey, bytes]()
    for number, objects in enumerate(rounds):
        present = {
            (one["kind"], one["metadata"].get("namespace", ""), one["metadata"]["name"]): msgspec.json.encode(one)
            for one in objects
        }
        changed = {key: text for key, text in present.items() if before.get(key) != text}
        at = MONDAY + begin + number * ROUND
        recorder.apply_change(ClusterChange(at, changed, tuple(before.keys() - present.keys())))
        before = present
    recorder.end_stretch()
    return recorder


def scales(stretch: Stretch) -> list[tuple[int, str, int]]:
    return [(e.at, e.workload, e.amount) for e in list_events(stretch) if e.kind is ChurnKind.SCALE]


def test_a_workload_grows_when_its_pod_was_created_and_shrinks_between_two_captures() -> None:
    recorder = record(
        [node("a"), pod("p1", "a")],
        [node("a"), pod("p1", "a"), pod("p2", "a", created=120)],
        [node("a"), pod("p1", "a")],
    )
    assert scales(recorder.stretches[0]) == [(120, "ReplicaSet shop/web-1", 2), (450, "ReplicaSet shop/web-1", 1)]


def test_a_pod_that_another_one_replaced_is_no_demand() -> None:
    recorder = record([node("a"), pod("p1", "a")], [node("a"), pod("p2", "a", created=100)])
    assert scales(recorder.stretches[0]) == []
    assert count_replaced(recorder.stretches[0]) == {"ReplicaSet shop/web-1": 1}


def test_a_pod_of_a_job_that_has_finished_is_gone() -> None:
    job = ("Job", "backup-1")
    recorder = record(
        [node("a"), pod("p0", "a")],
        [node("a"), pod("p0", "a"), pod("b1", "a", created=60, owner=job)],
        [node("a"), pod("p0", "a"), pod("b1", "a", created=60, owner=job, phase="Succeeded")],
    )
    assert [(at, amount) for at, _, amount in scales(recorder.stretches[0])] == [(60, 1), (450, 0)]


def test_pods_of_daemon_sets_are_no_demand_and_stay_with_their_node() -> None:
    recorder = record([node("a"), pod("log", "a", owner=("DaemonSet", "log"))])
    assert recorder.stretches[0].pods == []
    assert [one.name for one in recorder.stretches[0].daemons["a"]] == ["log"]


def test_a_node_that_goes_with_pods_on_it_was_lost() -> None:
    recorder = record([node("a"), node("b"), pod("p1", "b")], [node("a"), pod("p2", "a", created=200)])
    assert [event.workload for event in list_events(recorder.stretches[0])] == ["b"]


def test_a_node_that_an_autoscaler_removes_was_not_lost() -> None:
    leaving = node("b", taint="ToBeDeletedByClusterAutoscaler")
    recorder = record([node("a"), leaving, pod("p1", "b")], [node("a"), pod("p2", "a", created=200)])
    assert list_events(recorder.stretches[0]) == ()


def test_a_cordon_of_a_user_lasts_until_it_is_gone() -> None:
    recorder = record([node("a"), node("b")], [node("a"), node("b", cordoned=True)], [node("a"), node("b")])
    events = list_events(recorder.stretches[0])
    assert [(event.kind, event.workload, event.at, event.amount) for event in events] == [
        (ChurnKind.CORDON, "b", 300, 300)
    ]


def test_a_renamed_group_is_named() -> None:
    recorder = record([node("a"), node("b")], [node("a", group="shop"), node("b", group="shop")])
    assert recorder.renamed == {("web", "shop"): 2}


def test_a_gap_divides_the_recording_and_nothing_is_made_up_for_it() -> None:
    recorder = record([node("a"), pod("p1", "a")])
    recorder = record([node("a"), pod("p2", "a", created=5000)], recorder=recorder, begin=7200)
    first, second = recorder.stretches
    assert (first.begin, first.end) == (MONDAY, MONDAY)
    assert second.begin == MONDAY + 7200
    assert scales(first) == scales(second) == []


def test_an_object_that_cannot_be_read_is_named() -> None:
    recorder = record([node("a"), {"kind": "Pod", "metadata": {"name": "x", "namespace": "shop"}, "spec": 7}])
    assert list(recorder.unreadable) == ["Pod shop/x"]


def unreadable(kind: str, name: str, namespace: str = "") -> Object:
    """An object that could not be decoded, as a capture has it: its name, and why."""
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"kind": kind, "metadata": metadata, "unreadable": "spec: expected an object"}


def test_an_object_of_which_a_capture_has_only_the_name_is_no_empty_one() -> None:
    whole = [node("a"), node("b"), pod("p1", "a"), budget("web")]
    names = [unreadable("Node", "b"), unreadable("Pod", "p1", "shop"), unreadable("PodDisruptionBudget", "web", "shop")]
    recorder = record(whole, [node("a"), *names], whole)
    (stretch,) = recorder.stretches
    assert list_events(stretch) == ()
    assert len(stretch.budgets) == len(stretch.pods) == 1
    assert len(stretch.nodes) == 2
    assert sorted(recorder.unreadable) == ["Node b", "Pod shop/p1", "PodDisruptionBudget shop/web"]


def test_a_pod_that_waited_at_a_gate_is_demand_once_it_may_run() -> None:
    gated = pod("p2", created=10, phase="Pending")
    gated["spec"]["schedulingGates"] = [{"name": "queue"}]
    recorder = record(
        [node("a"), pod("p1", "a")],
        [node("a"), pod("p1", "a"), gated],
        [node("a"), pod("p1", "a"), pod("p2", "a", created=10)],
    )
    assert scales(recorder.stretches[0]) == [(450, "ReplicaSet shop/web-1", 2)]


@pytest.mark.parametrize("after", [[node("a"), node("b")], [node("a")]], ids=["uncordoned", "gone"])
def test_a_cordon_before_a_gap_ends_with_its_stretch(after: list[Object]) -> None:
    recorder = record([node("a"), node("b", cordoned=True)], [node("a"), node("b", cordoned=True)])
    changed = {("Node", "", one["metadata"]["name"]): msgspec.json.encode(one) for one in after}
    gone = () if len(after) == 2 else (("Node", "", "b"),)
    recorder.apply_change(ClusterChange(MONDAY + 7200, changed, gone))
    recorder.end_stretch()
    first, second = recorder.stretches
    assert [(one.workload, one.at, one.amount) for one in list_events(first)] == [("b", 0, 300)]
    assert [life.end for life in first.nodes] == [None, None]
    assert list_events(second) == ()


def test_a_node_of_the_same_name_is_another_node() -> None:
    new = [node("a"), node("b", uid="b2", created=400), pod("p2", "a", created=420)]
    recorder = record([node("a"), node("b"), pod("p1", "b")], [node("a"), node("b"), pod("p1", "b")], new, new)
    (stretch,) = recorder.stretches
    lives = [(life.node.uid, life.begin - MONDAY, life.end and life.end - MONDAY) for life in stretch.nodes]
    assert lives == [("a", 0, None), ("b", 0, 400), ("b2", 400, None)]
    assert [(event.kind, event.workload) for event in list_events(stretch)] == [(ChurnKind.NODE_DIES, "b")]
    outcome = DailyOutcome()
    add_history(outcome, recorded_history(stretch, {}), stretch.begin, stretch.end, {"a": "", "b": ""})
    assert outcome.sum_pools().node_seconds == 2 * 900


def test_pods_of_a_workload_with_other_requests_are_a_part_of_their_own() -> None:
    before = [node("a"), pod("p1", "a"), pod("p2", "a")]
    after = [node("a"), pod("p2", "a"), pod("p3", "a", created=100, cpu="2")]
    resized = [node("a"), pod("p2", "a", cpu="3"), pod("p3", "a", created=100, cpu="2")]
    (stretch,) = record(before, after, resized).stretches
    amounts = [sample.requirements.requests["cpu"] for sample in stretch.samples.values()]
    assert amounts == [1000, 2000, 3000]
    first, second, third = stretch.samples
    assert scales(stretch) == [(100, first, 1), (100, second, 1), (450, first, 0), (450, third, 1)]


def test_daemon_sets_that_came_or_went_are_named() -> None:
    daemon = pod("log", "a", owner=("DaemonSet", "log"))
    recorder = record([node("a")], [node("a"), daemon], [node("a"), daemon])
    assert recorder.changed_daemons == {"DaemonSet shop/log"}
