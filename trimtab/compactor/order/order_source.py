"""Reads DrainOrders and what their authors may do, and writes their status and Events."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

import msgspec

from trimtab.cluster.format_count import join_first
from trimtab.cluster.reason import Reason
from trimtab.compaction.order import reasons as o
from trimtab.compaction.order.author_policy import MARGIN_SECONDS, POLICY_NAME, in_force_since, policy_problem
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
from trimtab.compaction.order.order_status import to_document
from trimtab.compactor.order.order_rights import UserAccess, list_missing_reads, list_missing_writes
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
    is_served: bool = True
    """Whether the API server serves DrainOrders."""


class OrderSource(Protocol):
    """Where orders come from, and what is known of their authors."""

    def list_orders(self) -> ListedOrders:
        """Returns the orders. Raises KubeFault."""

    def author_problem(self, order: OrderObject) -> Reason | None:
        """Returns why it is not certain that the user whom the order names created it; None if it is. Raises
        KubeFault."""

    def rights_problem(
        self, spec: OrderSpec, nodes: Iterable[str], namespaces: Iterable[str], *, reads: bool
    ) -> Reason | None:
        """Returns the permissions that the author lacks, or why they are not known; None if the author has all."""

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

    def list_orders(self) -> ListedOrders:
        # Without a resourceVersion: an older list could lack an order that another leader has accepted already.
        path, doing = collection_path(LIST_SOURCES[KIND], self.namespace), "list drainorders"
        orders: list[OrderObject] = []
        query: dict[str, str | int | None] = {"limit": PAGE_SIZE}
        for _ in range(MAX_PAGES):
            try:
                page = read_order_page(self.writer.client.get(path, query, doing=doing))
            except NotFound:
                return ListedOrders(is_served=False)
            except (msgspec.DecodeError, UnicodeError) as error:
                raise InvalidResponse(f"{doing}: {error}") from error
            orders += page.orders
            if not page.next_page:
                return ListedOrders(tuple(sort_orders(orders)))
            query["continue"] = page.next_page
        raise InvalidResponse(f"{doing}: there are more than {PAGE_SIZE * MAX_PAGES} DrainOrders")

    def author_problem(self, order: OrderObject) -> Reason | None:
        client = self.writer.client
        policy = objects.get_plain(client, "ValidatingAdmissionPolicy", POLICY_NAME)
        binding = objects.get_plain(client, "ValidatingAdmissionPolicyBinding", POLICY_NAME)
        if problem := policy_problem(policy, binding):
            return o.UNPROVEN(f"{problem}, so the author of the order is not certain")
        assert policy is not None
        assert binding is not None
        since = in_force_since(policy, binding)
        if since is None or order.created < since + MARGIN_SECONDS:
            return o.UNPROVEN(
                f"the order was created before the ValidatingAdmissionPolicy {POLICY_NAME} was in force, so its author "
                "is not certain"
            )
        return None

    def rights_problem(
        self, spec: OrderSpec, nodes: Iterable[str], namespaces: Iterable[str], *, reads: bool
    ) -> Reason | None:
        access = UserAccess(self.writer.client, spec.by, spec.groups)
        try:
            missing = list(list_missing_writes(access, nodes, namespaces))
            if reads:
                missing += list_missing_reads(access)
        except KubeFault as error:
            return o.RIGHTS_UNKNOWN(f"it is not known what {spec.by} may do: {error}")
        if missing:
            return o.AUTHOR_MAY_NOT(f"{spec.by} may not {join_first(missing, MAX_NAMED_RIGHTS)}")
        return None

    def write_status(self, order: OrderObject, status: OrderStatus) -> None:
        # With the uid: the status of an order that was deleted and created again is another one's.
        body = {"metadata": {"uid": order.uid}, "status": to_document(status)}
        objects.merge_status(self.writer, KIND, order.name, self.namespace, body)

    def report_event(self, order: OrderObject, reason: Reason, *, is_warning: bool) -> None:
        about = About(
            kind=KIND, name=order.name, namespace=self.namespace, uid=order.uid, api_version=f"{GROUP}/{VERSION}"
        )
        word = "".join(part.capitalize() for part in reason.code.name.split("-"))
        self.recorder.record_event(about, word, reason.sentence, action="Drain", warning=is_warning)
