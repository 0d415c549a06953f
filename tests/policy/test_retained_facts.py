"""The parts of objects that are retained for policies and plans."""

import msgspec
import pytest

from trimtab.cluster.api.autoscaling import VerticalPodAutoscaler
from trimtab.policy.watched_facts import retain_vpa, retain_vpa_with_growth


def recommending(mode: str) -> VerticalPodAutoscaler:
    text = {"containerName": "main", "target": {"cpu": "1"}, "upperBound": {"cpu": "2"}, "lowerBound": {"cpu": "500m"}}
    shape = {
        "metadata": {"name": "web", "namespace": "team"},
        "spec": {"updatePolicy": {"updateMode": mode}},
        "status": {"recommendation": {"containerRecommendations": [text]}},
    }
    return msgspec.convert(shape, VerticalPodAutoscaler)


@pytest.mark.parametrize(
    ("mode", "held"), [("InPlace", {"cpu": "2"}), ("InPlaceOrRecreate", {"cpu": "2"}), ("Recreate", {})]
)
def test_upper_bounds_are_held_for_plans_alone_and_where_pods_are_resized_in_place(
    mode: str, held: dict[str, str]
) -> None:
    [planned] = retain_vpa_with_growth(recommending(mode)).status.recommendation.container_recommendations
    [decided] = retain_vpa(recommending(mode)).status.recommendation.container_recommendations
    assert (planned.target, planned.upper_bound, planned.lower_bound) == ({"cpu": "1"}, held, {})
    assert (decided.target, decided.upper_bound) == ({"cpu": "1"}, {})
