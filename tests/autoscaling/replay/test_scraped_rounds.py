"""What kube-state-metrics showed becomes rounds, as of captures."""

from dataclasses import replace

import pytest

from trimtab.autoscaling.churn.churn_script import ChurnKind
from trimtab.autoscaling.replay.demand import list_events
from trimtab.autoscaling.replay.recording import SeriesRecorder, Stretch
from trimtab.autoscaling.replay.scraped_rounds import (
    ScrapedCluster,
    ScrapedNode,
    ScrapedNodeState,
    ScrapedPodLife,
    list_rounds,
)
from trimtab.cluster.capture_series import RoundGap

BEGIN, STEP = 1_772_409_600, 60
AMOUNTS = {"cpu": "4000m", "memory": "17179869184", "pods": "110"}
LABELS = {"cloud.google.com/gke-nodepool": "web"}
NODE = ScrapedNode(
    name="a",
    created=BEGIN - 1000,
    last=BEGIN + 3600,
    allocatable=AMOUNTS,
    capacity=AMOUNTS,
    states=(ScrapedNodeState(since=BEGIN, labels=LABELS),),
)
POD = ScrapedPodLife(
    namespace="shop",
    name="p1",
    uid="p1",
    created=BEGIN + 130,
    bound=BEGIN + 133,
    node="a",
    last=BEGIN + 3600,
    owner_kind="ReplicaSet",
    owner_name="web-1",
    requests={"app": {"cpu": "500m", "memory": "1000"}},
)
CLUSTER = ScrapedCluster(begin=BEGIN, end=BEGIN + 3600, step=STEP, nodes=(NODE,), pods=(POD,), top_owners={})


def record(cluster: ScrapedCluster) -> list[Stretch]:
    recorder = SeriesRecorder()
    for one in list_rounds(cluster):
        if isinstance(one, RoundGap):
            recorder.end_stretch()
        else:
            recorder.apply_change(one)
    recorder.end_stretch()
    assert recorder.unreadable == {}
    return recorder.stretches


def test_a_pod_has_its_times_to_the_second_and_its_requests() -> None:
    (stretch,) = record(CLUSTER)
    (life,) = stretch.pods
    assert (life.begin, life.bound, life.end) == (BEGIN + 130, BEGIN + 133, None)
    assert stretch.samples[life.slot].requirements.requests == {"cpu": 500, "memory": 1000}


def test_a_pod_that_was_asked_to_go_went_at_that_second() -> None:
    gone = replace(POD, last=BEGIN + 1030, deletion=BEGIN + 1025 + 30)
    (stretch,) = record(replace(CLUSTER, pods=(gone,)))
    assert (stretch.pods[0].end, stretch.pods[0].is_end_known) == (BEGIN + 1025, True)


def test_another_end_is_close_to_the_last_scrape() -> None:
    (stretch,) = record(replace(CLUSTER, pods=(replace(POD, last=BEGIN + 1000),)))
    end = stretch.pods[0].end
    assert end is not None
    assert abs(end - (BEGIN + 1000)) <= STEP


def test_a_pod_that_lived_for_seconds_is_there() -> None:
    (stretch,) = record(replace(CLUSTER, pods=(replace(POD, last=BEGIN + 140),)))
    assert [event.amount for event in list_events(stretch)] == [1, 0]


def test_a_finished_pod_is_no_demand_any_more() -> None:
    (stretch,) = record(replace(CLUSTER, pods=(replace(POD, finished=BEGIN + 900),)))
    assert stretch.pods[0].end is not None


def test_a_node_that_was_created_before_is_there_before_its_first_scrape() -> None:
    later = ScrapedNodeState(since=BEGIN + 20, labels=LABELS)
    (stretch,) = record(replace(CLUSTER, nodes=(replace(NODE, states=(later,)),)))
    assert [life.is_initial for life in stretch.nodes] == [True]


def test_a_cordon_begins_and_ends() -> None:
    states = (
        NODE.states[0],
        ScrapedNodeState(since=BEGIN + 600, labels=LABELS, is_cordoned=True),
        ScrapedNodeState(since=BEGIN + 900, labels=LABELS),
    )
    (stretch,) = record(replace(CLUSTER, nodes=(replace(NODE, states=states),)))
    cordons = [(one.at, one.amount) for one in list_events(stretch) if one.kind is ChurnKind.CORDON]
    assert cordons == [(600, 300)]


def test_a_gap_divides_the_recording_and_what_ended_in_it_has_no_end() -> None:
    gap = (BEGIN + 1200, BEGIN + 2400)
    in_gap = replace(POD, name="p2", uid="p2", last=BEGIN + 1190)
    first, second = record(replace(CLUSTER, pods=(POD, in_gap), gaps=(gap,)))
    assert (first.end, second.begin) == gap
    assert [life.end for life in first.pods] == [None, None]
    assert len(second.pods) == 1


def test_a_node_that_is_gone_has_an_end() -> None:
    other = replace(NODE, name="b", last=BEGIN + 1800)
    (stretch,) = record(replace(CLUSTER, nodes=(NODE, other)))
    ends = {life.node.name: life.end for life in stretch.nodes}
    assert ends["a"] is None
    assert ends["b"] is not None


@pytest.mark.parametrize("deletion", [BEGIN + 1025 + 30, None], ids=["asked to go", "gone"])
@pytest.mark.parametrize("order", [1, -1])
def test_a_pod_of_a_stateful_set_comes_back_under_its_name(deletion: int | None, order: int) -> None:
    owner = {"owner_kind": "StatefulSet", "owner_name": "db", "name": "db-0"}
    old = replace(POD, **owner, uid="1", created=BEGIN - 9, bound=BEGIN - 5, last=BEGIN + 1030, deletion=deletion)
    new = replace(POD, **owner, uid="2", created=BEGIN + 1035, bound=BEGIN + 1037)
    (stretch,) = record(replace(CLUSTER, pods=(old, new)[::order]))
    assert [(life.bound, life.end is None) for life in stretch.pods] == [(BEGIN, False), (BEGIN + 1037, True)]
    assert [event.amount for event in list_events(stretch)] == ([0, 1] if deletion else [])


@pytest.mark.parametrize("order", [1, -1])
def test_a_node_that_comes_back_under_its_name_is_another_one(order: int) -> None:
    old = replace(NODE, last=BEGIN + 1000)
    new = replace(NODE, created=BEGIN + 1050, states=(replace(NODE.states[0], since=BEGIN + 1060),))
    (stretch,) = record(replace(CLUSTER, nodes=(old, new)[::order]))
    assert [life.end is None for life in stretch.nodes] == [False, True]
