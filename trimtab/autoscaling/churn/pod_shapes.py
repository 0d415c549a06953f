"""Sizes and lifetimes of pods: from the published openb trace, or a generated set of the same kind."""

import csv
from collections.abc import Iterable
from dataclasses import dataclass

from trimtab.autoscaling.churn.dice import Dice

SPLIT = 32
"""One pod of the trace runs on a machine of 32 cores or more. A pod of the churn is a thirty-second of it."""
MIN_LIFETIME, MAX_LIFETIME = 60, 7200
"""Seconds. Pods of the trace that live longer count as services, which have no lifetime."""
GENERATED_COUNT = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class ChurnPodShape:
    """What one pod requests, and for how long it runs if it belongs to a Job."""

    millicores: int
    mebibytes: int
    seconds: int


def read_trace(lines: Iterable[str]) -> tuple[ChurnPodShape, ...]:
    """Returns the shapes of the pods in a file of the openb trace (openb_pod_list_….csv) that request no GPU and were
    not Pending, in the order of the file."""
    shapes = []
    for row in csv.DictReader(lines):
        if int(row["num_gpu"] or 0) or row["pod_phase"] == "Pending" or not row["deletion_time"]:
            continue
        seconds = int(float(row["deletion_time"]) - float(row["creation_time"]))
        shapes.append(
            ChurnPodShape(
                millicores=max(1, int(row["cpu_milli"]) // SPLIT),
                mebibytes=max(1, int(row["memory_mib"]) // SPLIT),
                seconds=min(MAX_LIFETIME, max(MIN_LIFETIME, seconds)),
            )
        )
    return tuple(shapes)


_SIZES = ((250, 256), (250, 953), (390, 1536), (390, 1600), (500, 1024), (1000, 1792), (1000, 2048))
"""(millicores, mebibytes) of a generated pod: amounts that a thirty-second of a pod of the trace often has."""


def generate_shapes(seed: int = 1) -> tuple[ChurnPodShape, ...]:
    """Returns shapes with lifetimes of which half are shorter than eight minutes, as in the trace."""
    dice = Dice.for_purpose(seed, "shapes")
    shapes = []
    for _ in range(GENERATED_COUNT):
        millicores, mebibytes = _SIZES[dice.draw_index(len(_SIZES))]
        seconds = int(150 * 2 ** (dice.draw_waiting_time(2.2)))
        shapes.append(
            ChurnPodShape(
                millicores=millicores, mebibytes=mebibytes, seconds=min(MAX_LIFETIME, max(MIN_LIFETIME, seconds))
            )
        )
    return tuple(shapes)
