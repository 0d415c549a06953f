"""The annotation on a node that is being drained. With it, another replica of the compactor can continue or undo the
drain.

It is the value of `trimtab.dev/cordoned-for`, written in the same patch as the cordon. It is signed, because every
kubelet and every agent that may patch nodes can write an annotation. A cordon without an authentic annotation is not
treated as this compactor's own. The annotation records the decision; the progress is read from the cluster itself.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Annotated

import msgspec
from msgspec.structs import replace as change

from trimtab.cluster.kinds import DEPLOYMENT, GroupKind
from trimtab.cluster.node import NodeInfo
from trimtab.cluster.owner import OwnerKey
from trimtab.cluster.pool import MAX_SURGE
from trimtab.cluster.reason import Unreadable
from trimtab.cluster.signature import SigningKeys
from trimtab.cluster.timestamps import Seconds
from trimtab.compaction.candidates import CORDONED_BY_US

VERSION = 1
_PURPOSE = f"node annotation {CORDONED_BY_US}"
MAX_REPLICAS = 1_000_000
"""The largest number of replicas that an annotation may name."""
MAX_CLOCK_SKEW_SECONDS = 60
"""How many seconds the clocks of two machines may differ."""


Word = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9_.-]{0,63}\Z")]
"""Text with only the characters and the length of a label value. Other text is rejected, because an annotation may be
printed on a terminal even if its signature is not valid."""
Moment = Annotated[Seconds, msgspec.Meta(ge=0, le=253_402_300_799)]
"""A time in seconds since 1970, before the year 10000."""


class PodToEvict(msgspec.Struct, frozen=True, omit_defaults=True):
    """One pod that is evicted from the node."""

    pod: str
    """The pod as namespace/name."""
    uid: str
    kind: GroupKind = GroupKind("")
    """The kind, with its group, of the owner that creates the pod's successor; empty if nothing creates one."""
    owner: str = ""
    turn: int = 0
    """The number of the turn in which the pod is evicted. A turn begins when the successors of the previous turn are
    ready."""
    priority: int = 0
    grace: int = 30
    """The pod's termination grace period in seconds."""
    wanted: int = 0
    """The number of replicas that the pod's owner wanted when the drain began; 0 if that is unknown."""
    missing: int = 0
    """How many of the wanted replicas were not ready when the drain began. The drain does not wait for these."""

    group: str = ""
    """The group of pods that are evicted at the same time, as namespace/name; empty if the pod has none on other
    nodes."""

    @property
    def namespace(self) -> str:
        """The pod's namespace."""
        return self.pod.partition("/")[0]

    @property
    def owner_key(self) -> OwnerKey:
        """The pod's owner."""
        return OwnerKey(self.namespace, self.kind, self.owner)


class AutoscalerFloor(msgspec.Struct, frozen=True):
    """What `minReplicas` of a HorizontalPodAutoscaler was before a drain raised it."""

    autoscaler: Annotated[str, msgspec.Meta(pattern=r"^[a-z0-9.-]{1,253}\Z")]
    """The name of the HorizontalPodAutoscaler, in the namespace of its Deployment."""
    before: Annotated[int, msgspec.Meta(ge=1, le=MAX_REPLICAS)]


class OrderMark(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is to be known of the DrainOrder for which a node is drained."""

    order: Word
    """The uid of the DrainOrder."""
    waits: bool = False
    """Whether the node is cordoned for the order, and its drain has not begun."""
    was_cordoned: bool = False
    """Whether another client had cordoned the node before, so that it stays cordoned when it is released."""


class DrainAnnotation(msgspec.Struct, frozen=True, omit_defaults=True):
    """One drain, as it is written into the annotation of its node."""

    drain: Word
    """The name of the drain, by which a drain that has ended is recognised and not counted twice."""
    pool: Word
    since: Moment
    """When the drain began."""
    home: Word = ""
    """The namespace of the compactor that wrote the annotation. Other compactors of the cluster leave the node
    alone."""
    moves: tuple[PodToEvict, ...] = ()
    companions: tuple[PodToEvict, ...] = ()
    """The pods on other nodes that are evicted together with pods of their groups."""
    emptied: Moment | None = None
    """When the last successor became ready, so that the node was empty; None while the node is being drained."""
    surges: dict[str, Annotated[int, msgspec.Meta(ge=1, le=MAX_REPLICAS)]] = {}
    """Deployment (namespace/name) that gets more pods while a pod of it moves → its number of replicas before the
    drain."""
    extras: dict[str, Annotated[int, msgspec.Meta(ge=1, le=MAX_SURGE)]] = {}
    """Deployment of `surges` → the number of additional pods that its disruption budget needs; 1 if it is absent."""
    floors: dict[str, AutoscalerFloor] = {}
    """Deployment of `surges` whose count a HorizontalPodAutoscaler writes → its `minReplicas` before the drain, which
    is raised instead of the count."""
    surged: dict[str, Moment] = {}
    """Deployment (namespace/name) → when it was given more pods (a surge). The entry is written into the pool's state
    first, then here, and then the Deployment is scaled. A surge is undone only if both the annotation and the state
    have an entry for it."""
    saves: int = 0
    """What the removal of the node saves according to the plan, in `unit`."""
    unit: str = ""
    """The unit of `saves`."""
    order: OrderMark | None = None
    """The DrainOrder for which the node is drained; None: the compactor drains it to save the node."""
    v: int = VERSION

    def extra_of(self, deployment: str) -> int:
        """Returns the number of additional pods of a Deployment of `surges`."""
        return self.extras.get(deployment, 1)

    def surged_count(self, deployment: str) -> int:
        """Returns the count of a Deployment of `surges` with its additional pods."""
        return self.surges.get(deployment, 1) + self.extra_of(deployment)


@dataclass(frozen=True, slots=True)
class NotAuthentic:
    """An annotation that must have no effect: its signature is missing, wrong, or cannot be verified here."""

    node: str
    problem: str
    claim: DrainAnnotation | Unreadable
    """The content of the annotation, which is not verified."""

    def __str__(self) -> str:
        return f"annotation {CORDONED_BY_US} of node {self.node} is not authentic: {self.problem}"


@dataclass(frozen=True, slots=True)
class DrainAnnotations:
    """The annotations on all nodes at one time, by node."""

    ours: Mapping[str, DrainAnnotation | Unreadable] = field(default_factory=dict)
    """The annotations that this compactor has signed for the node that has them. Unreadable: a later version of Trimtab
    wrote it."""
    others: Mapping[str, str] = field(default_factory=dict)
    """Node → namespace of the other compactor that its annotation names."""
    doubtful: Mapping[str, NotAuthentic] = field(default_factory=dict)
    """Annotations without a valid signature that either name this compactor or cannot be read."""
    ordered: Mapping[str, DrainAnnotation] = field(default_factory=dict)
    """The annotations of DrainOrders that this compactor has signed for the node that has them. They are not in
    `ours`: only the steps of orders act on them."""
    outdated: frozenset[str] = frozenset()
    """Nodes whose annotation was signed with the previous key. They must be signed again before that key is removed."""

    @property
    def signed(self) -> Mapping[str, DrainAnnotation | Unreadable]:
        """The annotations that this compactor has signed: of its own wish, and of DrainOrders."""
        return {**self.ours, **self.ordered}


class _Signed(msgspec.Struct):
    """The annotation's value. The payload is signed as text, so that the signature of a later version can be verified
    even if the payload cannot be decoded."""

    note: msgspec.Raw
    signature: str = ""


def encode_annotation(annotation: DrainAnnotation, node: NodeInfo, keys: SigningKeys) -> str:
    """Returns the annotation's value for this node. The value is not authentic on another node, or after the node has
    registered again."""
    text = msgspec.json.encode(annotation)
    # The signature covers the node's uid: an annotation that is copied to another node, or to a new node of the name,
    # fails.
    signature = keys.sign(_PURPOSE, node.uid, node.name, text.decode())
    return msgspec.json.encode(_Signed(note=msgspec.Raw(text), signature=signature)).decode()


def read_annotation(node: NodeInfo, keys: SigningKeys | None) -> DrainAnnotation | Unreadable | NotAuthentic | None:
    """Returns the content of the node's annotation, or None if there is none. Without keys, no annotation is
    authentic."""
    text = node.annotations.get(CORDONED_BY_US)
    if text is None:
        return None
    try:
        # RecursionError: any client may write a deeply nested value.
        signed = msgspec.json.decode(text, type=_Signed)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return NotAuthentic(node.name, "the annotation has no signature", _decode_payload(node, text))
    payload = bytes(signed.note).decode(errors="replace")
    if keys is None:
        return NotAuthentic(
            node.name,
            "the signature of the annotation cannot be verified, because the signing key is not available",
            _decode_payload(node, payload),
        )
    if not keys.verify(signed.signature, _PURPOSE, node.uid, node.name, payload):
        return NotAuthentic(
            node.name,
            "this compactor did not make the signature of the annotation for this node",
            _decode_payload(node, payload),
        )
    return _decode_payload(node, payload)


def _decode_payload(node: NodeInfo, text: str) -> DrainAnnotation | Unreadable:
    """Returns the content of the payload; Unreadable if a later version of Trimtab wrote it."""
    where = f"annotation {CORDONED_BY_US} of node {node.name}"
    try:
        annotation = msgspec.json.decode(text, type=DrainAnnotation)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        return Unreadable(where, str(error))
    if annotation.v != VERSION:
        return Unreadable(
            where, f"the annotation has the version {annotation.v}, but this Trimtab reads version {VERSION}"
        )
    return annotation


def read_annotations(nodes: Iterable[NodeInfo], keys: SigningKeys | None, home: str) -> DrainAnnotations:
    """Returns the annotations on these nodes. They are grouped by whether the compactor of namespace `home` may act on
    them."""
    ours: dict[str, DrainAnnotation | Unreadable] = {}
    others: dict[str, str] = {}
    doubtful: dict[str, NotAuthentic] = {}
    ordered: dict[str, DrainAnnotation] = {}
    outdated: set[str] = set()
    for node in nodes:
        annotation = read_annotation(node, keys)
        if annotation is None:
            continue
        claim = annotation.claim if isinstance(annotation, NotAuthentic) else annotation
        if isinstance(claim, DrainAnnotation) and claim.home not in ("", home):
            others[node.name] = claim.home
        elif isinstance(annotation, NotAuthentic):
            doubtful[node.name] = annotation
        else:
            if isinstance(annotation, DrainAnnotation) and annotation.order is not None:
                ordered[node.name] = annotation
            else:
                ours[node.name] = annotation
            if (
                keys is not None
                and keys.previous
                and isinstance(read_annotation(node, keys.without_previous), NotAuthentic)
            ):
                outdated.add(node.name)
    return DrainAnnotations(ours, others, doubtful, ordered, frozenset(outdated))


def surging_deployments(annotations: DrainAnnotations) -> frozenset[OwnerKey]:
    """Returns the Deployments that a drain in progress gives more pods, or is about to give some."""
    drains = (each for each in annotations.ours.values() if isinstance(each, DrainAnnotation) and each.emptied is None)
    return frozenset(deployment_key(name) for drain in drains for name in drain.surges)


def deployment_key(name: str) -> OwnerKey:
    """Returns the key of a Deployment that an annotation names as namespace/name."""
    namespace, _, own = name.partition("/")
    return OwnerKey(namespace, DEPLOYMENT, own)


def is_ahead(annotation: DrainAnnotation, now: Seconds) -> bool:
    """Returns whether the annotation has a time in the future, written by a machine whose clock is ahead. Deadlines
    calculated from such a time would be too late."""
    return max(annotation.since, annotation.emptied or 0, *annotation.surged.values(), 0) > now + MAX_CLOCK_SKEW_SECONDS


def clamp_to_now(annotation: DrainAnnotation, now: Seconds) -> DrainAnnotation:
    """Returns the annotation with times in the future replaced by now."""
    return change(
        annotation,
        since=min(annotation.since, now),
        emptied=None if annotation.emptied is None else min(annotation.emptied, now),
        surged={name: min(time, now) for name, time in annotation.surged.items()},
    )
