"""Predicts the replica counts to which an HPA and a VPA drive each other at constant load.

Both follow the same usage: the HPA keeps mean usage ÷ request at its target, and the VPA sets the request to P90 + 15
%. With k = mean ÷ P90, the utilization after the VPA has acted is about k ÷ 1.15, whatever the load is. If that is
further from the target than the HPA's tolerance, the HPA changes the number of replicas, the VPA divides the same load
among the new number of pods, and so on.

The arithmetic is that of `podautoscaler/replica_calculator.go` and `metrics/utilization.go` (Kubernetes 1.36) and of
the recommender's `safetyMarginFraction` (VPA 1.6).
"""

from dataclasses import dataclass
from enum import StrEnum
from math import ceil

SAFETY_MARGIN = 1.15
"""The factor for the recommender's --recommendation-margin-fraction, which is 0.15."""
HPA_TOLERANCE = 0.1
"""The default of the controller manager's --horizontal-pod-autoscaler-tolerance."""
MAX_ROUNDS = 8


class ReplicaDirection(StrEnum):
    """How the number of replicas changes at constant load."""

    UP = "up"
    DOWN = "down"
    AT_REST = "at rest"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaPrediction:
    """What happens to a workload whose HPA and VPA follow the same resource."""

    counts: tuple[int, ...]
    """The numbers of replicas, one for each round of the VPA and the HPA; the first one is the present number."""
    direction: ReplicaDirection
    ends_at_bound: bool = False
    """Whether the number stops changing only because it has reached the HPA's minimum or maximum."""
    pull: ReplicaDirection = ReplicaDirection.AT_REST
    """The direction in which the HPA would change the last of the `counts`, if it had no minimum or maximum and could
    use fractions of pods."""


def predict_replicas(
    *,
    mean_to_p90: float,
    replicas: int,
    total: float,
    target_percent: int,
    min_replicas: int = 1,
    max_replicas: int = 200,
    tolerance: float = HPA_TOLERANCE,
    margin: float = SAFETY_MARGIN,
    max_rounds: int = MAX_ROUNDS,
) -> ReplicaPrediction:
    """Returns the numbers of replicas at the constant load `total` (millicores or bytes of all pods together).

    In each round, the VPA acts first and the HPA second. `mean_to_p90` is the workload's own ratio k, above 0 and at
    most 1.
    """
    counts = [replicas]
    for _ in range(max_rounds):
        count = counts[-1]
        request = max(1, int(total / count / mean_to_p90 * margin))
        utilization = int(total * 100 / (request * count))
        ratio = utilization / target_percent
        if abs(ratio - 1) > tolerance:
            count = min(max(ceil(_without_noise(count * ratio)), min_replicas), max_replicas)
        counts.append(count)
        if count == counts[-2]:
            break
    last = counts[-1]
    return ReplicaPrediction(
        counts=tuple(counts),
        direction=_direction_of(replicas, last),
        ends_at_bound=last != replicas and last in (min_replicas, max_replicas),
        pull=_pull_of(mean_to_p90, target_percent, tolerance, margin),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SettledReplicas:
    """The number of replicas and the request at which an HPA with an average value and a VPA no longer change
    anything."""

    replicas: int
    request: int
    """The request of each replica in millicores or bytes."""


def settle_on_average_value(
    *,
    total: float,
    average_value: float,
    mean_to_p90: float = 1.0,
    min_replicas: int = 1,
    max_replicas: int = 200,
    margin: float = SAFETY_MARGIN,
) -> SettledReplicas:
    """Returns the number of replicas and the request at the constant load `total`. The number depends on the load
    alone, and the request on the load of one replica, so it does not matter which of the two controllers acts first."""
    count = min(max(ceil(_without_noise(total / average_value)), min_replicas), max_replicas)
    return SettledReplicas(replicas=count, request=max(1, int(total / count / mean_to_p90 * margin)))


def _without_noise(number: float) -> float:
    """Returns the number without rounding errors in its last digits: 3 × 2.0000000000000004 must not be rounded up to
    7."""
    return round(number, 9)


def _pull_of(mean_to_p90: float, target_percent: int, tolerance: float, margin: float) -> ReplicaDirection:
    lowest, highest = targets_at_rest(mean_to_p90, tolerance, margin)
    if target_percent < lowest:
        return ReplicaDirection.UP
    return ReplicaDirection.DOWN if target_percent > highest else ReplicaDirection.AT_REST


def _direction_of(first: int, last: int) -> ReplicaDirection:
    if last == first:
        return ReplicaDirection.AT_REST
    return ReplicaDirection.UP if last > first else ReplicaDirection.DOWN


def targets_at_rest(
    mean_to_p90: float, tolerance: float = HPA_TOLERANCE, margin: float = SAFETY_MARGIN
) -> tuple[float, float]:
    """Returns (lowest, highest) target in percent at which the HPA changes nothing after the VPA has acted."""
    utilization = 100 * mean_to_p90 / margin
    return utilization / (1 + tolerance), utilization / (1 - tolerance)


def ratios_at_rest(
    target_percent: int, tolerance: float = HPA_TOLERANCE, margin: float = SAFETY_MARGIN
) -> tuple[float, float]:
    """Returns (lowest, highest) ratio k = mean ÷ P90 of a workload's usage at which an HPA with this target changes
    nothing after the VPA has acted."""
    ratio = target_percent / 100 * margin
    return ratio * (1 - tolerance), ratio * (1 + tolerance)


def describe_prediction(prediction: ReplicaPrediction) -> str:
    """Returns the prediction as a sentence, with the time that each round takes if the number of replicas changes."""
    counts = " → ".join(map(str, prediction.counts))
    if prediction.direction is ReplicaDirection.AT_REST:
        stays = f"At constant load the replica count stays at {prediction.counts[0]}"
        if prediction.pull is ReplicaDirection.AT_REST:
            return f"{stays}, as long as the ratio of the mean of the usage to its 90th percentile does not change."
        moves = "higher count falls" if prediction.pull is ReplicaDirection.DOWN else "lower count rises"
        return f"{stays}, but a {moves}, whatever the load is."
    bound = (
        "; only the bound of the HPA (minReplicas or maxReplicas) stops the change" if prediction.ends_at_bound else ""
    )
    if prediction.direction is ReplicaDirection.UP:
        speed = (
            "each round takes 3 to 4 days if the half-life of the VPA's recommender is 24 hours, and an hour if "
            "it is 15 minutes"
        )
    else:
        speed = (
            "each round takes hours if the half-life of the VPA's recommender is 24 hours, and minutes if it is "
            "15 minutes"
        )
    return f"At constant load the replica count goes {prediction.direction}: {counts}{bound}; {speed}."
