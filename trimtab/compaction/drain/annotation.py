"""What stands on a node that is being emptied, so that whoever comes next can go on or undo it?

The note is the value of `trimtab.dev/cordoned-for`, written in the same patch as the cordon, and signed: every kubelet
and every agent that may patch nodes can write an annotation. A cordon without an authentic note is not ours. The note
says what was decided; how far that got is read off the cluster itself.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Annotated

import msgspec
from msgspec.structs import replace as change

from trimtab.cluster.node import NodeInfo
from trimtab.cluster.reason import Unreadable
from trimtab.cluster.signature import SigningKeys
from trimtab.cluster.timestamps import Seconds
from trimtab.compaction.candidates import CORDONED_BY_US

VERSION = 1
_PURPOSE = f"node annotation {CORDONED_BY_US}"
SKEW = 60
"""Seconds that two clocks may differ."""


Word = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9_.-]{0,63}\Z")]
"""As a label's value: what nobody signed is printed on terminals, too."""
Moment = Annotated[Seconds, msgspec.Meta(ge=0, le=253_402_300_799)]
"""A time before the year 10000."""


class PodToEvict(msgspec.Struct, frozen=True, omit_defaults=True):
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
    wanted: int = 0
    """Pods that its owner wanted when the drain began; 0 where it does not say."""
    missing: int = 0
    """Of these, those that were not ready then: the drain does not wait for them."""

    @property
    def namespace(self) -> str:
        return self.pod.partition("/")[0]

    @property
    def workload(self) -> tuple[str, str, str]:
        """(namespace, kind, name) of the owner, as the inventory names it."""
        return self.namespace, self.kind, self.owner


class DrainAnnotation(msgspec.Struct, frozen=True, omit_defaults=True):
    drain: Word
    """Its name: a drain that ended is not counted twice."""
    pool: Word
    since: Moment
    home: Word = ""
    """Namespace of the compactor whose note it is: a second one in the cluster leaves it alone."""
    moves: tuple[PodToEvict, ...] = ()
    emptied: Moment | None = None
    """When the last successor was ready; None while it still is being emptied."""
    surges: dict[str, Annotated[int, msgspec.Meta(ge=1, le=1)]] = {}
    """namespace/Deployment that is given one replica more while its only pod moves → replicas it had before: one."""
    surged: dict[str, Moment] = {}
    """Of these what we set out to give one more, and when: written before it is done, after the state has it. Undone
    only where it stands here and in the state."""
    saves: int = 0
    """What the node's going saves, as the plan counted it."""
    unit: str = ""
    """What `saves` counts."""
    v: int = VERSION


@dataclass(frozen=True, slots=True)
class NotAuthentic:
    """An annotation that nobody may act upon: its signature is missing, wrong, or cannot be verified here."""

    node: str
    problem: str
    claim: DrainAnnotation | Unreadable
    """What it says."""

    def __str__(self) -> str:
        return f"annotation {CORDONED_BY_US} of node {self.node} is not authentic: {self.problem}"


@dataclass(frozen=True, slots=True)
class DrainAnnotations:
    """The notes on all nodes at one moment, by node."""

    ours: Mapping[str, DrainAnnotation | Unreadable] = field(default_factory=dict)
    """Signed by this compactor for this very node. Unreadable: by a later version of it."""
    others: Mapping[str, str] = field(default_factory=dict)
    """Namespace of another compactor whose note it claims to be."""
    doubtful: Mapping[str, NotAuthentic] = field(default_factory=dict)
    """Claimed to be ours, or claiming nothing that can be understood, and not authentic."""
    outdated: frozenset[str] = frozenset()
    """Nodes of ours whose note the previous key signed: to be signed anew before that key is forgotten."""


class _Signed(msgspec.Struct):
    """The annotation's value. The note's text is signed as it stands, so a later version's can be verified, too."""

    note: msgspec.Raw
    signature: str = ""


def write(note: DrainAnnotation, node: NodeInfo, keys: SigningKeys) -> str:
    """The annotation's value for this node: on another one, or after the node registered anew, it is not authentic."""
    text = msgspec.json.encode(note)
    signature = keys.sign(_PURPOSE, node.uid, node.name, text.decode())
    return msgspec.json.encode(_Signed(note=msgspec.Raw(text), signature=signature)).decode()


def read(node: NodeInfo, keys: SigningKeys | None) -> DrainAnnotation | Unreadable | NotAuthentic | None:
    """The node's note; None where there is none. Without keys none is authentic."""
    text = node.annotations.get(CORDONED_BY_US)
    if text is None:
        return None
    try:
        signed = msgspec.json.decode(text, type=_Signed)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return NotAuthentic(node.name, "it carries no signature", _decoded(node, text))
    said = bytes(signed.note).decode(errors="replace")
    if keys is None:
        return NotAuthentic(node.name, "unverified: the signing key is not at hand", _decoded(node, said))
    if not keys.verify(signed.signature, _PURPOSE, node.uid, node.name, said):
        return NotAuthentic(node.name, "its signature is not of this compactor for this node", _decoded(node, said))
    return _decoded(node, said)


def _decoded(node: NodeInfo, text: str) -> DrainAnnotation | Unreadable:
    """A note of a later version than ours is unreadable."""
    where = f"annotation {CORDONED_BY_US} of node {node.name}"
    try:
        found = msgspec.json.decode(text, type=DrainAnnotation)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        return Unreadable(where, str(error))
    return found if found.v == VERSION else Unreadable(where, f"it is of version {found.v}, we know {VERSION}")


def gathered(nodes: Iterable[NodeInfo], keys: SigningKeys | None, home: str) -> DrainAnnotations:
    """The notes on these nodes, as the compactor of namespace `home` may believe them."""
    ours: dict[str, DrainAnnotation | Unreadable] = {}
    others: dict[str, str] = {}
    doubtful: dict[str, NotAuthentic] = {}
    outdated: set[str] = set()
    for node in nodes:
        found = read(node, keys)
        if found is None:
            continue
        claim = found.claim if isinstance(found, NotAuthentic) else found
        if isinstance(claim, DrainAnnotation) and claim.home not in ("", home):
            others[node.name] = claim.home
        elif isinstance(found, NotAuthentic):
            doubtful[node.name] = found
        else:
            ours[node.name] = found
            if keys is not None and keys.previous and isinstance(read(node, keys.without_previous), NotAuthentic):
                outdated.add(node.name)
    return DrainAnnotations(ours, others, doubtful, frozenset(outdated))


def ahead(note: DrainAnnotation, now: Seconds) -> bool:
    """Was it written by a clock that was ahead of ours? Its deadlines would come too late, by hours or for ever."""
    return max(note.since, note.emptied or 0, *note.surged.values(), 0) > now + SKEW


def caught_up(note: DrainAnnotation, now: Seconds) -> DrainAnnotation:
    """The same note, nothing in it later than now."""
    return change(
        note, since=min(note.since, now), emptied=None if note.emptied is None else min(note.emptied, now),
        surged={name: min(when, now) for name, when in note.surged.items()},
    )  # fmt: skip
