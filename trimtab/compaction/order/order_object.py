"""A DrainOrder: the drain of nodes that a user orders from the compactor, as an object of the compactor's namespace.

The spec never changes, and an admission policy ties its author to the user who created it (`author_policy`). The status
is for people and for `trimtab drain`: no decision trusts it. What it says can only keep the compactor from beginning an
order, such as one that has ended.
"""

from __future__ import annotations

import hashlib
from collections.abc import Container, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any

import msgspec

from trimtab.cluster.reason import Unreadable
from trimtab.cluster.timestamps import Seconds, parse_duration, parse_timestamp
from trimtab.compaction.drain.timeouts import DrainTimeouts
from trimtab.compaction.order.order_rules import FIELD_WORDS, OrderRules
from trimtab.compaction.order.record import MAX_ORDER_NODES, MAX_TEXT

GROUP, VERSION, KIND, PLURAL = "trimtab.dev", "v1alpha1", "DrainOrder", "drainorders"
MAX_GROUPS, MAX_GROUP_LENGTH = 64, 256
"""The largest number of groups of an author, and of characters of one."""
MAX_SELECTOR = 1000
MAX_AT_ONCE = 50
DURATION_PATTERN = r"^([0-9]{1,6}(s|m|h)){1,3}$"
TIME_PATTERN = (
    r"^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,9})?"
    r"(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$"
)
"""RFC 3339 without what some readers of it do not read: small letters, leap seconds, and 24:00."""
DEFAULT_POD_TIMEOUT = "5m"
Short = Annotated[str, msgspec.Meta(max_length=MAX_TEXT)]
NodeName = Annotated[str, msgspec.Meta(min_length=1, max_length=253)]


class Override(StrEnum):
    """What an order may disregard of the settings of pools."""

    WINDOWS = "Windows"
    """The windows in which a pool may be drained."""
    LIMITS = "Limits"
    """How many nodes of a pool are drained at a time, how many evictions it permits in an hour, and how many nodes it
    keeps."""


class Phase(StrEnum):
    """How far a DrainOrder is."""

    WAITING = "Waiting"
    """Nothing is cordoned yet."""
    DRAINING = "Draining"
    """Nodes are cordoned and emptied."""
    DONE = "Done"
    """All nodes are empty or gone. They stay cordoned until the DrainOrder is deleted."""
    FAILED = "Failed"
    """The order has ended, and not all nodes are empty."""
    REFUSED = "Refused"
    """The order was not begun, and will not be."""


FINAL_PHASES = (Phase.DONE, Phase.FAILED, Phase.REFUSED)
"""The phases in which an order is not continued."""


class OrderSpec(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The `spec` of a DrainOrder. It cannot be changed."""

    nodes: Annotated[tuple[NodeName, ...], msgspec.Meta(max_length=MAX_ORDER_NODES)] = ()
    """The names of the nodes to empty. Exactly one of `nodes`, `selector` and `pool` is set."""
    selector: Annotated[str, msgspec.Meta(max_length=MAX_SELECTOR)] = ""
    """A label selector in the form of `kubectl get -l`. The nodes that have the labels when the order is accepted are
    emptied."""
    pool: Annotated[str, msgspec.Meta(max_length=63)] = ""
    """The name of a pool. Its nodes when the order is accepted are emptied."""
    by: Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_TEXT)]
    """Your user name, as `kubectl auth whoami` shows it. The API server rejects any other name."""
    groups: Annotated[
        tuple[Annotated[str, msgspec.Meta(max_length=MAX_GROUP_LENGTH)], ...], msgspec.Meta(max_length=MAX_GROUPS)
    ] = ()
    """Those of your groups from which you have the permissions that the drain needs. The API server rejects a group
    that you are not in."""
    why: Short = ""
    """The reason, which other users see."""
    at_once: Annotated[int, msgspec.Meta(ge=1, le=MAX_AT_ONCE)] = 1
    """How many nodes are emptied at the same time, all of one zone."""
    keep_going: bool = False
    """Whether the nodes that can be emptied are emptied although others cannot."""
    force: bool = False
    """Whether pods that no controller recreates are evicted."""
    delete_empty_dir_data: bool = False
    """Whether pods with an emptyDir on the disk of the node are evicted."""
    override_protection: bool = False
    """Whether annotations that protect pods and nodes are ignored, and groups of pods are stopped."""
    until: Annotated[str, msgspec.Meta(max_length=64)] = ""
    """The time after which no further node is begun, in RFC 3339."""
    timeout: Annotated[str, msgspec.Meta(max_length=32)] = ""
    """The time after which no further pod is evicted, from the acceptance of the order, such as `2h`."""
    pod_timeout: Annotated[str, msgspec.Meta(max_length=32)] = DEFAULT_POD_TIMEOUT
    """How long a pod may still exist after its grace period, and a successor may take until it is ready."""
    override: tuple[Override, ...] = ()
    """What the order may disregard of the settings of pools: `Windows`, `Limits`. What it does disregard, the status
    says."""

    @property
    def rules(self) -> OrderRules:
        """What the author permits."""
        return OrderRules(
            evicts_bare_pods=self.force,
            deletes_local_data=self.delete_empty_dir_data,
            overrides_protection=self.override_protection,
            keeps_going=self.keep_going,
            at_once=self.at_once,
            words=FIELD_WORDS,
        )

    @property
    def timeouts(self) -> DrainTimeouts:
        """The time limits of pods and successors."""
        seconds = parse_duration(self.pod_timeout) or parse_duration(DEFAULT_POD_TIMEOUT) or 0
        return DrainTimeouts(ready=seconds, pending=seconds, end=seconds)

    @property
    def digest(self) -> str:
        """A hash of the spec, by which a changed spec is noticed."""
        return hashlib.sha256(msgspec.json.encode(self, order="deterministic")).hexdigest()[:32]


class OrderCondition(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One condition of a DrainOrder."""

    type: str
    """`Accepted`: whether the compactor carries the order out. `Complete`: whether all nodes are empty or gone."""
    status: str
    """`True`, `False` or `Unknown`."""
    reason: str
    """One word in CamelCase."""
    message: str
    """A sentence."""
    last_transition_time: str
    """When the status of the condition changed."""
    observed_generation: int = 1
    """The generation of the spec for which the condition is."""


class NodeRemark(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What is to be known of one node of an order."""

    node: str
    """The name of the node."""
    reason: str
    """The code of the reason, which `trimtab explain` explains."""
    message: str
    """A sentence."""


class NodePlan(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """When a node is emptied, according to the last plan."""

    node: str
    """The name of the node."""
    wave: int
    """The number of its wave, from 1."""
    evictions: int
    """The number of pods to evict."""


class OrderStatus(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The `status` of a DrainOrder. Only the compactor writes it."""

    phase: str = Phase.WAITING.value
    """`Waiting`, `Draining`, `Done`, `Failed` or `Refused`."""
    observed_generation: int = 1
    """The generation of the spec that the status is about."""
    reason: str = ""
    """The code of the reason for the phase or for the wait, which `trimtab explain` explains; empty if there is
    none."""
    message: str = ""
    """What the order waits for, or why it has ended, in a sentence."""
    nodes: int = 0
    """The number of nodes of the order."""
    empty: int = 0
    """The number of nodes that are empty, or gone."""
    cordoned: int = 0
    """The number of nodes that are cordoned for the order."""
    since: str = ""
    """When the order was accepted; empty before."""
    waves: int = 0
    """The number of waves of the last plan."""
    plan: tuple[NodePlan, ...] = ()
    """The nodes of the last plan in the order in which they are emptied; at most 50."""
    done: tuple[str, ...] = ()
    """The nodes that are empty, or gone; at most 50."""
    waiting: tuple[NodeRemark, ...] = ()
    """The nodes that wait, and for what; at most 20."""
    failed: tuple[NodeRemark, ...] = ()
    """The nodes that cannot be emptied, and why; at most 20."""
    overrides: tuple[str, ...] = ()
    """What the order disregards of the settings of pools, as sentences; at most 20."""
    conditions: tuple[OrderCondition, ...] = ()
    """The conditions `Accepted` and `Complete`."""


class _Metadata(msgspec.Struct, rename="camel"):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    generation: int = 1
    creation_timestamp: str = ""
    deletion_timestamp: str | None = None


class _Object(msgspec.Struct):
    metadata: _Metadata
    spec: msgspec.Raw = msgspec.Raw(b"{}")
    status: msgspec.Raw = msgspec.Raw(b"{}")


class _ListMetadata(msgspec.Struct, rename={"next_page": "continue"}):
    next_page: str = ""


class _List(msgspec.Struct):
    metadata: _ListMetadata = msgspec.field(default_factory=_ListMetadata)
    items: list[msgspec.Raw] = []


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderObject:
    """One DrainOrder as the API server has it."""

    name: str
    uid: str
    created: Seconds
    generation: int
    spec: OrderSpec | Unreadable
    """Unreadable if the definition in the cluster permits more than this version reads."""
    status: OrderStatus
    """What the status says; the default if it cannot be read."""
    stored_status: Any = None
    """The status as it is stored, to see whether it has to be written again."""

    @property
    def phase(self) -> str:
        """The phase in the status."""
        return self.status.phase


@dataclass(frozen=True, slots=True)
class OrderPage:
    """One page of a list of DrainOrders."""

    orders: list[OrderObject]
    """The orders, oldest first, without those that are being deleted, and without those that nothing is to be done
    for."""
    newest: Seconds
    """When the newest of all orders of the page was created."""
    next_page: str
    """The token of the next page; empty for the last one."""


def read_order_objects(body: bytes) -> list[OrderObject]:
    """Returns the DrainOrders of a list, oldest first, without those that are being deleted. Raises
    msgspec.DecodeError if the body is no list."""
    return read_order_page(body).orders


def read_order_page(body: bytes, known: Container[str] | None = None) -> OrderPage:
    """Returns a page of a list. Raises msgspec.DecodeError if the body is no list.

    known: the uids of orders that the reader has accepted. Of the others, those that have ended are left out: thousands
    of them would be decoded in every round. None: no order is left out."""
    objects, newest, page = [], 0, msgspec.json.decode(body, type=_List)
    for item in page.items:
        try:
            shape = msgspec.json.decode(item, type=_Object)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            continue  # without a uid, it is no object of an API server
        newest = max(newest, parse_timestamp(shape.metadata.creation_timestamp) or 0)
        if shape.metadata.deletion_timestamp is not None or not shape.metadata.uid:
            continue
        if known is None or shape.metadata.uid in known or not _has_ended(shape):
            objects.append(_read_object(shape))
    return OrderPage(sort_orders(objects), newest, page.metadata.next_page)


class _Glance(msgspec.Struct):
    phase: str = ""
    cordoned: int = 0


def _has_ended(shape: _Object) -> bool:
    """Returns whether the status says that the order has ended, and that no node is cordoned for it."""
    try:
        glance = msgspec.json.decode(shape.status, type=_Glance)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return False
    return glance.phase in FINAL_PHASES and not glance.cordoned


def sort_orders(orders: Iterable[OrderObject]) -> list[OrderObject]:
    """Returns the orders, oldest first."""
    return sorted(orders, key=lambda one: (one.created, one.name))


def _read_object(shape: _Object) -> OrderObject:
    metadata = shape.metadata
    spec: OrderSpec | Unreadable
    try:
        spec = msgspec.json.decode(shape.spec, type=OrderSpec)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        spec = Unreadable(f"DrainOrder {metadata.name}", str(error))
    if isinstance(spec, OrderSpec) and (problem := _time_problem(spec)):
        spec = Unreadable(f"DrainOrder {metadata.name}", problem)
    try:
        status = msgspec.json.decode(shape.status, type=OrderStatus)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        status = OrderStatus()
    return OrderObject(
        name=metadata.name,
        uid=metadata.uid,
        created=parse_timestamp(metadata.creation_timestamp) or 0,
        generation=metadata.generation,
        spec=spec,
        status=status,
        stored_status=msgspec.json.decode(shape.status),
    )


def _time_problem(spec: OrderSpec) -> str:
    """Returns which time limit cannot be read, because it must not count as none; empty if all can be."""
    if spec.until and parse_timestamp(spec.until) is None:
        return "until is not a timestamp in RFC 3339"
    for name, duration in (("timeout", spec.timeout), ("podTimeout", spec.pod_timeout)):
        if duration and parse_duration(duration) is None:
            return f"{name} is not a duration"
    return ""
