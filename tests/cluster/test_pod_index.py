"""The index of pods after changes is the one that is made of the changed pods."""

from collections.abc import Mapping
from operator import attrgetter

import pytest

from trimtab.autoscaling.churn.churn_objects import create_pod, create_requirements
from trimtab.autoscaling.churn.dice import Dice
from trimtab.autoscaling.churn.pod_shapes import ChurnPodShape
from trimtab.cluster.api.meta import change
from trimtab.cluster.kinds import REPLICA_SET
from trimtab.cluster.owner import OwnerKey
from trimtab.cluster.pod import PodInfo
from trimtab.cluster.pod_index import PodIndex

REQUIREMENTS = create_requirements("web", ChurnPodShape(millicores=100, mebibytes=100, seconds=60))


def draw_pod(dice: Dice, uid: str) -> PodInfo:
    owner = OwnerKey("churn", REPLICA_SET, f"web-{dice.draw_index(4)}") if dice.draw_share() < 0.9 else None
    pod = create_pod(uid, REQUIREMENTS, owner, 0)
    node = f"n{dice.draw_index(3)}" if dice.draw_share() < 0.8 else ""
    return change(pod, node=node, phase="Failed" if dice.draw_share() < 0.1 else "Running")


def index_of(pods: Mapping[str, PodInfo]) -> PodIndex:
    return PodIndex.from_pods(sorted(pods.values(), key=attrgetter("uid")))


@pytest.mark.parametrize("seed", range(8))
def test_changes_give_the_index_of_the_changed_pods(seed: int) -> None:
    dice, pods, index = Dice.for_purpose(seed, "pods"), dict[str, PodInfo](), PodIndex()
    for _ in range(30):
        changes: dict[str, PodInfo | None] = {}
        for number in {dice.draw_index(40) for _ in range(5)}:
            uid = f"p{number}"
            changes[uid] = draw_pod(dice, uid) if dice.draw_share() < 0.7 else None
        pods = {uid: pod for uid, pod in {**pods, **changes}.items() if pod is not None}
        index = index.with_changes(changes)
        assert index == index_of(pods)


def test_the_index_before_a_change_stays_as_it_was() -> None:
    pod = draw_pod(Dice.for_purpose(1, "pods"), "p1")
    before = index_of({"p1": pod})
    before.with_changes({"p1": None})
    assert before == index_of({"p1": pod})
