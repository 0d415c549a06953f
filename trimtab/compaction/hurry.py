"""Has a drain kept somebody waiting for too long?"""

from dataclasses import replace

from trimtab.cluster.inventory import Inventory
from trimtab.cluster.node import Node
from trimtab.compaction.actions import NOT_PLACED, NOT_STARTED, Blame, Release
from trimtab.compaction.note import Note
from trimtab.compaction.terms import Terms
from trimtab.compaction.view import View, Workloads
from trimtab.packing.fit import admits
from trimtab.packing.room import Room
from trimtab.packing.world import build

CORDON = "node.kubernetes.io/unschedulable"


def late(view: View, workloads: Workloads, note: Note, terms: Terms) -> Release | None:
    """A successor of the drain's pods without a node, or not ready, past its time; None while all is well."""
    for key in dict.fromkeys(move.workload for move in note.moves if move.owner):
        if not workloads.missing(key):
            continue
        for pod in workloads.unready.get(key, ()):
            if pod.created is None or pod.created < note.since:
                continue
            age = view.at - pod.created
            if not pod.node and age > terms.pending:
                return Release(NOT_PLACED(f"pod {pod.key} finds no node for {age} s"), Blame.POOL)
            if age > terms.ready:
                return Release(NOT_STARTED(f"pod {pod.key} is not ready after {age} s"), Blame.POOL)
    return None


def would_fit(view: View, node: Node, terms: Terms) -> str:
    """The first pod (namespace/name) that waits for a node past its time and would run on this one, were it open."""
    waiting = {
        pod.key
        for pod in view.inventory.pods
        if not pod.node and not pod.finished and pod.created is not None and view.at - pod.created > terms.pending
    }
    if not waiting:
        return ""
    world = build(_opened(view.inventory, node))
    room, number = Room(world), world.index[node.name]
    return next((pod.key for pod, kind in world.waiting if pod.key in waiting and admits(room, kind, number)), "")


def _opened(inventory: Inventory, node: Node) -> Inventory:
    taints = tuple(taint for taint in node.taints if taint.key != CORDON)
    opened = replace(node, cordoned=False, taints=taints)
    return replace(inventory, nodes=tuple(opened if n is node else n for n in inventory.nodes))
