"""A small simulated cluster, and a door to it: the compactor's own loop works on it, and no clock is asked.

Pods have successors at once, on the emptiest node that takes them and is not about to go, ready after a while; what was
emptied is taken by an autoscaler that waits some minutes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from trimtab.cluster.api.meta import change
from trimtab.cluster.api.node import Taint
from trimtab.cluster.autoscaler import Autoscaler
from trimtab.cluster.inventory import Inventory, Scale
from trimtab.cluster.moment import Seconds
from trimtab.cluster.node import Node
from trimtab.cluster.pod import Pod
from trimtab.cluster.pool import Pool
from trimtab.cluster.reason import Unreadable
from trimtab.compaction.candidates import CORDONED_BY_US
from trimtab.compaction.drain.memory import Memory, Record
from trimtab.compaction.drain.note import Leaving, Note, read, write
from trimtab.compaction.drain.view import View
from trimtab.compactor.doors import Answer, Became
from trimtab.compactor.steering import LEAVING, tainted
from trimtab.packing.fit import admits
from trimtab.packing.room import Room
from trimtab.packing.world import build

START_UP, TAKEN = 30, 600
"""Seconds until a new pod is ready, and until an empty node is taken."""
Key = tuple[str, str, str]


@dataclass(slots=True)
class Stage:
    inventory: Inventory
    pool: Pool
    at: Seconds
    records: list[Record] = field(default_factory=list)
    evicted: int = 0
    short: int = 0
    """Times a budget was broken."""
    _wanted: Counter[Key] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self._wanted = Counter(key for pod in self.inventory.pods if (key := _key(pod)) is not None)
        self._count()

    # ── what the compactor sees ──────────────────────────────────────────────────────────────────────
    def look(self) -> View:
        """What is there now."""
        return View(
            at=self.at, inventory=self.inventory, pools=(self.pool,), home="trimtab-system",
            autoscaler=Autoscaler(updated=self.at, threshold=0),
            versions={node.name: "1" for node in self.inventory.nodes},
        )  # fmt: skip

    def load(self) -> Mapping[str, Memory | Unreadable]:
        return {}

    def save(self, pool: str, memory: Memory) -> None:
        pass

    # ── what it does ─────────────────────────────────────────────────────────────────────────────────
    @property
    def rehearsal(self) -> bool:
        return False

    def cordon(self, node: str, version: str, note: Note) -> None:
        self._set(node, cordoned=True, note=write(note))

    def release(self, node: str, version: str, *, uncordon: bool) -> None:
        self._set(node, cordoned=not uncordon, note="")

    def evict(self, move: Leaving) -> Answer:
        """The pod goes, and its successor is there, not ready yet."""
        [pod] = [pod for pod in self.inventory.pods if pod.uid == move.uid]
        self.evicted += 1
        left = tuple(other for other in self.inventory.pods if other is not pod)
        self.inventory = replace(self.inventory, pods=left)
        name = f"{pod.name.partition('.')[0]}.{self.evicted}"
        made = change(
            pod, name=name, uid=name, created=self.at, ready=False, node=self._place(change(pod, node="")), alike=-1
        )
        self.inventory = replace(self.inventory, pods=(*left, made))
        self._count()
        return Answer(became=Became.EVICTED)

    def scale(self, deployment: str, before: int, replicas: int) -> bool:
        return False

    def steer(self, node: Node, version: str, *, leaving: bool) -> None:
        others = tuple(taint for taint in node.taints if taint.key != LEAVING)
        ours = (Taint(key=LEAVING, effect="PreferNoSchedule"),) if leaving else ()
        self._replace(replace(node, taints=(*others, *ours)))

    def tell(self, record: Record) -> None:
        self.records.append(record)

    # ── what happens by itself ───────────────────────────────────────────────────────────────────────
    def pass_time(self, seconds: int) -> None:
        """Pods become ready, budgets are counted, empty nodes are taken."""
        self.at += seconds
        pods = tuple(_later(pod, self.at) for pod in self.inventory.pods)
        nodes = tuple(node for node in self.inventory.nodes if not self._is_taken(node))
        self.inventory = replace(self.inventory, pods=pods, nodes=nodes)
        self._count()

    def _is_taken(self, node: Node) -> bool:
        note = read(node)
        return isinstance(note, Note) and note.emptied is not None and self.at - note.emptied >= TAKEN

    def _place(self, pod: Pod) -> str:
        """The scheduler that spreads; what is about to go comes last."""
        world = build(replace(self.inventory, pods=(*self.inventory.pods, pod)))
        room, [(_, kind)] = Room(world), world.waiting
        fits = [number for number in range(len(world.nodes)) if admits(room, kind, number)]
        best = min(fits, key=lambda n: (tainted(world.nodes[n], ""), -room.major[n], n), default=None)
        return "" if best is None else world.nodes[best].name

    def _count(self) -> None:
        """As the controllers of owners and budgets would."""
        have = Counter(key for pod in self.inventory.pods if (key := _key(pod)) is not None)
        ready = Counter(key for pod in self.inventory.pods if (key := _key(pod)) is not None and pod.ready)
        owners = {key: Scale(wanted=n, have=have[key], ready=ready[key]) for key, n in self._wanted.items()}
        budgets = []
        for budget in self.inventory.budgets:
            missing = sum(self._wanted[key] - ready[key] for key in self._wanted if key[2] == budget.name)
            self.short += missing > budget.most
            budgets.append(replace(budget, allowed=max(0, budget.most - missing), whole=missing <= budget.most))
        self.inventory = replace(self.inventory, owners=owners, budgets=tuple(budgets))

    def _set(self, name: str, *, cordoned: bool, note: str) -> None:
        [node] = [node for node in self.inventory.nodes if node.name == name]
        kept = {key: text for key, text in node.annotations.items() if key != CORDONED_BY_US}
        self._replace(replace(node, cordoned=cordoned, annotations={**kept, CORDONED_BY_US: note} if note else kept))

    def _replace(self, made: Node) -> None:
        nodes = tuple(made if node.name == made.name else node for node in self.inventory.nodes)
        self.inventory = replace(self.inventory, nodes=nodes)


def _key(pod: Pod) -> Key | None:
    return (pod.namespace, pod.owner.kind, pod.owner.name) if pod.owner is not None else None


def _later(pod: Pod, now: Seconds) -> Pod:
    born = pod.created or 0
    return change(pod, ready=True) if not pod.ready and pod.node and now - born >= START_UP else pod
