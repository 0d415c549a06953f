"""The soft taints with which the recorded autoscaler had marked nodes that it did not need when a stretch began.

A replay begins with them: the scheduler avoids such nodes, and without the taints those that are not removed first
would get the pods of the others.
"""

from __future__ import annotations

from trimtab.autoscaling.replay.recording import NodeLife, Stretch
from trimtab.cluster.api.core import Taint
from trimtab.cluster.node import CANDIDATE_TAINT
from trimtab.cluster.timestamps import Seconds


def list_marks(life: NodeLife) -> tuple[Taint, ...]:
    """Returns the soft taints that the autoscaler had given the node when it was first seen in the stretch."""
    return tuple(taint for taint in life.first.taints if taint.key == CANDIDATE_TAINT)


def list_unneeded(stretch: Stretch) -> dict[str, Seconds]:
    """Returns node → since when the recorded autoscaler had not needed it when the stretch began. The value of its soft
    taint is that time; where it says none, the stretch's beginning counts."""
    unneeded: dict[str, Seconds] = {}
    for life in stretch.nodes:
        for taint in list_marks(life) if life.is_initial else ():
            since = int(taint.value) if taint.value.isdecimal() else stretch.begin
            unneeded[life.node.name] = min(since, stretch.begin)
    return unneeded
