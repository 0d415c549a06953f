"""Has a drain kept somebody waiting for too long?"""

from dataclasses import dataclass, replace

from trimtab.cluster.inventory import Inventory
from trimtab.cluster.node import Node
from trimtab.cluster.pod import Pod
from trimtab.compaction.candidates import CORDONED_BY_US
from trimtab.compaction.drain.actions import NOT_PLACED, NOT_STARTED, Blame, Release
from trimtab.compaction.drain.note import Note
from trimtab.compaction.drain.terms import Terms
from trimtab.compaction.drain.view import View, Workloads
from trimtab.packing.fit import admits
from trimtab.packing.kinds import Kind
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


@dataclass(slots=True)
class Waiting:
    """Pods that have waited for a node past their time; looked at once for all drains of a moment."""

    view: View
    terms: Terms
    _room: Room | None = None
    _kinds: list[tuple[str, Kind]] | None = None

    def only_on(self, node: Node) -> str:
        """The first of them (namespace/name) that would run on this node, were it open, and on no open one."""
        room, kinds = self._looked()
        if not kinds or room is None:
            return ""
        number = room.world.index[node.name]
        return next((name for name, kind in kinds if self._needs(room, kind, number)), "")

    def _needs(self, room: Room, kind: Kind, number: int) -> bool:
        """In the room all nodes that we cordoned are open: of them only the one that is asked for counts."""
        nodes = room.world.nodes
        ours = {n for n, node in enumerate(nodes) if CORDONED_BY_US in node.annotations}
        others = (n for n in range(len(nodes)) if n not in ours)
        return admits(room, kind, number) and not any(admits(room, kind, n) for n in others)

    def _looked(self) -> tuple[Room | None, list[tuple[str, Kind]]]:
        if self._kinds is None:
            late = {pod.key for pod in self.view.inventory.pods if self._is_late(pod)}
            world = build(_opened(self.view.inventory)) if late else None
            self._room = Room(world) if world is not None else None
            self._kinds = [(pod.key, kind) for pod, kind in world.waiting if pod.key in late] if world else []
        return self._room, self._kinds

    def _is_late(self, pod: Pod) -> bool:
        if not pod.seeking or pod.finished or pod.created is None:
            return False
        return self.view.at - pod.created > self.terms.pending


def _opened(inventory: Inventory) -> Inventory:
    """With every node that we cordoned open again."""
    return replace(inventory, nodes=tuple(map(_open, inventory.nodes)))


def _open(node: Node) -> Node:
    if CORDONED_BY_US not in node.annotations:
        return node
    return replace(node, cordoned=False, taints=tuple(taint for taint in node.taints if taint.key != CORDON))
