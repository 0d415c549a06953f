"""Which emptied nodes are opened again for pods that no open node takes?"""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cluster_of import ALL, HOST, NOW, Item, cluster, node, pod
from trimtab.cluster.timestamps import format_timestamp
from trimtab.compaction.drain.annotation import DrainAnnotation, DrainAnnotations
from trimtab.compaction.drain.cluster_view import ClusterView
from trimtab.compaction.drain.release import choose_nodes, nodes_to_open
from trimtab.compaction.drain.timeouts import DrainTimeouts
from trimtab.scheduling.cluster_model import FreeCapacity, build_cluster_model
from trimtab.scheduling.filters import fits_on_node

ACT = replace(ALL, dry_run=False)
WAITED = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}


def unschedulable(name: str, cpu: str, *, seconds: int = 1, said: bool = True, **more: Any) -> Item:
    """A pod that came to be so many seconds ago; `said`: the scheduler has found no node for it."""
    created_pod = pod(name, "", cpu, ready=False, created=format_timestamp(NOW - seconds), **more)
    created_pod["status"]["conditions"] += [WAITED] if said else []
    return created_pod


def opens(*items: Item, cordoned: tuple[Item, ...] | None = None, openings: int = 20, before: int = 0) -> list[str]:
    """Of four emptied nodes, e2 to e16 with as many cores; n1 is open and has one core left."""
    emptied = cordoned or tuple(node(f"e{cores}", str(cores), cordoned=True) for cores in (2, 4, 8, 16))
    note = DrainAnnotation(drain="d", pool="all", since=NOW - 300, emptied=NOW - 100)
    notes = DrainAnnotations({item["metadata"]["name"]: note for item in emptied})
    inventory = cluster(*emptied, node("n1", "4"), pod("full-1", "n1", "3"), *items)
    pools = (replace(ACT, openings_per_hour=openings),)
    opened_nodes = nodes_to_open(
        ClusterView(now=NOW, inventory=inventory, pools=pools, annotations=notes, opened_counts={"all": before}),
        DrainTimeouts(),
    )
    return sorted(opened_nodes)


def test_a_pod_that_fits_on_an_open_node_opens_none() -> None:
    assert opens(unschedulable("web-1", "1")) == []


def test_the_smallest_node_that_will_do_is_opened_at_once() -> None:
    assert opens(unschedulable("web-1", "1500m")) == ["e2"]
    assert opens(unschedulable("web-1", "3500m")) == ["e4"]


def test_one_node_is_opened_for_what_one_node_holds() -> None:
    assert opens(*(unschedulable(f"web-{n}", "1500m") for n in range(4))) == ["e8"]
    assert opens(*(unschedulable(f"web-{n}", "1500m") for n in range(12))) == ["e16", "e4"]


def test_what_takes_room_on_an_open_node_needs_none_of_an_emptied_one() -> None:
    assert opens(unschedulable("api-1", "800m"), unschedulable("web-1", "1800m")) == ["e2"]
    assert opens(unschedulable("api-1", "800m"), unschedulable("api-2", "800m")) == ["e2"]


@pytest.mark.parametrize(
    "item",
    [
        unschedulable("web-1", "1500m", said=False),
        unschedulable("web-1", "20"),
        unschedulable("web-1", "1500m", spec={"nodeSelector": {HOST: "nowhere"}}),
        unschedulable("web-1", "1500m", spec={"schedulingGates": [{"name": "queue"}]}),
        unschedulable("web-1", "1500m", spec={"priority": -11}),
        unschedulable("web-1", "1500m", deleted=format_timestamp(NOW)),
    ],
)
def test_nothing_is_opened_for_a_pod_that_nobody_called_unschedulable_or_that_would_not_run_there(item: Item) -> None:
    assert opens(item) == []


def test_a_scheduler_that_says_nothing_is_waited_for() -> None:
    assert opens(unschedulable("web-1", "1500m", seconds=31, said=False)) == ["e2"]


@pytest.mark.parametrize("more", [{"ready": False}, {"taints": [{"key": "ToBeDeletedByClusterAutoscaler"}]}])
def test_a_node_that_is_ill_or_going_is_not_opened(more: dict[str, Any]) -> None:
    assert opens(unschedulable("web-1", "1500m"), cordoned=(node("e1", "4", cordoned=True, **more),)) == []


def test_an_hour_has_its_ceiling() -> None:
    many = [unschedulable(f"web-{n}", "1500m") for n in range(12)]
    assert len(opens(*many, openings=20, before=19)) == 1
    assert opens(*many, openings=20, before=20) == opens(*many, openings=0) == []


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(1, 8), min_size=1, max_size=5),
    st.lists(st.integers(1, 9), min_size=1, max_size=8),
    st.integers(0, 4),
)
def test_every_opened_node_is_needed_and_nothing_that_fits_is_left(
    sizes: list[int], asks: list[int], free: int
) -> None:
    items = [node(f"e{n}", str(size)) for n, size in enumerate(sizes)]
    items += [node("open", str(free + 1)), *(pod(f"p-{n}", "", str(cores)) for n, cores in enumerate(asks))]
    world = build_cluster_model(cluster(*items))
    queue = [(one.key, kind) for one, kind in world.pending_pods]
    closed = sorted(
        (world.node_numbers[f"e{n}"] for n in range(len(sizes))), key=lambda n: world.allocatable_amount(n, "cpu")
    )
    room = FreeCapacity(world)
    nodes = choose_nodes(room, queue, closed)
    assert set(nodes) <= set(closed)
    assert len(nodes) <= len(queue)
    placed = [world.allocatable_amount(n, "cpu") - room.major[n] for n in range(len(world.nodes))]
    assert all(placed[n] > 0 for n in nodes), "a node was opened for nothing"
    assert not any(placed[n] for n in closed if n not in nodes)
    left = sum(kind.major for _, kind in queue) - sum(placed)
    shut = [n for n in closed if n not in nodes]
    if left:
        assert any(not any(fits_on_node(room, kind, n) for n in shut) for _, kind in queue)
    if len(nodes) > 1:
        total = sum(placed[n] for n in nodes)
        assert all(world.allocatable_amount(n, "cpu") < total for n in closed), "one node would have held them all"
