"""Finds the namespace for whose pods a drain still waits."""

from collections.abc import Mapping

from trimtab.cluster.pod import PodInfo
from trimtab.compaction.drain.annotation import DrainAnnotation
from trimtab.compaction.drain.cluster_view import Workloads, is_gone


def find_late_namespace(annotation: DrainAnnotation, pods: Mapping[str, PodInfo], workloads: Workloads) -> str:
    """Returns the only namespace for whose pods the drain waits; an empty string if there is none, or several.

    A drain waits for pods that terminate and for successors that are not ready. The pods of later turns wait for these
    too, so they are no cause. If there is nothing of that kind, the drain waits for the evictions of the next turn.

    `pods`: uid → pod, for the pods on the node.
    """
    remaining = [move for move in annotation.moves if move.uid in pods and not is_gone(pods[move.uid], workloads.view)]
    gone = [move for move in annotation.moves if move not in remaining]
    late = {move.namespace for move in gone if move.uid in pods or (move.owner and workloads.newly_missing(move))}
    if not late and remaining:
        turn = min(move.turn for move in remaining)
        late = {move.namespace for move in remaining if move.turn == turn}
    return next(iter(late)) if len(late) == 1 else ""
