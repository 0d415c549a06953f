"""What a series of captures shows, round by round."""

from typing import Any

import msgspec

from tests.autoscaling.replay.simulated_captures import owner_reference
from trimtab.autoscaling.churn.churn_script import ChurnKind
from trimtab.autoscaling.replay.demand import count_replaced, list_events
from trimtab.autoscaling.replay.recording import SeriesRecorder, Stretch
from trimtab.cluster.capture_series import ClusterChange, ObjectKey
from trimtab.cluster.timestamps import format_timestamp

MONDAY = 1_772_409_600
ROUND = 300
Object = dict[str, Any]


def node(name: str, *, group: str = "web", cordoned: bool = False, taint: str = "") -> Object:
    amounts = {"cpu": "4", "memory": "16Gi", "pods": "110"}
    return {
        "kind": "Node",
        "metadata": {"name": name, "uid": name, "labels": {"cloud.google.com/gke-nodepool": group}},
        "spec": {"unschedulable": cordoned, "taints": [{"key": taint, "effect": "NoSchedule"}] if taint else []},
        "status": {
            "allocatable": amounts,
            "capacity": amounts,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def pod(
    name: str,
    on: str = "",
    *,
    created: int = 0,
    owner: tuple[str, str] = ("ReplicaSet", "web-1"),
    phase: str = "Running",
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
            "containers": [{"name": "app", "resources": {"requests": {"cpu": "1"}}}],
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
