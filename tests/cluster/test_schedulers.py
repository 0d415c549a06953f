"""What a KubeSchedulerConfiguration says of its scheduler's placement."""

import json
from typing import Any

import pytest

from trimtab.cluster.schedulers import SchedulerPlacement, find_schedulers

FIT = "NodeResourcesFit"
RISING = {"shape": [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]}


def placements(*profiles: Any) -> dict[str, SchedulerPlacement]:
    text = json.dumps({"kind": "KubeSchedulerConfiguration", "profiles": list(profiles)})
    return find_schedulers([{"config.yaml": text, "other": "KubeSchedulerConfiguration: ["}])


def strategy(**value: Any) -> list[dict[str, Any]]:
    return [{"name": FIT, "args": {"scoringStrategy": value}}]


@pytest.mark.parametrize(
    ("profile", "placement"),
    [
        ({}, SchedulerPlacement.SPREAD),
        ({"pluginConfig": strategy(type="LeastAllocated")}, SchedulerPlacement.SPREAD),
        ({"pluginConfig": strategy(type="MostAllocated")}, SchedulerPlacement.PACK),
        (
            {"pluginConfig": strategy(type="RequestedToCapacityRatio", requestedToCapacityRatio=RISING)},
            SchedulerPlacement.PACK,
        ),
        ({"pluginConfig": strategy(type="RequestedToCapacityRatio")}, SchedulerPlacement.SPREAD),
        (
            {"pluginConfig": "x", "plugins": {"score": {"disabled": [{"name": "ImageLocality"}]}}},
            SchedulerPlacement.SPREAD,
        ),
        ({"plugins": {"multiPoint": {"enabled": [{"name": "ImageLocality"}]}}}, SchedulerPlacement.SPREAD),
        ({"plugins": {"multiPoint": {"enabled": [{"name": "Coscheduling"}]}}}, SchedulerPlacement.UNKNOWN),
        ({"plugins": {"filter": {"disabled": [{"name": "*"}]}}}, SchedulerPlacement.UNKNOWN),
        ({"plugins": {"preFilter": {"enabled": [{"name": "Capacity"}]}}}, SchedulerPlacement.UNKNOWN),
        ({"plugins": []}, SchedulerPlacement.UNKNOWN),
    ],
)
def test_a_profile_says_where_pods_go(profile: dict[str, Any], placement: SchedulerPlacement) -> None:
    assert placements({"schedulerName": "mine", **profile}) == {"mine": placement}


def test_a_name_with_two_answers_is_unknown_and_the_default_schedulers_is_not_taken_from_there() -> None:
    packs = {"schedulerName": "mine", "pluginConfig": strategy(type="MostAllocated")}
    assert placements({"schedulerName": "mine"}, packs) == {"mine": SchedulerPlacement.UNKNOWN}
    assert placements({"schedulerName": "default-scheduler"}, "x", {}) == {}
