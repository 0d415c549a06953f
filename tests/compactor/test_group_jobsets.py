"""A JobSet: one eviction suffices where it makes a Job fail, because the JobSet then restarts, or fails, as a whole."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.cluster_of import Item
from tests.compactor.played import ACT, Played, run
from trimtab.cluster.pod_groups import JOBSET_LABEL
from trimtab.cluster.pool_values import GroupMode
from trimtab.cluster.timestamps import format_timestamp

FIRST = {"job-0", "job-1", "job-2"}


class PlayedJobSet(Played):
    """Its pods belong to one Job. When the Job has failed, the JobSet deletes the pods that are left."""

    backoff_limit = 0
    restarts = True
    """Whether the JobSet restarts as a whole."""

    def items(self) -> list[Item]:
        items = super().items()
        for item in items:
            if item["kind"] == "ReplicaSet" and item["metadata"]["name"] == "job":
                item |= {"apiVersion": "batch/v1", "kind": "Job"}
                item["spec"] |= {"backoffLimit": self.backoff_limit}
        return items

    def tick(self, seconds: int = 2) -> None:
        super().tick(seconds)
        staying = [pod for pod in self.of("job") if pod["metadata"]["name"] in FIRST]
        is_failed = len(FIRST) - len(staying) > self.backoff_limit
        for pod in staying if is_failed and self.restarts else ():
            pod["metadata"]["deletionTimestamp"] = format_timestamp(self.now + 30)
            pod["ends"] = self.now + 4


def job_set(**settings: Any) -> PlayedJobSet:
    """Pods of a Job on n1 and n2; n2 and n3 stay."""
    played = PlayedJobSet().with_nodes("n1", "n2", "n3")
    for name, value in settings.items():
        setattr(played, name, value)
    played.with_app("job", "n1", "n2", "n2", cpu="500m", labels={JOBSET_LABEL: "train"}, owner="Job")
    played.with_app("big", "n2", "n3", cpu="1", annotations={"trimtab.dev/do-not-disrupt": "true"})
    played.pools = (replace(ACT, groups=GroupMode.MOVE, jobs=True),)
    return played


def evicted(played: PlayedJobSet) -> set[str]:
    names = {write.rpartition("/")[2] for write in played.writes if write.startswith("evict")}
    return names & FIRST


def moved(played: PlayedJobSet) -> set[str]:
    return FIRST - {pod["metadata"]["name"] for pod in played.pods.values()}


def test_a_job_that_fails_by_one_eviction_ends_the_others() -> None:
    played = job_set()
    run(played, 60)
    assert (evicted(played), moved(played)) == ({"job-0"}, FIRST)


def test_a_job_that_starts_the_pod_again_loses_all_at_once() -> None:
    played = job_set(backoff_limit=6)
    run(played, 60)
    assert (evicted(played), moved(played)) == (FIRST, FIRST)


def test_pods_that_go_on_all_the_same_are_evicted_too() -> None:
    played = job_set(restarts=False)
    run(played, 120)
    assert (evicted(played), moved(played)) == (FIRST, FIRST)


@pytest.mark.parametrize("number", range(12))
def test_killed_after_any_write_all_pods_move(number: int) -> None:
    played = job_set()
    played.faults = {number: "killed"}
    run(played, 120)
    assert moved(played) == FIRST
