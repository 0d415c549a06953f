"""Why did the autoscaler not take an empty node?

As far as it tells: its annotations on the node, its settings, its status, its own soft taint on what it means to
remove. Where it is the node that keeps it, the node waits before it is tried again; where it is the autoscaler or its
group, emptying the next node would be for nothing too, and it counts against the pool.
"""

from collections.abc import Iterator

from trimtab.cluster.autoscaler import Autoscaler
from trimtab.cluster.node import Node
from trimtab.cluster.node_group import group_of
from trimtab.compaction.candidates import DELAY, NO_SCALE_DOWN
from trimtab.compaction.drain.actions import Blame
from trimtab.compaction.drain.note import Note
from trimtab.compaction.drain.terms import unneeded_time
from trimtab.compaction.drain.view import View

CANDIDATE = "DeletionCandidateOfClusterAutoscaler"
"""Its soft taint on a node it has no need of; the value says since when, in Unix seconds."""


def untaken(node: Node, note: Note, view: View, waits: int) -> tuple[str, Blame]:
    """In words, and whose fault it is; `waits`: seconds we have waited."""
    scaler = view.autoscaler
    if found := next(_node(node, view), ""):
        return found, Blame.NODE
    if scaler is None:
        return "no cluster autoscaler is to be seen", Blame.POOL
    if found := _unable(scaler, view) or _minimum(node, note, scaler):
        return found, Blame.POOL
    if found := _too_soon(node, scaler, view, waits):
        return found, Blame.NODE
    return f"nothing that we can see keeps it{_candidates(note, scaler)}", Blame.POOL


def _node(node: Node, view: View) -> Iterator[str]:
    """What lies on the node itself."""
    if node.annotations.get(NO_SCALE_DOWN) == "true":
        yield f"the node says {NO_SCALE_DOWN}"
    yield from (f"the node says {key}" for key in sorted(node.annotations) if key.startswith(DELAY))
    system = sorted(
        pod.key for pod in view.inventory.pods
        if pod.node == node.name and pod.namespace == "kube-system" and not (pod.daemon or pod.static or pod.finished)
    )  # fmt: skip
    if system:
        yield f"system pods are left on it: {', '.join(system)}"


def _unable(scaler: Autoscaler, view: View) -> str:
    if not scaler.scale_down:
        return "the autoscaler never removes nodes (--scale-down-enabled=false)"
    if scaler.silent(view.at) or not scaler.healthy:
        return "the autoscaler is silent or calls the cluster unhealthy"
    return ""


def _minimum(node: Node, note: Note, scaler: Autoscaler) -> str:
    own = group_of(node, scaler.groups)
    for group in (own,) if own is not None else scaler.of(note.pool):
        if group.min_size is not None and group.target is not None and group.target <= group.min_size:
            return f"group {group.name} is at its minimum of {group.min_size}"
    return ""


def _too_soon(node: Node, scaler: Autoscaler, view: View, waits: int) -> str:
    needs = unneeded_time(scaler, ready=node.ready)
    since = next((taint.value for taint in node.taints if taint.key == CANDIDATE), "")
    if since.isdecimal() and view.at - int(since) < needs:
        been = view.at - int(since)
        return f"not enough time: the autoscaler has had no need of it for {been} s and removes it after {needs} s"
    if waits < needs:
        return f"not enough time: the autoscaler removes what it had no need of for {needs} s"
    return ""


def _candidates(note: Note, scaler: Autoscaler) -> str:
    groups = scaler.of(note.pool)
    if not groups:
        return ""
    told = ", ".join(f"{group.candidates} in group {group.name}" for group in groups)
    return f"; the autoscaler tells of nodes it would remove: {told}"
