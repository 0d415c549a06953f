"""What stands on a node that is being emptied, so that whoever comes next can go on or undo it?

The note is the value of `trimtab.dev/cordoned-for`, written in the same patch as the cordon. A cordon without it is
not ours. It says what was decided; how far it got is read off the cluster itself.
"""

from collections.abc import Iterable

import msgspec
from msgspec.structs import replace as change

from trimtab.cluster.moment import Seconds
from trimtab.cluster.node import Node
from trimtab.cluster.reason import Unreadable
from trimtab.compaction.candidates import CORDONED_BY_US

VERSION = 1
SKEW = 60
"""Seconds that two clocks may differ."""


class Leaving(msgspec.Struct, frozen=True, omit_defaults=True):
    """One pod that goes with its node."""

    pod: str
    """namespace/name."""
    uid: str
    kind: str = ""
    """Of the owner that makes its successor; empty where nobody does."""
    owner: str = ""
    turn: int = 0
    priority: int = 0
    grace: int = 30
    """Seconds it may take to end."""

    @property
    def namespace(self) -> str:
        return self.pod.partition("/")[0]

    @property
    def workload(self) -> tuple[str, str, str]:
        """(namespace, kind, name) of the owner, as the inventory names it."""
        return self.namespace, self.kind, self.owner


class Note(msgspec.Struct, frozen=True, omit_defaults=True):
    drain: str
    """Its name: a drain that ended is not counted twice."""
    pool: str
    since: Seconds
    home: str = ""
    """Namespace of the compactor whose note it is: a second one in the cluster leaves it alone."""
    moves: tuple[Leaving, ...] = ()
    emptied: Seconds | None = None
    """When the last successor was ready; None while it still is being emptied."""
    surges: dict[str, int] = {}
    """namespace/Deployment that is given one replica more while its only pod moves → replicas it had before."""
    surged: dict[str, Seconds] = {}
    """Of these what we set out to give one more, and when: written before it is done, undone only where it stands."""
    saves: int = 0
    """What the node's going saves, as the plan counted it."""
    unit: str = ""
    """What `saves` counts."""
    v: int = VERSION


def write(note: Note) -> str:
    """The annotation's value."""
    return msgspec.json.encode(note).decode()


def read(node: Node) -> Note | Unreadable | None:
    """The node's note; None where there is none. A note of a later version than ours is unreadable."""
    text = node.annotations.get(CORDONED_BY_US)
    if text is None:
        return None
    where = f"annotation {CORDONED_BY_US} of node {node.name}"
    try:
        found = msgspec.json.decode(text, type=Note)
    except (msgspec.DecodeError, UnicodeError) as error:
        return Unreadable(where, str(error))
    return found if found.v == VERSION else Unreadable(where, f"it is of version {found.v}, we know {VERSION}")


def of_another(node: Node, home: str) -> str:
    """The namespace of the other compactor that empties this node; empty where none does."""
    found = read(node)
    return (found.home or "?") if isinstance(found, Note) and found.home != home else ""


def noted(nodes: Iterable[Node], home: str) -> list[tuple[Node, Note | Unreadable]]:
    """Nodes with a note of this namespace's, the oldest drain first: what was begun first ends first."""
    found = [(node, note) for node in nodes if (note := read(node)) is not None]
    found = [(node, note) for node, note in found if isinstance(note, Unreadable) or note.home == home]
    return sorted(found, key=lambda pair: (pair[1].since if isinstance(pair[1], Note) else 0, pair[0].name))


def ahead(note: Note, now: Seconds) -> bool:
    """Was it written by a clock that was ahead of ours? Its deadlines would come too late, by hours or for ever."""
    return max(note.since, note.emptied or 0, *note.surged.values(), 0) > now + SKEW


def caught_up(note: Note, now: Seconds) -> Note:
    """The same note, nothing in it later than now."""
    return change(
        note, since=min(note.since, now), emptied=None if note.emptied is None else min(note.emptied, now),
        surged={name: min(when, now) for name, when in note.surged.items()},
    )  # fmt: skip
