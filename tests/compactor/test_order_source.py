"""What the compactor reads of DrainOrders, and of what their authors may do, from an API server that is played."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.compaction.order.test_author_policy import stored
from trimtab.compaction.order.order_object import OrderObject, OrderSpec, OrderStatus
from trimtab.compactor.order.order_source import MAX_PAGES, KubeOrderSource
from trimtab.kube.errors import InvalidResponse, KubeFault, refusal_of_response
from trimtab.kube.objects import Writer

SPEC = OrderSpec(by="ann", groups=("team",), nodes=("a", "b"))


@dataclass
class Server:
    """Answers of an API server. `may` says what a review answers, by its resource attributes."""

    pages: list[dict[str, Any]] = field(default_factory=list)
    may: Callable[[Mapping[str, str]], bool] = lambda right: True
    fails: bool = False
    evaluation_error: str = ""
    asked: list[dict[str, Any]] = field(default_factory=list)
    objects: tuple[dict[str, Any], dict[str, Any]] | None = None

    def get(self, path: str, query: Mapping[str, Any] | None = None, *, doing: str = "") -> bytes:
        if "validatingadmissionpolicies" in path or "validatingadmissionpolicybindings" in path:
            if self.objects is None:
                raise refusal_of_response(doing, 404, b"")
            return json.dumps(self.objects["bindings" in path]).encode()
        if not self.pages:
            raise refusal_of_response(doing, 404, b"")
        return json.dumps(self.pages[int((query or {}).get("continue") or 0)]).encode()

    def write(self, method: str, path: str, body: Any, *, doing: str, **_: Any) -> bytes:
        if self.fails:
            raise KubeFault("no answer")
        self.asked.append(body["spec"])
        status = {"allowed": self.may(body["spec"]["resourceAttributes"]), "evaluationError": self.evaluation_error}
        return json.dumps({"status": status}).encode()

    def source(self) -> KubeOrderSource:
        return KubeOrderSource(Writer(client=self), "ours", None)  # type: ignore[arg-type]


def item(name: str) -> dict[str, Any]:
    metadata = {"name": name, "uid": f"u-{name}", "creationTimestamp": "2026-01-01T00:00:00Z"}
    return {"metadata": metadata, "spec": {"by": "ann", "nodes": ["a"]}}


def created(at: int) -> OrderObject:
    return OrderObject(name="o", uid="u", created=at, generation=1, spec=SPEC, status=OrderStatus())


def test_every_page_of_the_list_is_read() -> None:
    server = Server([{"metadata": {"continue": "1"}, "items": [item("b")]}, {"items": [item("a")]}])
    assert [order.name for order in server.source().list_orders().orders] == ["a", "b"]


def test_a_list_without_end_is_no_list() -> None:
    server = Server([{"metadata": {"continue": str(n + 1)}, "items": [item(f"o{n}")]} for n in range(MAX_PAGES + 2)])
    with pytest.raises(InvalidResponse):
        server.source().list_orders()


def test_a_kind_that_is_not_served_is_not_an_empty_list() -> None:
    assert not Server().source().list_orders().is_served
    assert Server([{"items": []}]).source().list_orders().is_served


def test_reviews_name_the_author_with_the_groups_of_the_order_alone() -> None:
    server = Server()
    assert server.source().rights_problem(SPEC, ["a"], ["web"], reads=True) is None
    assert {(asked["user"], tuple(asked["groups"])) for asked in server.asked} == {("ann", ("team",))}


def test_without_a_permission_for_all_each_node_and_each_namespace_is_asked() -> None:
    def may(right: Mapping[str, str]) -> bool:
        return right.get("name") == "a" or right.get("namespace") == "web"

    server = Server(may=may)
    assert server.source().rights_problem(SPEC, ["a"], ["web"], reads=False) is None
    for nodes, namespaces in ((["a", "b"], ["web"]), (["a"], ["web", "shop"])):
        problem = server.source().rights_problem(SPEC, nodes, namespaces, reads=False)
        assert problem is not None
        assert problem.code.name == "order-author-not-permitted"


def test_an_author_who_may_not_read_is_not_permitted() -> None:
    server = Server(may=lambda right: right.get("resource") != "poddisruptionbudgets")
    problem = server.source().rights_problem(SPEC, ["a"], ["web"], reads=True)
    assert problem is not None
    assert problem.code.name == "order-author-not-permitted"


def test_a_review_without_an_answer_is_not_known() -> None:
    problem = Server(fails=True).source().rights_problem(SPEC, ["a"], ["web"], reads=False)
    assert problem is not None
    assert problem.code.name == "order-rights-unknown"


def test_an_order_counts_only_if_the_policy_was_in_force_before() -> None:
    policy, binding = stored()
    written = 1_767_225_600  # 2026-01-01T00:00:00Z
    server = Server(objects=(policy, binding))
    assert server.source().author_problem(created(written + 5)) is None
    for order, objects in ((created(written + 4), (policy, binding)), (created(written + 900), None)):
        server.objects = objects
        problem = server.source().author_problem(order)
        assert problem is not None
        assert problem.code.name == "order-author-unproven"


def test_an_authorizer_that_fails_has_not_denied_anything() -> None:
    server = Server(may=lambda right: False, evaluation_error="webhook: context deadline exceeded")
    reason = server.source().rights_problem(SPEC, ["a"], ["default"], reads=False)
    assert reason is not None
    assert reason.code.name == "order-rights-unknown"
