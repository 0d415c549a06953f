"""A group of which one pod owns the others: it alone is evicted, they end with it, and a death in between loses
none."""

from dataclasses import replace
from typing import Any

import pytest

from tests.cluster_of import Item
from tests.compactor.played import ACT, Played, run
from tests.compactor.test_groups_whole import LABEL
from trimtab.cluster.pool_values import GroupMode
from trimtab.cluster.timestamps import format_timestamp
from trimtab.compaction.drain.annotation import PodToEvict
from trimtab.compactor.actuator import EvictionResponse, EvictionResult

LEADER, WORKERS = "lead-0", ("work-0", "work-1")


class Led(Played):
    """The StatefulSet of the workers is owned by the leader's pod, and its pods end when that pod is gone."""

    collects = True
    """Whether the garbage collector works."""

    def items(self) -> list[Item]:
        items = super().items()
        for item in items:
            if item["kind"] == "ReplicaSet":
                owner = {"apiVersion": "v1", "kind": "Pod", "name": LEADER, "uid": LEADER, "controller": True}
                item["kind"] = "StatefulSet"
                item["metadata"]["ownerReferences"] = [owner] if item["metadata"]["name"] == "work" else []
        return items

    def tick(self, seconds: int = 2) -> None:
        super().tick(seconds)
        if self.collects and not any(pod["metadata"]["name"] == LEADER for pod in self.pods.values()):
            for pod in self.of("work"):
                if pod["metadata"]["name"] in WORKERS:
                    pod["metadata"]["deletionTimestamp"] = format_timestamp(self.now + 30)
                    pod["ends"] = self.now + 4


class Watched(Led):
    """A webhook refuses the eviction of a worker."""

    def try_eviction(self, move: PodToEvict) -> EvictionResponse:
        is_refused = move.pod == "default/work-1"
        return EvictionResponse(became=EvictionResult.REFUSED if is_refused else EvictionResult.EVICTED)


def led(*, leader: str = "n1", worker: str = "n2", kind: type[Led] = Led, **more: Any) -> Led:
    """A leader and a worker on two nodes, and another worker on n2, which stays like n3."""
    played = kind().with_nodes("n1", "n2", "n3")
    marked = {"labels": {LABEL: "train"}, "owner": "StatefulSet", **more}
    played.with_app("lead", leader, cpu="500m", **marked).with_app("work", worker, "n2", cpu="500m", **marked)
    played.with_app("big", "n2", "n3", cpu="1", annotations={"trimtab.dev/do-not-disrupt": "true"})
    played.pools = (replace(ACT, groups=GroupMode.MOVE, single_replicas=True),)
    return played


def evicted(played: Led) -> set[str]:
    """The pods of the first group that were evicted."""
    names = {write.rpartition("/")[2] for write in played.writes if write.startswith("evict")}
    return names & {LEADER, *WORKERS}


def moved(played: Led) -> set[str]:
    """The pods of the first group that are gone."""
    return {LEADER, *WORKERS} - {pod["metadata"]["name"] for pod in played.pods.values()}


@pytest.mark.parametrize(("leader", "worker"), [("n1", "n2"), ("n2", "n1")])
def test_only_the_leader_is_evicted_and_the_others_end_with_it(leader: str, worker: str) -> None:
    played = led(leader=leader, worker=worker)
    run(played, 60)
    assert (evicted(played), moved(played)) == ({LEADER}, {LEADER, *WORKERS})
    assert (played.short, played.bought) == ([], [])


def test_pods_that_do_not_end_with_it_are_evicted_too() -> None:
    played = led()
    played.collects = False
    run(played, 120)
    assert moved(played) == {LEADER, *WORKERS}
    assert evicted(played) == {LEADER, *WORKERS}


def test_a_budget_of_the_others_must_permit_their_end() -> None:
    played = led()
    played.budgets["work"] = 1
    run(played, 60)
    assert (evicted(played), moved(played)) == (set(), set())


def test_a_webhook_that_refuses_another_pod_keeps_the_leader() -> None:
    played = led(kind=Watched)
    run(played, 60)
    assert evicted(played) == set()
    assert {record.code for record in played.records if record.what == "refused"} == {"group-eviction-refused"}


def test_where_a_daily_number_counts_them_all_are_evicted() -> None:
    played = led(annotations={"trimtab.dev/disruptions-per-day": "9"})
    run(played, 60)
    assert evicted(played) == {LEADER, *WORKERS}


@pytest.mark.parametrize("number", range(12))
def test_killed_after_any_write_the_whole_group_moves(number: int) -> None:
    played = led()
    played.faults = {number: "killed"}
    run(played, 120)
    assert moved(played) == {LEADER, *WORKERS}
    assert (played.short, played.bought) == ([], [])
