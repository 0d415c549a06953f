"""Reads DrainOrders and what their authors may do, and writes their status and Events."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Protocol

import msgspec

from trimtab.cluster.format_count import join_first
from trimtab.cluster.reason import Reason
from trimtab.cluster.timestamps import Seconds
from trimtab.compaction.order import reasons as o
from trimtab.compaction.order.author_policy import POLICY_NAME, PolicyReading
from trimtab.compaction.order.order_object import (
    GROUP,
    KIND,
    VERSION,
    OrderObject,
    OrderSpec,
    OrderStatus,
    read_order_page,
    sort_orders,
)
from trimtab.compaction.order.order_status import camel_case, to_document
from trimtab.compactor.order.order_rights import (
    AuthorReviews,
    list_missing_reads,
    list_missing_sight,
    list_missing_writes,
)
from trimtab.kube import objects
from trimtab.kube.errors import InvalidResponse, KubeFault, NotFound
from trimtab.kube.events import About, Recorder
from trimtab.kube.objects import Writer
from trimtab.kube.resources import LIST_SOURCES, collection_path

PAGE_SIZE, MAX_PAGES = 500, 10
"""How many DrainOrders are read in one request, and in how many requests. If there are more, none is carried out: a
part of the list would look as if the others had been deleted."""
MAX_NAMED_RIGHTS = 5


@dataclass(frozen=True, slots=True)
class ListedOrders:
    """The DrainOrders of the compactor's namespace."""

    orders: tuple[OrderObject, ...] = ()
    """The orders, oldest first, without those that have ended and that the compactor does not know."""
    newest: Seconds = 0
    """When the newest of all orders was created."""
    is_served: bool = True
    """Whether the API server serves DrainOrders."""


class OrderSource(Protocol):
    """Where orders come from, and what is known of their authors."""

    def list_orders(self, known: Container[str]) -> ListedOrders:
        """Returns the orders. `known`: the uids of those that the compactor has accepted. Raises KubeFault."""

    def read_author_policy(self) -> PolicyReading:
        """Returns the admission policy for authors and its binding. Raises KubeFault."""

    def begin_round(self) -> None:
        """Forgets what authors were permitted in the round before."""

    def sight_problem(self, spec: OrderSpec) -> Reason | None:
        """Returns why the author may not list nodes and pods, or why that is not known; None if the author may. The
        reasons of an order name nodes and namespaces."""

    def rights_problem(
        self, spec: OrderSpec, nodes: Iterable[str], namespaces: Iterable[str], *, reads: bool
    ) -> Reason | None:
        """Returns the permissions that the author lacks, or why they are not known; None if the author has all.

        nodes: the nodes to cordon. namespaces: those of the pods to evict. reads: whether the permissions to read are
        asked, too."""

    def write_status(self, order: OrderObject, status: OrderStatus) -> None:
        """Writes the status. Raises KubeFault."""

    def report_event(self, order: OrderObject, reason: Reason, *, is_warning: bool) -> None:
        """Reports an Event on the order. Raises nothing."""


@dataclass(slots=True)
class KubeOrderSource:
    """Reads from the API server, and writes while this replica leads."""

    writer: Writer
    namespace: str
    recorder: Recorder
    elapsed: Callable[[], float]
    """Returns the monotonic time in seconds."""
    reviews: AuthorReviews = field(init=False)

    def __post_init__(self) -> None:
        self.reviews = AuthorReviews(self.writer.client, self.elapsed)

    def list_orders(self, known: Container[str]) -> ListedOrders:
        # Without a resourceVersion: an older list could lack an order that another leader has accepted already.
        path, doing = collection_path(LIST_SOURCES[KIND], self.namespace), "list drainorders"
        orders: list[OrderObject] = []
        newest = 0
        query: dict[str, str | int | None] = {"limit": PAGE_SIZE}
        for _ in range(MAX_PAGES):
            try:
                page = read_order_page(self.writer.client.get(path, query, doing=doing), known)
            except NotFound:
                return ListedOrders(is_served=False)
            except (msgspec.DecodeError, UnicodeError) as error:
                raise InvalidResponse(f"{doing}: {error}") from error
            orders += page.orders
            newest = max(newest, page.newest)
            if not page.next_page:
                return ListedOrders(tuple(sort_orders(orders)), newest)
            query["continue"] = page.next_page
        raise InvalidResponse(f"{doing}: there are more than {PAGE_SIZE * MAX_PAGES} DrainOrders")

    def read_author_policy(self) -> PolicyReading:
        client = self.writer.client
        return PolicyReading(
            policy=objects.get_plain(client, "ValidatingAdmissionPolicy", POLICY_NAME),
            binding=objects.get_plain(client, "ValidatingAdmissionPolicyBinding", POLICY_NAME),
        )

    def begin_round(self) -> None:
        self.reviews.begin_round()

    def sight_problem(self, spec: OrderSpec) -> Reason | None:
        return _describe_missing(spec.by, list_missing_sight(self.reviews.access_of(spec.by, spec.groups)))

    def rights_problem(
        self, spec: OrderSpec, nodes: Iterable[str], namespaces: Iterable[str], *, reads: bool
    ) -> Reason | None:
        access = self.reviews.access_of(spec.by, spec.groups)
        reading = list_missing_reads(access) if reads else ()
        return _describe_missing(spec.by, chain(list_missing_writes(access, nodes, namespaces), reading))

    def write_status(self, order: OrderObject, status: OrderStatus) -> None:
        # With the uid: the status of an order that was deleted and created again is another one's.
        body = {"metadata": {"uid": order.uid}, "status": to_document(status)}
        objects.merge_status(self.writer, KIND, order.name, self.namespace, body)

    def report_event(self, order: OrderObject, reason: Reason, *, is_warning: bool) -> None:
        about = About(
            kind=KIND, name=order.name, namespace=self.namespace, uid=order.uid, api_version=f"{GROUP}/{VERSION}"
        )
        self.recorder.record_event(
            about, camel_case(reason.code.name), reason.sentence, action="Drain", warning=is_warning
        )


def _describe_missing(author: str, missing_rights: Iterator[str]) -> Reason | None:
    """Returns the permissions that the author lacks, or why they are not known; None if there are none."""
    missing: list[str] = []
    try:
        # One more than is named: an author without permissions does not cost a review for each node.
        missing.extend(islice(missing_rights, MAX_NAMED_RIGHTS + 1))
    except KubeFault as error:
        # One permission that is missing suffices.
        if not missing:
            return o.RIGHTS_UNKNOWN(f"it is not known what {author} may do: {error}")
    if missing:
        return o.AUTHOR_MAY_NOT(f"{author} may not {join_first(missing, MAX_NAMED_RIGHTS)}")
    return None
